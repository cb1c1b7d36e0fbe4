package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/reconcile"
)

// pauseNote is the control value of a paused pipeline.
type pauseNote struct {
	By   string `json:"by"`
	Why  string `json:"why"`
	AtMS int64  `json:"at_ms"`
}

func newPause(e *env) *cobra.Command {
	return e.switching("pause", false, "Stop processing events; receiving goes on",
		`Pause disables the event source mapping and stops the sweep. Deliveries are still received,
recorded, enqueued and acknowledged; nothing is lost for 14 days, as long as SQS keeps
messages, nor after, since the sweep enqueues again what the ledger holds.

Batches under way are finished; it waits until they are.`)
}

func newResume(e *env) *cobra.Command {
	return e.switching("resume", true, "Go on processing events",
		"Resume enables the event source mapping and lets the sweep go on.")
}

func (e *env) switching(use string, on bool, short, long string) *cobra.Command {
	var o consent
	var patience time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long:    long + "\n\nWithout --yes it says what it would do.",
		Example: "  backstop " + use + " --yes --reason 'the database is being moved'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.turn(cmd, on, o, patience)
		},
	}
	o.flags(cmd)
	cmd.Flags().DurationVar(&patience, "timeout", 5*time.Minute, "how long to wait for it")
	return cmd
}

// turned is what pause and resume print for machines.
type turned struct {
	DryRun  bool   `json:"dry_run"`
	Mapping string `json:"mapping"`
	State   string `json:"state"` // before, in a dry run
	Paused  bool   `json:"paused"`
}

func (e *env) turn(cmd *cobra.Command, on bool, o consent, patience time.Duration) error {
	if err := o.check(cmd, e); err != nil {
		return err
	}
	ctx := cmd.Context()
	t, err := e.target(ctx, config.ControlTable, config.QueueURL)
	if err != nil {
		return err
	}
	attributes, err := t.queueAttributes(ctx, t.QueueURL)
	if err != nil {
		return err
	}
	mapping, err := t.mappings().Find(ctx, attributes["QueueArn"])
	if err != nil {
		return err
	}
	word := map[bool]string{true: "resumed", false: "paused"}[on]
	if !o.yes {
		if e.json {
			return e.printJSON(turned{true, mapping.ID, mapping.State, !on})
		}
		fmt.Fprintf(e.Out, "mapping %s, now %s, would be %s; --yes and --reason do it\n", mapping.ID, mapping.State, word)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// While the flag stands, the sweep enqueues nothing. It goes up first and comes down last.
	if !on {
		if err := e.flag(ctx, t, pauseNote{o.by, o.why, e.now().UnixMilli()}); err != nil {
			return err
		}
	}
	if err := t.mappings().Switch(ctx, mapping.ID, on); err != nil {
		return err
	}
	if on {
		if err := e.flag(ctx, t, pauseNote{}); err != nil {
			return err
		}
	}
	state := map[bool]string{true: "Enabled", false: "Disabled"}[on]
	if e.json {
		return e.printJSON(turned{false, mapping.ID, state, !on})
	}
	fmt.Fprintf(e.Out, "%s: mapping %s is %s\n", word, mapping.ID, state)
	return nil
}

// flag writes the pause flag, over whatever it was.
func (e *env) flag(ctx context.Context, t *target, note pauseNote) error {
	seen, err := t.control().Get(ctx, reconcile.Paused)
	if err != nil {
		return err
	}
	text := []byte(nil)
	if note != (pauseNote{}) {
		if text, err = json.Marshal(note); err != nil {
			return err
		}
	}
	_, err = t.control().Put(ctx, reconcile.Paused, string(text), seen)
	return err
}
