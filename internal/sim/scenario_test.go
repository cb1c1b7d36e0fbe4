package sim

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/ledger"
)

// calmly makes a history of healthy events in which nothing goes wrong but what a scenario adds.
func calmly(events, customers int, span time.Duration) func(*Profile) {
	return func(p *Profile) {
		*p = Profile{events: events, customers: customers, span: span, receivers: 3, processors: 3, parallel: 10}
	}
}

// healthy makes every event work.
func healthy(typ string) func([]*planned) {
	return func(events []*planned) {
		for _, e := range events {
			e.typ, e.conduct, e.fixed = typ, works, 0
			if typ == typeTwo {
				e.conduct = calls
			}
			e.deliveries = e.deliveries[:1]
			e.deliveries[0].forged, e.deliveries[0].at = false, e.at+time.Second
			e.body = e.write()
		}
	}
}

func share(times []time.Duration, p float64) time.Duration {
	slices.Sort(times)
	return times[min(int(p*float64(len(times))), len(times)-1)].Round(time.Millisecond)
}

func figuresOf(t *testing.T, o Options) []figures {
	t.Helper()
	var all []figures
	o.Seed = 7
	o.figures = func(f []figures) { all = f }
	report := play(t, o)
	for _, v := range report.Violations {
		t.Errorf("%v", v)
	}
	if len(all) == 0 {
		t.Fatal("the history did not come to rest")
	}
	return all
}

// waits are the times from enqueued to settled of the events that of says yes to.
func waitsOf(all []figures, of func(figures) bool) []time.Duration {
	var times []time.Duration
	for _, f := range all {
		if of(f) {
			times = append(times, f.settled-f.enqueued)
		}
	}
	return times
}

func TestOnePoisonEventDelaysOnlyItsCustomer(t *testing.T) {
	t.Parallel()
	events, customers, span := 1000, 50, 2*time.Minute
	if raced {
		events, customers, span = 100, 20, 20*time.Second
	}
	if *full {
		events, customers, span = 10_000, 500, 20*time.Minute
	}
	profile := calmly(events, customers, span)
	without := figuresOf(t, Options{Profile: profile, shape: healthy(typeOnce)})
	var bad *planned
	with := figuresOf(t, Options{Profile: profile, shape: func(all []*planned) {
		healthy(typeOnce)(all)
		bad = all[events/2]
		bad.conduct = poison
	}})
	others := func(f figures) bool { return f.group != bad.group }
	followers := func(f figures) bool { return f.group == bad.group && f.n > bad.n }
	for _, f := range with {
		want := ledger.Done
		if f.n == bad.n {
			want = ledger.Parked
		}
		if f.status != want {
			t.Errorf("%s is %s, want %s", f.id, f.status, want)
		}
		if f.n != bad.n && f.charged > 0 {
			t.Errorf("%s was charged %d attempts", f.id, f.charged)
		}
	}
	before, after := waitsOf(without, others), waitsOf(with, others)
	poisoned := waitsOf(with, func(f figures) bool { return f.n == bad.n })[0]
	behind := waitsOf(with, followers)
	t.Logf("%d events of %d customers in %s, one of them poison: parked after %s and 8 attempts; %d events of its customer came after it and waited %s at most",
		events, customers, span, poisoned.Round(time.Millisecond), len(behind), share(behind, 1))
	t.Logf("the others, from enqueued to settled: p50 %s, p99 %s, max %s; without the poison event p50 %s, p99 %s, max %s",
		share(after, 0.5), share(after, 0.99), share(after, 1), share(before, 0.5), share(before, 0.99), share(before, 1))
	// 2+4+8+16+32+64+128 s of backoff at most, and each try a moment.
	if poisoned > 254*time.Second+10*time.Second || share(behind, 1) > poisoned+10*time.Second {
		t.Error("its customer waited longer than the budget's backoff")
	}
	if share(after, 0.99) > share(before, 0.99)+20*time.Millisecond || share(after, 1) > share(before, 1)+100*time.Millisecond {
		t.Error("the others were delayed")
	}
}

func TestFollowersOfAPoisonEventAreNeverParkedUnrun(t *testing.T) {
	t.Parallel()
	all := figuresOf(t, Options{Profile: calmly(150, 1, 30*time.Second), shape: func(all []*planned) {
		healthy(typeOnce)(all)
		for n := range all {
			if n%50 == 0 {
				all[n].conduct = poison
			}
		}
	}})
	for _, f := range all {
		want, runs := ledger.Done, 1
		if f.n%50 == 0 {
			want, runs = ledger.Parked, 8
		}
		if f.status != want || f.runs != runs {
			t.Errorf("%s is %s after %d runs, want %s after %d", f.id, f.status, f.runs, want, runs)
		}
	}
	t.Logf("147 events of one customer behind three poison events: all done, each at its first run; the last %s after it was enqueued",
		share(waitsOf(all, func(f figures) bool { return f.n%50 != 0 }), 1))
}

func TestTenMinutesOfOutageParkNothingAndChargeNothing(t *testing.T) {
	t.Parallel()
	const down = 10 * time.Minute
	events, customers := 400, 50
	if raced {
		events, customers = 60, 20
	}
	if *full {
		events, customers = 4000, 500
	}
	all := figuresOf(t, Options{
		Profile: func(p *Profile) {
			calmly(events, customers, 20*time.Minute)(p)
			p.outages, p.outage = true, interval{5 * time.Minute, 5*time.Minute + down}
		},
		shape: healthy(typeTwo),
	})
	within := func(f figures) bool { return f.enqueued > 5*time.Minute && f.enqueued < 15*time.Minute }
	last := time.Duration(0)
	for _, f := range all {
		if f.status != ledger.Done || f.charged > 0 {
			t.Errorf("%s is %s after %d charged attempts, want it done and none charged", f.id, f.status, f.charged)
		}
		if within(f) {
			last = max(last, f.settled)
		}
	}
	t.Logf("%d events came while what they call was down for %s: none parked, none charged, all done, the last %s after the outage ended",
		len(waitsOf(all, within)), down, (last - 15*time.Minute).Round(time.Second))
	if last > 15*time.Minute+6*time.Minute {
		t.Error("what waited was done later than one backoff of 5 minutes after the outage")
	}
}
