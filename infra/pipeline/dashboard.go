package pipeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"backstop/internal/schema"
	"backstop/internal/telemetry"
)

// dashboard is for a person at three in the morning, read from the top: is it working, are we behind, what fails and
// why, how fast, what it costs.
//
// All graphs are a third of the width, have one period and the dashboard's one time range, and an axis on the left
// only: so the same moment stands at the same place in every column and can be followed downwards.
type dashboard struct {
	url *string
}

const (
	third, whole = 8, 24 // of CloudWatch's 24 columns
	graphHeight  = 6
	every        = time.Minute
)

func newDashboard(scope constructs.Construct, s Settings, p parts, a alarms) dashboard {
	made := awscloudwatch.NewDashboard(scope, text("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: awscdk.Duration_Hours(number(3)),
		// Graphs keep their minute when the range grows; CloudWatch would average spikes away.
		PeriodOverride: awscloudwatch.PeriodOverride_INHERIT,
	})
	for _, row := range [][]awscloudwatch.IWidget{
		{heading("Is it working?", "Billing events come in, are settled, and none waits for a person. Runbook: `"+strings.TrimSuffix(runbook, "#")+"`.")},
		{workingNumbers(p)},
		{awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
			Title: text("Alarms, ringing ones first"), Alarms: alarmRefs(a), Width: number(whole), Height: number(4),
			SortBy: awscloudwatch.AlarmStatusWidgetSortBy_STATE_UPDATED_TIMESTAMP,
		})},
		{heading("Are we behind?", fmt.Sprintf("Everything is settled within %s, or it rings.", words(s.Objective)))},
		behindRow(s, p),
		{heading("What fails, and why?", "Left refused at the door, in the middle parked, on the right still trying.")},
		failingRow(p),
		whyRow(p),
		{heading("How fast?", "From request to answer, from queued to claimed, from Stripe's clock to settled.")},
		fastRow(s, p),
		sizeRow(s, p),
		{heading("What does it cost?", costNote)},
		costRow(s, p),
	} {
		made.AddWidgets(row...)
	}
	region := awscdk.Stack_Of(scope).Region()
	return dashboard{url: text("https://" + *region + ".console.aws.amazon.com/cloudwatch/home?region=" + *region +
		"#dashboards:name=" + *made.DashboardName())}
}

func heading(title, line string) awscloudwatch.IWidget {
	return awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
		Markdown: text("## " + title + "\n" + line), Width: number(whole), Height: number(2),
		Background: awscloudwatch.TextWidgetBackground_TRANSPARENT,
	})
}

func workingNumbers(p parts) awscloudwatch.IWidget {
	return awscloudwatch.NewSingleValueWidget(&awscloudwatch.SingleValueWidgetProps{
		Title: text("The last hour"), Width: number(whole), Height: number(4), Sparkline: yes(),
		Metrics: &[]awscloudwatch.IMetric{
			p.own(telemetry.Received, sum, time.Hour, "verified deliveries"),
			p.own(telemetry.DoneCount, sum, time.Hour, "events done"),
			p.own(telemetry.SkippedCount, sum, time.Hour, "events skipped"),
			p.own(telemetry.Failed, sum, time.Hour, "deliveries failed"),
			p.own(telemetry.ParkedOpen, maximum, time.Hour, "events parked"),
			p.own(telemetry.TodoOpen, maximum, time.Hour, "events open"),
		},
	})
}

func behindRow(s Settings, p parts) []awscloudwatch.IWidget {
	objective := &awscloudwatch.HorizontalAnnotation{
		Label: text("objective"), Value: number(s.Objective.Seconds()), Color: awscloudwatch.Color_RED(),
	}
	return []awscloudwatch.IWidget{
		graph("Oldest open event and oldest message", "Seconds", []*awscloudwatch.HorizontalAnnotation{objective},
			p.own(telemetry.OldestTodoS, maximum, every, "oldest open event"),
			p.queue(p.queues.main.QueueName(), "ApproximateAgeOfOldestMessage", maximum, every, "oldest message")),
		graph("Waiting: open events and messages", "Count", nil,
			p.own(telemetry.TodoOpen, maximum, every, "events open"),
			p.queue(p.queues.main.QueueName(), "ApproximateNumberOfMessagesVisible", maximum, every, "messages waiting"),
			p.queue(p.queues.main.QueueName(), "ApproximateNumberOfMessagesNotVisible", maximum, every, "messages in flight"),
			p.own(telemetry.LargestGroup, maximum, every, "largest group")),
		graph("In and out, a minute", "Count", nil,
			p.own(telemetry.Enqueued, sum, every, "enqueued"),
			p.own(telemetry.DoneCount, sum, every, "done"),
			p.own(telemetry.SkippedCount, sum, every, "skipped"),
			p.own(telemetry.Duplicates, sum, every, "duplicates"),
			p.own(telemetry.Swept, sum, every, "rung again by the sweep")),
	}
}

func failingRow(p parts) []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		graph("Refused deliveries, a minute", "Count", nil,
			p.own(telemetry.RefusedSig, sum, every, "signature"),
			p.own(telemetry.RefusedAge, sum, every, "too old or too new"),
			p.own(telemetry.RefusedBad, sum, every, "not an event"),
			p.own(telemetry.RefusedConfig, sum, every, "no secret"),
			p.own(telemetry.TooLarge, sum, every, "too large"),
			p.own(telemetry.Failed, sum, every, "our own trouble"),
			p.metrics.api(p.api, "5xx", sum, every, "5xx at the API")),
		graph("Parked events", "Count", nil,
			p.own(telemetry.ParkedOpen, maximum, every, "parked now"),
			p.own(telemetry.ParkedCount, sum, every, "parked, a minute"),
			p.queue(p.queues.dead.QueueName(), "ApproximateNumberOfMessagesVisible", maximum, every, "dead letters"),
			p.own(telemetry.AuditMissing, sum, every, "missing, found by the audit"),
			p.own(telemetry.AuditUnhealed, sum, every, "missing, not healed"),
			p.own(telemetry.AuditRan, sum, every, "audits that ended well")),
		graph("Trouble while processing, a minute", "Count", nil,
			p.own(telemetry.Retried, sum, every, "attempts to be repeated"),
			p.own(telemetry.WaitingOutage, sum, every, "attempts waiting for a dependency"),
			p.own(telemetry.StaleEffects, sum, every, "stale effects dropped"),
			p.own(telemetry.OrderUnsure, sum, every, "rows of unsure order"),
			p.own(telemetry.VersionMismatch, sum, every, "unexpected API version"),
			p.own(telemetry.WrongMode, sum, every, "events of the other mode"),
			p.lambda(p.functions.processor, "Errors", sum, every, "processor crashes")),
	}
}

// whyRow reads the log lines: the keys are those of the one line of a delivery or an attempt.
func whyRow(p parts) []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		query("Why deliveries were refused", p.functions.receiver,
			`filter outcome in ["refused", "failed", "misconfigured"]`,
			"stats count(*) as deliveries by outcome, reason", "sort deliveries desc", "limit 20"),
		query("Why events were parked", p.functions.processor,
			`filter outcome in ["parked", "misunderstood"]`,
			"stats count(*) as events, latest(@timestamp) as last by class, type, reason", "sort events desc", "limit 20"),
		query("What is being repeated", p.functions.processor,
			`filter outcome in ["retry", "handed_back", "lease_lost"] or outcome like /^failed_to_/`,
			"stats count(*) as attempts, latest(@timestamp) as last by class, type, reason", "sort attempts desc", "limit 20"),
	}
}

func fastRow(s Settings, p parts) []awscloudwatch.IWidget {
	slow := &awscloudwatch.HorizontalAnnotation{
		Label: text("slow"), Value: number(s.AckP99.Milliseconds()), Color: awscloudwatch.Color_RED(),
	}
	pair := func(title, name string, annotations ...*awscloudwatch.HorizontalAnnotation) awscloudwatch.IWidget {
		return graph(title, "Milliseconds", annotations,
			p.own(name, p50, every, "half are faster (p50)"), p.own(name, p99, every, "99 of 100 are faster (p99)"))
	}
	return []awscloudwatch.IWidget{
		pair("Acknowledgement: request to answer", telemetry.AckMS, slow),
		pair("Queue: enqueued to claimed", telemetry.QueueWaitMS),
		pair("Whole way: created at Stripe to settled", telemetry.SettledMS),
	}
}

func sizeRow(s Settings, p parts) []awscloudwatch.IWidget {
	most := func(label string, value int) []*awscloudwatch.HorizontalAnnotation {
		if value == 0 {
			return nil
		}
		return []*awscloudwatch.HorizontalAnnotation{{Label: text(label), Value: number(value), Color: awscloudwatch.Color_RED()}}
	}
	ledger, billing := p.tables.ledger.TableName(), p.tables.billing.TableName()
	return []awscloudwatch.IWidget{
		graph("Functions running at once", "Count", most("processor's limit", s.MaxConcurrency),
			p.lambda(p.functions.receiver, "ConcurrentExecutions", maximum, every, "receivers"),
			p.lambda(p.functions.processor, "ConcurrentExecutions", maximum, every, "processors")),
		graph("Longest run of a function", "Milliseconds",
			most("processor's time-out", int(schema.ProcessorTimeout.Milliseconds())),
			p.lambda(p.functions.receiver, "Duration", maximum, every, "receiver"),
			p.lambda(p.functions.processor, "Duration", maximum, every, "processor"),
			p.lambda(p.functions.reconciler, "Duration", maximum, every, "reconciler")),
		graph("Throttled, a minute", "Count", nil,
			p.table(ledger, "WriteThrottleEvents", every, "ledger writes"),
			p.table(billing, "WriteThrottleEvents", every, "billing writes"),
			p.lambda(p.functions.receiver, "Throttles", sum, every, "receiver"),
			p.lambda(p.functions.processor, "Throttles", sum, every, "processor")),
	}
}

func graph(title, unit string, annotations []*awscloudwatch.HorizontalAnnotation, left ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: text(title), Width: number(third), Height: number(graphHeight),
		Left:            &left,
		LeftYAxis:       &awscloudwatch.YAxisProps{Label: text(unit), Min: number(0), ShowUnits: no()},
		LeftAnnotations: &annotations,
		Period:          seconds(every),
	})
}

func query(title string, f function, lines ...string) awscloudwatch.IWidget {
	return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{
		Title: text(title), Width: number(third), Height: number(graphHeight),
		LogGroupNames: &[]*string{f.log.LogGroupName()},
		View:          awscloudwatch.LogQueryVisualizationType_TABLE,
		QueryLines:    jsii.Strings(lines...),
	})
}

// words says a duration as a person would, in whole minutes or hours, rounded up.
func words(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d minutes", (d+time.Minute-1)/time.Minute)
}

func alarmRefs(a alarms) *[]interfacesawscloudwatch.IAlarmRef {
	refs := make([]interfacesawscloudwatch.IAlarmRef, 0, len(a.all))
	for _, each := range a.all {
		refs = append(refs, each)
	}
	return &refs
}
