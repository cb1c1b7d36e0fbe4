package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"backstop/internal/eventsource"
	"backstop/internal/secret"
	"backstop/internal/signature"
	"backstop/internal/verify"
)

type verifyOptions struct {
	endpoint string
	only     []string
	yes      bool
}

func newVerify(e *env) *cobra.Command {
	var o verifyOptions
	var list strings.Builder
	for _, c := range verify.Checks {
		fmt.Fprintf(&list, "  %-11s%s\n", c.Name, c.Question)
	}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check on a new deployment what nobody could check without an account",
		Long: `Verify answers, in about five minutes, what only a deployment can tell:

` + list.String() + `
Run it once after the first deployment, before customers depend on it. Without --yes it makes the
checks that change nothing, and says what the others would do.`,
		Example: "  backstop verify --stage prod --url https://.../webhooks/stripe\n  backstop verify --stage prod --url https://.../webhooks/stripe --yes",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.verify(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.endpoint, "url", "", "URL of the webhook: the stack's output WebhookURL (default: the local stack's)")
	flags.StringSliceVar(&o.only, "only", nil, "make these checks only")
	flags.BoolVar(&o.yes, "yes", false, "make the checks that change something, too")
	return cmd
}

// verified is what a check came to, for machines: a finding, or what would have been done.
type verified struct {
	verify.Finding
	WouldDo string `json:"would_do,omitempty"`
}

func (e *env) verify(cmd *cobra.Command, o verifyOptions) error {
	checks, err := chosen(cmd, o.only)
	if err != nil {
		return err
	}
	d, err := e.deployment(cmd.Context(), o.endpoint)
	if err != nil {
		return err
	}
	if local, err := readDevTarget(); err == nil && local != nil && e.stage == "" && !e.json {
		fmt.Fprintln(e.Err, "against the local AWS: this proves the checks, and says nothing of AWS")
	}
	otherwise := false
	for _, check := range checks {
		if check.Does != "" && !o.yes {
			if err := e.printVerified(check, verified{verify.Finding{Check: check.Name, Verdict: verify.NotChecked}, check.Does}); err != nil {
				return err
			}
			continue
		}
		if !e.json {
			fmt.Fprintf(e.Err, "%s: %s\n", check.Name, check.Question)
		}
		finding, err := check.Run(cmd.Context(), d)
		if err != nil {
			return err
		}
		otherwise = otherwise || finding.Verdict == verify.Otherwise
		if err := e.printVerified(check, verified{Finding: finding}); err != nil {
			return err
		}
	}
	if otherwise {
		return errFindings
	}
	return nil
}

func chosen(cmd *cobra.Command, only []string) ([]verify.Check, error) {
	if len(only) == 0 {
		return verify.Checks, nil
	}
	var checks []verify.Check
	for _, name := range only {
		i := slices.IndexFunc(verify.Checks, func(c verify.Check) bool { return c.Name == name })
		if i < 0 {
			return nil, usagef(cmd, "--only: there is no check %q", name)
		}
		checks = append(checks, verify.Checks[i])
	}
	return checks, nil
}

func (e *env) printVerified(check verify.Check, v verified) error {
	if e.json {
		return e.printJSON(v)
	}
	if v.WouldDo != "" {
		fmt.Fprintf(e.Out, "%-11s%s\n  with --yes it %s\n", check.Name, v.Verdict, v.WouldDo)
		return nil
	}
	fmt.Fprintf(e.Out, "%-11s%s: %s\n", check.Name, v.Verdict, v.Means)
	for _, figure := range v.Figures {
		fmt.Fprintf(e.Out, "  %-36s%8.0f %s\n", figure.Name, figure.Value, figure.Unit)
	}
	return nil
}

// deployment wires the checks to a stage, or to the local stack.
func (e *env) deployment(ctx context.Context, endpoint string) (*verify.Deployment, error) {
	t, err := e.target(ctx, needs...)
	if err != nil {
		return nil, err
	}
	attributes, err := t.queueAttributes(ctx, t.QueueURL)
	if err != nil {
		return nil, err
	}
	dead, err := t.queueAttributes(ctx, t.DeadLetterURL)
	if err != nil {
		return nil, err
	}
	messages := sqs.NewFromConfig(t.AWS)
	d := &verify.Deployment{
		Ledger: t.ledger(e), Queue: t.queue(), Mapping: mappingOf{t.mappings(), attributes["QueueArn"]},
		DeadLetters: deadLetters{messages, t.DeadLetterURL, dead["QueueArn"], attributes["QueueArn"]},
		Live:        t.Mode == "live", By: "backstop verify", Now: e.now, Token: rand.Text,
	}
	if endpoint == "" && t.Local != nil {
		endpoint = t.Local.Endpoint
	}
	if endpoint != "" {
		d.Endpoint = &webhook{
			url: endpoint, secrets: secret.From(t.AWS, t.SigningSecrets, t.SigningSecretID, e.now),
			client: &http.Client{Timeout: 30 * time.Second}, now: e.now,
		}
	}
	return d, nil
}

// mappingOf is the mapping of a queue.
type mappingOf struct {
	client   *eventsource.Client
	queueARN string
}

func (m mappingOf) Enabled(ctx context.Context) (bool, error) {
	found, err := m.client.Find(ctx, m.queueARN)
	return found.State == eventsource.Enabled, err
}

func (m mappingOf) Switch(ctx context.Context, on bool) error {
	found, err := m.client.Find(ctx, m.queueARN)
	if err != nil {
		return err
	}
	return m.client.Switch(ctx, found.ID, on)
}

// deadLetters is the dead-letter queue, with SQS's own way back.
type deadLetters struct {
	client       *sqs.Client
	url, arn, to string
}

func (q deadLetters) Depth(ctx context.Context) (int, error) {
	names := []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: names})
	if err != nil {
		return 0, fmt.Errorf("count the dead letters: %w", err)
	}
	depth := 0
	for _, name := range names {
		n, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			return 0, fmt.Errorf("count the dead letters: %s is %q", name, out.Attributes[string(name)])
		}
		depth += n
	}
	return depth, nil
}

// Redrive names the destination: SQS knows no source of messages it has not moved there itself.
func (q deadLetters) Redrive(ctx context.Context) error {
	if _, err := q.client.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &q.arn, DestinationArn: &q.to}); err != nil {
		return fmt.Errorf("redrive the dead letters: %w", err)
	}
	return nil
}

// webhook is the deployment seen from outside.
type webhook struct {
	url     string
	secrets *secret.Provider
	client  *http.Client
	now     func() time.Time
}

func (w *webhook) Health(ctx context.Context) error {
	url := strings.TrimSuffix(strings.TrimSuffix(w.url, "/"), "/webhooks/stripe") + "/health"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	status, err := w.do(request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s answers %d", url, status)
	}
	return err
}

func (w *webhook) Deliver(ctx context.Context, body []byte) (int, error) {
	key, err := w.secrets.Value(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the signing secret: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Stripe-Signature", signature.Sign(key, body, w.now()))
	return w.do(request)
}

func (w *webhook) do(request *http.Request) (int, error) {
	response, err := w.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // a connection is used again only when read to its end
		return 0, err
	}
	return response.StatusCode, nil
}
