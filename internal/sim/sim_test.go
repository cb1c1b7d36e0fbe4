package sim

import (
	"flag"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/ledger"
)

var (
	seed       = flag.Uint64("sim.seed", 0, "play the histories of this seed; 0: the default ones")
	lifecycles = flag.Int("sim.lifecycles", 0, "play so many lifecycles; 0: what fits a minute")
)

// codec is shared by all histories. It makes its channels at first use, which must be outside of a bubble.
var codec = sync.OnceValue(func() *ledger.Codec {
	c := ledger.NewCodec()
	packed, name := c.Pack([]byte("{}"), 0)
	if _, err := c.Unpack(packed, name); err != nil {
		panic(err)
	}
	return c
})

func play(t *testing.T, o Options) Report {
	t.Helper()
	o.Codec = codec()
	var report Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if report, err = Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	return report
}

func TestHistories(t *testing.T) {
	began := time.Now()
	var sum Report
	n := 150
	first := uint64(1)
	if *seed != 0 {
		first, n = *seed, 1
	}
	for s := first; s < first+uint64(n); s++ {
		report := play(t, Options{Seed: s, Trace: *seed != 0})
		sum.Add(report)
		if len(report.Violations) > 0 {
			v := report.Violations[0]
			t.Errorf("seed %d: %d violations: %v", s, len(report.Violations), report.Violations[:min(len(report.Violations), 5)])
			if *seed != 0 {
				t.Log("\n" + report.History(v.Event))
			}
		}
	}
	t.Logf("%s%.1fs, %.0f lifecycles/s", sum.String(), time.Since(began).Seconds(), float64(sum.Lifecycles)/time.Since(began).Seconds())
}
