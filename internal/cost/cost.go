// Package cost estimates what a stage costs a month: list prices (prices.go, dated) times the units this design uses
// (units.go, measured). What varies with events, what is kept of them, and what every month costs whatever happens are
// added up apart.
package cost

import (
	"errors"
	"fmt"
)

const (
	daysAMonth    = 365.0 / 12
	minutesAMonth = daysAMonth * 24 * 60
	retentionDays = 35 // of a settled entry; ledger.DefaultRetention
)

// Workload is a month's traffic.
type Workload struct {
	Events    float64 // acknowledged deliveries
	BodyBytes float64 // of one event, as Stripe sends it
	Rows      float64 // projected rows an event
	NewRows   float64 // share of these that are new
	Once      float64 // transactional rows an event
	Batch     float64 // events in a batch, 1 to 10: one where they come one at a time, ten in bursts
}

// Ordinary is what `backstop cost` assumes unless told otherwise: one projected row an event, in batches of ten. That a
// third of the rows is new is the mean of the stories.
func Ordinary(events float64) Workload {
	return Workload{Events: events, BodyBytes: 6 << 10, Rows: 1, NewRows: 0.33, Batch: 10}
}

// Validate names what cannot be.
func (w Workload) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(w.Events >= 0, "%v events: want none or more", w.Events)
	check(w.BodyBytes > 0 && w.BodyBytes <= 4<<20, "%v bytes an event: want up to 4 MB, which is the most taken", w.BodyBytes)
	check(w.Rows >= 0 && w.Once >= 0, "%v rows, %v transactional ones: want none or more", w.Rows, w.Once)
	check(w.NewRows >= 0 && w.NewRows <= 1, "%v of the rows are new: want a share, 0 to 1", w.NewRows)
	check(w.Batch >= 1 && w.Batch <= 10, "%v events in a batch: want 1 to 10, the most of a FIFO queue", w.Batch)
	return errors.Join(problems...)
}

// Stage is what of a stage costs something. Its numbers are those of the committed template.
type Stage struct {
	Name string

	ReceiverMB, ProcessorMB, ReconcilerMB float64

	AlarmMetrics float64 // metrics the alarms read, over all alarms
	Composites   float64
	Dashboards   float64
	Secrets      float64
	Metrics      float64 // names the functions publish, at most
	LogDays      float64
	Tables       float64
}

// stages are dev and prod; a test in package proof compares them with the templates.
var stages = map[string]Stage{
	"dev": {
		Name: "dev", ReceiverMB: 256, ProcessorMB: 512, ReconcilerMB: 256,
		AlarmMetrics: 29, Composites: 1, Dashboards: 1, Secrets: 2, Metrics: 29, LogDays: 7, Tables: 3,
	},
	"prod": {
		Name: "prod", ReceiverMB: 256, ProcessorMB: 512, ReconcilerMB: 256,
		AlarmMetrics: 31, Composites: 1, Dashboards: 1, Secrets: 2, Metrics: 29, LogDays: 90, Tables: 3,
	},
}

// StageOf returns a stage by its name.
func StageOf(name string) (Stage, error) {
	s, found := stages[name]
	if !found {
		return Stage{}, fmt.Errorf("stage %q: want dev or prod", name)
	}
	return s, nil
}

// Line is one line of the bill.
type Line struct {
	What    string  `json:"what"`
	Count   float64 `json:"count"` // a month
	Unit    string  `json:"unit"`
	Dollars float64 `json:"dollars"`
	Source  Source  `json:"source"`
}

// Estimate is a month's bill.
type Estimate struct {
	Prices   string `json:"prices"` // their day
	Variable []Line `json:"variable"`
	Kept     []Line `json:"kept"`
	Fixed    []Line `json:"fixed"`
}

// Sum adds lines up.
func Sum(lines []Line) float64 {
	total := 0.0
	for _, l := range lines {
		total += l.Dollars
	}
	return total
}

// Of estimates the month.
func Of(w Workload, s Stage) Estimate {
	return Estimate{Prices: PricesOf, Variable: variable(w, s), Kept: kept(w, s), Fixed: fixed(s)}
}

func line(what string, count float64, unit string, price float64, source Source) Line {
	return Line{what, count, unit, count * price, source}
}

// variable is what each event costs when it happens.
func variable(w Workload, s Stage) []Line {
	batches := w.Events / w.Batch
	entry := (EntryWrites-EntryIndexWrites)*entryUnits(w.BodyBytes) + EntryIndexWrites
	lines := []Line{
		line("API requests", w.Events*ceil(w.BodyBytes/(512<<10)), "requests", apiRequest, APIGateway),
		line("ledger: record, claim, settle", w.Events*entry, "write units", writeUnit, DynamoDB),
		line("projected rows", w.Events*w.Rows*RowWrites, "write units", writeUnit, DynamoDB),
		line("billing index, for rows that are new", w.Events*w.Rows*w.NewRows*NewRowWrites, "write units", writeUnit, DynamoDB),
	}
	if w.Once > 0 {
		lines = append(lines, line("transactional rows", w.Events*w.Once*OnceWrites, "write units", writeUnit, DynamoDB))
	}
	return append(lines,
		line("queue: send", w.Events*Sends, "requests", queueRequest, SQS),
		line("queue: receive, hide, delete", batches*BatchRequests, "requests", queueRequest, SQS),
		line("receiver: invocations", w.Events, "invocations", invocation, Lambda),
		line("receiver: time", w.Events*receiverSeconds*s.ReceiverMB/1024, "GB-seconds", gigabyteTime, Lambda),
		line("processor: invocations", batches, "invocations", invocation, Lambda),
		line("processor: time", batches*(batchSeconds+perEventSeconds*(w.Batch-1))*s.ProcessorMB/1024, "GB-seconds", gigabyteTime, Lambda),
		line("log lines: receiver, processor, API", logBytes(w)/gibibyte, "GB", logIngested, CloudWatch),
	)
}

// logBytes are those of a month's events.
func logBytes(w Workload) float64 { return w.Events * (ReceiverLine + ProcessorLine + AccessLine) }

// kept is what a month's events take while they are kept: as much as the months before have left, once it goes on as
// long as things are kept. Projections stay, and are the business's own size.
func kept(w Workload, s Stage) []Line {
	entries := w.Events * (retentionDays + ttlLagDays) / daysAMonth
	stored := entries * (EntrySize(w.BodyBytes) + itemOverhead) / gibibyte
	const lines = 3
	archived := (logBytes(w)*logCompression + w.Events*lines*logMetadata) / gibibyte * s.LogDays / daysAMonth
	return []Line{
		line("ledger: entries of 35 days", stored, "GB-months", tableStorage, DynamoDB),
		line("ledger: point-in-time recovery", stored, "GB-months", recovery, DynamoDB),
		line(fmt.Sprintf("log lines of %.0f days", s.LogDays), archived, "GB-months", logStored, CloudWatch),
	}
}

// fixed is what a stage costs without any event.
func fixed(s Stage) []Line {
	const sweeps, audits = minutesAMonth, minutesAMonth / 15
	return []Line{
		line("alarms, by the metrics they read", s.AlarmMetrics, "metrics", alarm, CloudWatch),
		line("composite alarm", s.Composites, "alarms", composite, CloudWatch),
		line("metrics, were each published every hour", s.Metrics, "metrics", metric, CloudWatch),
		line("dashboard", s.Dashboards, "dashboards", dashboard, CloudWatch),
		line("secrets", s.Secrets, "secrets", secret, SecretsManager),
		line("secrets: read every five minutes", busyInstances*minutesAMonth/5, "reads", secretRead, SecretsManager),
		line("queue: polls while it is empty", pollers*minutesAMonth*60/pollSeconds, "requests", queueRequest, SQS),
		line("reconciler: schedules", sweeps+audits, "starts", scheduled, Scheduler),
		line("reconciler: invocations", sweeps+audits, "invocations", invocation, Lambda),
		line("reconciler: time", (sweeps+audits)*sweepSeconds*s.ReconcilerMB/1024, "GB-seconds", gigabyteTime, Lambda),
		line("reconciler: reads", sweeps*SweepReads, "read units", readUnit, DynamoDB),
		line("reconciler: queues", sweeps*SweepRequests, "requests", queueRequest, SQS),
		line("reconciler: log lines", (sweeps+audits)*SweepLine/gibibyte, "GB", logIngested, CloudWatch),
		line("tables: requests for AWS's key", s.Tables*keyCallsPerTable, "requests", keyRequest, KMS),
	}
}

// Lower says what would make the bill smaller, with what each would save and cost.
func Lower(w Workload) []Saving {
	short := w.Events * (retentionDays - 7) / daysAMonth * (EntrySize(w.BodyBytes) + itemOverhead) / gibibyte * (tableStorage + recovery)
	ways := []Saving{
		{"subscribe the endpoint to the types you handle only", 0, "each type not needed saves all of its events"},
		{"a Lambda function URL in the place of the HTTP API", w.Events * apiRequest, "no throttling by rate, no access log, no domain of your own"},
		{"provisioned capacity with autoscaling for a steady load", 0.5 * Sum(writes(w)), "about half of the write units' price; a burst above it is throttled and Stripe comes again"},
		{"entries kept for 7 days", short, "no duplicate is known, and no resend replayed, after that; Stripe lists 30 days"},
		{"no projection of types nobody asks about", w.Events * w.Rows * (RowWrites + w.NewRows*NewRowWrites) * writeUnit, "their rows"},
	}
	if w.Once > 0 {
		ways = append(ways, Saving{"rows written as projections, not in transactions", w.Events * w.Once * (OnceWrites - RowWrites) * writeUnit,
			"only where the row's version makes it idempotent: never a counter or a balance"})
	}
	return ways
}

// Saving is one way to a smaller bill.
type Saving struct {
	What    string  `json:"what"`
	Dollars float64 `json:"dollars"` // a month, at most; 0: it depends
	Price   string  `json:"price"`   // what is given up
}

func writes(w Workload) []Line {
	var lines []Line
	for _, l := range variable(w, Stage{}) {
		if l.Unit == "write units" {
			lines = append(lines, l)
		}
	}
	return lines
}
