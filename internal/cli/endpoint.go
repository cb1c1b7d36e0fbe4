package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/endpoint"
	"backstop/internal/endpoint/secretstore"
	"backstop/internal/reconcile"
	"backstop/internal/secret"
	"backstop/internal/stripeadmin"
	"backstop/internal/subscribed"
)

type endpointOptions struct {
	url     string
	connect bool
	yes     bool
}

func newEndpoint(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "endpoint",
		Short: "Create, update and roll the webhook endpoint at Stripe",
		Long: `Endpoint looks after the stage's webhook endpoint: its URL, its types, its API version and its
signing secret, which goes from Stripe into Secrets Manager and is shown to nobody.

It needs a Stripe API key that may write webhook endpoints. The deployment's own key need
not: give yours in ` + config.StripeKey + `.`,
		Example: "  backstop endpoint apply --url https://example.com/webhooks/stripe --stage prod --yes\n  backstop endpoint roll --stage prod --yes",
		Args:    cobra.NoArgs,
		RunE:    help,
	}
	cmd.AddCommand(newEndpointApply(e), newEndpointRoll(e))
	return cmd
}

func newEndpointApply(e *env) *cobra.Command {
	var o endpointOptions
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Create the endpoint, or bring it to what it should be",
		Long: `Apply creates the stage's endpoint with API version ` + stripeadmin.APIVersion + ` and exactly the types
that have handlers, and stores its signing secret; or it updates the endpoint there is.
Without --yes it says what it would do.`,
		Example: "  backstop endpoint apply --url https://example.com/webhooks/stripe --stage prod\n  backstop endpoint apply --url https://example.com/webhooks/stripe --stage prod --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.url == "" {
				return usagef(cmd, "--url: give the URL of the webhook: the stack's output WebhookURL")
			}
			if err := checkURL(cmd, "--url", o.url); err != nil {
				return err
			}
			return e.provision(cmd.Context(), o, (*endpoint.Provisioner).Apply)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.url, "url", "", "where Stripe is to post: the stack's output WebhookURL")
	flags.BoolVar(&o.connect, "connect", false, "the endpoint for events of connected accounts")
	flags.BoolVar(&o.yes, "yes", false, "do it; without, say what would be done")
	return cmd
}

func newEndpointRoll(e *env) *cobra.Command {
	var o endpointOptions
	cmd := &cobra.Command{
		Use:   "roll",
		Short: "Give the endpoint another signing secret, without refusing a delivery",
		Long: `Roll creates a second endpoint, stores both secrets, and lets both deliver. Run it again to
end it: the old endpoint is deleted when it has nothing left to deliver again, an audit since
then was clean, and the receiver takes the new secret. Until then it says what it waits for.

It can be repeated at any point, also where it died. Without --yes it says what it would do.

Exit code 1: the rest has to wait.`,
		Example: "  backstop endpoint roll --stage prod\n  backstop endpoint roll --stage prod --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.provision(cmd.Context(), o, (*endpoint.Provisioner).Roll)
		},
	}
	cmd.Flags().StringVar(&o.url, "url", "", "the URL of an endpoint that was made by hand, by which it is found")
	cmd.Flags().BoolVar(&o.connect, "connect", false, "the endpoint for events of connected accounts")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it; without, say what would be done")
	return cmd
}

// wanted is the endpoint as the deployment should have it. Endpoints of API v1 know no notifications of v2.
func (t *target) wanted(url string, connect bool) stripeadmin.Wanted {
	types := subscribed.Types(t.EventTypes)
	thin := subscribed.Thin(types)
	types = slices.DeleteFunc(slices.Clone(types), func(name string) bool { return slices.Contains(thin, name) })
	return stripeadmin.Wanted{Stage: t.Stage, URL: url, Types: types, Connect: connect}
}

// stripeKey is the API key: the environment's, else the deployment's.
func (t *target) stripeKey(ctx context.Context, e *env) (string, error) {
	key, err := secret.From(t.AWS, []string{t.StripeKey}, t.StripeKeyID, e.now).Value(ctx)
	if errors.Is(err, secret.ErrEmpty) {
		return "", fmt.Errorf("there is no Stripe API key: put one into the deployment's secret, or into %s", config.StripeKey)
	}
	return key, err
}

type provisioning func(p *endpoint.Provisioner, ctx context.Context, w stripeadmin.Wanted, do bool) (endpoint.Outcome, error)

func (e *env) provision(ctx context.Context, o endpointOptions, run provisioning) error {
	t, err := e.target(ctx, config.Stage, config.SigningSecretID, config.ControlTable)
	if err != nil {
		return err
	}
	key, err := t.stripeKey(ctx, e)
	if err != nil {
		return err
	}
	p := t.provisioner(e, key)
	outcome, err := run(p, ctx, t.wanted(o.url, o.connect), o.yes)
	if err != nil {
		return err
	}
	if e.json {
		outcome.Steps = some(outcome.Steps)
		err = e.printJSON(struct {
			DryRun bool `json:"dry_run"`
			endpoint.Outcome
		}{!o.yes, outcome})
	} else {
		e.printProvisioned(outcome, o.yes)
	}
	if err == nil && o.yes && len(outcome.Waiting) > 0 {
		return errFindings
	}
	return err
}

func (t *target) provisioner(e *env, key string) *endpoint.Provisioner {
	return &endpoint.Provisioner{
		Admin:   stripeadmin.New(t.StripeURL, key),
		Store:   secretstore.New(secretsmanager.NewFromConfig(t.AWS), t.SigningSecretID),
		Now:     e.now,
		Sleep:   e.sleep,
		Accepts: endpoint.Probe(&http.Client{Timeout: 30 * time.Second}, e.now),
		Clean:   func(ctx context.Context, since time.Time) (string, error) { return clean(ctx, t, since) },
	}
}

// clean says why the last audit does not vouch for everything since a time.
func clean(ctx context.Context, t *target, since time.Time) (string, error) {
	var last *reconcile.Audited
	if err := readControl(ctx, t, reconcile.LastAudit, &last); err != nil {
		return "", err
	}
	return vouches(last, since), nil
}

// vouches says why an audit does not vouch for everything since a time; empty: it does.
func vouches(last *reconcile.Audited, since time.Time) string {
	switch {
	case last == nil:
		return "no audit has run yet"
	case last.ToS <= since.Unix():
		return fmt.Sprintf("the last audit came up to %s; wait for one that comes past %s, 15 minutes later", clock(last.ToS*1000), clock(since.UnixMilli()))
	case !last.Complete || last.Missing > 0 || last.Unhealed > 0:
		return fmt.Sprintf("the last audit was not clean: %d missing, %d unhealed, complete: %t", last.Missing, last.Unhealed, last.Complete)
	}
	return ""
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// past turns a step that was to be taken into one that was.
func past(step string) string {
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "create", "update", "delete", "remove":
		verb += "d"
	case "wait":
		verb += "ed"
	}
	return verb + " " + strings.NewReplacer(" and store ", " and stored ", " and ask ", " and asked ").Replace(rest)
}

func (e *env) printProvisioned(o endpoint.Outcome, done bool) {
	for _, step := range o.Steps {
		if done {
			fmt.Fprintln(e.Out, past(step))
		} else {
			fmt.Fprintln(e.Out, "would "+step)
		}
	}
	for _, wait := range o.Waiting {
		fmt.Fprintln(e.Out, "waiting: "+wait)
	}
	for _, note := range o.Notes {
		fmt.Fprintln(e.Out, "note: "+note)
	}
	if o.Endpoint != nil {
		fmt.Fprintf(e.Out, "endpoint %s at %s, %d types, API version %s\n", o.Endpoint.ID, o.Endpoint.URL, len(o.Endpoint.Types), o.Endpoint.APIVersion)
	}
	switch {
	case len(o.Steps) == 0 && len(o.Waiting) == 0:
		fmt.Fprintln(e.Out, "nothing to change")
	case !done && len(o.Steps) > 0:
		fmt.Fprintln(e.Out, "--yes does it")
	}
}
