// Package cli is the command a person types: it parses flags, calls a use case, and prints for people on a terminal
// or, with --json, for machines.
//
// Exit codes: 0 all well; 1 the command did its work and found trouble, or failed; 2 it was called wrongly.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"backstop/internal/config"
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// env is what every command shares.
type env struct {
	Streams
	vars  config.Vars
	json  bool
	stage string
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, args []string, streams Streams, vars config.Vars) int {
	return run(ctx, args, &env{Streams: streams, vars: vars, now: time.Now, sleep: sleep})
}

func run(ctx context.Context, args []string, e *env) int {
	streams := e.Streams
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	switch usage := (*usageError)(nil); {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(streams.Err, "backstop: %v\nSee '%s --help'.\n", err, usage.command)
		return 2
	case errors.Is(err, errFindings):
		return 1
	default:
		fmt.Fprintf(streams.Err, "backstop: %v\n", err)
		return 1
	}
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "backstop",
		Short: "Receive every Stripe event once, in order, and know what became of it",
		Long: `Backstop receives every Stripe event once, in order, and knows what became of it.

Commands talk to the stack of a running 'backstop dev' in this folder, to the one that the
environment names, or to a deployed --stage of your AWS account. What changes something
says what it would do, and does it with --yes.

Exit codes: 0 all well; 1 it found trouble, or failed; 2 it was called wrongly.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       config.Release,
	}
	root.PersistentFlags().BoolVar(&e.json, "json", false, "print for machines")
	root.PersistentFlags().StringVar(&e.stage, "stage", "", "the deployed stage to talk to (default: the environment's, or the local stack)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), plain(err)} })
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = ": did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef(cmd, "there is no command %q%s", args[0], meant)
	}
	root.RunE, root.SuggestionsMinimumDistance = help, 2
	root.AddCommand(newDev(e), newSend(e), newEvents(e), newCustomer(e))
	root.AddCommand(newCost(e), newVerify(e))
	root.AddCommand(newReplay(e), newDiscard(e), newDLQ(e), newPause(e), newResume(e), newStatus(e), newAudit(e), newEndpoint(e), newDoctor(e))
	refuseMore(root)
	return root
}

// help is what a command does that only has others below it.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// refuseMore makes an argument too many, or too few, a usage error of every command.
func refuseMore(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		refuseMore(child)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || errors.As(err, new(*usageError)) {
			return err
		}
		if cmd.HasSubCommands() {
			return usagef(cmd, "there is no command %q below it", args[0])
		}
		return usagef(cmd, "it takes no arguments: what is %q?", args[0])
	}
}

// plain says in words what the flags' parser quotes of Go's.
func plain(err error) error {
	text := err.Error()
	for parser, want := range map[string]string{
		"strconv.ParseInt": "a whole number", "strconv.ParseUint": "a whole number", "strconv.ParseFloat": "a number",
		"strconv.ParseBool": "true or false", "time": "a duration such as 90s, 5m or 24h",
	} {
		if argument, _, found := strings.Cut(text, " flag: "+parser+": "); found {
			return fmt.Errorf("%s: want %s", argument, want)
		}
	}
	return err
}

// errFindings ends a command that has already printed what it found wrong.
var errFindings = errors.New("the command found trouble")

// usageError is a command line that cannot be run.
type usageError struct {
	command string
	err     error
}

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// printJSON writes one value as one line.
func (e *env) printJSON(value any) error { return json.NewEncoder(e.Out).Encode(value) }

// terminal reports whether w is one: colour and progress bars are for terminals only.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
