package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// runCost runs the command with nothing in the environment.
func runCost(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{"cost"}, args...), Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		func(string) (string, bool) { return "", false })
	return code, stdout.String(), stderr.String()
}

func TestCostIsItemisedAndAddedUp(t *testing.T) {
	t.Parallel()
	code, out, errs := runCost(t, "--events", "5M", "--size", "6KB")
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	for _, want := range []string{
		"5M events of 6144 bytes a month, stage prod", "ledger: record, claim, settle", "25M write units", "15.63",
		"what varies is $6.65 a million", "What would lower it:", "Not in it:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not say %q:\n%s", want, out)
		}
	}
}

func TestCostForMachinesAddsUp(t *testing.T) {
	t.Parallel()
	code, out, errs := runCost(t, "--events", "1M", "--stage", "dev", "--json")
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	var r struct {
		Prices, Stage                string
		Variable, Kept, Fixed, Lower []struct{ Dollars float64 }
		Total                        float64 `json:"total_dollars"`
		PerMillion                   float64 `json:"variable_dollars_per_million"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, lines := range [][]struct{ Dollars float64 }{r.Variable, r.Kept, r.Fixed} {
		for _, l := range lines {
			sum += l.Dollars
		}
	}
	if r.Stage != "dev" || len(r.Prices) != len("2026-11-29") || math.Abs(sum-r.Total) > 0.001 || sum < 10 {
		t.Errorf("%s %s: the lines are $%.2f, the total $%.2f", r.Stage, r.Prices, sum, r.Total)
	}
	if r.PerMillion > 7.00 || len(r.Lower) == 0 {
		t.Errorf("$%.2f a million, %d ways to lower it", r.PerMillion, len(r.Lower))
	}
}

func TestCostOfNoEventsIsWhatIsFixed(t *testing.T) {
	t.Parallel()
	code, out, errs := runCost(t, "--events", "0")
	if code != 0 || strings.Contains(out, "NaN") || strings.Contains(out, "a million") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestCostRefusesWhatItCannotCount(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--events", "many"}, {"--events", ""}, {"--events", "-5"}, {"--events", "5MB"}, {"--size", "6 KB"}, {"--size", "5MB"},
		{"--size", "0"}, {"--batch", "11"}, {"--new-rows", "2"}, {"--stage", "test"}, {"--rows", "NaN"},
	} {
		if code, out, errs := runCost(t, args...); code != 2 || errs == "" {
			t.Errorf("%v: code %d, %q, %q", args, code, out, errs)
		}
	}
}
