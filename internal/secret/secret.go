// Package secret provides the deployment's secrets: the signing secrets of the webhook endpoint, or Stripe's API key.
// They come from the environment on a laptop and from AWS Secrets Manager in the cloud.
//
// What was read is kept and read again
//
//   - every TTL, so that a withdrawn secret stops verifying within that time;
//   - when a delivery does not verify (Refresh), so that a rolled secret works at once and not at the next TTL, but at
//     most once per RefreshEvery: forged requests cannot make the function read without limit, and a secret rolled
//     without overlap refuses deliveries for ten seconds at most, which Stripe delivers again.
//
// A read that fails, or finds text it cannot read, leaves what is known in use: neither a store that is down nor a slip
// of the pen may refuse deliveries that can be verified. A secret that is empty, or gone, is withdrawn.
// Where nothing is known yet, nothing verifies, and the error says what to do.
//
// # Text
//
// One secret, or several separated by commas or white space, or a JSON array of strings, or a JSON object whose string
// values count in the order they stand (what the console's key/value editor writes). Blanks are dropped, never used.
// Where an object has a value that begins as Stripe's secrets do, those that do not are notes: the endpoint's address
// beside its secret must not become a key that anybody can sign with.
// The first one is the newest by convention.
package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"backstop/internal/jsonscan"
)

const (
	// TTL is how long what was read is used without reading again: at $0.05 for 10,000 reads, an instance that is
	// busy all month costs 5 cents, and a withdrawn secret is refused within minutes.
	TTL = 5 * time.Minute

	// RefreshEvery is the least time between two reads asked for by deliveries that do not verify, and after a read
	// that failed.
	RefreshEvery = 10 * time.Second

	// retryEmpty is the least time between two reads while nothing is known: every delivery is refused meanwhile.
	retryEmpty = time.Second

	// readTimeout bounds one read, so that a store that hangs delays a delivery and does not lose it.
	readTimeout = 2 * time.Second
)

// ErrEmpty says that the secret exists and holds no value to use.
var ErrEmpty = errors.New("holds no value")

// errMalformed says that a secret's text cannot be read. Its text is not for errors.
var errMalformed = errors.New("the text is neither secrets separated by commas nor JSON with strings")

// Store reads a secret's current text.
type Store interface {
	// Name is what the operator knows the secret by.
	Name() string
	Read(ctx context.Context) (string, error)
}

// Provider hands out the values of one secret. It is safe for concurrent use.
type Provider struct {
	store Store // nil: fixed values
	now   func() time.Time

	mu      sync.Mutex
	values  []string
	err     error     // of the last read, when nothing is known
	next    time.Time // a read is due for age
	allowed time.Time // a read may be asked for
}

// Fixed returns a provider of values given by the environment.
func Fixed(values []string) *Provider {
	return &Provider{values: clean(values)}
}

// New returns a provider that reads from store when first asked.
func New(store Store, now func() time.Time) *Provider {
	return &Provider{store: store, now: now}
}

// Values returns the values in use. The error says why there are none.
func (p *Provider) Values(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store != nil {
		if now := p.now(); !now.Before(p.next) {
			p.read(ctx, now)
		}
	}
	if len(p.values) == 0 {
		return nil, p.reason()
	}
	return p.values, nil
}

// Value returns the first value, for a secret that has one: an API key.
func (p *Provider) Value(ctx context.Context) (string, error) {
	values, err := p.Values(ctx)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// Refresh reads again because a delivery did not verify with the values in use. It reports whether it did read and
// found other values: only then is there something to try again with.
func (p *Provider) Refresh(ctx context.Context) ([]string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		return nil, false
	}
	now := p.now()
	if now.Before(p.allowed) {
		return nil, false
	}
	before := strings.Join(p.values, "\n")
	p.read(ctx, now)
	return p.values, strings.Join(p.values, "\n") != before
}

// read reads the store once and sets when it may be read again. The caller holds mu: deliveries that arrive meanwhile
// wait for this read instead of doing their own.
func (p *Provider) read(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	text, err := p.store.Read(ctx)
	values := Parse(text)
	switch {
	case err != nil || len(values) > 0:
	case strings.TrimSpace(text) == "":
		err = ErrEmpty
	default:
		err = errMalformed
	}
	p.allowed = now.Add(RefreshEvery)
	switch {
	case err == nil:
		p.values, p.err, p.next = values, nil, now.Add(TTL)
	case errors.Is(err, ErrEmpty):
		// The store answered: what was known is withdrawn, and verifying with it would not be fail-closed.
		p.values, p.err, p.next = nil, err, now.Add(retryEmpty)
	case len(p.values) > 0:
		p.next = now.Add(RefreshEvery)
	default:
		p.err, p.next = err, now.Add(retryEmpty)
	}
}

func (p *Provider) reason() error {
	if p.store == nil {
		return fmt.Errorf("the environment names no secret: %w", ErrEmpty)
	}
	name := p.store.Name()
	if errors.Is(p.err, ErrEmpty) {
		return fmt.Errorf("the secret %s is empty: put it with: aws secretsmanager put-secret-value --secret-id %s --secret-string VALUE: %w",
			name, name, p.err)
	}
	return fmt.Errorf("read the secret %s: %w", name, p.err)
}

// Parse returns the values a secret's text holds. Text that looks like JSON and is not, or holds no string, has none.
func Parse(text string) []string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, `"`) {
		return clean(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }))
	}
	var values []string
	s := jsonscan.New([]byte(text))
	add := func() error {
		value, err := s.Value()
		if err != nil || !jsonscan.IsString(value) {
			return err
		}
		b, err := jsonscan.Bytes(value)
		values = append(values, string(b))
		return err
	}
	var err error
	switch s.Next() {
	case '[':
		err = s.Array(add)
	case '{':
		err = s.Object(func([]byte) error { return add() })
	default:
		err = add()
	}
	if err != nil || s.End() != nil {
		return nil
	}
	if text[0] == '{' {
		values = withoutNotes(values)
	}
	return clean(values)
}

// withoutNotes keeps the values that begin as Stripe's secrets do: signing secrets, secret and restricted keys. Where
// none does, all are kept.
func withoutNotes(values []string) []string {
	var secrets []string
	for _, value := range values {
		for _, prefix := range []string{"whsec_", "sk_", "rk_"} {
			if strings.HasPrefix(strings.TrimSpace(value), prefix) {
				secrets = append(secrets, value)
			}
		}
	}
	if len(secrets) == 0 {
		return values
	}
	return secrets
}

// clean trims values and drops blanks.
func clean(values []string) []string {
	var list []string
	for _, value := range values {
		if value = strings.TrimSpace(value); value != "" {
			list = append(list, value)
		}
	}
	return list
}
