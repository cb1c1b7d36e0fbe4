package proof

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/events"
	"backstop/infra/template"
	"backstop/internal/config"
	"backstop/internal/cost"
	"backstop/internal/ledger"
	"backstop/internal/sender"
)

// `backstop cost` multiplies prices with units that are assumed in package cost. Here the real functions run, and the
// local AWS counts.

// ordinary is how many events are counted over.
const ordinary = 200

// used is what the local AWS counted.
type used struct {
	entryWrites, entryReads, rowWrites, rowReads float64 // capacity units
	sends, hides, deletes                        int
	receiverBytes, processorBytes                int
}

func (d *deployment) used() used {
	ledgerTable, billing := d.Local.DynamoDB.Used(d.Names.LedgerTable), d.Local.DynamoDB.Used(d.Names.BillingTable)
	u := used{entryWrites: ledgerTable.Write, entryReads: ledgerTable.Read, rowWrites: billing.Write, rowReads: billing.Read}
	for _, use := range d.recorder.Uses() {
		if use.Resource != d.Names.QueueARN {
			continue
		}
		switch use.Action {
		case "sqs:SendMessage":
			u.sends += use.Count
		case "sqs:ChangeMessageVisibility":
			u.hides += use.Count
		case "sqs:DeleteMessage":
			u.deletes += use.Count
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.lines[template.Receiver] {
		u.receiverBytes += len(line) + 1
	}
	for _, line := range d.lines[template.Processor] {
		u.processorBytes += len(line) + 1
	}
	return u
}

// load delivers new events of the types while the queue is paused, so that batches are full, and returns what an event
// took, and how many were in a batch.
func (d *deployment) load(types ...string) (each used, batch float64) {
	d.Helper()
	list := make([]sender.Event, ordinary)
	for i := range list {
		list[i] = d.sample(types[i%len(types)], events.FreshOptions{})
	}
	d.Poller.SetEnabled(false)
	for d.Poller.State() != "Disabled" {
		time.Sleep(10 * time.Millisecond)
	}
	before := d.used()
	d.deliver(list...)
	d.Poller.SetEnabled(true)
	for began := time.Now(); d.Local.DynamoDB.Items(d.Names.LedgerTable) == 0 || d.openEntries() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			d.Fatalf("not settled\n%s", d.log())
		}
	}
	after := d.used()
	each = used{
		entryWrites: (after.entryWrites - before.entryWrites) / ordinary, rowWrites: (after.rowWrites - before.rowWrites) / ordinary,
		rowReads: (after.rowReads - before.rowReads) / ordinary,
		sends:    (after.sends - before.sends) / ordinary,
		hides:    after.hides - before.hides, deletes: after.deletes - before.deletes,
		receiverBytes:  (after.receiverBytes - before.receiverBytes) / ordinary,
		processorBytes: (after.processorBytes - before.processorBytes) / ordinary,
	}
	return each, ordinary / float64(each.deletes)
}

// openEntries counts what is not settled, and whose message is not yet deleted.
func (d *deployment) openEntries() int {
	d.Helper()
	stats, found := d.Local.SQS.Stats(d.Names.QueueARN[strings.LastIndex(d.Names.QueueARN, ":")+1:])
	if !found {
		d.Fatal("the queue is not there")
	}
	return stats.Visible + stats.InFlight + stats.Delayed
}

// TestUnitsOfAnEventAreThoseTheCostAssumes; BenchmarkUnitsOfAnEvent reports the figures.
func TestUnitsOfAnEventAreThoseTheCostAssumes(t *testing.T) {
	t.Parallel()
	checkUnits(t, func(string, float64) {})
}

func BenchmarkUnitsOfAnEvent(b *testing.B) {
	checkUnits(b, func(unit string, value float64) { b.ReportMetric(value, unit) })
	b.ReportMetric(0, "ns/op")
}

func checkUnits(t testing.TB, report func(unit string, value float64)) {
	d := deploy(t, "prod")
	same := func(what string, got, assumed float64) {
		t.Helper()
		report(strings.ReplaceAll(what, " ", "-")+"/event", got)
		if got != assumed {
			t.Errorf("%s of an event: %v counted, %v assumed", what, got, assumed)
		}
	}
	about := func(what string, got, assumed float64) {
		t.Helper()
		report(strings.ReplaceAll(what, " ", "-"), got)
		if math.Abs(got-assumed) > assumed/10 {
			t.Errorf("%s: %v counted, %v assumed", what, got, assumed)
		}
	}

	// A customer's row is in no index.
	row, batch := d.load("customer.updated")
	same("entry write units", row.entryWrites, cost.EntryWrites)
	same("row write units", row.rowWrites, cost.RowWrites)
	same("row read units", row.rowReads, cost.Reads)
	same("sends", float64(row.sends), cost.Sends)
	if row.hides != row.deletes {
		t.Errorf("%d batches were hidden, %d deleted: one call each is assumed", row.hides, row.deletes)
	}
	report("events/batch", batch)
	if batch < 8 {
		t.Errorf("%.1f events were in a batch of a full queue, about 10 are assumed", batch)
	}
	about("receiver log bytes", float64(row.receiverBytes), cost.ReceiverLine)
	about("processor log bytes", float64(row.processorBytes), cost.ProcessorLine)
	about("API log bytes", float64(len(accessLine(t, d.stack))), cost.AccessLine)

	// New rows of a customer, of bodies of 5 to 8 KB, which take one unit all the same.
	indexed, _ := d.load("invoice.created", "customer.subscription.updated")
	same("entry write units of larger bodies", indexed.entryWrites, cost.EntryWrites)
	same("new row write units", indexed.rowWrites, cost.RowWrites+cost.NewRowWrites)

	sweep := d.idleSweep()
	about("sweep read units", sweep.reads, cost.SweepReads)
	about("sweep requests", sweep.requests, cost.SweepRequests)
	about("sweep log bytes", sweep.bytes, cost.SweepLine)
}

// accessLine is the API's log line with the values of an ordinary delivery.
func accessLine(t testing.TB, stack template.Template) string {
	t.Helper()
	stages := stack.OfType("AWS::ApiGatewayV2::Stage")
	if len(stages) != 1 {
		t.Fatalf("the template has %d stages of an API", len(stages))
	}
	settings, _ := stack.Resources[stages[0]].Properties["AccessLogSettings"].(map[string]any)
	format, _ := settings["Format"].(string)
	line := strings.NewReplacer(
		"$context.requestId", "L7x9sgXyIAMEVPQ=", "$context.requestTime", "29/Nov/2026:15:04:05 +0000",
		"$context.routeKey", "POST /webhooks/stripe", "$context.status", "200", "$context.responseLatency", "21",
		"$context.integrationLatency", "19", "$context.integrationStatus", "200", "$context.error.responseType", "-",
	).Replace(format)
	if !strings.Contains(line, "/webhooks/stripe") || strings.Contains(line, "$") {
		t.Fatalf("the access log is %s", line)
	}
	return line
}

type idle struct{ reads, requests, bytes float64 }

// idleSweep is what a sweep takes that finds nothing.
func (d *deployment) idleSweep() idle {
	d.Helper()
	d.run("sweep")
	count := func() idle {
		var now idle
		for _, table := range []string{d.Names.LedgerTable, d.Names.ControlTable} {
			now.reads += d.Local.DynamoDB.Used(table).Read
		}
		for _, use := range d.recorder.Uses() {
			if use.Caller == template.Reconciler && strings.HasPrefix(use.Action, "sqs:") {
				now.requests += float64(use.Count)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, line := range d.lines[template.Reconciler] {
			now.bytes += float64(len(line) + 1)
		}
		return now
	}
	d.lineOf(template.Reconciler, 1)
	before := count()
	d.run("sweep")
	d.lineOf(template.Reconciler, 2)
	after := count()
	return idle{after.reads - before.reads, after.requests - before.requests, after.bytes - before.bytes}
}

// lineOf waits for the function's n-th line: lines come a moment after answers.
func (d *deployment) lineOf(function string, n int) {
	d.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
		d.mu.Lock()
		lines := len(d.lines[function])
		d.mu.Unlock()
		if lines >= n {
			return
		}
	}
	d.Fatalf("the %s has not written %d lines", function, n)
}

func TestTransactionalRowTakesTheUnitsTheCostAssumes(t *testing.T) {
	t.Parallel()
	d := deploy(t, "prod", config.Journal, "on")
	each, _ := d.load("payout.paid") // which nothing but the journal handles
	if got := each.entryWrites + each.rowWrites; got != cost.EntryWrites+cost.OnceWrites {
		t.Errorf("an event with one transactional row took %v write units, %d and %d are assumed", got, cost.EntryWrites, cost.OnceWrites)
	}
}

// TestEntriesAreAsLargeAsTheCostAssumes records every sample and compares what is stored with the model.
func TestEntriesAreAsLargeAsTheCostAssumes(t *testing.T) {
	t.Parallel()
	d := deploy(t, "prod")
	var list []sender.Event
	var modelled float64
	for _, kind := range events.Types() {
		if kind.Thin {
			continue // a notification of 450 bytes
		}
		e := d.sample(kind.Name, events.FreshOptions{})
		list = append(list, e)
		modelled += cost.EntrySize(float64(len(e.Body)))
	}
	d.deliver(list...)
	d.awaitEntries("settled", func(e ledger.Entry) bool { return e.Status.Settled() }, list...)
	table, err := dynamodb.NewFromConfig(d.AWS).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &d.Names.LedgerTable})
	if err != nil {
		t.Fatal(err)
	}
	stored := float64(*table.Table.TableSizeBytes)
	if count := float64(len(list)); len(list) < 50 || math.Abs(stored-modelled) > stored/10 {
		t.Errorf("an entry has %.0f bytes, %.0f are assumed, over %.0f types", stored/count, modelled/count, count)
	}
}

func TestFixedCostIsOfWhatTheTemplateHas(t *testing.T) {
	t.Parallel()
	for _, name := range template.Stages {
		stack, err := template.Golden(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cost.StageOf(name)
		if err != nil {
			t.Fatal(err)
		}
		want := cost.Stage{
			Name:       name,
			Composites: float64(len(stack.OfType("AWS::CloudWatch::CompositeAlarm"))),
			Dashboards: float64(len(stack.OfType("AWS::CloudWatch::Dashboard"))),
			Secrets:    float64(len(stack.OfType("AWS::SecretsManager::Secret"))),
			Tables:     float64(len(stack.OfType("AWS::DynamoDB::GlobalTable"))),
			Metrics:    metricNames(t),
		}
		alarms, err := stack.Alarms()
		if err != nil {
			t.Fatal(err)
		}
		for _, alarm := range alarms {
			want.AlarmMetrics += float64(len(alarm.Metrics))
		}
		for function, memory := range map[string]*float64{
			template.Receiver: &want.ReceiverMB, template.Processor: &want.ProcessorMB, template.Reconciler: &want.ReconcilerMB,
		} {
			f, err := stack.Function(function)
			if err != nil {
				t.Fatal(err)
			}
			*memory = float64(f.MemoryMB)
		}
		for _, id := range stack.OfType("AWS::Logs::LogGroup") {
			want.LogDays, _ = stack.Resources[id].Properties["RetentionInDays"].(float64)
		}
		if got != want || want.AlarmMetrics < 20 || want.Metrics < 20 {
			t.Errorf("the cost of %s is that of %s, the template has %s", name, text(got), text(want))
		}
	}
}

// metricNames counts the names of package telemetry, where all of them are constants of one file.
func metricNames(t *testing.T) float64 {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../telemetry/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0.0
	for _, declaration := range file.Decls {
		if constants, ok := declaration.(*ast.GenDecl); ok && constants.Tok == token.CONST {
			for _, spec := range constants.Specs {
				count += float64(len(spec.(*ast.ValueSpec).Names))
			}
		}
	}
	return count
}

func text(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
