package laptop_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/internal/laptop"
	"backstop/internal/ledger"
	"backstop/internal/sender"
)

// loadTime is how long the load lasts: long enough for the queue to fill if the processors are slower than the
// receivers.
const loadTime = 20 * time.Second

// BenchmarkPipelineUnderLoad runs the real binaries under as much load as 32 senders make, once, and reports events a
// second, the time to the acknowledgement and the time from sending to settled.
func BenchmarkPipelineUnderLoad(b *testing.B) {
	l, err := laptop.Start(b.Context(), laptop.Options{Binaries: binaries, Log: func(string, string) {}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	}()
	list := fresh(b, 60_000, "invoice.paid", "customer.subscription.updated", "charge.succeeded", "customer.updated")
	ctx, cancel := context.WithTimeout(b.Context(), loadTime)
	defer cancel()
	b.ResetTimer()
	var sent []sender.Answer
	began := time.Now()
	report, err := sender.Send(ctx, list, sender.Options{
		Endpoint: l.Endpoint, Secret: l.Secrets[0], Workers: 32, Now: time.Now,
		Progress: func(a sender.Answer) {
			if a.Acknowledged() {
				sent = append(sent, a)
			}
		},
	})
	took := time.Since(began)
	if err != nil && ctx.Err() == nil {
		b.Fatal(err)
	}
	acknowledged := make([]sender.Event, len(sent))
	for i, a := range sent {
		acknowledged[i] = a.Event
	}
	found := count(b, l, acknowledged, 3*time.Minute)
	b.StopTimer()
	if !found.Clean() || found.Once != len(sent) {
		b.Fatalf("of %d acknowledged events: %+v", len(sent), found)
	}
	settled := settledAfter(b, l, sent)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(sent))/took.Seconds(), "events/s")
	for _, p := range []struct {
		name  string
		times []time.Duration
	}{{"ack", report.Took}, {"settled", settled}} {
		b.ReportMetric(ms(sender.Percentile(p.times, 50)), p.name+"-p50-ms")
		b.ReportMetric(ms(sender.Percentile(p.times, 99)), p.name+"-p99-ms")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// settledAfter returns for each event the time from its first attempt to its settling, ascending.
func settledAfter(b *testing.B, l *laptop.Laptop, sent []sender.Answer) []time.Duration {
	b.Helper()
	store := ledger.New(dynamodb.NewFromConfig(l.AWS), l.Names.LedgerTable, time.Now)
	keys := make([]ledger.Key, len(sent))
	for i, a := range sent {
		keys[i] = ledger.Key(a.Event.Key)
	}
	entries, err := store.BatchGet(b.Context(), keys)
	if err != nil {
		b.Fatal(err)
	}
	var after []time.Duration
	for _, a := range sent {
		entry, found := entries[ledger.Key(a.Event.Key)]
		if !found {
			b.Fatalf("%s is not in the ledger", a.Event.Key)
		}
		after = append(after, time.UnixMilli(entry.SettledMS).Sub(a.Began))
	}
	slices.Sort(after)
	return after
}
