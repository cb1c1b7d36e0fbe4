package cli

import (
	"github.com/spf13/cobra"

	"backstop/internal/ledger"
	"backstop/internal/replay"
)

func newDiscard(e *env) *cobra.Command {
	var o consent
	var account string
	cmd := &cobra.Command{
		Use:   "discard EVENT...",
		Short: "Settle parked events as skipped, for good",
		Long: `Discard settles parked events as skipped: they will not run, and are forgotten with other
settled ones. It says what it would do, and does it with --yes and a --reason.

Exit code 1: something that was to be discarded was not.`,
		Example: "  backstop discard evt_1PExample --yes --reason 'a test of last year'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "name the events, one by one: `backstop events --status parked` lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.discard(cmd, args, account, o) },
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&account, "account", "", "the connected account the events are of")
	return cmd
}

func (e *env) discard(cmd *cobra.Command, ids []string, account string, o consent) error {
	if err := o.check(cmd, e); err != nil {
		return err
	}
	t, err := e.target(cmd.Context(), needs...)
	if err != nil {
		return err
	}
	entries, err := e.named(cmd.Context(), t, ids, account)
	if err != nil {
		return err
	}
	if !o.yes {
		todo, notNow := []ledger.Entry(nil), []replay.Left(nil)
		for _, entry := range entries {
			if entry.Status == ledger.Parked {
				todo = append(todo, entry)
			} else {
				notNow = append(notNow, replay.Left{Entry: entry, Why: "it is " + string(entry.Status) + ": only what is parked can be discarded"})
			}
		}
		return e.printReplay("would be discarded; --yes and --reason do it", replayed{true, views(todo), leftOf(notNow)}, todo)
	}
	replayer := replay.Replayer{Ledger: t.ledger(e), Queue: t.queue()}
	report, err := replayer.Discard(cmd.Context(), entries, replay.Order{By: o.by, Why: o.why})
	if printing := e.printReplay("discarded", replayed{false, views(report.Done), leftOf(report.Left)}, report.Done); err == nil {
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
	if len(report.Left) > 0 {
		return errFindings
	}
	return nil
}
