package template_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
	"backstop/internal/config"
	"backstop/internal/process"
)

func TestVisibilityTimeoutIsSixTimesFunctionTimeout(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		processor := must(stack.Function(template.Processor))(t)
		if processor.Timeout != 30*time.Second {
			t.Fatalf("the processor's time-out is %s", processor.Timeout)
		}
		if got := must(stack.Queue(template.Queue))(t).Attributes["VisibilityTimeout"]; got != "180" {
			t.Errorf("visibility time-out is %s s, want 180", got)
		}
	})
}

func TestLeaseOutlivesTheFunctionAndEndsBeforeTheMessageIsSeenAgain(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		timeout := must(stack.Function(template.Processor))(t).Timeout
		lease := timeout + process.DefaultTiming().Lease // of a claim made at once
		if lease <= timeout {
			t.Errorf("a lease of %s ends while the function may still run, for %s", lease, timeout)
		}
		visibility, err := time.ParseDuration(must(stack.Queue(template.Queue))(t).Attributes["VisibilityTimeout"] + "s")
		if err != nil || lease >= visibility {
			t.Errorf("a lease of %s outlives the message's time-out of %s (%v), so the next receive meets it", lease, visibility, err)
		}
	})
}

// The arithmetic of the alarm on crashes: infra/pipeline counts with six seconds beyond the time-out.
func TestBatchOfAKilledProcessIsSeenAgainSixSecondsAfterItsTimeOut(t *testing.T) {
	t.Parallel()
	if got := process.DefaultTiming().Lease + time.Second; got != 6*time.Second {
		t.Errorf("the processor hides a batch for %s beyond its deadline: change hiddenBeyond in infra/pipeline/stage.go", got)
	}
	if process.Budget != 8 {
		t.Errorf("the budget is %d attempts: change attempts in infra/pipeline/stage.go", process.Budget)
	}
}

func TestReceiverAnswersBeforeTheGatewayGivesUp(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		if got := must(stack.Function(template.Receiver))(t).Timeout; got == 0 || got > 29*time.Second {
			t.Errorf("time-out is %s", got)
		}
	})
}

func TestSweepEndsBeforeTheNextOne(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		if got := must(stack.Function(template.Reconciler))(t).Timeout; got == 0 || got >= time.Minute {
			t.Errorf("time-out is %s, and a sweep starts every minute", got)
		}
	})
}

func TestMappingReportsFailuresItemByItem(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		want := template.Mapping{
			Source: template.Queue, Target: template.ProcessorFunction,
			BatchSize: 10, BatchingWindow: 0, ReportBatchItemFailures: true,
			MaximumConcurrency: map[string]int{"dev": 2, "prod": 20}[stage],
			SaysEnabled:        false, // a deployment must not resume what was paused
		}
		if diff := cmp.Diff(want, must(stack.Mapping())(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestReservedConcurrencyCarriesTheMapping(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		mapping := must(stack.Mapping())(t)
		for _, name := range template.FunctionNames {
			f := must(stack.Function(name))(t)
			if stage == "dev" && f.Reserved != 0 {
				t.Errorf("dev reserves %d for the %s, which a new account refuses", f.Reserved, name)
			}
			if stage == "prod" && f.Reserved < 2 {
				t.Errorf("prod reserves %d for the %s", f.Reserved, name)
			}
			if name == template.Processor && f.Reserved != 0 && f.Reserved < mapping.MaximumConcurrency {
				t.Errorf("%d reserved, and the mapping asks for %d", f.Reserved, mapping.MaximumConcurrency)
			}
		}
	})
}

func TestFunctionsRunTheDeclaredWay(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		if functions := ofType(t, stack, "AWS::Lambda::Function"); len(functions) != 3 {
			t.Errorf("%d functions: the CDK has added some of its own", len(functions))
		}
		for _, name := range template.FunctionNames {
			f := must(stack.Function(name))(t)
			if f.Runtime != "provided.al2023" || f.Architecture != "arm64" || f.Tracing {
				t.Errorf("%s: %s, %s, traced %t", name, f.Runtime, f.Architecture, f.Tracing)
			}
		}
		for id, resource := range ofType(t, stack, "AWS::Lambda::Function") {
			logging := text(resource.Properties["LoggingConfig"])
			for _, want := range []string{`"LogFormat":"JSON"`, `"SystemLogLevel":"WARN"`, `"ApplicationLogLevel":"INFO"`} {
				if !strings.Contains(logging, want) {
					t.Errorf("%s logs with %s, want %s", id, logging, want)
				}
			}
		}
		for id, log := range ofType(t, stack, "AWS::Logs::LogGroup") {
			if log.Properties["RetentionInDays"] == nil {
				t.Errorf("%s is kept for ever", id)
			}
		}
	})
}

func TestMemoryLimitOfGoIsUnderTheFunctions(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		want := map[string]string{template.Receiver: "217MiB", template.Processor: "435MiB", template.Reconciler: "217MiB"}
		for _, name := range template.FunctionNames {
			if got := must(stack.Function(name))(t).Environment["GOMEMLIMIT"].Literal; got != want[name] {
				t.Errorf("GOMEMLIMIT of the %s is %q, want %q", name, got, want[name])
			}
		}
	})
}

func TestEnvironmentIsByTheNamesTheFunctionsRead(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		mode := map[string]string{"dev": "test", "prod": "live"}[stage]
		shared := func(memory string, more map[string]template.Value) map[string]template.Value {
			more[config.Stage] = template.Value{Literal: stage}
			more[config.LedgerTable] = template.Value{Part: template.Ledger}
			more[config.QueueURL] = template.Value{Part: template.Queue}
			more["GOMEMLIMIT"] = template.Value{Literal: memory}
			return more
		}
		want := map[string]map[string]template.Value{
			template.Receiver: shared("217MiB", map[string]template.Value{
				config.SigningSecretID: {Part: template.SigningSecret},
				config.APIVersion:      {Literal: "2025-08-27.basil"},
			}),
			template.Processor: shared("435MiB", map[string]template.Value{
				config.Mode:          {Literal: mode},
				config.BillingTable:  {Part: template.Billing},
				config.DeadLetterURL: {Part: template.DeadLetterQueue},
				config.StripeKeyID:   {Part: template.StripeKey},
			}),
			template.Reconciler: shared("217MiB", map[string]template.Value{
				config.Mode:          {Literal: mode},
				config.ControlTable:  {Part: template.Control},
				config.DeadLetterURL: {Part: template.DeadLetterQueue},
				config.StripeKeyID:   {Part: template.StripeKey},
			}),
		}
		for _, name := range template.FunctionNames {
			if diff := cmp.Diff(want[name], must(stack.Function(name))(t).Environment); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestNoSecretStandsInAnEnvironment(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		for _, name := range template.FunctionNames {
			environment := must(stack.Function(name))(t).Environment
			if len(environment) == 0 {
				t.Fatalf("the %s has no environment to check", name)
			}
			for _, laptopsOnly := range []string{config.SigningSecrets, config.StripeKey, config.StripeURL, config.Journal} {
				if _, set := environment[laptopsOnly]; set {
					t.Errorf("%s of the %s is for laptops only", laptopsOnly, name)
				}
			}
		}
		for _, trace := range []string{"whsec_", "rk_live", "sk_live", "rk_test", "sk_test", "{{resolve:"} {
			if whole := text(stack.Resources); strings.Contains(whole, trace) && trace != "whsec_" {
				t.Errorf("the template holds %s", trace)
			} else if strings.Count(whole, trace) != strings.Count(whole, "whsec_...") && trace == "whsec_" {
				t.Error("the template holds a signing secret")
			}
		}
	})
}

func TestVariablesOfALocalRunAreResolved(t *testing.T) {
	t.Parallel()
	stack := must(template.Golden("prod"))(t)
	receiver := must(stack.Function(template.Receiver))(t)
	got := must(receiver.Variables(map[template.Part]string{
		template.Ledger: "backstop-dev-ledger", template.Queue: "http://127.0.0.1/queue", template.SigningSecret: "signing",
	}))(t)
	want := map[string]string{
		"BACKSTOP_STAGE": "prod", "BACKSTOP_API_VERSION": "2025-08-27.basil", "GOMEMLIMIT": "217MiB",
		"BACKSTOP_LEDGER_TABLE": "backstop-dev-ledger", "BACKSTOP_QUEUE_URL": "http://127.0.0.1/queue",
		"BACKSTOP_SIGNING_SECRET_ID": "signing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := receiver.Variables(map[template.Part]string{template.Ledger: "ledger"}); err == nil {
		t.Error("a variable without a local name was let pass")
	}
}

func TestSchedulesRunTheReconcilerWithoutRetries(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		var inputs []string
		for id, schedule := range ofType(t, stack, "AWS::Scheduler::Schedule") {
			target, _ := schedule.Properties["Target"].(map[string]any)
			input, _ := target["Input"].(string)
			inputs = append(inputs, text(schedule.Properties["ScheduleExpression"])+input)
			if !strings.Contains(text(target["RetryPolicy"]), `"MaximumRetryAttempts":0`) {
				t.Errorf("%s repeats: %s", id, text(target["RetryPolicy"]))
			}
			if !strings.Contains(text(target["DeadLetterConfig"]), string(template.UnstartedRuns)) {
				t.Errorf("%s: what could not be started goes to %s", id, text(target["DeadLetterConfig"]))
			}
		}
		slices.Sort(inputs)
		want := []string{"\"rate(1 minute)\"\n{\"task\":\"sweep\"}", "\"rate(15 minutes)\"\n{\"task\":\"audit\"}"}
		if diff := cmp.Diff(want, inputs); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for id, invoke := range ofType(t, stack, "AWS::Lambda::EventInvokeConfig") {
			if invoke.Properties["MaximumRetryAttempts"] != 0.0 || invoke.Properties["DestinationConfig"] != nil {
				t.Errorf("%s: %s", id, text(invoke.Properties))
			}
		}
	})
}

func TestAPIHasItsTwoRoutesAndLogsNoQueryString(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		var routes []string
		for _, route := range ofType(t, stack, "AWS::ApiGatewayV2::Route") {
			routes = append(routes, text(route.Properties["RouteKey"]))
		}
		slices.Sort(routes)
		if diff := cmp.Diff([]string{"\"GET /health\"\n", "\"POST /webhooks/stripe\"\n"}, routes); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
		for id, stage := range ofType(t, stack, "AWS::ApiGatewayV2::Stage") {
			settings := text(stage.Properties["AccessLogSettings"])
			if !strings.Contains(settings, "$context.requestId") {
				t.Errorf("%s has no access log: %s", id, settings)
			}
			for _, private := range []string{"$context.path", "query", "sourceIp", "userAgent", "authorizer"} {
				if strings.Contains(settings, private) {
					t.Errorf("%s logs %s", id, private)
				}
			}
			limits := text(stage.Properties["DefaultRouteSettings"])
			if !strings.Contains(limits, "ThrottlingRateLimit") || !strings.Contains(limits, "ThrottlingBurstLimit") {
				t.Errorf("%s throttles nothing: %s", id, limits)
			}
		}
		if !strings.Contains(text(stack.Outputs["WebhookURL"].Value), "/webhooks/stripe") {
			t.Error("no output says where to point Stripe")
		}
	})
}
