package cli

import (
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
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.dev(cmd, o) },
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

func (e *env) dev(cmd *cobra.Command, o laptop.Options) error {
	ctx := cmd.Context()
	settings, err := config.Read(e.vars)
	if err != nil {
		return err
	}
	o.Secrets, o.StripeKey, o.StripeURL, o.Accounts = settings.SigningSecrets, settings.StripeKey, settings.StripeURL, settings.Accounts
	o.FakeStripe = true
	if running, err := readDevTarget(); err != nil {
		return err
	} else if running != nil {
		return fmt.Errorf("a local stack of this folder already runs: process %d, webhook %s (Ctrl-C there ends it; if that process is none, remove %s)",
			running.PID, running.Endpoint, devFile)
	}
	if err := o.Check(); err != nil {
		if errors.As(err, new(*laptop.PortTakenError)) {
			return err
		}
		return usagef(cmd, "%w", err)
	}
	o.Binaries = ".backstop/functions"
	said := e.Out
	if e.json {
		said = e.Err
	}
	fmt.Fprintln(said, "building the functions (the first time takes a minute)")
	if err := laptop.Build(ctx, o.Binaries, func(name string) { fmt.Fprintln(said, "  built", name) }); err != nil {
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
	if e.json {
		watch.ready(ready{true, l.Endpoint, l.Secrets[0], l.AWSEndpoint, l.StripeEndpoint})
	} else {
		e.printDev(l)
	}
	<-ctx.Done()
	fmt.Fprintln(e.Err, "\nending the functions and the local AWS")
	return errors.Join(l.Close(), saved.forget())
}

// ready is the line that dev --json prints when events may come.
type ready struct {
	Ready          bool   `json:"ready"`
	Endpoint       string `json:"endpoint"`
	SigningSecret  string `json:"signing_secret"` // of this laptop only, as the banner shows it
	AWSEndpoint    string `json:"aws_endpoint"`
	StripeEndpoint string `json:"stripe_endpoint,omitempty"`
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
