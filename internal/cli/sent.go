package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"backstop/internal/config"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// sent is what send prints.
type sent struct {
	Events       int            `json:"events"` // delivered ones
	Dropped      int            `json:"dropped,omitempty"`
	Deliveries   int            `json:"deliveries"`
	Attempts     int            `json:"attempts"`
	Acknowledged int            `json:"acknowledged"`
	Refused      int            `json:"refused"`
	Answers      map[string]int `json:"answers"`
	P50MS        float64        `json:"ack_p50_ms"`
	P99MS        float64        `json:"ack_p99_ms"`
	Customers    []string       `json:"customers"` // that the events name, in their order
	Seed         uint64         `json:"seed"`
	Effects      *tally.Tally   `json:"effects,omitempty"`
}

func summarise(list, deliveries []sender.Event, report sender.Report, seed uint64) sent {
	s := sent{
		Events: len(list), Deliveries: len(deliveries), Attempts: report.Deliveries,
		Acknowledged: len(report.Acknowledged), Refused: len(report.Refused), Answers: map[string]int{}, Seed: seed,
		P50MS: milliseconds(sender.Percentile(report.Took, 50)), P99MS: milliseconds(sender.Percentile(report.Took, 99)),
	}
	for _, code := range report.Codes() {
		s.Answers[answerName(code)] = report.Statuses[code]
	}
	return s
}

func answerName(code int) string {
	if code == 0 {
		return "no answer"
	}
	return strconv.Itoa(code)
}

// answered says what became of a delivery that was not acknowledged.
func answered(a sender.Answer) string {
	if a.Status == 0 && a.Err != nil {
		return a.Err.Error()
	}
	return "answered " + answerName(a.Status)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (e *env) printSent(s sent, report sender.Report) error {
	trouble := s.Acknowledged < s.Events || (s.Effects != nil && !s.Effects.Clean())
	if e.json {
		if err := e.printJSON(s); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.Out, "%s in %s: %d acknowledged", count(s.Events, "event"), counted(s.Deliveries, "delivery", "deliveries"), s.Acknowledged)
		if s.Attempts > s.Deliveries {
			fmt.Fprintf(e.Out, " after %s", count(s.Attempts, "attempt"))
		}
		fmt.Fprintln(e.Out)
		for _, code := range report.Codes() {
			fmt.Fprintf(e.Out, "  %-9s %d\n", answerName(code), report.Statuses[code])
		}
		switch len(report.Took) {
		case 0:
		case 1:
			fmt.Fprintf(e.Out, "  acknowledged in %.1f ms\n", s.P50MS)
		default:
			fmt.Fprintf(e.Out, "  acknowledged in %.1f ms at the median, %.1f ms at the 99th percentile\n", s.P50MS, s.P99MS)
		}
		if s.Dropped > 0 {
			fmt.Fprintf(e.Out, "  %d more were dropped on the way: the next audit finds them, or `backstop audit --since 1h --yes`\n", s.Dropped)
		}
		for i, refused := range report.Refused {
			if i == 5 {
				fmt.Fprintf(e.Out, "  ... and %d more\n", len(report.Refused)-i)
				break
			}
			fmt.Fprintf(e.Out, "  never acknowledged: %s %s: %s\n", refused.Event.ID, refused.Event.Type, answered(refused))
		}
		if slices.ContainsFunc(report.Refused, func(a sender.Answer) bool { return a.Status == http.StatusBadRequest }) {
			fmt.Fprintf(e.Out, "the endpoint refused: most likely it knows another signing secret; give its own with --secret or in %s\n", config.SigningSecrets)
		}
		if s.Effects != nil {
			printTally(e.Out, *s.Effects)
		}
		if len(s.Customers) == 1 {
			fmt.Fprintf(e.Out, "see what became of it: backstop customer %s\n", s.Customers[0])
		}
	}
	if trouble {
		return errFindings
	}
	return nil
}
