// Package stripeapi reads objects from Stripe's API as the JSON they are: the typed client's structs lack what other
// API versions carry, and what is read here is taken for the data.object of an event.
//
// It only reads, with GET, so nothing here needs an idempotency key and a call whose answer was lost is simply made
// again. It never retries by itself: a call goes through handler.Call, which classifies its error, and the queue waits
// as long as it takes, 429 and Retry-After included (Stripe documentation, "Rate limits").
//
//	401              an outage: a revoked key fails every event alike
//	429              an outage of its own kind: the dependency works but asks for patience
//	5xx, time-outs   an outage
//	other 4xx        an error of the request, ErrMissing for 404
//
// Requests for a connected account's object carry the Stripe-Account header (Stripe documentation, "Making API calls
// for connected accounts"), and every request names the API version the product is written against, so that the
// shape of an answer does not depend on the account's default.
package stripeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v82"

	"backstop/internal/handler"
	"backstop/internal/secret"
)

// Dependency is the name calls have for breakers, metrics and first_wait_ms.
const Dependency = "stripe"

// DefaultURL is Stripe's API.
const DefaultURL = "https://api.stripe.com"

const (
	// timeout bounds one call: Stripe answers reads in tenths of a second, and an attempt has nine.
	timeout = 5 * time.Second

	// maxAnswer bounds what is read of an answer. A page of 100 invoice lines is about 200 KB.
	maxAnswer = 8 << 20

	// pageSize is the most a list answers at a time (Stripe API Reference, "Pagination").
	pageSize = 100

	// maxPages bounds a list: 10,000 elements are more than a row could hold, and an attempt has seconds.
	maxPages = 100
)

// ErrNoKey says that the deployment has no API key: nothing can be read, and callers go on without.
var ErrNoKey = errors.New("no Stripe API key is configured")

// ErrMissing says that Stripe has no such object, for this key and account.
var ErrMissing = errors.New("no such object is known to Stripe")

// Error is an answer of Stripe's that is no success. It holds nothing the answer may quote.
type Error struct {
	Status    int
	Type      string // such as invalid_request_error
	Code      string // such as resource_missing
	RequestID string
	After     time.Duration // of the Retry-After header; 0: none
}

func (e *Error) Error() string {
	return fmt.Sprintf("Stripe answered %d, type %s, code %s, request %s", e.Status, e.Type, e.Code, e.RequestID)
}

// HTTPStatusCode is the status, for handler.Classify.
func (e *Error) HTTPStatusCode() int { return e.Status }

// RetryAfter is the time Stripe asked to wait, for handler.Classify.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Is reports a 404 as ErrMissing.
func (e *Error) Is(target error) bool { return target == ErrMissing && e.Status == http.StatusNotFound }

// Config is what a Client is made of.
type Config struct {
	URL  string                                // base URL; empty: DefaultURL
	Key  func(context.Context) (string, error) // the API key; an error that matches secret.ErrEmpty, or "": there is none
	HTTP *http.Client                          // nil: one of its own
}

// Client reads from Stripe's API. It is safe for concurrent use.
type Client struct{ Config }

// New returns a client.
func New(c Config) *Client {
	if c.URL == "" {
		c.URL = DefaultURL
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: timeout}
	}
	if c.Key == nil {
		c.Key = func(context.Context) (string, error) { return "", secret.ErrEmpty }
	}
	return &Client{c}
}

// paths are where objects are read, by what they say in their field object.
var paths = map[string]string{
	"charge":           "/v1/charges/",
	"checkout.session": "/v1/checkout/sessions/",
	"customer":         "/v1/customers/",
	"dispute":          "/v1/disputes/",
	"invoice":          "/v1/invoices/",
	"invoice_payment":  "/v1/invoice_payments/",
	"payment_intent":   "/v1/payment_intents/",
	"refund":           "/v1/refunds/",
	"subscription":     "/v1/subscriptions/",
}

// Object reads one object of a kind, as Stripe has it now. account is the connected account, or empty.
//
// Errors: ErrNoKey, ErrMissing, *Error, and those of the network; all but ErrNoKey are a *handler.DependencyError.
func (c *Client) Object(ctx context.Context, account, kind, id string) (json.RawMessage, error) {
	path, known := paths[kind]
	if !known {
		return nil, fmt.Errorf("read a %s from Stripe: no path is known for the kind", kind)
	}
	object, err := c.Get(ctx, account, path+url.PathEscape(id))
	if err != nil {
		return nil, fmt.Errorf("read the %s %s: %w", kind, id, err)
	}
	return object, nil
}

// InvoiceLines reads all lines of an invoice. complete is false where there are more than 10,000.
func (c *Client) InvoiceLines(ctx context.Context, account, invoice string) (lines []json.RawMessage, complete bool, err error) {
	lines, complete, err = c.List(ctx, account, "/v1/invoices/"+url.PathEscape(invoice)+"/lines", nil)
	if err != nil {
		return nil, false, fmt.Errorf("read the lines of %s: %w", invoice, err)
	}
	return lines, complete, nil
}

// SubscriptionItems reads all items of a subscription.
func (c *Client) SubscriptionItems(ctx context.Context, account, subscription string) (items []json.RawMessage, complete bool, err error) {
	items, complete, err = c.List(ctx, account, "/v1/subscription_items", url.Values{"subscription": {subscription}})
	if err != nil {
		return nil, false, fmt.Errorf("read the items of %s: %w", subscription, err)
	}
	return items, complete, nil
}

// ActiveEntitlements reads all that a customer is entitled to.
func (c *Client) ActiveEntitlements(ctx context.Context, account, customer string) (entitlements []json.RawMessage, complete bool, err error) {
	entitlements, complete, err = c.List(ctx, account, "/v1/entitlements/active_entitlements", url.Values{"customer": {customer}})
	if err != nil {
		return nil, false, fmt.Errorf("read the entitlements of %s: %w", customer, err)
	}
	return entitlements, complete, nil
}

// Related reads the object a thin event is about, by the path its related_object gives as url.
func (c *Client) Related(ctx context.Context, account, path string) (json.RawMessage, error) {
	if !strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/v2/") {
		return nil, errors.New("read a related object: its URL is no path of Stripe's API")
	}
	return c.Get(ctx, account, path)
}

// List reads all pages of a list, following starting_after (Stripe API Reference, "Pagination").
func (c *Client) List(ctx context.Context, account, path string, query url.Values) (elements []json.RawMessage, complete bool, err error) {
	parameters := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for name, values := range query {
		parameters[name] = values
	}
	for range maxPages {
		page, err := c.page(ctx, account, path+"?"+parameters.Encode())
		if err != nil {
			return nil, false, err
		}
		elements = append(elements, page.Data...)
		if !page.HasMore || len(page.Data) == 0 {
			return elements, !page.HasMore, nil
		}
		var last struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(page.Data[len(page.Data)-1], &last); err != nil || last.ID == "" {
			return elements, false, nil
		}
		parameters.Set("starting_after", last.ID)
	}
	return elements, false, nil
}

type page struct {
	Data    []json.RawMessage `json:"data"`
	HasMore bool              `json:"has_more"`
}

func (c *Client) page(ctx context.Context, account, path string) (page, error) {
	var p page
	body, err := c.Get(ctx, account, path)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, errors.New("read a list from Stripe: the answer is no list")
	}
	return p, nil
}

// Get reads a path of the API, its query included, and returns the answer.
func (c *Client) Get(ctx context.Context, account, path string) (json.RawMessage, error) {
	key, err := c.Key(ctx)
	switch {
	case errors.Is(err, secret.ErrEmpty), err == nil && key == "":
		return nil, ErrNoKey
	case err != nil:
		return nil, &handler.DependencyError{Dependency: "secretsmanager", Err: fmt.Errorf("read the Stripe API key: %w", err)}
	}
	var body []byte
	err = handler.Call(ctx, Dependency, func(ctx context.Context) error {
		body, err = c.get(ctx, key, account, path)
		return err
	})
	return body, err
}

func (c *Client) get(ctx context.Context, key, account, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		return nil, errors.New("make a request to Stripe: the path is not one")
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Stripe-Version", stripe.APIVersion)
	if account != "" {
		request.Header.Set("Stripe-Account", account)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fmt.Errorf("read Stripe's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response, body)
	}
	if !json.Valid(body) { // nor is an answer that was cut
		return nil, errors.New("read Stripe's answer: it is not JSON, or larger than 8 MB")
	}
	return body, nil
}

// refusal makes an error of an answer that is none, taking from it what identifies the trouble and no text.
func refusal(response *http.Response, body []byte) error {
	e := &Error{Status: response.StatusCode, RequestID: word(response.Header.Get("Request-Id"))}
	var answer struct {
		Error struct {
			Type string `json:"type"`
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil {
		e.Type, e.Code = word(answer.Error.Type), word(answer.Error.Code)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.After = min(time.Duration(seconds)*time.Second, time.Hour)
	}
	return e
}

// word keeps what looks like one of Stripe's identifiers and nothing else.
func word(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return "?"
	}
	return s
}
