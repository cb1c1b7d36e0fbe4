package handler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = &StatusError{Status: 503}

// try makes n calls that end in err, for events of their own.
func try(b *Breakers, n int, err error) (reached int, last error) {
	for i := range n {
		ctx := WithBreakers(context.Background(), b, string(rune('a'+i)))
		last = Call(ctx, "crm", func(context.Context) error { reached++; return err })
	}
	return reached, last
}

func TestBreakerOpensAtHalfOfTenCallsFailing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failing, working int
		open             bool
	}{
		"NineFailing":    {9, 0, false},
		"TenFailing":     {10, 0, true},
		"FiveOfTen":      {5, 5, true},
		"FourOfTen":      {4, 6, false},
		"TenOfTwentyOne": {10, 11, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBreakers(time.Now)
			try(b, c.working, nil)
			try(b, c.failing, errDown)
			_, waitsOn, ok := b.Admit([]string{"crm"})
			if ok == c.open || (waitsOn == "crm") != c.open {
				t.Errorf("admitted %v, waiting on %q; want open %v", ok, waitsOn, c.open)
			}
		})
	}
}

func TestOpenBreakerDoesNotCallAndProbesAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers(time.Now)
		try(b, 10, errDown)
		if reached, err := try(b, 1, nil); reached != 0 || !errors.Is(err, ErrOpen) {
			t.Errorf("called %d times, %v", reached, err)
		}
		time.Sleep(30*time.Second + time.Nanosecond)
		leave, _, ok := b.Admit([]string{"crm"})
		if !ok {
			t.Fatal("no probe is admitted")
		}
		if _, _, second := b.Admit([]string{"crm"}); second {
			t.Error("two probes are admitted at a time")
		}
		leave()
		leave, _, ok = b.Admit([]string{"other", "crm"})
		if !ok {
			t.Error("a probe that made no call blocks the next")
		}
		if reached, _ := try(b, 1, nil); reached != 1 {
			t.Error("the probe did not call")
		}
		leave()
		if _, _, ok := b.Admit([]string{"crm"}); !ok {
			t.Error("not closed after a probe that worked")
		}
	})
}

func TestRefusalsAndThrottlesDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&StatusError{Status: 404}, &StatusError{Status: 429}, errors.New("x"), context.Canceled} {
		b := NewBreakers(time.Now)
		try(b, 30, err)
		if _, _, ok := b.Admit([]string{"crm"}); !ok {
			t.Errorf("%v opened the breaker", err)
		}
	}
}

func TestDependencyWorksForOthersOnlyByTheirCallsSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers(time.Now)
		if b.WorksForOthers("crm", "evt", time.Time{}) {
			t.Error("a dependency nobody called works")
		}
		try(b, 20, nil)
		time.Sleep(time.Second)
		since := time.Now()
		if b.WorksForOthers("crm", "evt", since) {
			t.Error("calls of before count")
		}
		try(b, 9, nil)
		if b.WorksForOthers("crm", "evt", since) {
			t.Error("nine calls are enough")
		}
		for range 20 {
			_ = Call(WithBreakers(t.Context(), b, "evt"), "crm", func(context.Context) error { return nil })
		}
		if b.WorksForOthers("crm", "evt", since) {
			t.Error("its own calls count")
		}
		try(b, 1, nil)
		if !b.WorksForOthers("crm", "evt", since) {
			t.Error("ten calls of others that worked are not enough")
		}
		try(b, 11, errDown)
		if b.WorksForOthers("crm", "evt", since) {
			t.Error("it works although most calls fail")
		}
	})
}

func TestCallTagsItsErrorAlsoWithoutBreakers(t *testing.T) {
	t.Parallel()
	var d *DependencyError
	if err := Call(t.Context(), "crm", func(context.Context) error { return errDown }); !errors.As(err, &d) || d.Dependency != "crm" {
		t.Errorf("got %v", err)
	}
	if err := Call(t.Context(), "crm", func(context.Context) error { return nil }); err != nil {
		t.Errorf("got %v", err)
	}
}
