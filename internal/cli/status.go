package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/eventsource"
	"backstop/internal/reconcile"
)

func newStatus(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether events are being processed, and what waits",
		Long: `Status shows the event source mapping, the queues, what is open and parked in the ledger and
how old the oldest is, and the last audit. (How old the oldest message is, SQS tells only
CloudWatch; the oldest open event is never younger.)

Exit code 1: paused, or something is parked, or the last audit found trouble.`,
		Example: "  backstop status\n  backstop status --stage prod --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.status(cmd.Context()) },
	}
}

// status is what the command prints.
type status struct {
	Mapping     eventsource.Mapping `json:"mapping"`
	Paused      *pauseNote          `json:"paused,omitempty"`
	Queue       depth               `json:"queue"`
	DeadLetters depth               `json:"dead_letters"`
	Todo        int                 `json:"todo"`
	OldestTodoS float64             `json:"oldest_todo_age_s"`
	Parked      int                 `json:"parked"`
	Audit       *reconcile.Audited  `json:"last_audit,omitempty"`
}

type depth struct {
	Visible  int `json:"visible"`
	InFlight int `json:"in_flight"`
	Delayed  int `json:"delayed"`
}

func (e *env) status(ctx context.Context) error {
	t, err := e.target(ctx, append([]string{config.ControlTable}, needs...)...)
	if err != nil {
		return err
	}
	s, err := e.readStatus(ctx, t)
	if err != nil {
		return err
	}
	if e.json {
		err = e.printJSON(s)
	} else {
		e.printStatus(s)
	}
	if err != nil {
		return err
	}
	if s.Mapping.State != eventsource.Enabled || s.Paused != nil || s.Parked > 0 || s.Audit != nil && (!s.Audit.Complete || s.Audit.Unhealed > 0) {
		return errFindings
	}
	return nil
}

func (e *env) readStatus(ctx context.Context, t *target) (status, error) {
	var s status
	attributes, err := t.queueAttributes(ctx, t.QueueURL)
	if err != nil {
		return s, err
	}
	s.Queue = depthOf(attributes)
	if s.Mapping, err = t.mappings().Find(ctx, attributes["QueueArn"]); err != nil {
		return s, err
	}
	dead, err := t.queueAttributes(ctx, t.DeadLetterURL)
	if err != nil {
		return s, err
	}
	s.DeadLetters = depthOf(dead)
	counts, err := t.ledger(e).OpenCounts(ctx)
	if err != nil {
		return s, fmt.Errorf("count what is open: %w", err)
	}
	s.Todo, s.Parked = counts.Todo, counts.Parked
	if counts.OldestTodoMS > 0 {
		s.OldestTodoS = e.now().Sub(time.UnixMilli(counts.OldestTodoMS)).Seconds()
	}
	if err := readControl(ctx, t, reconcile.Paused, &s.Paused); err != nil {
		return s, err
	}
	return s, readControl(ctx, t, reconcile.LastAudit, &s.Audit)
}

// readControl reads a control value that is JSON; one nobody has written leaves into as it is.
func readControl[T any](ctx context.Context, t *target, name string, into **T) error {
	value, err := t.control().Get(ctx, name)
	if err != nil || value.Text == "" {
		return err
	}
	read := new(T)
	if err := json.Unmarshal([]byte(value.Text), read); err != nil {
		return fmt.Errorf("read the control value %s: %w", name, err)
	}
	*into = read
	return nil
}

// paused returns who paused the pipeline and why; nil: nobody.
func (t *target) paused(ctx context.Context) (*pauseNote, error) {
	var note *pauseNote
	err := readControl(ctx, t, reconcile.Paused, &note)
	if note != nil && *note == (pauseNote{}) {
		note = nil
	}
	return note, err
}

func depthOf(attributes map[string]string) depth {
	number := func(name string) int {
		n, _ := strconv.Atoi(attributes[name]) // SQS writes numbers; a missing one counts as none
		return n
	}
	return depth{
		Visible:  number("ApproximateNumberOfMessages"),
		InFlight: number("ApproximateNumberOfMessagesNotVisible"),
		Delayed:  number("ApproximateNumberOfMessagesDelayed"),
	}
}

// processing says whether events are, and if not, why.
func (s status) processing() string {
	switch {
	case s.Paused != nil:
		return fmt.Sprintf("no (paused by %s at %s: %s)", s.Paused.By, clock(s.Paused.AtMS), s.Paused.Why)
	case s.Mapping.State != eventsource.Enabled:
		return fmt.Sprintf("no (the mapping is %s, and nobody has paused it)", s.Mapping.State)
	}
	return "yes"
}

func (e *env) printStatus(s status) {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "processing\t%s\n", s.processing())
	fmt.Fprintf(w, "mapping\t%s (%s)\n", s.Mapping.State, s.Mapping.ID)
	fmt.Fprintf(w, "queue\t%d waiting, %d in flight\n", s.Queue.Visible, s.Queue.InFlight)
	fmt.Fprintf(w, "dead-letter queue\t%d\n", s.DeadLetters.Visible+s.DeadLetters.InFlight)
	oldest := ""
	if s.Todo > 0 {
		oldest = ", the oldest for " + time.Duration(s.OldestTodoS*float64(time.Second)).Round(time.Second).String()
	}
	fmt.Fprintf(w, "open\t%d%s\n", s.Todo, oldest)
	fmt.Fprintf(w, "parked\t%d\n", s.Parked)
	switch {
	case s.Audit == nil:
		fmt.Fprintf(w, "last audit\tnone of the reconciler's yet: it audits every 15 minutes\n")
	default:
		fmt.Fprintf(w, "last audit\t%s, compared up to %s: %d missing, %d healed, %d unhealed\n", clock(s.Audit.RanMS),
			clock(s.Audit.ToS*1000), s.Audit.Missing, s.Audit.Healed, s.Audit.Unhealed)
	}
	_ = w.Flush() // to a terminal or a pipe; the command's own error path has nothing to add
	if s.Audit != nil {
		for _, note := range s.Audit.Notes {
			fmt.Fprintf(e.Out, "audit: %s\n", note)
		}
	}
}
