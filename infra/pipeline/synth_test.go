package pipeline

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/google/go-cmp/cmp"

	"backstop/infra/node"
	"backstop/infra/template"
)

var update = flag.Bool("update", false, "write the templates that are synthesised over those committed")

// The CDK's JavaScript side is one process with one conversation, so tests that synthesise do not run in parallel.

// needNode skips where the CDK cannot run. Everything the committed templates prove is tested in infra/template, which
// needs no Node.
func needNode(t *testing.T) {
	t.Helper()
	if err := node.Check(); err != nil {
		t.Skip("not synthesised: ", err)
	}
}

// bundles is a folder of binaries as `make build` leaves it: what they do does not matter to the stack.
func bundles(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range functionNames {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "bootstrap"), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// synthesis is what a run of the app leaves in its output folder.
type synthesis struct{ folder string }

// synthesise runs build in a new app with the rules of cdk-nag on. A failure on the CDK's side is a panic of the Go
// side, which would stop the other tests.
func synthesise(t *testing.T, build func(awscdk.App) error) (result synthesis) {
	t.Helper()
	needNode(t)
	defer func() {
		if failure := recover(); failure != nil {
			t.Fatalf("synthesise: %v", failure)
		}
	}()
	result.folder = t.TempDir()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: text(result.folder)})
	if err := build(app); err != nil {
		t.Fatal(err)
	}
	Nag(app)
	app.Synth(nil)
	return result
}

func synthesiseStage(t *testing.T, s Settings) synthesis {
	t.Helper()
	return synthesise(t, func(app awscdk.App) error {
		_, err := New(app, Props{Settings: s, Bundles: bundles(t)})
		return err
	})
}

func (r synthesis) template(t *testing.T, stack string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.folder, stack+".template.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// findings returns the rules broken without a suppression, and how many were checked.
func (r synthesis) findings(t *testing.T) (broken []string, checked int) {
	t.Helper()
	reports, err := filepath.Glob(filepath.Join(r.folder, "*NagReport.csv"))
	if err != nil || len(reports) == 0 {
		t.Fatalf("cdk-nag left no report in %s: %v", r.folder, err)
	}
	for _, report := range reports {
		data, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil {
			t.Fatalf("read %s: %v", report, err)
		}
		for _, row := range rows[1:] {
			checked++
			switch rule, resource, result, reason := row[0], row[1], row[2], row[3]; {
			case result == "Compliant" || result == "N/A":
			case result == "Suppressed" && len(reason) > 20:
			default:
				broken = append(broken, fmt.Sprintf("%s on %s: %s (%s)", rule, resource, result, row[5]))
			}
		}
	}
	return broken, checked
}

func stages() []Settings { return []Settings{Dev(), Prod()} }

func TestTemplatesAreThoseCommitted(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.Stage, func(t *testing.T) {
			got := template.Scrub(synthesiseStage(t, s).template(t, StackName(s.Stage)))
			committed := filepath.Join("..", "template", "testdata", s.Stage+".template.json")
			if *update {
				if err := os.WriteFile(committed, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(committed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("the stack has changed; if that is meant, run `make snapshot` and commit (-committed +synthesised):\n%s", diff)
			}
		})
	}
}

func TestSameSettingsGiveTheSameTemplate(t *testing.T) {
	first := synthesiseStage(t, Prod()).template(t, StackName("prod"))
	second := synthesiseStage(t, Prod()).template(t, StackName("prod"))
	if len(first) < 10_000 {
		t.Fatalf("the template has %d bytes only", len(first))
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestTheCDKWarnsOfNothing(t *testing.T) {
	s := everything()
	result := synthesiseStage(t, s)
	metadata, err := os.ReadFile(filepath.Join(result.folder, StackName(s.Stage)+".metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	var notes map[string][]struct {
		Type string
		Data any
	}
	if err := json.Unmarshal(metadata, &notes); err != nil || len(notes) == 0 {
		t.Fatalf("%d notes in the assembly: %v", len(notes), err)
	}
	for where, list := range notes {
		for _, note := range list {
			if note.Type == "aws:cdk:warning" || note.Type == "aws:cdk:error" {
				t.Errorf("%s: %v", where, note.Data)
			}
		}
	}
}

// everything is a stage with all switches on.
func everything() Settings {
	s := Prod()
	s.CustomerKey, s.Tracing = true, true
	s.Email, s.Pager = "oncall@example.test", "https://pager.example.test/backstop"
	s.Domain, s.Certificate = "hooks.example.test", "arn:aws:acm:us-east-1:123456789012:certificate/00000000-0000-0000-0000-000000000000"
	s.EventTypes, s.Accounts = "invoice.paid", "acct_1,acct_2"
	return s
}

func TestNoRuleOfAWSSolutionsIsBrokenWithoutAReason(t *testing.T) {
	for name, s := range map[string]Settings{"dev": Dev(), "prod": Prod(), "everything on": everything()} {
		t.Run(name, func(t *testing.T) {
			broken, checked := synthesiseStage(t, s).findings(t)
			if checked < 20 {
				t.Fatalf("only %d checks were made", checked)
			}
			for _, finding := range broken {
				t.Error(finding)
			}
		})
	}
}

func TestSwitchesReachTheTemplate(t *testing.T) {
	parse := func(t *testing.T, s Settings) template.Template {
		t.Helper()
		parsed, err := template.Parse(synthesiseStage(t, s).template(t, StackName(s.Stage)))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	t.Run("everything on", func(t *testing.T) {
		all := parse(t, everything())
		for kind, want := range map[string]int{
			"AWS::KMS::Key":                   1,
			"AWS::ApiGatewayV2::DomainName":   1,
			"AWS::ApiGatewayV2::ApiMapping":   1,
			"AWS::SNS::Subscription":          3, // e-mail to both topics, the pager to one
			"AWS::Scheduler::Schedule":        2,
			"AWS::CloudWatch::CompositeAlarm": 1,
		} {
			if got := len(all.OfType(kind)); got != want {
				t.Errorf("%d resources of type %s, want %d", got, kind, want)
			}
		}
		for _, name := range template.FunctionNames {
			f, err := all.Function(name)
			if err != nil {
				t.Fatal(err)
			}
			if !f.Tracing {
				t.Errorf("the %s is not traced", name)
			}
			if !hasGrant(f, "kms:Decrypt", template.TableKey) {
				t.Errorf("the %s may not use the tables' key", name)
			}
		}
		for _, part := range []template.Part{template.Ledger, template.Billing, template.Control} {
			if table, err := all.Table(part); err != nil || table.Key != template.TableKey {
				t.Errorf("%s is encrypted under %q: %v", part, table.Key, err)
			}
		}
		reconciler, err := all.Function(template.Reconciler)
		if err != nil {
			t.Fatal(err)
		}
		if got := reconciler.Environment["BACKSTOP_ACCOUNTS"].Literal; got != "acct_1,acct_2" {
			t.Errorf("accounts are %q", got)
		}
	})
	t.Run("audit and silence off", func(t *testing.T) {
		s := Prod()
		s.Audit, s.UsualGap, s.SilentGaps = false, 0, 0
		off := parse(t, s)
		if got := len(off.OfType("AWS::Scheduler::Schedule")); got != 1 {
			t.Errorf("%d schedules, want the sweep's only", got)
		}
		alarms, err := off.Alarms()
		if err != nil || len(alarms) == 0 {
			t.Fatalf("%d alarms: %v", len(alarms), err)
		}
		for _, alarm := range alarms {
			if strings.Contains(alarm.Name, "audit") || strings.Contains(alarm.Name, "silence") {
				t.Errorf("alarm %s is there without what it watches", alarm.Name)
			}
		}
	})
}

func hasGrant(f template.Function, action string, part template.Part) bool {
	for _, grant := range f.Grants {
		if grant.Action == action && grant.Part == part {
			return true
		}
	}
	return false
}
