package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/config"
)

func TestStagesAreValid(t *testing.T) {
	t.Parallel()
	for _, s := range append(stages(), everything()) {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", s.Stage, err)
		}
	}
}

func TestNumbersThatDependOnEachOtherAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Settings)
		says   string
	}{
		"processor runs longer than a sixth of the visibility": {func(s *Settings) { s.Processor.Timeout = 31 * time.Second }, "under six times"},
		"receiver outlives the gateway":                        {func(s *Settings) { s.Receiver.Timeout = 30 * time.Second }, "gives up after 30 s"},
		"sweep runs into the next":                             {func(s *Settings) { s.Reconciler.Timeout = 61 * time.Second }, "would run into the next"},
		"mapping outgrows the reserved":                        {func(s *Settings) { s.MaxConcurrency = 26 }, "fewer than the mapping's 26"},
		"mapping of one":                                       {func(s *Settings) { s.MaxConcurrency = 1 }, "SQS takes 2 to 1000"},
		"one reserved":                                         {func(s *Settings) { s.Reconciler.Reserved = 1 }, "one instance that hangs"},
		"receiver does not carry the rate":                     {func(s *Settings) { s.Receiver.Reserved = 149 }, "do not carry 500"},
		"burst under the rate":                                 {func(s *Settings) { s.Burst = 499 }, "burst 499"},
		"objective shorter than one bad event takes":           {func(s *Settings) { s.Objective = 12 * time.Minute }, "would ring"},
		"objective longer than an outage takes to park":        {func(s *Settings) { s.Objective = 25 * time.Hour }, "parks after 24 hours"},
		"acknowledgement slower than the time-out":             {func(s *Settings) { s.AckP99 = 10 * time.Second }, "less than the time-out"},
		"silence longer than CloudWatch looks back":            {func(s *Settings) { s.SilentGaps = 169 }, "at most 7 days"},
		"silence in minutes":                                   {func(s *Settings) { s.UsualGap = 90 * time.Minute }, "whole hours"},
		"logs for a time CloudWatch does not know":             {func(s *Settings) { s.LogDays = 8 }, "log retention 8"},
		"domain without certificate":                           {func(s *Settings) { s.Domain = "hooks.example.test" }, "needs its certificate"},
		"pager in clear":                                       {func(s *Settings) { s.Pager = "http://pager.example.test" }, "want an https URL"},
		"mode of neither kind":                                 {func(s *Settings) { s.Mode = "both" }, "want live or test"},
		"no version expected":                                  {func(s *Settings) { s.APIVersion = "" }, "no API version"},
		"too little memory":                                    {func(s *Settings) { s.Receiver.MemoryMB = 127 }, "Lambda takes 128"},
		"stage with a space":                                   {func(s *Settings) { s.Stage = "my stage" }, "lower-case"},
		"address without at":                                   {func(s *Settings) { s.Email = "oncall" }, "want an address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Prod()
			test.change(&s)
			err := s.Validate()
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error with %q", err, test.says)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("one wrong number is several errors: %v", err)
			}
		})
	}
}

func TestAllWrongNumbersAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := Prod()
	s.MaxConcurrency, s.Burst, s.Mode = 1, 0, ""
	err := s.Validate()
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("got %v, want three errors", err)
	}
}

func read(values map[string]string) (Settings, error) {
	return Read(func(name string) string { return values[name] })
}

func TestContextChoosesTheStageAndItsSwitches(t *testing.T) {
	t.Parallel()
	s, err := read(nil)
	if err != nil || s.Stage != "dev" || s.Mode != "test" || s.Retain {
		t.Errorf("without a word: %+v, %v", s, err)
	}
	s, err = read(map[string]string{
		"stage": "prod", "email": "oncall@example.test", "pager": "https://pager.example.test", "key": "on", "tracing": "on",
		"audit": "off", "silence": "12", "reserve": "off", "mode": "test", "apiVersion": "2026-07-29.dahlia",
		"eventTypes": "invoice.paid", "accounts": "acct_1",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Prod()
	want.Email, want.Pager = "oncall@example.test", "https://pager.example.test"
	want.CustomerKey, want.Tracing, want.Audit = true, true, false
	want.UsualGap, want.SilentGaps = time.Hour, 12
	want.Receiver.Reserved, want.Processor.Reserved, want.Reconciler.Reserved = 0, 0, 0
	want.Mode, want.APIVersion, want.EventTypes, want.Accounts = "test", "2026-07-29.dahlia", "invoice.paid", "acct_1"
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if s, err = read(map[string]string{"stage": "prod", "silence": "off"}); err != nil || s.silentHours() != 0 {
		t.Errorf("silence off: %d hours, %v", s.silentHours(), err)
	}
}

func TestContextThatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]string{
		{"stage": "staging"}, {"key": "yes"}, {"silence": "6h"}, {"silence": "1"}, {"audit": "false"}, {"mode": "both"},
	} {
		if s, err := read(values); err == nil {
			t.Errorf("%v was taken: %+v", values, s)
		}
	}
}

func TestContextNamesThatNobodyReadsAreRefused(t *testing.T) {
	t.Parallel()
	if err := CheckNames([]string{"stage", "email", "aws:cdk:version-reporting", "@aws-cdk/core:newStyleStackSynthesis"}); err != nil {
		t.Errorf("good names: %v", err)
	}
	err := CheckNames([]string{"stage", "emial"})
	if err == nil || !strings.Contains(err.Error(), "nothing is called emial") {
		t.Errorf("a mistyped name: %v", err)
	}
}

func TestContextReadsEveryNameItSaysItKnows(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	if _, err := Read(func(name string) string { asked[name] = true; return "" }); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names {
		if !asked[name] {
			t.Errorf("%s is said to be known and is not read", name)
		}
		delete(asked, name)
	}
	for name := range asked {
		t.Errorf("%s is read and not said to be known", name)
	}
}

func TestEnvironmentLeavesOutWhatIsNotSet(t *testing.T) {
	t.Parallel()
	if _, set := Prod().environment("reconciler")[config.Accounts]; set {
		t.Error("no accounts are configured, and the variable is there")
	}
	s := Prod()
	s.Accounts = "acct_1"
	if got := s.environment("reconciler")[config.Accounts]; got != "acct_1" {
		t.Errorf("accounts are %q", got)
	}
}

func TestUnbuiltFunctionsAreNamedWithTheCommandThatBuildsThem(t *testing.T) {
	t.Parallel()
	err := CheckBundles(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "make build") || !strings.Contains(err.Error(), "receiver") {
		t.Errorf("got %v", err)
	}
	folder := bundles(t)
	if err := CheckBundles(folder); err == nil || !strings.Contains(err.Error(), "as a Linux binary") {
		t.Errorf("a text file as binary: %v", err)
	}
	if err := os.Chmod(filepath.Join(folder, "receiver", "bootstrap"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckBundles(folder); err == nil || !strings.Contains(err.Error(), "not executable") {
		t.Errorf("a binary without the right to run: %v", err)
	}
}
