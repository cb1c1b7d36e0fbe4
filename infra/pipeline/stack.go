// Package pipeline is Backstop's infrastructure: one stack a stage, made of plain Go settings.
//
// One concern a file: stage.go has every number with its reason; tables.go, queues.go and secrets.go what is kept;
// functions.go, rights.go, api.go and schedules.go what runs; alarms.go, alarmlist.go and dashboard.go what a person
// looks at; nag.go what was judged to be all right. Types of the CDK's JavaScript side stay inside the package.
//
// What a laptop and the cloud must agree on (keys, attributes, time-outs, names of variables and metrics) comes from
// the packages schema, config and telemetry; package infra/template reads it back from the synthesised template, where
// the tests compare.
package pipeline

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// Props is what the stack is made from.
type Props struct {
	Settings Settings

	// Bundles is the folder that holds <function>/bootstrap for each function; see CheckBundles.
	Bundles string
}

// parts is everything of a stack that alarms and dashboard look at.
type parts struct {
	metrics
	tables    tables
	queues    queues
	functions functions
	api       api
	schedules schedules
}

// StackName returns the name of a stage's stack.
func StackName(stage string) string { return "Backstop-" + stage }

// New adds the stack of one stage to an app. The stack belongs to no account or region: the deployer's own.
func New(scope constructs.Construct, props Props) (awscdk.Stack, error) {
	s := props.Settings
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("settings of stage %s: %w", s.Stage, err)
	}
	stack := awscdk.NewStack(scope, text(StackName(s.Stage)), &awscdk.StackProps{
		StackName:             text(StackName(s.Stage)),
		Description:           text("Backstop " + s.Stage + ": Stripe webhooks, received, recorded and processed once"),
		TerminationProtection: &s.Retain,
		AnalyticsReporting:    no(), // no resource that only counts CDK users
	})
	t := newTables(stack, s)
	q := newQueues(stack, s)
	k := newSecrets(stack, s)
	f := newFunctions(stack, s, props.Bundles, t, q, k)
	p := parts{
		metrics:   metrics{stage: s.Stage},
		tables:    t,
		queues:    q,
		functions: f,
		api:       newAPI(stack, s, f.receiver),
		schedules: newSchedules(stack, s, f.reconciler),
	}
	a := newAlarms(stack, s, alarmList(s, p))
	d := newDashboard(stack, s, p, a)
	addOutputs(stack, p, k, a, d)
	suppress(s, p, k)
	return stack, nil
}

// addOutputs says where things are: for the person who deploys, and for the backstop command.
func addOutputs(stack awscdk.Stack, p parts, k secrets, a alarms, d dashboard) {
	output := func(id, description string, value *string) {
		awscdk.NewCfnOutput(stack, text(id), &awscdk.CfnOutputProps{Description: text(description), Value: value})
	}
	put := func(arn *string) *string {
		// From standard input: what is typed on a command line stays in the shell's history.
		return text("aws secretsmanager put-secret-value --secret-id " + *arn + " --secret-string file:///dev/stdin")
	}
	output("WebhookURL", "1. Run: backstop endpoint apply --url THIS --stage STAGE --yes. It creates the endpoint at Stripe and puts its "+
		"signing secret; by hand, create it in Stripe's dashboard and do 2", p.api.url)
	output("PutSigningSecret", "2. Only by hand: run this, paste the endpoint's whsec_..., end with Ctrl-D", put(k.signing.Ref()))
	output("PutStripeKey", "3. Run this, paste a restricted key (rk_...) that may read, end with Ctrl-D", put(k.stripeKey.Ref()))
	output("DashboardURL", "4. Watch the first event", d.url)
	if p.api.target != nil {
		output("DomainTarget", "Point the domain's CNAME or alias record here", p.api.target)
	}
	output("LedgerTable", "Table of entries", p.tables.ledger.TableName())
	output("BillingTable", "Table of projections", p.tables.billing.TableName())
	output("ControlTable", "Table of cursors and the pause flag", p.tables.control.TableName())
	output("QueueURL", "FIFO queue of pointers", p.queues.main.QueueUrl())
	output("DeadLetterQueueURL", "Its dead-letter queue", p.queues.dead.QueueUrl())
	output("MappingID", "Event source mapping that pause and resume switch", p.functions.mapping.EventSourceMappingId())
	output("SigningSecretID", "Secret of the signing secrets", k.signing.Ref())
	output("StripeKeyID", "Secret of the Stripe API key", k.stripeKey.Ref())
	output("PagesTopic", "Subscribe a pager to this", a.pages.TopicArn())
	output("NoticesTopic", "Subscribe a channel to this", a.notices.TopicArn())
}
