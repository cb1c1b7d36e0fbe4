package queue_test

import (
	"errors"
	"strings"
	"testing"

	"backstop/internal/queue"
)

func TestPointerIsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	p := queue.Pointer{Key: "stripe#acct_1#evt_1", Type: "invoice.paid", CreatedS: 1790000000, Replay: 2, Generation: 7}
	body := queue.Encode(p)
	const want = `{"v":1,"key":"stripe#acct_1#evt_1","type":"invoice.paid","created":1790000000,"replay":2,"generation":7}`
	if body != want {
		t.Errorf("encoded %s, want %s", body, want)
	}
	got, err := queue.Decode(body)
	if p.V = 1; err != nil || got != p {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestUnknownFieldsOfTheSameVersionAreIgnored(t *testing.T) {
	t.Parallel()
	got, err := queue.Decode(`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0,"later":{"x":[1]}}`)
	if err != nil || got.Key != "stripe#-#evt_1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNewerVersionIsRecognisedWhateverItsFieldsAre(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"v":2}`, `{"v":2,"key":["other"],"type":1}`, `{"v":99,"key":"stripe#-#e","type":"a","created":1,"replay":0}`} {
		var newer *queue.NewerError
		if _, err := queue.Decode(body); !errors.As(err, &newer) {
			t.Errorf("%s: got %v, want a NewerError", body, err)
		}
	}
}

func TestMalformedPointerIsRefusedAndItsKeyKept(t *testing.T) {
	t.Parallel()
	const good = "stripe#-#evt_1"
	for _, c := range []struct{ body, key string }{
		{``, ""},
		{`null`, ""},
		{`[]`, ""},
		{`"text"`, ""},
		{`{`, ""},
		{`{}`, ""},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0} x`, ""},
		{`{"v":0,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0}`, good},
		{`{"v":"1","key":"stripe#-#evt_1","type":"a","created":1,"replay":0}`, good},
		{`{"key":"stripe#-#evt_1","type":"a","created":1,"replay":0}`, good},
		{`{"v":1,"key":"evt_1","type":"a","created":1,"replay":0}`, ""},
		{`{"v":1,"key":"stripe##evt_1","type":"a","created":1,"replay":0}`, ""},
		{`{"v":1,"key":"stripe#-#a#b","type":"a","created":1,"replay":0}`, ""},
		{`{"v":1,"key":5,"type":"a","created":1,"replay":0}`, ""},
		{`{"v":1,"key":"stripe#-#evt_1","type":"","created":1,"replay":0}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","created":1,"replay":0}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"` + strings.Repeat("a", 256) + `","created":1,"replay":0}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1.5,"replay":0}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":-1}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":null}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0,"generation":"x"}`, good},
		{`{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0,"generation":-2}`, good},
	} {
		var malformed *queue.MalformedError
		got, err := queue.Decode(c.body)
		if !errors.As(err, &malformed) || got.Key != c.key {
			t.Errorf("%s: got key %q, %v; want %q and a MalformedError", c.body, got.Key, err, c.key)
		}
	}
}

func FuzzDecodeGivesAPointerThatEncodesOrAnError(f *testing.F) {
	for _, seed := range []string{``, `{"v":1}`, `{"v":2}`, `{"v":1,"key":"stripe#-#evt_1","type":"a","created":1,"replay":0,"generation":3}`, `{"v":1,"key":"a#b#\ud800","type":"\u0000","created":0,"replay":0}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p, err := queue.Decode(body)
		if err != nil {
			return
		}
		again, err := queue.Decode(queue.Encode(p))
		if p.V = 1; err != nil || again != p {
			t.Errorf("%q decoded to %+v, which comes back as %+v, %v", body, p, again, err)
		}
	})
}

func TestDeduplicationIDsDifferByReplayAndSweep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		replay, sweep int
		want          string
	}{{0, 0, "evt_1#0"}, {1, 0, "evt_1#1"}, {0, 1, "evt_1#0#s1"}, {1, 2, "evt_1#1#s2"}} {
		if got := queue.DeduplicationID("evt_1", c.replay, c.sweep); got != c.want {
			t.Errorf("replay %d, sweep %d: %s, want %s", c.replay, c.sweep, got, c.want)
		}
	}
	if got := queue.DeadLetterID("evt_1", 9); got != "evt_1#g9" {
		t.Errorf("dead letter: %s", got)
	}
}

func TestIDTooLongForSQSIsHashedAndStaysDistinct(t *testing.T) {
	t.Parallel()
	long := "evt_" + strings.Repeat("a", 130)
	a, b := queue.DeduplicationID(long, 0, 0), queue.DeduplicationID(long, 1, 0)
	if a == b || len(a) > 128 || len(b) > 128 || !queue.ValidID(a) {
		t.Errorf("got %s and %s", a, b)
	}
	if got := queue.DeduplicationID("evt_"+strings.Repeat("a", 122), 0, 0); len(got) != 128 || !strings.HasPrefix(got, "evt_a") {
		t.Errorf("128 characters fit, got %s", got)
	}
}

func TestGroupValidity(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"cus_1": true, "-": true, "": false, "a b": false, "é": false, "a\n": false,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false} {
		if got := queue.ValidID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}
