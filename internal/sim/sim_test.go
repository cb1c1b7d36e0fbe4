package sim

import (
	"flag"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/ledger"
)

var (
	seed       = flag.Uint64("sim.seed", 0, "play the histories of this seed; 0: the default ones")
	event      = flag.String("sim.event", "", "of a single history print this event; empty: the one with a broken promise, all: all")
	full       = flag.Bool("sim.full", false, "play the scenarios in their full size")
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

// progress is after how many lifecycles a long run says how far it is.
const progress = 50_000

func TestHistories(t *testing.T) {
	if *seed != 0 {
		one(t)
		return
	}
	want := *lifecycles
	switch {
	case want > 0:
	case raced:
		want = 800
	default:
		want = 3000
	}
	began := time.Now()
	var (
		mu   sync.Mutex
		sum  Report
		next = uint64(1)
	)
	// take gives out seeds until enough has been played.
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if sum.Lifecycles >= want || len(sum.Violations) > 0 {
			return 0, false
		}
		next++
		return next - 1, true
	}
	t.Run("all", func(t *testing.T) {
		for n := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				for s, more := take(); more; s, more = take() {
					report := play(t, Options{Seed: s})
					if len(report.Violations) > 0 {
						t.Errorf("seed %d breaks %d promises, first %v\nSee its history with: make sim SEED=%d", s, len(report.Violations), report.Violations[0], s)
					}
					mu.Lock()
					before := sum.Lifecycles / progress
					sum.Add(report)
					if sum.Lifecycles/progress > before {
						t.Logf("%d lifecycles in %s, %d promises broken", sum.Lifecycles, time.Since(began).Round(time.Second), len(sum.Violations))
					}
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began)
	t.Logf("%d histories in %.0f s, %.0f lifecycles/s\n%s", next-1, took.Seconds(), float64(sum.Lifecycles)/took.Seconds(), sum.String())
}

// one plays a single history and prints what happened in it.
func one(t *testing.T) {
	report := play(t, Options{Seed: *seed, Trace: true})
	id := *event
	for _, v := range report.Violations {
		t.Errorf("%v", v)
		if id == "" {
			id = v.Event
		}
	}
	if id == "all" {
		id = ""
	}
	if id != "" || *event == "all" {
		t.Log("\n" + report.History(id))
	}
	t.Logf("seed %d: %s", *seed, report.String())
}

// TestSameSeedIsTheSameHistory plays histories twice, on one processor and on several, and compares every call and
// every line.
func TestSameSeedIsTheSameHistory(t *testing.T) {
	several := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(several)
	last := uint64(1012)
	if raced {
		last = 1002
	}
	for s := uint64(1000); s < last; s++ {
		runtime.GOMAXPROCS(1)
		first := play(t, Options{Seed: s, Trace: true}).History("")
		runtime.GOMAXPROCS(max(several, 4))
		second := play(t, Options{Seed: s, Trace: true}).History("")
		if len(first) < 10_000 {
			t.Errorf("seed %d: a history of %d bytes is none", s, len(first))
		}
		if first != second {
			t.Errorf("seed %d is two histories, which part at:\n%s", s, parting(first, second))
		}
	}
}

// parting is where two texts begin to differ.
func parting(a, b string) string {
	before := ""
	for {
		lineA, restA, _ := strings.Cut(a, "\n")
		lineB, restB, _ := strings.Cut(b, "\n")
		if lineA != lineB {
			return before + "\n< " + lineA + "\n> " + lineB
		}
		if restA == "" && restB == "" {
			return ""
		}
		before, a, b = lineA, restA, restB
	}
}
