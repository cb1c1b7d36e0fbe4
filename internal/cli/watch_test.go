package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestRunsAreShownWhenTheyDidSomething(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"time":"2026-09-22T09:20:50Z","level":"INFO","msg":"sweep","enqueued":0}`:                                   "",
		`{"time":"2026-09-22T09:20:50Z","level":"INFO","msg":"sweep","enqueued":3,"ghosts_deleted":1}`:                "3 enqueued again, 1 ghosts deleted",
		`{"time":"2026-09-22T09:20:50Z","level":"WARN","msg":"audit","missing":50,"healed":50,"notes":"first audit"}`: "50 missing, 50 healed",
		`{"time":"2026-09-22T09:20:50Z","level":"ERROR","msg":"audit","error":"no Stripe API key is configured"}`:     "no Stripe API key is configured",
	} {
		var out bytes.Buffer
		newWatch(&out, false, false).line("reconciler", line)
		if got := out.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
