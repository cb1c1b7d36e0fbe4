package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newDLQ(e *env) *cobra.Command {
	var yes bool
	tidy := &cobra.Command{
		Use:   "tidy",
		Short: "Delete the ghosts of the dead-letter queue",
		Long: `Tidy looks at the messages of the dead-letter queue and deletes those whose event is not
parked any more, or not for that message's reason. All others show again at once. The
reconciler does it every minute. Without --yes it says what it would delete.`,
		Example: "  backstop dlq tidy\n  backstop dlq tidy --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := e.target(cmd.Context(), needs...)
			if err != nil {
				return err
			}
			done, err := t.tidier(e).Run(cmd.Context(), !yes)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(done)
			}
			for _, key := range done.Ghosts {
				fmt.Fprintf(e.Out, "ghost: %s\n", eventID(key))
			}
			if !yes {
				fmt.Fprintf(e.Out, "%s looked at, %s would be deleted; --yes does it\n", count(done.Looked, "message"), count(len(done.Ghosts), "ghost"))
				return nil
			}
			fmt.Fprintf(e.Out, "%s looked at, %s deleted, %d kept\n", count(done.Looked, "message"), count(done.Deleted, "ghost"), done.Kept)
			return nil
		},
	}
	tidy.Flags().BoolVar(&yes, "yes", false, "do it; without, say what would be done")
	cmd := &cobra.Command{
		Use:     "dlq",
		Short:   "Look after the dead-letter queue",
		Example: "  backstop dlq tidy",
		Args:    cobra.NoArgs,
		RunE:    help,
	}
	cmd.AddCommand(tidy)
	return cmd
}
