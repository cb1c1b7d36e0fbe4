// Package stripeadmin creates and changes Backstop's webhook endpoints at Stripe, through stripe-go.
//
// # Which endpoints are ours
//
// An endpoint's metadata holds the stage it belongs to (backstop_stage), and, while a secret is rolled, the endpoint it
// is to take the place of (backstop_replaces). An endpoint without metadata that posts to the stage's URL was made by
// hand; it is found by its URL.
//
// # Secrets
//
// Stripe shows a signing secret once, in the answer that creates the endpoint (Stripe API Reference, "Create a webhook
// endpoint"). It goes from there into the secret store, under the endpoint's id, and is shown to nobody. Until it is
// there and the receiver takes it, an endpoint is idle: it subscribes to an event type that does not happen, since
// Stripe takes no empty list. A crash before leaves an endpoint whose secret nobody knows; it is deleted and made again.
//
// # Rolling a secret
//
// The API has no call that rolls a secret, so another endpoint is created at the same URL, and refuses nothing:
//
//  1. The successor is created, idle.
//  2. Its secret is stored beside the old one. Instances that run keep what they read for up to five minutes, but read
//     again when a signature does not match, at most every ten seconds: after Settle every one of them would.
//  3. The successor subscribes to the stage's types. Both deliver now; the ledger knows duplicates.
//  4. When the old one has nothing left to deliver again, it is deleted: deleting drops its retries.
//  5. Its secret is removed from the store, when nothing signed with it can be under way any more.
package stripeadmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stripe/stripe-go/v82"
)

// Metadata keys.
const (
	metaStage    = "backstop_stage"
	metaConnect  = "backstop_connect"  // true: it listens to connected accounts, which Stripe's answers do not say
	metaReplaces = "backstop_replaces" // the endpoint this one takes the place of
	metaLive     = "backstop_live_s"   // when it began to deliver in its place, in seconds since the epoch
)

// idle is what an endpoint subscribes to until its secret is known: a type of a product this is not for.
const idle = "terminal.reader.action_failed"

// APIVersion is the version endpoints are created with: the one stripe-go's types are written for.
const APIVersion = stripe.APIVersion

// Endpoint is a webhook endpoint as it is at Stripe.
type Endpoint struct {
	ID         string   `json:"id"`
	URL        string   `json:"url"`
	Enabled    bool     `json:"enabled"`
	APIVersion string   `json:"api_version"`
	Types      []string `json:"types"`
	Stage      string   `json:"stage,omitempty"`
	Connect    bool     `json:"connect,omitempty"`
	Replaces   string   `json:"replaces,omitempty"`
	LiveS      int64    `json:"live_s,omitempty"`
	CreatedS   int64    `json:"created_s"`
	Livemode   bool     `json:"livemode"`
}

// Idle reports whether the endpoint does not deliver yet.
func (e Endpoint) Idle() bool { return slices.Equal(e.Types, []string{idle}) }

// Wanted is how an endpoint should be.
type Wanted struct {
	Stage   string
	URL     string
	Types   []string
	Connect bool // events of connected accounts
}

// Error is a refusal of Stripe's. It holds nothing the answer may quote.
type Error struct {
	Status    int
	Code      string
	RequestID string
}

func (e *Error) Error() string {
	return fmt.Sprintf("Stripe answered %d, code %s, request %s", e.Status, e.Code, e.RequestID)
}

// Client administers endpoints.
type Client struct{ api *stripe.Client }

// New returns a client. url is another base URL than Stripe's, or empty.
func New(url, key string) *Client {
	config := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Timeout: 30 * time.Second},
		MaxNetworkRetries: stripe.Int64(3),                                // with an idempotency key, which stripe-go makes
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // errors are returned; they are logged once, at the edge
		EnableTelemetry:   stripe.Bool(false),                             // nothing about this machine is Stripe's business
	}
	if url != "" {
		config.URL = stripe.String(url)
	}
	return &Client{stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(config)))}
}

// plain makes an error without the answer's texts, which may quote parameters.
func plain(doing string, err error) error {
	var refused *stripe.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", doing, &Error{refused.HTTPStatusCode, string(refused.Code), refused.RequestID})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// List returns all endpoints of the account, oldest first.
func (c *Client) List(ctx context.Context) ([]Endpoint, error) {
	var list []Endpoint
	params := &stripe.WebhookEndpointListParams{}
	params.Limit = stripe.Int64(100)
	for e, err := range c.api.V1WebhookEndpoints.List(ctx, params) {
		if err != nil {
			return nil, plain("list the webhook endpoints", err)
		}
		list = append(list, endpointOf(e))
	}
	slices.SortStableFunc(list, func(a, b Endpoint) int { return int(a.CreatedS - b.CreatedS) })
	return list, nil
}

func endpointOf(e *stripe.WebhookEndpoint) Endpoint {
	live, _ := strconv.ParseInt(e.Metadata[metaLive], 10, 64) // a number this package wrote; else not live
	return Endpoint{
		ID: e.ID, URL: e.URL, Enabled: e.Status == "enabled", APIVersion: e.APIVersion, Types: e.EnabledEvents,
		Stage: e.Metadata[metaStage], Connect: e.Metadata[metaConnect] == "true", Replaces: e.Metadata[metaReplaces], LiveS: live, CreatedS: e.Created, Livemode: e.Livemode,
	}
}

// Create creates an idle endpoint and returns it with its signing secret, which Stripe never shows again. replaces is
// the endpoint it is to take the place of, or empty.
func (c *Client) Create(ctx context.Context, w Wanted, replaces string) (Endpoint, string, error) {
	metadata := map[string]string{metaStage: w.Stage}
	if replaces != "" {
		metadata[metaReplaces] = replaces
	}
	params := &stripe.WebhookEndpointCreateParams{
		URL: &w.URL, APIVersion: stripe.String(APIVersion), EnabledEvents: stripe.StringSlice([]string{idle}),
		Description: stripe.String("Backstop " + w.Stage), Metadata: metadata,
	}
	if w.Connect {
		params.Connect, metadata[metaConnect] = &w.Connect, "true"
	}
	e, err := c.api.V1WebhookEndpoints.Create(ctx, params)
	if err != nil {
		return Endpoint{}, "", plain("create the webhook endpoint", err)
	}
	if e.Secret == "" {
		return Endpoint{}, "", errors.New("create the webhook endpoint: Stripe's answer holds no secret")
	}
	return endpointOf(e), e.Secret, nil
}

// Update makes an endpoint as it should be: URL, types, enabled. Its API version stays what it was created with.
func (c *Client) Update(ctx context.Context, id string, w Wanted) (Endpoint, error) {
	e, err := c.api.V1WebhookEndpoints.Update(ctx, id, &stripe.WebhookEndpointUpdateParams{
		URL: &w.URL, EnabledEvents: stripe.StringSlice(w.Types), Disabled: stripe.Bool(false),
		Metadata: map[string]string{metaStage: w.Stage},
	})
	if err != nil {
		return Endpoint{}, plain("update the webhook endpoint", err)
	}
	return endpointOf(e), nil
}

// GoLive lets an idle endpoint deliver from now on.
func (c *Client) GoLive(ctx context.Context, id string, w Wanted, now time.Time) (Endpoint, error) {
	e, err := c.api.V1WebhookEndpoints.Update(ctx, id, &stripe.WebhookEndpointUpdateParams{
		EnabledEvents: stripe.StringSlice(w.Types),
		Metadata:      map[string]string{metaLive: strconv.FormatInt(now.Unix(), 10)},
	})
	if err != nil {
		return Endpoint{}, plain("let the new webhook endpoint deliver", err)
	}
	return endpointOf(e), nil
}

// Succeeded takes the mark of a successor off an endpoint whose predecessor is gone.
func (c *Client) Succeeded(ctx context.Context, id string) error {
	_, err := c.api.V1WebhookEndpoints.Update(ctx, id, &stripe.WebhookEndpointUpdateParams{
		Metadata: map[string]string{metaReplaces: "", metaLive: ""},
	})
	return plain("mark the new webhook endpoint", err)
}

// Delete deletes an endpoint. Stripe drops what it would have delivered again.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.api.V1WebhookEndpoints.Delete(ctx, id, nil)
	return plain("delete the webhook endpoint "+id, err)
}

// retries is how long Stripe delivers again: three days (Stripe documentation, "Receive Stripe events in your webhook
// endpoint", Retry behavior).
const retries = 3 * 24 * time.Hour

// Pending counts events created before a time that Stripe is still to deliver to some endpoint.
func (c *Client) Pending(ctx context.Context, before, now time.Time) (int, error) {
	params := &stripe.EventListParams{
		DeliverySuccess: stripe.Bool(false),
		CreatedRange:    &stripe.RangeQueryParams{GreaterThanOrEqual: now.Add(-retries).Unix(), LesserThan: before.Unix()},
	}
	params.Limit = stripe.Int64(100)
	pending := 0
	for e, err := range c.api.V1Events.List(ctx, params) {
		if err != nil {
			return 0, plain("list undelivered events", err)
		}
		if e.PendingWebhooks > 0 {
			pending++
		}
	}
	return pending, nil
}
