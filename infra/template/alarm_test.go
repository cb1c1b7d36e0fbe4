package template_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
)

// wanted are the alarms of a stage and where each reports: those of the list, with what prod adds.
func wanted(stage string) map[string]template.Part {
	const pages, notices = "AlarmsPages", "AlarmsNotices"
	all := map[string]template.Part{
		"parked-events":                    pages,
		"dead-letter-queue-not-empty":      notices,
		"oldest-open-event-over-objective": notices,
		"oldest-message-over-objective":    notices,
		"one-group-fills-the-scan-window":  notices,
		"runs-not-started":                 notices,
		"deliveries-fail":                  notices,
		"deliveries-keep-failing":          notices,
		"acknowledgement-slow":             notices,
		"signatures-do-not-match":          notices,
		"no-usable-signing-secret":         notices,
		"event-too-large":                  notices,
		"unexpected-api-version":           notices,
		"processor-crashes":                notices,
		"processor-throttled":              notices,
		"processor-near-its-time-out":      notices,
		"processor-at-its-concurrency":     notices,
		"tables-throttle":                  notices,
		"tables-fail":                      notices,
		"audit-found-missing-events":       notices,
		"audit-could-not-heal":             notices,
		"audit-did-not-run":                notices,
	}
	if stage == "prod" {
		all["silence"] = notices
		all["receiver-near-its-concurrency"] = notices
	}
	return all
}

func TestAlarmsAreThoseAskedForAndReportWhereTheyShould(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		got := map[string]template.Part{}
		for _, alarm := range must(stack.Alarms())(t) {
			name := strings.TrimPrefix(alarm.Name, "Backstop-"+stage+"-")
			if len(alarm.Actions) != 1 || !slices.Equal(alarm.Actions, alarm.OKActions) {
				t.Errorf("%s: rings at %v, clears at %v", name, alarm.Actions, alarm.OKActions)
				continue
			}
			got[name] = alarm.Actions[0]
		}
		if diff := cmp.Diff(wanted(stage), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestEveryAlarmTellsWhatToDo(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		descriptions := map[string]string{}
		for _, alarm := range must(stack.Alarms())(t) {
			descriptions[alarm.Name] = alarm.Description
		}
		for _, composite := range ofType(t, stack, "AWS::CloudWatch::CompositeAlarm") {
			name, _ := composite.Properties["AlarmName"].(string)
			descriptions[name], _ = composite.Properties["AlarmDescription"].(string)
		}
		if len(descriptions) < 20 {
			t.Fatalf("only %d alarms", len(descriptions))
		}
		for name, description := range descriptions {
			anchor := strings.TrimPrefix(name, "Backstop-"+stage+"-")
			if !strings.Contains(description, "See internal/replay/RUNBOOK.md#"+anchor+".") {
				t.Errorf("%s does not point at its part of the runbook: %q", name, description)
			}
			// What is the case, what to do, the runbook, and why it does not flap.
			if sentences := strings.Count(description, ". "); sentences < 3 || len(description) > 1024 {
				t.Errorf("%s: %d sentences, %d characters of at most 1,024", name, sentences, len(description))
			}
		}
	})
}

func TestEveryAlarmHasItsPlaceInTheRunbook(t *testing.T) {
	t.Parallel()
	const file = "../../internal/replay/RUNBOOK.md"
	runbook, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, line := range strings.Split(string(runbook), "\n") {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			headings[strings.ReplaceAll(strings.ToLower(strings.Trim(heading, "` ")), " ", "-")] = true
		}
	}
	names := []string{"billing-events-are-not-being-processed"}
	for name := range wanted("prod") {
		names = append(names, name)
	}
	for _, name := range names {
		if !headings[name] {
			t.Errorf("%s has no heading %q", file, name)
		}
	}
}

func TestAlarmsMayPublishToTheirTopics(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		allowed := 0
		for _, policy := range ofType(t, stack, "AWS::SNS::TopicPolicy") {
			for _, statement := range statements(policy) {
				if statement["Effect"] == "Allow" && strings.Contains(text(statement["Principal"]), "cloudwatch.amazonaws.com") &&
					statement["Action"] == "sns:Publish" {
					allowed++
				}
			}
		}
		if want := len(ofType(t, stack, "AWS::SNS::Topic")); allowed != want {
			t.Errorf("%d of %d topics let alarms in: a policy of one's own replaces the default one that did", allowed, want)
		}
	})
}

func TestMissingDataIsTreatedOnPurpose(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		special := map[string]string{
			"parked-events":                    "ignore",    // no reconciler must not clear what it counted
			"oldest-open-event-over-objective": "breaching", // no sweep
			"audit-did-not-run":                "breaching",
			"silence":                          "breaching",
		}
		for _, alarm := range must(stack.Alarms())(t) {
			want, ok := special[strings.TrimPrefix(alarm.Name, "Backstop-"+stage+"-")]
			if !ok {
				want = "notBreaching"
			}
			if alarm.Missing != want {
				t.Errorf("%s: missing data is %s, want %s", alarm.Name, alarm.Missing, want)
			}
		}
	})
}

func TestExpressionsDoNotVanishWithOneMissingValue(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		expressions := 0
		for _, alarm := range must(stack.Alarms())(t) {
			if alarm.Expression == "" {
				continue
			}
			expressions++
			for _, metric := range alarm.Metrics {
				uses := len(regexp.MustCompile(`\b`+metric.ID+`\b`).FindAllString(alarm.Expression, -1))
				if filled := strings.Count(alarm.Expression, "FILL("+metric.ID+", 0)"); uses == 0 || filled != uses {
					t.Errorf("%s: %d of %d uses of %s are filled in %s", alarm.Name, filled, uses, metric.ID, alarm.Expression)
				}
			}
		}
		if expressions != 3 {
			t.Errorf("%d expressions checked", expressions)
		}
	})
}

// An alarm on requests rings only for several of them, or for several periods; these few ring for one, each on
// purpose: what they count cannot be caused by an unverified request, or tells of the deployment.
func TestNoAlarmFlapsOnOneBadRequest(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		onPurpose := []string{"parked-events", "dead-letter-queue-not-empty", "no-usable-signing-secret", "event-too-large"}
		for _, alarm := range must(stack.Alarms())(t) {
			name := strings.TrimPrefix(alarm.Name, "Backstop-"+stage+"-")
			one := alarm.Threshold <= 1 && alarm.Datapoints == 1
			if one != slices.Contains(onPurpose, name) {
				t.Errorf("%s rings at %v in %d of %d periods", name, alarm.Threshold, alarm.Datapoints, alarm.Periods)
			}
		}
	})
}

func TestOneEventThatKillsItsProcessDoesNotRingTheAlarmOnCrashes(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		for _, alarm := range must(stack.Alarms())(t) {
			if alarm.Name != "Backstop-"+stage+"-processor-crashes" {
				continue
			}
			// It kills eight times, its budget, and may do so across two periods.
			if least := alarm.Threshold * float64(alarm.Datapoints); alarm.Datapoints != 2 || least <= 8 {
				t.Errorf("%v crashes in %d of %d periods ring it", least, alarm.Datapoints, alarm.Periods)
			}
			return
		}
		t.Error("there is no such alarm")
	})
}

func TestDeadLetterAlarmRingsWithinAMinute(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		for _, alarm := range must(stack.Alarms())(t) {
			for _, metric := range alarm.Metrics {
				if metric.Name == "NumberOfMessagesSent" {
					t.Errorf("%s counts messages sent, which leaves out what SQS itself moves", alarm.Name)
				}
			}
			if alarm.Name != "Backstop-"+stage+"-dead-letter-queue-not-empty" {
				continue
			}
			want := template.Alarm{
				Name: alarm.Name, Description: alarm.Description,
				Metrics: []template.AlarmMetric{{
					Namespace: "AWS/SQS", Name: "ApproximateNumberOfMessagesVisible", Statistic: "Maximum", Period: 60,
					Dimensions: map[string]template.Value{"QueueName": {Part: template.DeadLetterQueue, Attribute: "QueueName"}},
				}},
				Threshold: 1, Comparison: "GreaterThanOrEqualToThreshold", Periods: 1, Datapoints: 1, Missing: "notBreaching",
				Actions: []template.Part{"AlarmsNotices"}, OKActions: []template.Part{"AlarmsNotices"},
			}
			if diff := cmp.Diff(want, alarm); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
		t.Error("no alarm on the dead-letter queue")
	})
}

func TestCompositeWatchesTheWholeWay(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		for _, composite := range ofType(t, stack, "AWS::CloudWatch::CompositeAlarm") {
			rule := text(composite.Properties["AlarmRule"])
			parts := []string{
				"deliveriesfail", "deliverieskeepfailing", "nousablesigningsecret",
				"oldestopeneventoverobjective", "oldestmessageoverobjective", "processorcrashes",
			}
			if stage == "prod" {
				parts = append(parts, "silence")
			}
			for _, part := range parts {
				if !strings.Contains(rule, "Alarms"+part) {
					t.Errorf("the composite does not watch %s", part)
				}
			}
			if got := strings.Count(rule, "ALARM("); got != len(parts) {
				t.Errorf("it watches %d alarms, want %d", got, len(parts))
			}
			if actions := text(composite.Properties["AlarmActions"]); !strings.Contains(actions, "AlarmsPages") {
				t.Errorf("it does not page: %s", actions)
			}
		}
	})
}

// metricNames are the constants of telemetry/names.go, read from the source: Go keeps no list of constants.
func metricNames(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/telemetry/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return true
	})
	if len(names) < 20 {
		t.Fatalf("only %d names of metrics found", len(names))
	}
	return names
}

func TestEveryMetricPaidForIsLookedAt(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		shown := text(stack.Resources[stack.OfType("AWS::CloudWatch::Dashboard")[0]])
		read := map[string]bool{}
		for _, alarm := range must(stack.Alarms())(t) {
			for _, metric := range alarm.Metrics {
				if metric.Namespace == "Backstop" {
					read[metric.Name] = true
				}
			}
		}
		names := metricNames(t)
		for _, name := range names {
			if !read[name] && !strings.Contains(shown, `\"`+name+`\"`) {
				t.Errorf("%s is published at $0.30 a month, and neither an alarm nor the dashboard reads it", name)
			}
		}
		for name := range read {
			if !slices.Contains(names, name) {
				t.Errorf("an alarm reads %s, which no function publishes", name)
			}
		}
	})
}

// The fixed cost of watching, by list prices in us-east-1 as published in 2025 (Amazon CloudWatch and AWS Secrets Manager
// pricing pages), without the free tier: a custom metric $0.30, an alarm $0.10 for each metric it reads, a composite
// $0.50, a dashboard $3.00, a secret $0.40 a month.
func TestMonthlyCostOfWatchingIsKnown(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		read := 0
		for _, alarm := range must(stack.Alarms())(t) {
			read += len(alarm.Metrics)
		}
		metrics := 0.30 * float64(len(metricNames(t)))
		alarms := 0.10*float64(read) + 0.50*float64(len(ofType(t, stack, "AWS::CloudWatch::CompositeAlarm")))
		dashboards := 3.00 * float64(len(ofType(t, stack, "AWS::CloudWatch::Dashboard")))
		secrets := 0.40 * float64(len(ofType(t, stack, "AWS::SecretsManager::Secret")))
		t.Logf("metrics $%.2f, alarms $%.2f, dashboard $%.2f, secrets $%.2f a month", metrics, alarms, dashboards, secrets)
		got := fmt.Sprintf("%.2f", math.Round(100*(metrics+alarms+dashboards+secrets))/100)
		if want := map[string]string{"dev": "15.90", "prod": "16.10"}[stage]; got != want {
			t.Errorf("a month of watching costs $%s, not $%s: if that is meant, say it here and in the README", got, want)
		}
	})
}
