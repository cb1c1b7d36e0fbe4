package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"backstop/internal/cost"
)

func newCost(e *env) *cobra.Command {
	var events, size, stage string
	w := cost.Ordinary(0)
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Estimate what a month costs, line by line",
		Long: `Cost multiplies AWS's list prices (us-east-1, of ` + cost.PricesOf + `) with the units that this design uses for
an event. A test compares the units with what the local AWS counts. It calls nobody.`,
		Example: "  backstop cost --events 5M --size 6KB\n  backstop cost --events 200k --batch 1 --stage dev",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if w.Events, err = parseCount(events); err != nil {
				return usagef(cmd, "--events: %v", err)
			}
			if w.BodyBytes, err = parseSize(size); err != nil {
				return usagef(cmd, "--size: %v", err)
			}
			if err := w.Validate(); err != nil {
				return usagef(cmd, "%v", err)
			}
			s, err := cost.StageOf(stage)
			if err != nil {
				return usagef(cmd, "--stage: %v", err)
			}
			return e.cost(w, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&events, "events", "1M", "events a month: 250k, 5M")
	flags.StringVar(&size, "size", "6KB", "size of an event's body: 900B, 6KB, 1MB")
	flags.StringVar(&stage, "stage", "prod", "dev or prod")
	flags.Float64Var(&w.Rows, "rows", w.Rows, "projected rows an event")
	flags.Float64Var(&w.NewRows, "new-rows", w.NewRows, "share of these that are new, 0 to 1")
	flags.Float64Var(&w.Once, "once", w.Once, "transactional rows an event (a handler's Once effects)")
	flags.Float64Var(&w.Batch, "batch", w.Batch, "events in a batch: 10 in bursts, 1 when they come one at a time")
	return cmd
}

// parseCount reads a number with k, M or G behind it.
func parseCount(text string) (float64, error) {
	return parseUnits(text, map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}, "250k or 5M")
}

// smallest is the size, in bytes, below which a number without a unit is rather one of kilobytes.
const smallest = 256

// parseSize reads a size as AWS meters it: a KB is 1,024 bytes.
func parseSize(text string) (float64, error) {
	bytes, err := parseUnits(text, map[string]float64{"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20}, "900B, 6KB or 1MB")
	if err == nil && bytes < smallest && !strings.HasSuffix(text, "B") {
		return 0, fmt.Errorf("%s bytes are no event: give a unit, such as %sKB", text, text)
	}
	return bytes, err
}

func parseUnits(text string, units map[string]float64, example string) (float64, error) {
	digits := strings.TrimRight(text, "kKMGB")
	unit, known := units[text[len(digits):]]
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || number < 0 || number > 1e15 {
		return 0, fmt.Errorf("%q is not a number like %s", text, example)
	}
	return number * unit, nil
}

// costReport is what --json prints.
type costReport struct {
	cost.Estimate
	Events            float64       `json:"events"`
	BodyBytes         float64       `json:"body_bytes"`
	Stage             string        `json:"stage"`
	VariableDollars   float64       `json:"variable_dollars"`
	PerMillionDollars float64       `json:"variable_dollars_per_million,omitempty"`
	KeptDollars       float64       `json:"kept_dollars"`
	FixedDollars      float64       `json:"fixed_dollars"`
	TotalDollars      float64       `json:"total_dollars"`
	OneAtATimeDollars float64       `json:"variable_dollars_one_at_a_time"`
	Lower             []cost.Saving `json:"lower"`
	alonePerMillion   float64       // dollars, were every event alone in its batch
}

func (e *env) cost(w cost.Workload, s cost.Stage) error {
	single := w
	single.Batch = 1
	r := costReport{
		Estimate: cost.Of(w, s), Events: w.Events, BodyBytes: w.BodyBytes, Stage: s.Name,
		OneAtATimeDollars: cents(cost.Sum(cost.Of(single, s).Variable)), Lower: cost.Lower(w),
	}
	if w.Events > 0 {
		r.PerMillionDollars = cents(cost.Sum(r.Variable) / w.Events * 1e6)
		r.alonePerMillion = cost.Sum(cost.Of(single, s).Variable) / w.Events * 1e6
	}
	r.round()
	r.VariableDollars, r.KeptDollars, r.FixedDollars = cents(cost.Sum(r.Variable)), cents(cost.Sum(r.Kept)), cents(cost.Sum(r.Fixed))
	r.TotalDollars = cents(r.VariableDollars + r.KeptDollars + r.FixedDollars)
	if e.json {
		return e.printJSON(r)
	}
	return e.printCost(r)
}

// round rounds the lines to cents, the estimate being no finer, so that what is printed adds up.
func (r *costReport) round() {
	for _, lines := range [][]cost.Line{r.Variable, r.Kept, r.Fixed} {
		for i := range lines {
			lines[i].Dollars = cents(lines[i].Dollars)
		}
	}
	for i := range r.Lower {
		r.Lower[i].Dollars = cents(r.Lower[i].Dollars)
	}
}

func cents(dollars float64) float64 { return math.Round(dollars*100) / 100 }

func (e *env) printCost(r costReport) error {
	fmt.Fprintf(e.Out, "%s events of %.0f bytes a month, stage %s; list prices in us-east-1 of %s, before free tiers\n\n",
		short(r.Events), r.BodyBytes, r.Stage, r.Prices)
	section := func(title string, lines []cost.Line, sum float64) {
		fmt.Fprintf(e.Out, "%s\n", title)
		for _, l := range lines {
			fmt.Fprintf(e.Out, "  %-42s%22s%9.2f\n", l.What, short(l.Count)+" "+l.Unit, l.Dollars)
		}
		fmt.Fprintf(e.Out, "  %64s%9s\n", "", fmt.Sprintf("$%.2f", sum))
	}
	section("Varies with events", r.Variable, r.VariableDollars)
	section("Kept of them", r.Kept, r.KeptDollars)
	section("Fixed", r.Fixed, r.FixedDollars)
	fmt.Fprintf(e.Out, "\n$%.2f a month", r.TotalDollars)
	if r.Events > 0 {
		fmt.Fprintf(e.Out, "; what varies is $%.2f a million, were every event alone in its batch $%.2f",
			r.PerMillionDollars, r.alonePerMillion)
	}
	fmt.Fprint(e.Out, "\n\nWhat would lower it:\n")
	for _, way := range r.Lower {
		saves := "it depends"
		if way.Dollars > 0 {
			saves = fmt.Sprintf("$%.2f", way.Dollars)
		}
		fmt.Fprintf(e.Out, "  %s (%s): %s\n", way.What, saves, way.Price)
	}
	fmt.Fprint(e.Out, "\nNot in it: VPC, NAT or data transfer, of which the design has next to none; calls of handlers of your own; billing rows, which\nstay for ever ($0.25 a GB); metrics of rare things cost less, being billed by the hour in which they were published.\n")
	return nil
}

// short writes a count for people.
func short(n float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size {
			return strconv.FormatFloat(n/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}
