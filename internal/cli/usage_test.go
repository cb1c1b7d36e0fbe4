package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/ledger"
)

// Wrong command lines are refused before anything is looked for: no stack runs here.
func TestWrongCommandLinesAreRefusedInWords(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("broken.json", []byte(`{"object":"charge"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	to := []string{"--endpoint", "http://127.0.0.1:1/", "--secret", "x"}
	for want, args := range map[string][]string{
		`there is no command "staus": did you mean status?`:                      {"staus"},
		`there is no command "tydy" below it`:                                    {"dlq", "tydy"},
		`it takes no arguments: what is "all"?`:                                  {"status", "all"},
		`invalid argument "x" for "--count": want a whole number`:                {"send", "invoice.paid", "--count", "x"},
		`--count: 0 is not a number of events`:                                   {"send", "invoice.paid", "--count", "0"},
		`--count: -1 is not a number of events`:                                  {"send", "invoice.paid", "--count", "-1"},
		`want a duration such as`:                                                {"send", "invoice.paid", "--timeout", "soon"},
		`--endpoint: "foo" is not an http(s) URL`:                                {"send", "invoice.paid", "--endpoint", "foo"},
		`there is no "dining"; there are checkout-delayed, dispute-lost, dunnin`: append([]string{"send", "--story", "dining"}, to...),
		`broken.json: `:                                  append([]string{"send", "broken.json"}, to...),
		`--limit: give 1 or more`:                        {"events", "--limit", "-1"},
		`--url: "foo" is not an http(s) URL`:             {"doctor", "--url", "foo"},
		`6 bytes are no event: give a unit, such as 6KB`: {"cost", "--size", "6"},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), args, Streams{Out: &out, Err: &errs}, func(string) (string, bool) { return "", false })
		if code != 2 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "--help") {
			t.Errorf("%v: exit code %d, want 2 and %q\n%s%s", args, code, want, out.String(), errs.String())
		}
	}
}

func TestSinceTakesADay(t *testing.T) {
	t.Parallel()
	got, err := parseSince("2026-11-29", time.Now())
	if want := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
}

func TestMissingAWSCredentialsAreSaidShortly(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"status", "--stage", "prod"}, Streams{Out: &out, Err: &errs}, func(string) (string, bool) { return "", false })
	if got := errs.String(); code != 1 || !strings.Contains(got, "no AWS credentials") || strings.Count(got, "\n") != 1 {
		t.Errorf("%d %s", code, got)
	}
}

func TestKeysAreShownAsEventIDs(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"stripe#-#evt_1":      "evt_1",
		"stripe#acct_1#evt_1": "evt_1 of acct_1",
		"evt_1":               "evt_1",
	} {
		if got := eventID(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestEmptyListsAreListsForMachines(t *testing.T) {
	s := newStage(t)
	url := s.receiver()
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{`"events":[],"left":[]`, 0, []string{"replay", "--status", "parked", "--json"}},
		{`"findings":[],"notes":[],"unexpected":[]`, 0, []string{"audit", "--json"}},
		{`"steps":["create`, 0, []string{"endpoint", "apply", "--url", url, "--yes", "--json"}},
		{`"steps":[]`, 0, []string{"endpoint", "apply", "--url", url, "--yes", "--json"}},
	} {
		if out := s.want(c.code, c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: got %s, want %s in it", c.args, out, c.want)
		}
	}
}

func TestStepsAreToldAsTaken(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		"create an endpoint at x, and store its secret": "created an endpoint at x, and stored its secret",
		"wait 15s, and ask the receiver":                "waited 15s, and asked the receiver",
		"let the endpoint deliver 2 types":              "let the endpoint deliver 2 types",
	} {
		if got := past(step); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReplayedEventKeepsItsTimeAndTellsTheLastRun(t *testing.T) {
	s := newStage(t)
	s.breakHandler(true)
	s.accept(body("evt_1", "invoice.paid", "cus_1", 0))
	s.await(ledger.Parked, 1)
	before := read[view](s, 0, "events", "show", "evt_1")
	s.breakHandler(false)
	time.Sleep(20 * time.Millisecond)
	s.want(0, "replay", "evt_1", "--yes", "--reason", "fixed")
	s.await(ledger.Done, 1)
	after := read[view](s, 0, "events", "show", "evt_1")
	if before.LastRunMS != 0 || after.RecordedMS != before.RecordedMS || after.LastRunMS <= before.RecordedMS {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if out := s.want(0, "events", "show", "evt_1", "--json"); !strings.Contains(out, `"by":"ada"`) || !strings.Contains(out, `"outcome":"done"`) {
		t.Errorf("got %s", out)
	}
	if out := s.want(0, "events", "show", "evt_1"); !strings.Contains(out, "last run") {
		t.Errorf("got %s", out)
	}
}
