package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/laptop"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// make crash sets the flag; without it the test is a small one.
var (
	long      = flag.Bool("crash", false, "play the long run: over a minute of load, more than twenty kills")
	perSecond = flag.Float64("crash-rate", 600, "events a second of the long run")
	seed      = flag.Uint64("crash-seed", 0, "seed of the long run; 0: a new one")
)

func TestCrash(t *testing.T) {
	o := Options{
		Customers: 40, Events: 6, Rate: 60, Load: 30 * time.Second, Patience: 4 * time.Minute,
		Every: 600 * time.Millisecond, Kills: 4, KillsAll: 1, Processes: 2, Seed: 7, Out: os.Stdout,
		Hidden: 36 * time.Second, // what the processor itself asks for; as deployed it may take three minutes
	}
	if *long {
		const customers, load = 400, 75
		o = Options{
			Customers: customers, Events: int(*perSecond) * load / customers, Rate: *perSecond, Load: 100 * time.Second, Patience: 4 * time.Minute,
			Every: 2900 * time.Millisecond, Kills: 22, KillsAll: 3, Processes: 4, Seed: *seed, Out: os.Stdout,
		}
		if o.Seed == 0 {
			o.Seed = rand.Uint64N(1e9)
		}
	}
	var log tail
	o.Log, o.Binaries = log.add, t.TempDir()
	if err := laptop.Build(t.Context(), o.Binaries, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	r, err := Run(ctx, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.text())
	}
	r.Print(os.Stdout, time.Now(), runtime.NumCPU())
	single := 0
	for _, n := range r.Killed {
		single += n
	}
	if single != o.Kills || r.KilledAll != o.KillsAll {
		t.Errorf("%d processes were killed and %d times all, want %d and %d", single, r.KilledAll, o.Kills, o.KillsAll)
	}
	if r.Acknowledged == 0 || r.Once != r.Acknowledged || !r.Clean() {
		t.Errorf("of %d acknowledged events %d were done once, %d lost, %d doubled, %d out of order\n%s",
			r.Acknowledged, r.Once, r.Lost, r.Doubled, r.Misordered, log.text())
	}
}

// tail keeps the last warnings and errors the functions wrote.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) add(line string) {
	if strings.Contains(line, `"level":"INFO"`) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-20):]
}

func (l *tail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// The counting must be able to say no.
func TestJudgeFindsWhatIsLostAndDoubled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acknowledged, rest       tally.Tally
		lost, doubled, unsettled int
		clean                    bool
	}{
		"all once":                   {tally.Tally{Done: 2, Once: 2}, tally.Tally{Absent: 1}, 0, 0, 0, true},
		"done without an effect":     {tally.Tally{Done: 2, Once: 1, Lost: []string{"a"}}, tally.Tally{}, 1, 0, 0, false},
		"not in the ledger":          {tally.Tally{Done: 1, Once: 1, Absent: 1}, tally.Tally{}, 1, 0, 0, false},
		"not settled":                {tally.Tally{Done: 1, Once: 1, Open: 3}, tally.Tally{}, 3, 0, 3, false},
		"parked":                     {tally.Tally{Done: 1, Once: 1, Parked: 1}, tally.Tally{}, 1, 0, 0, false},
		"skipped":                    {tally.Tally{Done: 1, Once: 1, Skipped: 1}, tally.Tally{}, 1, 0, 0, false},
		"twice":                      {tally.Tally{Done: 2, Once: 1, Doubled: []string{"a"}}, tally.Tally{}, 0, 1, 0, false},
		"never acknowledged, twice":  {tally.Tally{}, tally.Tally{Doubled: []string{"a"}}, 0, 1, 0, false},
		"never acknowledged, parked": {tally.Tally{}, tally.Tally{Parked: 1, Open: 1}, 0, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Result
			r.judge(c.acknowledged, c.rest)
			if r.Lost != c.lost || r.Doubled != c.doubled || r.Unsettled != c.unsettled || r.Clean() != c.clean {
				t.Errorf("lost %d, doubled %d, unsettled %d, clean %t; want %d, %d, %d, %t",
					r.Lost, r.Doubled, r.Unsettled, r.Clean(), c.lost, c.doubled, c.unsettled, c.clean)
			}
		})
	}
}

func TestWitnessFindsWhatIsOutOfOrder(t *testing.T) {
	t.Parallel()
	chain := func(keys ...string) []sender.Event {
		var list []sender.Event
		for _, key := range keys {
			list = append(list, sender.Event{Key: key})
		}
		return list
	}
	chains := [][]sender.Event{chain("a1", "a2", "a3"), chain("b1", "b2")}
	for effects, want := range map[string]int{
		"a1 b1 a2 b2 a3": 0,
		"a1 a2 a1 a3 b2": 0, // an answer that came again; b1 never did
		"a2 a1 a3 b1 b2": 1,
		"a3 a1 a2 b2 b1": 3,
		"a3 a2 a1":       2,
		"":               0,
	} {
		t.Run(effects, func(t *testing.T) {
			t.Parallel()
			w := newWitness()
			for _, key := range strings.Fields(effects) {
				w.observe(&awslocal.Call{Action: "TransactWriteItems", Body: fmt.Appendf(nil, `{"pk":{"S":"journal#%s"}}`, key)}, 200, nil)
			}
			w.observe(&awslocal.Call{Action: "TransactWriteItems", Body: []byte(`{"pk":{"S":"journal#b2"}}`)}, 400, nil)
			if got := w.misordered(chains); got != want {
				t.Errorf("%d out of order, want %d", got, want)
			}
		})
	}
}

func TestKillerFulfilsItsPlanAndKillsNoGroups(t *testing.T) {
	t.Parallel()
	if done, err := kill(0); done || err == nil {
		t.Error("process 0 is everybody's group")
	}
	if done, err := kill(-1); done || err == nil {
		t.Error("process -1 is everybody")
	}
	k := &killer{processes: nobody{}, random: rand.New(rand.NewPCG(1, 1)), options: Options{Every: time.Millisecond, Kills: 1}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := k.run(ctx); err == nil || len(k.killed) != 0 {
		t.Errorf("with nobody to kill the plan is fulfilled: %v %v", k.killed, err)
	}
}

type nobody struct{}

func (nobody) PIDs(string) []int { return nil }
