package config

import (
	"slices"
	"strings"
	"testing"
)

func vars(values map[string]string) Vars {
	return func(name string) (string, bool) {
		value, found := values[name]
		return value, found
	}
}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	s, err := Read(vars(map[string]string{
		"BACKSTOP_STAGE": " prod ", "BACKSTOP_MODE": "live", "BACKSTOP_LEDGER_TABLE": "ledger", "BACKSTOP_QUEUE_URL": "https://q",
		"BACKSTOP_SIGNING_SECRETS": "whsec_1, ,whsec_2,", "BACKSTOP_EVENT_TYPES": "invoice.paid", "BACKSTOP_JOURNAL": "on",
	}), Stage, Mode, LedgerTable, QueueURL)
	if err != nil {
		t.Fatal(err)
	}
	if s.Stage != "prod" || s.Mode != "live" || s.LedgerTable != "ledger" || s.QueueURL != "https://q" || !s.Journal {
		t.Errorf("read %+v", s)
	}
	if !slices.Equal(s.SigningSecrets, []string{"whsec_1", "whsec_2"}) || !slices.Equal(s.EventTypes, []string{"invoice.paid"}) || s.Accounts != nil {
		t.Errorf("lists %q, %q, %q", s.SigningSecrets, s.EventTypes, s.Accounts)
	}
}

func TestEveryBadVariableIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Read(vars(map[string]string{"BACKSTOP_MODE": "production", "BACKSTOP_JOURNAL": "yes", "BACKSTOP_QUEUE_URL": "  "}), LedgerTable, QueueURL)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"BACKSTOP_LEDGER_TABLE is not set", "BACKSTOP_QUEUE_URL is not set",
		`BACKSTOP_MODE is "production": want live or test`, `BACKSTOP_JOURNAL is "yes": want on or off`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestListDropsBlanks(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{"": nil, " , ": nil, "a": {"a"}, " a ,b,, c": {"a", "b", "c"}} {
		if got := List(value); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}
