package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
