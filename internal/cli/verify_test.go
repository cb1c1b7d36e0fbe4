package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestVerifyRefusesACheckThereIsNot(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"verify", "--only", "weather"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		func(string) (string, bool) { return "", false })
	if code != 2 || !strings.Contains(errs.String(), `there is no check "weather"`) {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}

func TestVerifyExplainsEveryCheck(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"verify", "--help"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		func(string) (string, bool) { return "", false })
	for _, check := range []string{"latency", "delivery", "pause", "visibility", "redrive"} {
		if !strings.Contains(out.String(), "\n  "+check+" ") {
			t.Errorf("code %d: the help does not tell of %s:\n%s", code, check, out.String())
		}
	}
}
