package cost

import (
	"math"
	"strings"
	"testing"
)

func prod(t *testing.T) Stage {
	t.Helper()
	s, err := StageOf("prod")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(got, want float64) bool { return math.Abs(got-want) < 0.005 }

func TestMillionOrdinaryEventsStayUnderSevenDollars(t *testing.T) {
	t.Parallel()
	e := Of(Ordinary(1e6), prod(t))
	if total := Sum(e.Variable); total > 7.00 || total < 5.00 {
		t.Errorf("a million ordinary events cost $%.2f, at most $7.00 are promised", total)
	}
	// By hand: 3 + 2 units of entry, 1 of the row, 0.33 of its index at $0.625; 1 + 3/10 requests at $0.50.
	for what, want := range map[string]float64{
		"API requests":                         1.00,
		"ledger: record, claim, settle":        3.13,
		"projected rows":                       0.63,
		"billing index, for rows that are new": 0.21,
		"queue: send":                          0.50,
		"queue: receive, hide, delete":         0.15,
		"receiver: invocations":                0.20,
		"receiver: time":                       0.05,
		"processor: invocations":               0.02,
		"processor: time":                      0.04,
		"log lines: receiver, processor, API":  0.74,
	} {
		if got := dollars(t, e.Variable, what); math.Abs(got-want) > 0.006 {
			t.Errorf("%s: $%.3f, want $%.2f", what, got, want)
		}
	}
}

func dollars(t *testing.T, lines []Line, what string) float64 {
	t.Helper()
	for _, l := range lines {
		if l.What == what {
			return l.Dollars
		}
	}
	t.Fatalf("there is no line %q in %+v", what, lines)
	return 0
}

func TestLargeBodiesTakeMoreUnitsAndMoreRequests(t *testing.T) {
	t.Parallel()
	w := Ordinary(1e6)
	w.BodyBytes = 1 << 20
	e := Of(w, prod(t))
	// 570 + 0.062 x 1 MiB are 65,582 bytes, 65 units: three writes of the entry, and two of its index at one unit.
	if got := dollars(t, e.Variable, "ledger: record, claim, settle"); !near(got, 123.125) {
		t.Errorf("the ledger's writes cost $%.3f, want $123.125", got)
	}
	if got := dollars(t, e.Variable, "API requests"); !near(got, 2) {
		t.Errorf("the API costs $%.2f, want two requests each", got)
	}
}

func TestEventsOneAtATimeCostTheirOwnBatches(t *testing.T) {
	t.Parallel()
	w := Ordinary(1e6)
	w.Batch = 1
	e := Of(w, prod(t))
	if got := dollars(t, e.Variable, "queue: receive, hide, delete"); !near(got, 1.50) {
		t.Errorf("the queue's requests cost $%.2f, want $1.50", got)
	}
	if got := dollars(t, e.Variable, "processor: invocations"); !near(got, 0.20) {
		t.Errorf("invocations cost $%.2f, want $0.20", got)
	}
}

func TestTransactionalRowsAreLines(t *testing.T) {
	t.Parallel()
	w := Ordinary(1e6)
	w.Once = 1
	if got := dollars(t, Of(w, prod(t)).Variable, "transactional rows"); !near(got, 2.50) {
		t.Errorf("they cost $%.2f, want $2.50", got)
	}
	ways := Lower(w)
	if last := ways[len(ways)-1]; !strings.Contains(last.What, "transactions") || !near(last.Dollars, 1.875) {
		t.Errorf("what they could save is not said: %+v", last)
	}
}

func TestFixedCostNeedsNoEvents(t *testing.T) {
	t.Parallel()
	none, many := Of(Ordinary(0), prod(t)), Of(Ordinary(1e9), prod(t))
	if Sum(none.Variable)+Sum(none.Kept) != 0 {
		t.Errorf("no events cost $%.2f", Sum(none.Variable)+Sum(none.Kept))
	}
	if Sum(none.Fixed) != Sum(many.Fixed) || Sum(none.Fixed) < 10 {
		t.Errorf("fixed are $%.2f without events, $%.2f with many", Sum(none.Fixed), Sum(many.Fixed))
	}
	// 31 x $0.10, 29 x $0.30, 2 x $0.40.
	for what, want := range map[string]float64{
		"alarms, by the metrics they read": 3.10, "metrics, were each published every hour": 8.70, "secrets": 0.80,
	} {
		if got := dollars(t, none.Fixed, what); !near(got, want) {
			t.Errorf("%s: $%.2f, want $%.2f", what, got, want)
		}
	}
}

func TestEveryLineNamesItsSourceAndUnit(t *testing.T) {
	t.Parallel()
	e := Of(Ordinary(1e6), prod(t))
	lines := append(append(append([]Line{}, e.Variable...), e.Kept...), e.Fixed...)
	if len(lines) < 20 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, l := range lines {
		if !strings.Contains(string(l.Source), "pricing") || l.Unit == "" || l.Dollars <= 0 {
			t.Errorf("%+v", l)
		}
	}
}

func TestWorkloadThatCannotBeIsNamedWhole(t *testing.T) {
	t.Parallel()
	if err := Ordinary(1e6).Validate(); err != nil {
		t.Error(err)
	}
	err := Workload{Events: -1, BodyBytes: 5 << 20, Rows: -1, NewRows: 2, Batch: 11}.Validate()
	for _, want := range []string{"-1 events", "bytes an event", "-1 rows", "2 of the rows", "11 events in a batch"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestWhatWouldLowerTheBillSavesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	w, s := Ordinary(1e6), prod(t)
	total := Sum(Of(w, s).Variable)
	ways := Lower(w)
	if len(ways) < 4 {
		t.Fatalf("only %d ways", len(ways))
	}
	for _, way := range ways {
		if way.Dollars < 0 || way.Dollars > total || way.Price == "" {
			t.Errorf("%+v of a bill of $%.2f", way, total)
		}
	}
}
