package cli

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// webhook answers every delivery with a status, and is the endpoint of the stage's local stack.
func (s *stage) webhook(answer func() int) {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	s.serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer()) }))
	s.local.PID, s.local.Endpoint, s.local.StripeEndpoint = os.Getpid(), "http://"+listener.Addr().String()+"/", ""
	s.check(s.local.save())
}

func TestRefusedEventsAreNotWaitedFor(t *testing.T) {
	s := newStage(t)
	s.webhook(func() int { return http.StatusBadRequest })
	began := time.Now()
	out := s.want(1, "send", "invoice.paid", "--secret", "wrong", "--retries", "0")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it waited %s", took)
	}
	if !strings.Contains(out, "1 event in 1 delivery: 0 acknowledged") || !strings.Contains(out, "the endpoint refused") || !strings.Contains(out, "--secret") {
		t.Errorf("got %s", out)
	}
	for _, unwanted := range []string{"ms", "settled", "backstop customer"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("it speaks of %q although nothing was acknowledged: %s", unwanted, out)
		}
	}
}

func TestOnlyAcknowledgedEventsAreWaitedFor(t *testing.T) {
	s := newStage(t)
	var n atomic.Int32
	s.webhook(func() int { return map[bool]int{true: 200, false: 503}[n.Add(1) == 1] })
	// The one that is acknowledged is in no ledger here, so it is waited for until the time is over.
	r := read[sent](s, 1, "send", "invoice.paid", "--count", "3", "--workers", "1", "--secret", "x", "--retries", "0", "--timeout", "10ms")
	if r.Acknowledged != 1 || r.Refused != 2 || r.Effects == nil || r.Effects.Absent != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestPausedStackIsNotWaitedFor(t *testing.T) {
	s := newStage(t)
	s.webhook(func() int { return http.StatusOK })
	s.want(0, "pause", "--yes", "--reason", "moving house")
	code, out, errs := s.run("send", "invoice.paid", "--secret", "x")
	if code != 0 || strings.Contains(out, "settled") || !strings.Contains(errs, "paused by ada (moving house)") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

func TestInterruptedSendSaysHowFarItCame(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	s.webhook(func() int {
		if n.Add(1) == 1 {
			return http.StatusOK
		}
		cancel()
		return http.StatusServiceUnavailable
	})
	code, _, errs := s.runUntil(ctx, "send", "invoice.paid", "--count", "5", "--workers", "1", "--secret", "x")
	if code != 1 || !strings.Contains(errs, "interrupted: 1 of 5 events acknowledged") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestStoryMayHappenToSeveralCustomers(t *testing.T) {
	s := newStage(t)
	s.webhook(func() int { return http.StatusOK })
	if r := read[sent](s, 0, "send", "--story", "dunning", "--count", "2", "--secret", "x", "--no-wait"); len(r.Customers) != 2 {
		t.Errorf("got %+v", r)
	}
}
