package cases

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/events"
	"backstop/internal/control"
	"backstop/internal/deadletter"
	"backstop/internal/reconcile"
	"backstop/internal/stripeapi"
	"backstop/internal/stripeevents"
)

// reconciled is what a reconcile step reported.
type reconciled struct {
	missing int
	notes   []string
	clean   bool // nothing was missing, and nothing could not be looked at
}

// reconcile runs the audit against the pages of the step. It leaves alone what is younger than a quarter of an hour,
// whose delivery may be under way, so the clock moves on until it looks at everything; alone it would run again then.
func (w *world) reconcile(s step, sweepToo bool) error {
	if _, err := w.faultsOf(s.Faults); err != nil {
		return err
	}
	if sweepToo {
		if err := w.sweep(); err != nil || s.Pages == nil {
			return err
		}
	}
	p := w.newProc(reconciler)
	p.faults = w.reached[len(w.reached)-len(s.Faults):]
	list, err := newEventList(s.Pages)
	if err != nil {
		return err
	}
	time.Sleep(reconcile.Young + time.Second)
	api := stripeapi.New(stripeapi.Config{
		URL:  "https://stripe.test",
		Key:  func(context.Context) (string, error) { return "rk_test_fake", nil },
		HTTP: &http.Client{Transport: &stripeStub{p: p, list: list}},
	})
	var types []string
	for _, t := range events.Types() {
		if !t.Thin {
			types = append(types, t.Name)
		}
	}
	auditor := &reconcile.Auditor{
		Events: stripeevents.New(api, func() float64 { return 0.5 }), Ledger: p.newLedger(), Queue: p.newQueue(),
		Control: control.New(dynamodb.NewFromConfig(p.cfg), w.names.ControlTable), Types: types, Mode: w.mode(), Now: time.Now,
		Token: rand.Text,
	}
	var report reconcile.Audited
	done := make(chan error, 1)
	w.going.Go(func() {
		died := true
		defer func() {
			if died {
				done <- nil // the next run goes on
			}
		}()
		audited, err := auditor.Since(p.life, time.Unix(s.Since, 0), true)
		report, died = audited, false
		done <- err
	})
	if err := <-done; err != nil && len(s.Faults) == 0 {
		return fmt.Errorf("audit: %w", err)
	}
	w.reports = append(w.reports, reconciled{
		missing: report.Missing, notes: report.Notes, clean: report.Missing == 0 && !report.Gap && report.Complete,
	})
	return w.watch()
}

// sweep runs the sweep as the schedule would, for the ten minutes in which what waits is found.
func (w *world) sweep() error {
	sweeper := &reconcile.Sweeper{Ledger: w.ledger, Queue: w.queue,
		Control: control.New(w.db, w.names.ControlTable), Now: time.Now}
	for range 10 {
		time.Sleep(time.Minute)
		if _, err := sweeper.Run(w.ctx); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}

// tidy takes the ghosts out of the dead-letter queue, as the reconciler does.
func (w *world) tidy() error {
	tidier := &reconcile.Tidier{Queue: deadletter.New(awssqs.NewFromConfig(w.direct), w.names.DeadLetterURL), Ledger: w.ledger, Now: time.Now}
	if _, err := tidier.Run(w.ctx, false); err != nil {
		return fmt.Errorf("tidy the dead-letter queue: %w", err)
	}
	return nil
}

// eventList is Stripe's list of events as a case has it.
type eventList struct {
	events []listed // newest first
	page   int      // the longest page of the case
}

type listed struct {
	ID      string
	Created int64
	raw     json.RawMessage
}

func newEventList(pages []json.RawMessage) (*eventList, error) {
	list := &eventList{page: 1}
	for _, raw := range pages {
		var page struct{ Data []json.RawMessage }
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("read a page of events: %w", err)
		}
		list.page = max(list.page, len(page.Data))
		for _, e := range page.Data {
			one := listed{raw: e}
			if err := json.Unmarshal(e, &one); err != nil {
				return nil, fmt.Errorf("read a listed event: %w", err)
			}
			list.events = append(list.events, one)
		}
	}
	return list, nil
}

// answer is one page of the list, of the seconds asked for.
func (l *eventList) answer(query url.Values) (string, error) {
	bound := func(name string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	const ever = 1 << 60
	from := max(bound("created[gte]", 0), bound("created[gt]", -1)+1)
	to := min(bound("created[lt]", ever), bound("created[lte]", ever-1)+1)
	limit := min(int(bound("limit", 10)), l.page)
	after := query.Get("starting_after")
	page := struct {
		Object  string            `json:"object"`
		Data    []json.RawMessage `json:"data"`
		HasMore bool              `json:"has_more"`
		URL     string            `json:"url"`
	}{Object: "list", Data: []json.RawMessage{}, URL: "/v1/events"}
	for _, e := range l.events {
		if after != "" {
			if e.ID == after {
				after = ""
			}
			continue
		}
		if e.Created < from || e.Created >= to {
			continue
		}
		if len(page.Data) == limit {
			page.HasMore = true
			break
		}
		page.Data = append(page.Data, e.raw)
	}
	text, err := json.Marshal(page)
	return string(text), err
}
