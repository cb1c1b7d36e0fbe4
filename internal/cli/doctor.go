package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"backstop/internal/awsclient"
	"backstop/internal/config"
	"backstop/internal/doctor"
	"backstop/internal/endpoint"
	"backstop/internal/reconcile"
	"backstop/internal/stripeadmin"
	"backstop/internal/stripeapi"
	"backstop/internal/stripeevents"
	"backstop/internal/subscribed"
)

func newDoctor(e *env) *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what mends it",
		Long: `Doctor compares the deployment with what this release declares: the endpoint at Stripe, its
types and API version, the stored signing secrets (the receiver is asked whether it takes
them; nothing is recorded), clocks, queues, the ledger, the event source mapping, the API
key and the last audit. It changes nothing and shows no secret.

What it may not look at, it says. For the key: Events read and Webhook Endpoints read
suffice. For AWS: read rights on the stage's tables, queues, secrets and mapping.

Exit code 1: there are errors.`,
		Example: "  backstop doctor --stage prod\n  backstop doctor --url https://example.com/webhooks/stripe --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url != "" {
				if err := checkURL(cmd, "--url", url); err != nil {
					return err
				}
			}
			return e.doctor(cmd.Context(), url)
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "the URL the endpoint should post to: the stack's output WebhookURL")
	return cmd
}

func (e *env) doctor(ctx context.Context, url string) error {
	t, err := e.target(ctx, append([]string{config.Stage, config.ControlTable}, needs...)...)
	if err != nil {
		return err
	}
	practice := url == "" && t.Local != nil && t.Local.StripeEndpoint != ""
	if url == "" && t.Local != nil {
		url = t.Local.Endpoint
	}
	g := &gathering{env: e, target: t, facts: doctor.Facts{
		Wanted: t.wanted(url, false), Mode: t.Mode, Stage: e.stage, Practice: practice, Accounts: len(t.Accounts) > 0, Handled: subscribed.Handled(), Now: e.now(),
		Skews: map[string]time.Duration{},
	}}
	if t.Journal { // it listens to everything
		for _, name := range t.EventTypes {
			g.facts.Handled[name] = true
		}
	}
	for _, look := range []func(context.Context){g.stripe, g.secrets, g.queues, g.ledger, g.mapping, g.control, g.clock} {
		look(ctx)
	}
	findings := doctor.Diagnose(g.facts)
	if err := e.printFindings(findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Severity == doctor.Error {
			return errFindings
		}
	}
	return nil
}

func (e *env) printFindings(findings []doctor.Finding) error {
	if e.json {
		if findings == nil {
			findings = []doctor.Finding{}
		}
		return e.printJSON(map[string]any{"findings": findings})
	}
	for _, f := range findings {
		fmt.Fprintf(e.Out, "%-8s %-9s %s\n", f.Severity, f.About, f.What)
		if f.Fix != "" {
			fmt.Fprintf(e.Out, "%-18s -> %s\n", "", f.Fix)
		}
	}
	if len(findings) == 0 {
		fmt.Fprintln(e.Out, "everything is as it should be")
	}
	return nil
}

// gathering fills in the facts. What cannot be looked at is a fact as well.
type gathering struct {
	env    *env
	target *target
	facts  doctor.Facts
}

func (g *gathering) denied(what, right string, err error) {
	g.facts.Denied = append(g.facts.Denied, doctor.Denied{What: what, Right: right, Err: err})
}

func (g *gathering) stripe(ctx context.Context) {
	key, err := g.target.stripeKey(ctx, g.env)
	if err != nil {
		if g.target.StripeKeyID != "" || g.target.StripeKey != "" {
			g.denied("the Stripe API key", "secretsmanager:GetSecretValue on the deployment's secret, and put a key there", err)
		}
		return
	}
	// rk_test_...: the kind and the mode, and nothing else of it.
	kind, rest, _ := strings.Cut(key, "_")
	mode, _, _ := strings.Cut(rest, "_")
	g.facts.Key = kind + "_" + mode
	if list, err := g.target.provisioner(g.env, key).Admin.List(ctx); err != nil {
		g.denied("the webhook endpoints at Stripe", "the API key the permission Webhook Endpoints: read", err)
	} else {
		g.facts.Endpoints = append([]stripeadmin.Endpoint{}, list...) // not nil: looked at, and perhaps none
	}
	lister := stripeevents.New(g.target.stripe(g.env), func() float64 { return 0.5 })
	now := g.env.now().Unix()
	if _, err := lister.Page(ctx, stripeevents.Query{FromS: now - 60, ToS: now}); err != nil {
		g.denied("the events at Stripe", "the API key the permission Events: read", err)
	}
	g.skew(ctx, "Stripe", orDefault(g.target.StripeURL, stripeapi.DefaultURL))
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// skew compares clocks by the Date header of any answer.
func (g *gathering) skew(ctx context.Context, whose, url string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		g.denied("the clock of "+whose, "access to "+url, err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.denied("the clock of "+whose, "access to "+url, err)
		return
	}
	_ = response.Body.Close() // only its header counts
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		g.facts.Skews[whose] = date.Sub(g.env.now()).Truncate(time.Second)
	}
}

func (g *gathering) clock(ctx context.Context) {
	g.skew(ctx, "AWS", awsclient.Endpoint(g.target.AWS, "dynamodb"))
}

func (g *gathering) secrets(ctx context.Context) {
	if g.target.SigningSecretID == "" {
		return // given by the environment
	}
	p := g.target.provisioner(g.env, "")
	stored, err := p.Store.Load(ctx)
	if err != nil {
		g.denied("the stored signing secrets", "secretsmanager:GetSecretValue and DescribeSecret on "+g.target.SigningSecretID, err)
		return
	}
	g.facts.SecretNames = append([]string{}, stored.Names()...)
	url := g.facts.Wanted.URL
	for _, e := range endpoint.Ours(g.facts.Endpoints, g.facts.Wanted) {
		url = orDefault(url, e.URL)
	}
	if url == "" {
		return
	}
	g.facts.Accepted = make(map[string]bool)
	for _, s := range stored {
		taken, err := p.Accepts(ctx, url, s.Value)
		if err != nil {
			g.denied("whether the receiver takes the stored secrets", "access to "+url, err)
			return
		}
		g.facts.Accepted[s.Name] = taken
	}
}

func (g *gathering) queues(ctx context.Context) {
	var err error
	if g.facts.Queue, err = g.target.queueAttributes(ctx, g.target.QueueURL); err != nil {
		g.denied("the queue", "sqs:GetQueueAttributes on it", err)
	}
	if g.facts.DeadLetters, err = g.target.queueAttributes(ctx, g.target.DeadLetterURL); err != nil {
		g.denied("the dead-letter queue", "sqs:GetQueueAttributes on it", err)
	}
}

func (g *gathering) ledger(ctx context.Context) {
	db := dynamodb.NewFromConfig(g.target.AWS)
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &g.target.LedgerTable})
	if err != nil {
		g.denied("the ledger's settings", "dynamodb:DescribeTable on it", err)
		return
	}
	keys := func(schema []ddb.KeySchemaElement) []string {
		var names []string
		for _, kind := range []ddb.KeyType{ddb.KeyTypeHash, ddb.KeyTypeRange} {
			for _, k := range schema {
				if k.KeyType == kind {
					names = append(names, *k.AttributeName)
				}
			}
		}
		return names
	}
	table := &doctor.Table{Keys: keys(out.Table.KeySchema), Indexes: map[string][]string{}, KeysOnly: map[string]bool{}}
	for _, index := range out.Table.GlobalSecondaryIndexes {
		table.Indexes[*index.IndexName] = keys(index.KeySchema)
		table.KeysOnly[*index.IndexName] = index.Projection != nil && index.Projection.ProjectionType == ddb.ProjectionTypeKeysOnly
	}
	table.PayPerAccess = out.Table.BillingModeSummary != nil && out.Table.BillingModeSummary.BillingMode == ddb.BillingModePayPerRequest
	ttl, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &g.target.LedgerTable})
	switch {
	case err != nil:
		g.denied("the ledger's time to live", "dynamodb:DescribeTimeToLive on it", err)
		return
	case ttl.TimeToLiveDescription != nil && ttl.TimeToLiveDescription.AttributeName != nil:
		table.TTL = *ttl.TimeToLiveDescription.AttributeName
	}
	g.facts.Ledger = table
	counts, err := g.target.ledger(g.env).OpenCounts(ctx)
	if err != nil {
		g.denied("what is open in the ledger", "dynamodb:Query on its index", err)
	}
	g.facts.Parked = counts.Parked
}

func (g *gathering) mapping(ctx context.Context) {
	arn := g.facts.Queue["QueueArn"]
	if arn == "" {
		return
	}
	mapping, err := g.target.mappings().Find(ctx, arn)
	if err != nil {
		g.denied("the event source mapping", "lambda:ListEventSourceMappings", err)
		return
	}
	g.facts.Mapping = &mapping
}

func (g *gathering) control(ctx context.Context) {
	var note *pauseNote
	err := readControl(ctx, g.target, reconcile.Paused, &note)
	if note != nil {
		g.facts.Paused = fmt.Sprintf("by %s since %s: %s", note.By, clock(note.AtMS), note.Why)
	}
	if err := errors.Join(err, readControl(ctx, g.target, reconcile.LastAudit, &g.facts.Audit)); err != nil {
		g.denied("the pause flag and the last audit", "dynamodb:GetItem on the control table", err)
	}
}
