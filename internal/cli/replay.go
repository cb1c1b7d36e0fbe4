package cli

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"backstop/internal/ledger"
	"backstop/internal/replay"
)

type replayOptions struct {
	consent
	filter
	account string
	handler string
	again   bool
	rate    float64
}

func newReplay(e *env) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay [EVENT...]",
		Short: "Run settled events again from the ledger",
		Long: `Replay runs parked events again, by id or by filter, oldest first within a customer. What is
done of them stays done. It says what it would do, and does it with --yes and a --reason.

With --again, events that are done or skipped run anew, with new idempotency keys. With
--handler, one handler runs only. Dead-letter messages of what was replayed are tidied.

Exit code 1: something that was to be replayed was not.`,
		Example: `  backstop replay evt_1PExample --yes --reason 'address fixed at Stripe'
  backstop replay --status parked --type 'invoice.*' --since 7d
  backstop replay --error-class decode --rate 20 --yes --reason 'decoder of 1.4.2'
  backstop replay evt_1PExample --again --handler mailer --yes --reason 'mail was lost'`,
		RunE: func(cmd *cobra.Command, args []string) error { return e.replay(cmd, args, o) },
	}
	o.consent.flags(cmd)
	o.filter.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.account, "account", "", "the connected account the events are of")
	flags.StringVar(&o.handler, "handler", "", "run this handler only")
	flags.BoolVar(&o.again, "again", false, "also events that are done or skipped")
	flags.Float64Var(&o.rate, "rate", 50, "replays a second; 0: as fast as it goes")
	return cmd
}

// replayed is what the command prints for machines.
type replayed struct {
	DryRun bool   `json:"dry_run"`
	Events []view `json:"events"` // replayed, or that would be
	Left   []left `json:"left"`
}

type left struct {
	Key    ledger.Key    `json:"key"`
	Status ledger.Status `json:"status"`
	Why    string        `json:"why"`
}

func leftOf(list []replay.Left) []left {
	views := []left{}
	for _, l := range list {
		views = append(views, left{l.Entry.Key, l.Entry.Status, l.Why})
	}
	return views
}

func (e *env) replay(cmd *cobra.Command, ids []string, o replayOptions) error {
	if err := o.check(cmd, e); err != nil {
		return err
	}
	if !(o.rate >= 0) {
		return usagef(cmd, "--rate: give the replays a second, or 0 for as fast as it goes, not %v", o.rate)
	}
	filtered := o.types != "" || o.customer != "" || len(o.statuses) > 0 || o.since != "" || o.errorClass != ""
	if len(ids) == 0 == !filtered {
		return usagef(cmd, "name events, or say which with --status, --type, --customer, --since or --error-class")
	}
	if len(o.statuses) == 0 && !o.again {
		o.statuses = []string{string(ledger.Parked)}
	}
	t, err := e.target(cmd.Context(), needs...)
	if err != nil {
		return err
	}
	entries, err := e.choose(cmd, t, ids, o.account, o.filter)
	if err != nil {
		return err
	}
	order := replay.Order{By: o.by, Why: o.why, Handler: o.handler, Again: o.again}
	todo, notNow := replay.Plan(entries, order)
	if !o.yes {
		return e.printReplay("would be replayed; --yes and --reason do it", replayed{true, views(todo), leftOf(notNow)}, todo)
	}
	bar := e.bar(len(todo), "replaying")
	replayer := replay.Replayer{Ledger: t.ledger(e), Queue: t.queue(), Token: rand.Text, Rate: o.rate}
	report, err := replayer.Replay(cmd.Context(), todo, order, func() { _ = bar.Add(1) })
	_ = bar.Finish()
	if printing := e.printReplay("replayed", replayed{false, views(report.Done), leftOf(append(notNow, report.Left...))}, report.Done); err == nil {
		err = printing
	}
	if err != nil {
		return err
	}
	if len(report.Done) > 0 {
		if _, err := t.tidier(e).Run(cmd.Context(), false); err != nil {
			return err
		}
	}
	if len(report.Left) > 0 || len(ids) > len(report.Done) {
		return errFindings
	}
	return nil
}

func (e *env) printReplay(what string, r replayed, entries []ledger.Entry) error {
	if e.json {
		return e.printJSON(r)
	}
	if len(entries) > 0 {
		e.printEntries(entries)
	}
	for i, l := range r.Left {
		if i == shown {
			fmt.Fprintf(e.Out, "... and %d more left alone\n", len(r.Left)-i)
			break
		}
		fmt.Fprintf(e.Out, "left alone: %s: %s\n", eventID(string(l.Key)), l.Why)
	}
	fmt.Fprintf(e.Out, "%s %s\n", count(len(entries), "event"), what)
	return nil
}
