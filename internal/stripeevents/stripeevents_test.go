package stripeevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/stripeapi"
)

// api answers by a function and keeps what it was asked for.
type api struct {
	answer func(try int) (string, error)
	asked  []url.Values
	at     []time.Time
}

func (a *api) Get(_ context.Context, _, path string) (json.RawMessage, error) {
	u, err := url.Parse(path)
	if err != nil || u.Path != "/v1/events" {
		return nil, fmt.Errorf("asked for %s", path)
	}
	a.asked, a.at = append(a.asked, u.Query()), append(a.at, time.Now())
	text, err := a.answer(len(a.asked))
	return json.RawMessage(text), err
}

const onePage = `{"object":"list","data":[{"id":"evt_2"},{"id":"evt_1"}],"has_more":true}`

// list asks for a page on virtual time.
func list(t *testing.T, q Query, answer func(try int) (string, error)) (page Page, a *api, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a = &api{answer: answer}
		page, err = New(a, func() float64 { return 1 }).Page(t.Context(), q)
	})
	return page, a, err
}

// after fails with errs first.
func after(errs ...error) func(int) (string, error) {
	return func(try int) (string, error) {
		if try <= len(errs) {
			return "", errs[try-1]
		}
		return onePage, nil
	}
}

func TestPageIsAskedForByItsWindow(t *testing.T) {
	t.Parallel()
	page, a, err := list(t, Query{FromS: 10, ToS: 20, After: "evt_3"}, after())
	if err != nil || len(page.Events) != 2 || string(page.Events[0]) != `{"id":"evt_2"}` || !page.More {
		t.Errorf("got %+v, %v", page, err)
	}
	want := url.Values{"limit": {"100"}, "created[gte]": {"10"}, "created[lt]": {"20"}, "starting_after": {"evt_3"}}
	if got := a.asked[0]; got.Encode() != want.Encode() {
		t.Errorf("asked %v, want %v", got, want)
	}
}

func TestTroubleIsAskedAgainWithGrowingPauses(t *testing.T) {
	t.Parallel()
	down := &stripeapi.Error{Status: 503}
	_, a, err := list(t, Query{}, after(down, down, down))
	if err != nil || len(a.at) != 4 {
		t.Fatalf("%d calls, %v", len(a.at), err)
	}
	var pauses []time.Duration
	for i := 1; i < len(a.at); i++ {
		pauses = append(pauses, a.at[i].Sub(a.at[i-1]))
	}
	if want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
}

func TestLastingTroubleEndsAfterFiveTries(t *testing.T) {
	t.Parallel()
	down := &stripeapi.Error{Status: 500}
	_, a, err := list(t, Query{}, after(down, down, down, down, down, down))
	var answer *stripeapi.Error
	if !errors.As(err, &answer) || len(a.at) != 5 {
		t.Errorf("%d calls, %v", len(a.at), err)
	}
}

func TestWhatAskingAgainDoesNotMendIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, problem := range []error{&stripeapi.Error{Status: 401}, &stripeapi.Error{Status: 403}, &stripeapi.Error{Status: 400}, stripeapi.ErrNoKey} {
		_, a, err := list(t, Query{}, after(problem))
		if !errors.Is(err, problem) || len(a.at) != 1 {
			t.Errorf("%v: %d calls, %v", problem, len(a.at), err)
		}
	}
}

func TestRetryAfterIsWaitedForAndNotForEver(t *testing.T) {
	t.Parallel()
	_, a, err := list(t, Query{}, after(&stripeapi.Error{Status: 429, After: 9 * time.Second}))
	if err != nil || a.at[1].Sub(a.at[0]) != 9*time.Second {
		t.Errorf("asked at %v, %v", a.at, err)
	}
	_, a, err = list(t, Query{}, after(&stripeapi.Error{Status: 429, After: 10 * time.Minute}))
	if err == nil || len(a.at) != 1 || !strings.Contains(err.Error(), "10m0s") {
		t.Errorf("%d calls, %v", len(a.at), err)
	}
}

func TestPageThatDoesNotComeIsAskedForInSmallerOnes(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection broke")
	_, a, err := list(t, Query{}, after(lost, lost, lost, lost))
	var limits []string
	for _, q := range a.asked {
		limits = append(limits, q.Get("limit"))
	}
	if want := []string{"100", "50", "25", "12", "10"}; err != nil || !slices.Equal(limits, want) {
		t.Errorf("limits %q, want %q; %v", limits, want, err)
	}
}

func TestWhatIsNoListIsNoPage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `[]`, `{"object":"error"}`, `{"object":"list","data":[],"has_more":true}`} {
		if _, _, err := list(t, Query{}, func(int) (string, error) { return text, nil }); err == nil {
			t.Errorf("%s is taken for a page", text)
		}
	}
}

func TestAtMostTenCallsASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(&api{answer: after()}, func() float64 { return 1 })
		start := time.Now()
		for range 21 {
			if _, err := l.Page(t.Context(), Query{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 1999*time.Millisecond || took > 2001*time.Millisecond {
			t.Errorf("21 calls took %s, want 2s", took)
		}
	})
}

func TestEndedContextEndsThePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		down := &stripeapi.Error{Status: 500, After: 15 * time.Second}
		start := time.Now()
		_, err := New(&api{answer: after(down, down)}, func() float64 { return 1 }).Page(ctx, Query{})
		if err == nil || time.Since(start) != time.Second {
			t.Errorf("ended after %s: %v", time.Since(start), err)
		}
	})
}
