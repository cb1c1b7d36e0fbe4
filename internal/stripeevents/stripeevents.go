// Package stripeevents lists what Stripe says happened: /v1/events, a window of time at once (Stripe API Reference,
// "List all events").
//
// The list goes back 30 days. It holds snapshots only: notifications of API v2 are not in it. Each event is rendered
// in the API version that the account had when it happened, not in the endpoint's. Listed with a Stripe-Account header,
// a connected account's events do not name their account.
//
// A page that fails is asked for again: after what Retry-After says, or with growing pauses; a page that was too large
// or too slow, in smaller ones. The calls of a Lister are at most ten a second, of the 25 (test mode) or 100 (live
// mode) reads that Stripe allows an account (Stripe documentation, "Rate limits"): handlers read, too.
package stripeevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"backstop/internal/stripeapi"
)

// Retention is how far back the list goes.
const Retention = 30 * 24 * time.Hour

const (
	pageSize     = 100 // the most Stripe lists at once
	leastPage    = 10
	tries        = 5
	firstPause   = 500 * time.Millisecond // doubled for each try: 7.5 s in all, within a run's time
	longestPause = 20 * time.Second
	callsASecond = 10
)

// Query asks for one page, newest event first.
type Query struct {
	Account    string // connected account; empty: the key's own
	FromS, ToS int64  // created from FromS on and before ToS, in seconds since the epoch
	After      string // id of the last event of the page before
}

// Page is one page: whole event bodies, newest first.
type Page struct {
	Events []json.RawMessage
	More   bool // another page follows
}

// Getter reads a path of Stripe's API; *stripeapi.Client is one.
type Getter interface {
	Get(ctx context.Context, account, path string) (json.RawMessage, error)
}

// Lister lists events. It is safe for concurrent use.
type Lister struct {
	api     Getter
	random  func() float64
	limiter *rate.Limiter
}

// New returns a lister. random, numbers in [0, 1), spreads its pauses.
func New(api Getter, random func() float64) *Lister {
	return &Lister{api: api, random: random, limiter: rate.NewLimiter(callsASecond, 1)}
}

// Page reads one page. Errors: stripeapi.ErrNoKey; what Stripe answered is a *stripeapi.Error.
func (l *Lister) Page(ctx context.Context, q Query) (Page, error) {
	limit := pageSize
	pause := firstPause
	for try := 1; ; try++ {
		page, err := l.page(ctx, q, limit)
		if err == nil {
			return page, nil
		}
		err = fmt.Errorf("list Stripe's events: %w", err)
		var answer *stripeapi.Error
		wait := time.Duration(float64(pause) * (0.5 + l.random()/2))
		switch {
		case errors.Is(err, stripeapi.ErrNoKey), ctx.Err() != nil, try == tries:
			return Page{}, err
		case errors.As(err, &answer) && answer.Status != 429 && answer.Status < 500:
			return Page{}, err // asking again does not mend it
		case answer != nil && answer.After > 0:
			wait = answer.After
		case answer == nil: // no answer, or more than one can take
			limit = max(limit/2, leastPage)
		}
		if wait > longestPause {
			return Page{}, fmt.Errorf("%w (to be asked again in %s)", err, wait.Round(time.Second))
		}
		if !sleep(ctx, wait) {
			return Page{}, err
		}
		pause *= 2
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (l *Lister) page(ctx context.Context, q Query, limit int) (Page, error) {
	if err := l.limiter.Wait(ctx); err != nil {
		return Page{}, err
	}
	parameters := url.Values{
		"limit":        {strconv.Itoa(limit)},
		"created[gte]": {strconv.FormatInt(q.FromS, 10)},
		"created[lt]":  {strconv.FormatInt(q.ToS, 10)},
	}
	if q.After != "" {
		parameters.Set("starting_after", q.After)
	}
	body, err := l.api.Get(ctx, q.Account, "/v1/events?"+parameters.Encode())
	if err != nil {
		return Page{}, err
	}
	var list struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		More   bool              `json:"has_more"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Object != "list" {
		return Page{}, errors.New("the answer is no list")
	}
	if list.More && len(list.Data) == 0 {
		return Page{}, errors.New("the answer is an empty page before others")
	}
	return Page{Events: list.Data, More: list.More}, nil
}
