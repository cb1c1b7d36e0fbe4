package pipeline

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
)

// runbook is where an alarm's text sends the reader; the alarm's name is the heading.
const runbook = "internal/replay/RUNBOOK.md#"

// alarm is one alarm in plain words and numbers.
type alarm struct {
	name  string // kebab case; the runbook's heading
	means string // what is the case when it rings
	do    string // the first thing to do; the runbook has the rest

	// calm says how it was judged that one bad request cannot make it ring and clear, or why it may.
	calm string

	metric    awscloudwatch.IMetric
	below     bool // rings below the threshold; otherwise at it and above
	threshold float64
	periods   int // looked at
	datapoint int // that must breach
	missing   awscloudwatch.TreatMissingData

	ignoreFew bool // a percentile of few values says nothing
	pages     bool // wakes somebody
	stops     bool // part of "billing events are not being processed"
}

func (a alarm) description() string {
	return fmt.Sprintf("%s %s See %s%s. %s", a.means, a.do, runbook, a.name, a.calm)
}

// alarms are the made alarms and the two topics they report to.
type alarms struct {
	pages, notices awssns.Topic
	all            []awscloudwatch.IAlarm // the composite first
}

// newAlarms makes the topics, the alarms and the composite over them.
//
// Two topics, one for what wakes somebody (the pager subscribes to it) and one for what can wait until morning; the
// e-mail address gets both. What pages: the composite, whose parts therefore need not, and parked events, of which no
// other system will ever remind anybody.
func newAlarms(scope constructs.Construct, s Settings, list []alarm) alarms {
	scope = constructs.NewConstruct(scope, text("Alarms"))
	var made alarms
	topic := func(id, display string) awssns.Topic {
		t := awssns.NewTopic(scope, text(id), &awssns.TopicProps{DisplayName: text(display), EnforceSSL: yes()})
		mayPublish(t)
		if s.Email != "" {
			t.AddSubscription(awssnssubscriptions.NewEmailSubscription(text(s.Email), nil))
		}
		return t
	}
	made.pages = topic("Pages", "Backstop "+s.Stage+" pages")
	made.notices = topic("Notices", "Backstop "+s.Stage+" notices")
	if s.Pager != "" {
		made.pages.AddSubscription(awssnssubscriptions.NewUrlSubscription(text(s.Pager), nil))
	}

	stack := *awscdk.Stack_Of(scope).StackName()
	var stops []awscloudwatch.IAlarmRule
	var single []awscloudwatch.IAlarm
	for _, a := range list {
		one := newAlarm(scope, stack, a)
		made.notify(one, a.pages)
		single = append(single, one)
		if a.stops {
			stops = append(stops, awscloudwatch.AlarmRule_FromAlarm(one, awscloudwatch.AlarmState_ALARM))
		}
	}
	whole := alarm{
		name:  "billing-events-are-not-being-processed",
		means: "Stripe's events are refused, lost on the way or not worked off.",
		do:    "Look which of its parts rings: the dashboard's first row shows them.",
		calm:  "It rings only with one of its parts, each of which was judged by itself.",
	}
	composite := awscloudwatch.NewCompositeAlarm(scope, text(whole.name), &awscloudwatch.CompositeAlarmProps{
		CompositeAlarmName: text(stack + "-" + whole.name),
		AlarmDescription:   text(whole.description()),
		AlarmRule:          awscloudwatch.AlarmRule_AnyOf(stops...),
	})
	made.notify(composite, true)
	made.all = append([]awscloudwatch.IAlarm{composite}, single...)
	return made
}

func newAlarm(scope constructs.Construct, stack string, a alarm) awscloudwatch.Alarm {
	comparison := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
	if a.below {
		comparison = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	props := &awscloudwatch.AlarmProps{
		// Named after the stack: the name is all a text message at night shows.
		AlarmName:          text(stack + "-" + a.name),
		AlarmDescription:   text(a.description()),
		Metric:             a.metric,
		ComparisonOperator: comparison,
		Threshold:          number(a.threshold),
		EvaluationPeriods:  number(a.periods),
		DatapointsToAlarm:  number(a.datapoint),
		TreatMissingData:   a.missing,
	}
	if a.ignoreFew {
		props.EvaluateLowSampleCountPercentile = text("ignore")
	}
	return awscloudwatch.NewAlarm(scope, text(a.name), props)
}

// mayPublish lets the alarms of this account publish. A topic's own policy, which the TLS rule brings, takes the place
// of the one SNS makes by default, and with it of the right alarms have through that one: they would change state and
// tell nobody.
func mayPublish(topic awssns.Topic) {
	stack := awscdk.Stack_Of(topic)
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        text("AlarmsOfThisAccount"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(text("cloudwatch.amazonaws.com"), nil)},
		Actions:    texts("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()}},
	}))
}

// notify sends an alarm's ringing and its clearing.
func (made alarms) notify(a interface {
	AddAlarmAction(...awscloudwatch.IAlarmAction)
	AddOkAction(...awscloudwatch.IAlarmAction)
}, pages bool) {
	topic := made.notices
	if pages {
		topic = made.pages
	}
	action := awscloudwatchactions.NewSnsAction(topic)
	a.AddAlarmAction(action)
	a.AddOkAction(action)
}
