package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"backstop/internal/billing"
	"backstop/internal/config"
	"backstop/internal/ledger"
	"backstop/internal/projection"
)

func newCustomer(e *env) *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:   "customer CUSTOMER",
		Short: "Show what a customer has, owes and gets, and the events that say so",
		Long: `Customer shows each fact as it stands, and the latest event behind each. Events that later
ones superseded are not listed: 'backstop events --customer CUSTOMER' lists all.`,
		Example: `  backstop customer cus_PExample
  backstop customer cus_PExample --account acct_1Example --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "name one customer id")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.customer(cmd, account, args[0]) },
	}
	cmd.Flags().StringVar(&account, "account", "", "the connected account the customer is of")
	return cmd
}

func (e *env) customer(cmd *cobra.Command, account, id string) error {
	t, err := e.target(cmd.Context(), config.BillingTable)
	if err != nil {
		return err
	}
	reader := billing.NewReader(projection.New(dynamodb.NewFromConfig(t.AWS)), t.BillingTable)
	found, err := reader.Customer(cmd.Context(), account, id)
	if err != nil {
		return err
	}
	if found.Empty() {
		return fmt.Errorf("nothing is known of %s: no event that names it has been handled; one of a connected account needs --account", id)
	}
	if e.json {
		found.Subscriptions, found.Invoices = some(found.Subscriptions), some(found.Invoices)
		found.Payments, found.Sessions = some(found.Payments), some(found.Sessions)
		return e.printJSON(struct {
			billing.Account
			Events []string `json:"events"`
		}{found, some(found.Events())})
	}
	var keys []ledger.Key
	for _, key := range found.Events() {
		keys = append(keys, ledger.Key(key))
	}
	entries := map[ledger.Key]ledger.Entry{}
	if t.LedgerTable != "" {
		if entries, err = ledger.New(dynamodb.NewFromConfig(t.AWS), t.LedgerTable, e.now).BatchGet(cmd.Context(), keys); err != nil {
			return fmt.Errorf("read the customer's events: %w", err)
		}
	}
	return printAccount(e.Out, id, found, keys, entries)
}

func printAccount(out io.Writer, id string, a billing.Account, keys []ledger.Key, entries map[ledger.Key]ledger.Entry) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, heading(id, a.Customer))
	if a.Entitlements != nil {
		fmt.Fprintf(w, "\nmay use\t%s%s\n", orNone(strings.Join(a.Entitlements.Keys, ", ")), incomplete(a.Entitlements.Complete))
	}
	if len(a.Subscriptions) > 0 {
		fmt.Fprintln(w, "\nSUBSCRIPTION\tSTATUS\tITEMS\tPERIOD ENDS\t")
	}
	for _, s := range a.Subscriptions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, subscriptionStatus(s), items(s), day(s.CurrentPeriodEnd), unsure(s.Origin))
	}
	if len(a.Invoices) > 0 {
		fmt.Fprintln(w, "\nINVOICE\tSTATUS\tTOTAL\tPAID\tLINES\tSUBSCRIPTION\t")
	}
	for _, i := range a.Invoices {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d%s\t%s\t%s\n", i.ID, i.Status, money(i.Total, i.Currency), money(i.AmountPaid, i.Currency),
			i.LineCount, incomplete(i.LinesComplete), i.Subscription, unsure(i.Origin))
	}
	if len(a.Payments) > 0 {
		fmt.Fprintln(w, "\nPAYMENT\tSTATUS\tAMOUNT\tRECEIVED\tREFUNDED\tINVOICE\t")
	}
	for _, p := range a.Payments {
		status := p.Status
		if p.Disputed {
			status += ", disputed"
		}
		refunded := p.AmountRefunded
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.ID, status, money(p.Amount, p.Currency), money(p.AmountReceived, p.Currency),
			money(&refunded, p.Currency), p.Invoice, unsure(p.Origin))
	}
	if len(a.Sessions) > 0 {
		fmt.Fprintln(w, "\nCHECKOUT SESSION\tSTATUS\tPAYMENT\tTOTAL\t")
	}
	for _, s := range a.Sessions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Status, s.PaymentStatus, money(s.AmountTotal, s.Currency), unsure(s.Origin))
	}
	fmt.Fprintln(w, "\nLATEST EVENT BEHIND EACH FACT\tTYPE\tCREATED")
	for _, key := range keys {
		id := key[strings.LastIndexByte(string(key), '#')+1:]
		entry, kept := entries[key]
		if !kept {
			fmt.Fprintf(w, "%s\t(forgotten)\n", id)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", id, entry.Type, time.Unix(entry.CreatedS, 0).UTC().Format(time.DateTime))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := printable(out, text.String()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "Events that later ones superseded are not listed: `backstop events --customer "+id+"` lists all.")
	return err
}

func heading(id string, c *billing.Customer) string {
	if c == nil {
		return id + "  (no event of the customer itself came)"
	}
	line := strings.Join(strings.Fields(id+" "+c.Name+" "+c.Email), " ")
	if c.Deleted {
		line += "  deleted"
	}
	if c.Delinquent {
		line += "  delinquent"
	}
	return line + unsure(c.Origin)
}

func subscriptionStatus(s *billing.Subscription) string {
	status := s.Status
	if s.CancelAtPeriodEnd {
		status += ", ends with the period"
	}
	if s.PauseCollection != nil {
		status += ", collection paused"
	}
	return status
}

func items(s *billing.Subscription) string {
	var list []string
	for _, item := range s.Items {
		name := item.LookupKey
		if name == "" {
			name = item.Price
		}
		if item.Quantity != nil && *item.Quantity != 1 {
			name = fmt.Sprintf("%d × %s", *item.Quantity, name)
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ") + incomplete(s.ItemsComplete)
}

func money(amount *int64, currency string) string {
	if amount == nil {
		return "-"
	}
	return billing.FormatMoney(*amount, currency)
}

func day(unix *int64) string {
	if unix == nil {
		return "-"
	}
	return time.Unix(*unix, 0).UTC().Format(time.DateOnly)
}

func orNone(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func incomplete(complete bool) string {
	if complete {
		return ""
	}
	return " (incomplete)"
}

func unsure(o billing.Origin) string {
	if o.OrderUnsure {
		return " (order unsure)"
	}
	return ""
}
