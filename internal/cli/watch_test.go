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

func TestLineSaysWhyAndHasNoGaps(t *testing.T) {
	t.Parallel()
	stack := "goroutine 9 [running]:\\nruntime/debug.Stack()\\n\\t/go/src/runtime/debug/stack.go:26 +0x5e\\n" +
		"backstop/internal/process.panicked({0x1, 0x2})\\n\\t/src/internal/process/step.go:198 +0x1\\n" +
		"panic({0x1?, 0x2?})\\n\\t/go/src/runtime/panic.go:783 +0x132\\n" +
		"runtime.goPanicIndex(0x3, 0x0)\\n\\t/go/src/runtime/panic.go:115 +0x74\\n" +
		"backstop/internal/billing.(*Projector).onInvoice(0x1)\\n\\t/src/internal/billing/invoice.go:42 +0x1d\\n" +
		"backstop/internal/process.(*Processor).compose()\\n\\t/src/internal/process/step.go:130 +0x1"
	for line, want := range map[string]string{
		`{"time":"2026-09-22T09:20:50Z","level":"WARN","msg":"delivery","outcome":"refused","reason":"signature_mismatch"}`: "receiver    refused      signature_mismatch\n",
		`{"time":"2026-09-22T09:20:50Z","level":"INFO","msg":"delivery","outcome":"received","event_id":"evt_1","type":"invoice.paid","group":"cus_1"}`: "receiver    received     " +
			"invoice.paid                                     evt_1  cus_1\n",
		`{"time":"2026-09-22T09:20:50Z","level":"WARN","msg":"attempt","outcome":"retry","event":"stripe#-#evt_1","type":"invoice.paid","group":"cus_1","reason":"handler_failed","class":"panic","error":"panic: index out of range","stack":"` + stack + `"}`: "handler_failed, panic: panic: index out of range at backstop/internal/billing/invoice.go:42\n",
		"died (signal: killed): started again": "receiver    died (signal: killed): started again\n",
	} {
		var out bytes.Buffer
		newWatch(&out, false, false).line("receiver", line)
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s:\ngot  %q\nwant %q", line, out.String(), want)
		}
	}
}
