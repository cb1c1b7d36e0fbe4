package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/event"
	"backstop/internal/ledger"
)

// filter says which entries a command is about.
type filter struct {
	types      string
	customer   string
	statuses   []string
	since      string
	errorClass string
}

func (f *filter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.types, "type", "", "event type, with wildcards: 'invoice.*'")
	flags.StringVar(&f.customer, "customer", "", "customer, or whatever else the events are grouped by")
	flags.StringSliceVar(&f.statuses, "status", nil, "recorded, processing, done, skipped, parked")
	flags.StringVar(&f.since, "since", "", "recorded since: an age (24h, 7d), a day (2026-01-31) or a time (2026-01-31T15:00:00Z)")
	flags.StringVar(&f.errorClass, "error-class", "", "class of the last error, such as decode or outage")
}

// matcher checks the filter's values and returns the test an entry must pass.
func (f *filter) matcher(cmd *cobra.Command, now time.Time) (func(ledger.Entry) bool, error) {
	if _, err := path.Match(f.types, ""); err != nil {
		return nil, usagef(cmd, "--type: %v", err)
	}
	known := []string{string(ledger.Recorded), string(ledger.Processing), string(ledger.Done), string(ledger.Skipped), string(ledger.Parked)}
	for _, status := range f.statuses {
		if !slices.Contains(known, status) {
			return nil, usagef(cmd, "--status: %q is none of %s", status, strings.Join(known, ", "))
		}
	}
	since, err := parseSince(f.since, now)
	if err != nil {
		return nil, usagef(cmd, "--since: %v", err)
	}
	return func(entry ledger.Entry) bool {
		if f.types != "" {
			if matched, _ := path.Match(f.types, entry.Type); !matched {
				return false
			}
		}
		if len(f.statuses) > 0 && !slices.Contains(f.statuses, string(entry.Status)) {
			return false
		}
		if f.customer != "" && entry.Group != f.customer && !strings.HasSuffix(entry.Group, "/"+f.customer) {
			return false
		}
		if f.errorClass != "" && string(entry.Class) != f.errorClass {
			return false
		}
		return since.IsZero() || recorded(entry) >= since.UnixMilli()
	}, nil
}

// parseSince reads an age, in which d stands for days, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if age, err := time.ParseDuration(days + "h"); err == nil && age >= 0 {
			return now.Add(-24 * age), nil
		}
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q is neither an age (24h, 7d) nor a time (2026-01-31T15:00:00Z)", text)
}

func newEvents(e *env) *cobra.Command {
	var f filter
	var limit int
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List what was received, newest first, and what became of it",
		Example: `  backstop events --since 1h
  backstop events --status parked --type 'invoice.*'
  backstop events show evt_1PExample`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.events(cmd, f, limit) },
	}
	f.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most; 0: all")
	cmd.AddCommand(newEventsShow(e))
	return cmd
}

func (e *env) events(cmd *cobra.Command, f filter, limit int) error {
	if limit < 0 {
		return usagef(cmd, "--limit: give 1 or more, or 0 for all, not %d", limit)
	}
	ctx := cmd.Context()
	keep, err := f.matcher(cmd, e.now())
	if err != nil {
		return err
	}
	t, err := e.target(ctx, config.LedgerTable)
	if err != nil {
		return err
	}
	entries, err := listEntries(ctx, t, keep)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b ledger.Entry) int {
		return cmp.Or(cmp.Compare(recorded(b), recorded(a)), cmp.Compare(a.Key, b.Key))
	})
	total := len(entries)
	if limit > 0 && total > limit {
		entries = entries[:limit]
	}
	if e.json {
		for _, entry := range entries {
			if err := e.printJSON(viewOf(entry)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := e.printTable(entries); err != nil {
		return err
	}
	if total > len(entries) {
		fmt.Fprintf(e.Out, "%d of %d; --limit 0 shows all\n", len(entries), total)
	}
	if total == 0 {
		fmt.Fprintln(e.Out, "no events match")
	}
	return nil
}

// listPage is how many entries one page of the scan looks at.
const listPage = 500

func listEntries(ctx context.Context, t *target, keep func(ledger.Entry) bool) ([]ledger.Entry, error) {
	store := ledger.New(dynamodb.NewFromConfig(t.AWS), t.LedgerTable, time.Now)
	var entries []ledger.Entry
	var after ledger.Cursor
	for {
		page, next, err := store.List(ctx, keep, after, listPage)
		if err != nil {
			return nil, fmt.Errorf("list the ledger: %w", err)
		}
		entries = append(entries, page...)
		if next == "" {
			return entries, nil
		}
		after = next
	}
}

// view is an entry as --json shows it; its field names are the ledger's.
type view struct {
	Key          string              `json:"key"`
	Event        string              `json:"event"`
	Status       ledger.Status       `json:"status"`
	Type         string              `json:"type"`
	CreatedS     int64               `json:"created_s"`
	Account      string              `json:"account,omitempty"`
	Livemode     bool                `json:"livemode"`
	APIVersion   string              `json:"api_version,omitempty"`
	ObjectID     string              `json:"object_id,omitempty"`
	Group        string              `json:"group"`
	Origin       ledger.Origin       `json:"origin"`
	RecordedMS   int64               `json:"recorded_ms"`           // when it was accepted
	LastRunMS    int64               `json:"last_run_ms,omitempty"` // when the last replay made it run again
	SettledMS    int64               `json:"settled_ms,omitempty"`
	Generation   int64               `json:"generation"`
	LeaseUntilMS int64               `json:"lease_until_ms,omitempty"`
	Attempts     int                 `json:"attempts"`
	Steps        map[string]stepView `json:"steps,omitempty"`
	Suspect      bool                `json:"suspect,omitempty"`
	LastError    string              `json:"last_error,omitempty"`
	Class        ledger.Class        `json:"error_class,omitempty"`
	WaitsOn      string              `json:"waits_on,omitempty"`
	FirstWaitMS  int64               `json:"first_wait_ms,omitempty"`
	Sweeps       int                 `json:"sweeps,omitempty"`
	Replay       int                 `json:"replay,omitempty"`
	Replays      []replayView        `json:"replays,omitempty"`
	DeleteAfterS int64               `json:"delete_after_s,omitempty"`
	Payload      json.RawMessage     `json:"payload,omitempty"`
}

// stepView is what one handler came to.
type stepView struct {
	Outcome  ledger.Status `json:"outcome,omitempty"` // none: open
	Attempts int           `json:"attempts"`
	Class    ledger.Class  `json:"class,omitempty"`
	Error    string        `json:"error,omitempty"`
}

type replayView struct {
	By      string `json:"by"`
	Why     string `json:"why"`
	AtMS    int64  `json:"at_ms"`
	Handler string `json:"handler,omitempty"`
}

func viewOf(e ledger.Entry) view {
	v := view{
		Key: string(e.Key), Event: e.EventID, Status: e.Status, Type: e.Type, CreatedS: e.CreatedS, Account: e.Account,
		Livemode: e.Livemode, APIVersion: e.APIVersion, ObjectID: e.ObjectID, Group: e.Group, Origin: e.Origin,
		RecordedMS: recorded(e), SettledMS: e.SettledMS, Generation: e.Generation, LeaseUntilMS: e.LeaseUntilMS,
		Attempts: e.Attempts, Suspect: e.Suspect, LastError: e.LastError, Class: e.Class,
		WaitsOn: e.WaitsOn, FirstWaitMS: e.FirstWaitMS, Sweeps: e.Sweeps, Replay: e.Replay,
		DeleteAfterS: e.DeleteAfterS,
	}
	if e.RecordedMS != v.RecordedMS {
		v.LastRunMS = e.RecordedMS
	}
	for name, step := range e.Steps {
		if v.Steps == nil {
			v.Steps = map[string]stepView{}
		}
		v.Steps[name] = stepView(step)
	}
	for _, r := range e.Replays {
		v.Replays = append(v.Replays, replayView{r.By, r.Why, r.AtMS, r.Handler})
	}
	return v
}

// recorded is when the event was accepted; a replay gives its entry a later time to be swept by.
func recorded(e ledger.Entry) int64 { return cmp.Or(e.FirstRecordedMS, e.RecordedMS) }

func newEventsShow(e *env) *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:     "show EVENT",
		Short:   "Show one event: its entry, its attempts and its payload",
		Long:    "Show prints the entry and the exact payload, which may hold personal data.",
		Example: "  backstop events show evt_1PExample\n  backstop events show evt_1PExample --account acct_1Example",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "name one event id, or one ledger key")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.eventsShow(cmd.Context(), args[0], account) },
	}
	cmd.Flags().StringVar(&account, "account", "", "the connected account the event is of")
	return cmd
}

// keyOf takes an event id, or a whole ledger key as it stands in logs.
func keyOf(id, account string) ledger.Key {
	if strings.Contains(id, "#") {
		return ledger.Key(id)
	}
	return ledger.Key(event.Key(event.Source, account, id))
}

func (e *env) eventsShow(ctx context.Context, id, account string) error {
	t, err := e.target(ctx, config.LedgerTable)
	if err != nil {
		return err
	}
	store := ledger.New(dynamodb.NewFromConfig(t.AWS), t.LedgerTable, e.now)
	entry, err := store.Get(ctx, keyOf(id, account))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return absent(keyOf(id, account))
	case err != nil && !errors.Is(err, ledger.ErrCodec):
		return fmt.Errorf("read the ledger: %w", err)
	}
	if e.json {
		v := viewOf(entry)
		if json.Valid(entry.Body) {
			v.Payload = entry.Body
		}
		return e.printJSON(v)
	}
	e.printEntry(entry)
	if err != nil {
		fmt.Fprintf(e.Out, "\nthe payload cannot be shown: %v\n", err)
		return nil
	}
	fmt.Fprintf(e.Out, "\n%s\n", entry.Body)
	return nil
}

func (e *env) printEntry(entry ledger.Entry) {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	row := func(name string, value any) {
		if text := fmt.Sprint(value); text != "" && text != "0" && text != "false" {
			fmt.Fprintf(w, "%s\t%s\n", name, text)
		}
	}
	row("key", entry.Key)
	row("type", entry.Type)
	row("status", entry.Status)
	row("object", entry.ObjectID)
	row("message group", entry.Group)
	row("api version", entry.APIVersion)
	row("created", time.Unix(entry.CreatedS, 0).UTC().Format(time.RFC3339))
	row("recorded", clock(recorded(entry))+" by "+string(entry.Origin))
	if recorded(entry) != entry.RecordedMS {
		row("last run", "asked for at "+clock(entry.RecordedMS))
	}
	row("settled", clock(entry.SettledMS))
	row("generation", entry.Generation)
	row("charged attempts", entry.Attempts)
	row("suspect", entry.Suspect)
	row("last error", entry.LastError)
	row("error class", entry.Class)
	if entry.WaitsOn != "" {
		row("waits on", entry.WaitsOn+" since "+clock(entry.FirstWaitMS))
	}
	row("sweeps", entry.Sweeps)
	row("replay", entry.Replay)
	for _, replay := range entry.Replays {
		row("  replayed", fmt.Sprintf("%s by %s: %s", clock(replay.AtMS), replay.By, replay.Why))
	}
	for name, step := range entry.Steps {
		outcome := string(step.Outcome)
		if outcome == "" {
			outcome = "open"
		}
		row("  step "+name, strings.TrimSpace(fmt.Sprintf("%s, %s %s", outcome, count(step.Attempts, "charged attempt"), step.Error)))
	}
	if entry.DeleteAfterS > 0 {
		row("forgotten after", time.Unix(entry.DeleteAfterS, 0).UTC().Format(time.RFC3339))
	}
	_ = w.Flush() // to a terminal or a pipe; the command's own error path has nothing to add
}

func clock(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000Z")
}

func firstLine(text string, most int) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
