package events_test

import (
	"testing"
	"time"

	"backstop/events"
)

// BenchmarkFresh is what sending one event costs beside the network.
func BenchmarkFresh(b *testing.B) {
	body, err := events.Sample("customer.subscription.updated")
	if err != nil {
		b.Fatal(err)
	}
	opts := events.FreshOptions{Now: time.Unix(1800000000, 0), Rand: seeded(1)}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Fresh(body, opts); err != nil {
			b.Fatal(err)
		}
	}
}
