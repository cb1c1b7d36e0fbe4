package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/ledger"
	"backstop/internal/reconcile"
	"backstop/internal/secret"
	"backstop/internal/stripeapi"
	"backstop/internal/stripeevents"
	"backstop/internal/subscribed"
)

func newAudit(e *env) *cobra.Command {
	var since string
	var yes bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare Stripe's list of events with the ledger",
		Long: `Audit lists every event Stripe has since a time, up to 15 minutes ago, and says which of
them the ledger lacks, which are not finished, which are parked, and which the ledger has
and Stripe does not list. With --yes it records and enqueues what is missing, with the
payload in the account's API version. The reconciler does so every 15 minutes.

It needs a Stripe API key that may read events: the deployment's own, or one in
` + config.StripeKey + `. Stripe lists 30 days.

Exit code 1: something is missing, unhealed or unexpected, or could not be compared.`,
		Example: "  backstop audit --since 24h\n  backstop audit --since 7d --yes",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.audit(cmd, since, yes) },
	}
	cmd.Flags().StringVar(&since, "since", "24h", "an age (24h, 7d), a day (2026-01-31) or a time (2026-01-31T15:00:00Z)")
	cmd.Flags().BoolVar(&yes, "yes", false, "heal what is missing; without, say what is")
	return cmd
}

// stripe returns a client with the deployment's API key.
func (t *target) stripe(e *env) *stripeapi.Client {
	key := secret.From(t.AWS, []string{t.StripeKey}, t.StripeKeyID, e.now)
	return stripeapi.New(stripeapi.Config{URL: t.StripeURL, Key: key.Value})
}

func (e *env) audit(cmd *cobra.Command, text string, heal bool) error {
	ctx := cmd.Context()
	since, err := parseSince(text, e.now())
	if err != nil || since.IsZero() {
		return usagef(cmd, "--since: %q is neither an age (24h, 7d), a day (2026-01-31) nor a time", text)
	}
	t, err := e.target(ctx, config.LedgerTable, config.QueueURL)
	if err != nil {
		return err
	}
	types := subscribed.Types(t.EventTypes)
	seen := make(map[ledger.Key]bool)
	bar := e.bar(100, "auditing")
	auditor := reconcile.Auditor{
		Events: stripeevents.New(t.stripe(e), randv2.Float64), Ledger: t.ledger(e), Queue: t.queue(),
		Accounts: t.Accounts, Types: types, Unlisted: subscribed.Thin(types), Mode: t.Mode, Now: e.now, Token: rand.Text,
		Seen: func(key ledger.Key) { seen[key] = true },
		Progress: func(_ string, at, end time.Time) {
			_ = bar.Set(int(100 * at.Sub(since) / max(end.Sub(since), 1)))
		},
	}
	report, err := auditor.Since(ctx, since, heal)
	_ = bar.Finish()
	if errors.Is(err, stripeapi.ErrNoKey) {
		return fmt.Errorf("audit: %w: put a restricted key (rk_...) that may read events into the deployment's secret, or into %s", err, config.StripeKey)
	}
	if err != nil {
		return err
	}
	unexpected, err := e.unexpected(cmd, t, report, seen)
	if err != nil {
		return err
	}
	if err := e.printAudit(report, unexpected, heal); err != nil {
		return err
	}
	if report.Missing > report.Healed || report.Gap || !report.Complete || report.OtherMode > 0 || len(unexpected) > 0 {
		return errFindings
	}
	return nil
}

// unexpected finds what the ledger has of the window and Stripe did not list: an event of an account that is not
// audited, or one that somebody else signed.
func (e *env) unexpected(cmd *cobra.Command, t *target, report reconcile.Audited, seen map[ledger.Key]bool) ([]reconcile.Finding, error) {
	types := make(map[string]bool)
	for _, name := range subscribed.Types(t.EventTypes) {
		types[name] = true
	}
	for _, name := range subscribed.Thin(t.EventTypes) {
		delete(types, name)
	}
	entries, err := listEntries(cmd.Context(), t, func(entry ledger.Entry) bool {
		return types[entry.Type] && entry.CreatedS >= report.FromS && entry.CreatedS < report.ToS && !seen[entry.Key] &&
			(t.Mode == "" || entry.Livemode == (t.Mode == "live"))
	})
	if err != nil {
		return nil, err
	}
	var list []reconcile.Finding
	for _, entry := range entries {
		list = append(list, reconcile.Finding{
			Key: entry.Key, Type: entry.Type, CreatedS: entry.CreatedS, What: "unexpected", Why: "Stripe does not list it",
		})
	}
	return list, nil
}

func (e *env) printAudit(report reconcile.Audited, unexpected []reconcile.Finding, healed bool) error {
	if e.json {
		return e.printJSON(struct {
			reconcile.Audited
			DryRun     bool                `json:"dry_run"`
			Findings   []reconcile.Finding `json:"findings"`
			Notes      []string            `json:"notes"`
			Unexpected []reconcile.Finding `json:"unexpected"`
		}{report, !healed, some(report.Findings), some(report.Notes), some(unexpected)})
	}
	findings := append(report.Findings, unexpected...)
	if len(findings) > 0 {
		w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "CREATED\tEVENT\tTYPE\tFINDING\tWHY")
		for _, f := range findings[:min(len(findings), shown)] {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", clock(f.CreatedS*1000), eventID(string(f.Key)), f.Type, f.What, f.Why)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.Out, "from %s to %s: %d events of Stripe's compared: %d missing, %d healed, %d unfinished, %d parked, %d unexpected\n",
		clock(report.FromS*1000), clock(report.ToS*1000), report.Listed, report.Missing, report.Healed, report.Unfinished,
		report.Parked, len(unexpected))
	for _, note := range report.Notes {
		fmt.Fprintln(e.Out, note)
	}
	if !healed && report.Missing > 0 {
		fmt.Fprintln(e.Out, "--yes records and enqueues what is missing")
	}
	return nil
}
