package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/laptop"
)

func newDev(e *env) *cobra.Command {
	var o laptop.Options
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole pipeline on this machine",
		Long: `Dev builds the functions and runs them, as AWS Lambda would, against a local DynamoDB and
SQS. It prints a line for each delivery and each attempt, and ends everything on Ctrl-C.
All state is in memory. Secrets come from ` + config.SigningSecrets + `, comma separated, or one is made up.`,
		Example: "  backstop dev\n  " + config.SigningSecrets + "=whsec_... backstop dev --port 9000",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.dev(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Port, "port", 8080, "port of the webhook")
	flags.IntVar(&o.AWSPort, "aws-port", 4566, "port of the local AWS")
	flags.IntVar(&o.StripePort, "stripe-port", 12111, "port of the fake Stripe API, which starts unless "+config.StripeKey+" is set")
	flags.IntVar(&o.Receivers, "receivers", 2, "receiver processes")
	flags.IntVar(&o.Processors, "processors", 2, "processor processes")
	flags.StringVar(&o.Mode, "mode", "", "take events of this mode only: live or test (default: both)")
	flags.DurationVar(&o.SweepEvery, "sweep-every", 0, "how often the reconciler sweeps (default 1m, as deployed)")
	flags.DurationVar(&o.AuditEvery, "audit-every", 0, "how often it compares with Stripe's list (default 15m, as deployed)")
	return cmd
}

func (e *env) dev(ctx context.Context, o laptop.Options) error {
	settings, err := config.Read(e.vars)
	if err != nil {
		return err
	}
	o.Secrets, o.StripeKey, o.StripeURL, o.Accounts = settings.SigningSecrets, settings.StripeKey, settings.StripeURL, settings.Accounts

	o.FakeStripe = true

	o.Binaries = ".backstop/functions"
	fmt.Fprintln(e.Out, "building the functions (the first time takes a minute)")
	if err := laptop.Build(ctx, o.Binaries, func(name string) { fmt.Fprintln(e.Out, "  built", name) }); err != nil {
		return err
	}
	watch := newWatch(e.Out, terminal(e.Out), e.json)
	o.Log = watch.line
	o.Now = e.now
	l, err := laptop.Start(ctx, o)
	if err != nil {
		return err
	}
	saved := devTarget{
		PID: os.Getpid(), Endpoint: l.Endpoint, AWSEndpoint: l.AWSEndpoint, Region: laptop.Region,
		StripeEndpoint: l.StripeEndpoint, Environment: l.Environment,
	}
	if err := saved.save(); err != nil {
		return errors.Join(err, l.Close())
	}
	if !e.json {
		e.printDev(l)
	}
	<-ctx.Done()
	fmt.Fprintln(e.Err, "\nending the functions and the local AWS")
	err = l.Close()
	if removal := os.Remove(devFile); removal != nil && err == nil {
		err = fmt.Errorf("forget the local stack: %w", removal)
	}
	return err
}

func (e *env) printDev(l *laptop.Laptop) {
	me := "go run ./internal/cmd/backstop"
	fmt.Fprintf(e.Out, `
Backstop is running.

  webhook         %s
  signing secret  %s
  AWS endpoint    %s  (region %s, any credentials)
  Stripe API      %s

Try, in another terminal in this folder:

  %s send invoice.paid
  %s send 'customer.subscription.*' --count 200 --duplicates 5%%
  %s events

Or forward real test events: set %s to the secret that
'stripe listen --print-secret' prints, start again, and run
  stripe listen --forward-to %s

`, l.Endpoint, strings.Join(l.Secrets, ", "), l.AWSEndpoint, laptop.Region, stripeAPI(l), me, me, me,
		config.SigningSecrets, strings.TrimPrefix(l.Endpoint, "http://"))
}

// stripeAPI says which Stripe the functions ask.
func stripeAPI(l *laptop.Laptop) string {
	if l.StripeEndpoint != "" {
		return l.StripeEndpoint + "  (a fake, which knows what `send` sent)"
	}
	if url := l.Environment[config.StripeURL]; url != "" {
		return url
	}
	return "https://api.stripe.com"
}
