package cli

import (
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/control"
	"backstop/internal/deadletter"
	"backstop/internal/eventsource"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/reconcile"
)

// consent is what commands that change something have in common.
type consent struct {
	yes     bool
	by, why string
}

func (c *consent) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.yes, "yes", false, "do it; without, say what would be done")
	flags.StringVar(&c.by, "by", "", "who does it (default: the user of this machine)")
	flags.StringVar(&c.why, "reason", "", "why; it is kept")
}

// check completes the consent; with --yes a reason must be given.
func (c *consent) check(cmd *cobra.Command, e *env) error {
	if c.by == "" {
		for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
			if value, _ := e.vars(name); value != "" {
				c.by = value
				break
			}
		}
	}
	if c.by == "" { // a container's environment names nobody
		if who, err := user.Current(); err == nil {
			c.by = who.Username
		}
	}
	if c.by == "" {
		c.by = "operator"
	}
	if c.yes && strings.TrimSpace(c.why) == "" {
		return usagef(cmd, "say why with --reason: it is kept for whoever looks later")
	}
	return nil
}

func (t *target) ledger(e *env) *ledger.Store {
	return ledger.New(dynamodb.NewFromConfig(t.AWS), t.LedgerTable, e.now)
}

func (t *target) control() *control.Store {
	return control.New(dynamodb.NewFromConfig(t.AWS), t.ControlTable)
}

func (t *target) queue() *queue.SQS {
	return queue.New(sqs.NewFromConfig(t.AWS), t.QueueURL, t.DeadLetterURL)
}

func (t *target) mappings() *eventsource.Client {
	return eventsource.New(lambda.NewFromConfig(t.AWS))
}

func (t *target) tidier(e *env) *reconcile.Tidier {
	return &reconcile.Tidier{Queue: deadletter.New(sqs.NewFromConfig(t.AWS), t.DeadLetterURL), Ledger: t.ledger(e), Now: e.now}
}

// queueAttributes reads all attributes of a queue.
func (t *target) queueAttributes(ctx context.Context, url string) (map[string]string, error) {
	out, err := sqs.NewFromConfig(t.AWS).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("read the attributes of %s: %w", url, err)
	}
	return out.Attributes, nil
}

// choose returns the entries a command is about: those named, or those the filter keeps.
func (e *env) choose(cmd *cobra.Command, t *target, ids []string, account string, f filter) ([]ledger.Entry, error) {
	ctx := cmd.Context()
	if len(ids) > 0 {
		return e.named(ctx, t, ids, account)
	}
	keep, err := f.matcher(cmd, e.now())
	if err != nil {
		return nil, err
	}
	if slices.Equal(f.statuses, []string{string(ledger.Parked)}) {
		return e.parked(ctx, t, keep)
	}
	return listEntries(ctx, t, keep)
}

func (e *env) named(ctx context.Context, t *target, ids []string, account string) ([]ledger.Entry, error) {
	keys := make([]ledger.Key, len(ids))
	for i, id := range ids {
		keys[i] = keyOf(id, account)
	}
	found, err := t.ledger(e).BatchGet(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var entries []ledger.Entry
	for _, key := range keys {
		entry, ok := found[key]
		if !ok {
			return nil, absent(key)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// absent says that an event is not in the ledger, and why that may be.
func absent(key ledger.Key) error {
	return fmt.Errorf("%s is not in the ledger; an event of a connected account needs --account, and settled ones are forgotten after 35 days", eventID(string(key)))
}

// parked lists what is parked by its index, which costs a fraction of reading the whole table.
func (e *env) parked(ctx context.Context, t *target, keep func(ledger.Entry) bool) ([]ledger.Entry, error) {
	store := t.ledger(e)
	_, partitions := ledger.Partitions()
	var entries []ledger.Entry
	for _, partition := range partitions {
		var after ledger.Cursor
		for {
			open, next, err := store.Open(ctx, partition, after, listPage)
			if err != nil {
				return nil, fmt.Errorf("list what is parked: %w", err)
			}
			keys := make([]ledger.Key, len(open))
			for i, o := range open {
				keys[i] = o.Key
			}
			found, err := store.BatchGet(ctx, keys)
			if err != nil {
				return nil, fmt.Errorf("read the ledger: %w", err)
			}
			for _, key := range keys {
				if entry, ok := found[key]; ok && keep(entry) {
					entries = append(entries, entry)
				}
			}
			if next == "" {
				break
			}
			after = next
		}
	}
	return entries, nil
}

// shown is how many entries a table shows; --json shows all.
const shown = 50

func (e *env) printEntries(entries []ledger.Entry) {
	_ = e.printTable(entries[:min(len(entries), shown)]) // to a terminal or a pipe; the command's own error path has nothing to add
	if len(entries) > shown {
		fmt.Fprintf(e.Out, "... and %d more\n", len(entries)-shown)
	}
}

func (e *env) printTable(entries []ledger.Entry) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RECORDED\tEVENT\tTYPE\tGROUP\tSTATUS\tATTEMPTS\tLAST ERROR")
	for _, entry := range entries {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", clock(recorded(entry)), entry.EventID, entry.Type, entry.Group,
			entry.Status, entry.Attempts, firstLine(entry.LastError, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printable(e.Out, text.String())
}

func views(entries []ledger.Entry) []view {
	list := make([]view, len(entries))
	for i, entry := range entries {
		list[i] = viewOf(entry)
	}
	return list
}

// needs are the variables the operating commands read.
var needs = []string{config.LedgerTable, config.QueueURL, config.DeadLetterURL}
