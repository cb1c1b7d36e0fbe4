package control_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/control"
)

// setup returns the store over the local AWS; fault decides about each of its calls.
func setup(t *testing.T, fault func(*awslocal.Call) awslocal.Fault) *control.Store {
	t.Helper()
	t.Parallel()
	server := awslocal.New(awslocal.Options{})
	names, err := stack.Create(t.Context(), awslocal.Config(&awslocal.Transport{Server: server}), "test")
	if err != nil {
		t.Fatal(err)
	}
	if fault == nil {
		fault = func(*awslocal.Call) awslocal.Fault { return awslocal.Fault{} }
	}
	cfg := awslocal.Config(&awslocal.Transport{Server: server, Intercept: fault})
	return control.New(dynamodb.NewFromConfig(cfg), names.ControlTable)
}

func put(t *testing.T, s *control.Store, text string, seen control.Value) control.Value {
	t.Helper()
	next, err := s.Put(t.Context(), "name", text, seen)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestValueNobodyWroteIsZero(t *testing.T) {
	s := setup(t, nil)
	if got, err := s.Get(t.Context(), "name"); err != nil || got != (control.Value{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWrittenValueIsReadWithItsVersion(t *testing.T) {
	s := setup(t, nil)
	first := put(t, s, "one", control.Value{})
	put(t, s, "", first)
	if got, err := s.Get(t.Context(), "name"); err != nil || got.Text != "" || got.Version != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := s.Get(t.Context(), "another"); err != nil || got.Version != 0 {
		t.Errorf("another: got %+v, %v", got, err)
	}
}

func TestSlowerWriterIsToldAndChangesNothing(t *testing.T) {
	s := setup(t, nil)
	seen := put(t, s, "one", control.Value{})
	put(t, s, "two", seen)
	for _, stale := range []control.Value{seen, {}} {
		if _, err := s.Put(t.Context(), "name", "three", stale); !errors.Is(err, control.ErrConflict) {
			t.Errorf("over version %d: got %v", stale.Version, err)
		}
	}
	if got, err := s.Get(t.Context(), "name"); err != nil || got.Text != "two" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLostReplyIsNoConflict(t *testing.T) {
	lost := 0
	s := setup(t, func(c *awslocal.Call) awslocal.Fault {
		if c.Action == "PutItem" && strings.HasPrefix(c.Header.Get("Amz-Sdk-Request"), "attempt=1;") {
			lost++
			return awslocal.Fault{Kind: awslocal.ReplyLost}
		}
		return awslocal.Fault{}
	})
	seen := put(t, s, "one", control.Value{})
	put(t, s, "two", seen)
	if got, err := s.Get(t.Context(), "name"); err != nil || got.Text != "two" || got.Version != 2 || lost != 2 {
		t.Errorf("got %+v, %v; %d replies lost", got, err, lost)
	}
}

func TestTroubleIsAnErrorWithTheName(t *testing.T) {
	s := setup(t, func(*awslocal.Call) awslocal.Fault {
		return awslocal.Fault{Kind: awslocal.Refuse, Code: "AccessDeniedException"}
	})
	if _, err := s.Get(t.Context(), "name"); err == nil || !strings.Contains(err.Error(), "control value name") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Put(t.Context(), "name", "", control.Value{}); err == nil || errors.Is(err, control.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
