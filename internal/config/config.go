// Package config reads a function's settings from its environment. The names here are the only ones: the CDK app
// and the local AWS set them, the functions read them, and a test compares the two.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names of the environment variables.
const (
	Stage           = "BACKSTOP_STAGE"                 // dev, prod, or any name of a stage
	Mode            = "BACKSTOP_MODE"                  // live or test: events of the other mode are skipped and counted
	LedgerTable     = "BACKSTOP_LEDGER_TABLE"          // table name
	ControlTable    = "BACKSTOP_CONTROL_TABLE"         // table name
	BillingTable    = "BACKSTOP_BILLING_TABLE"         // table name
	QueueURL        = "BACKSTOP_QUEUE_URL"             // the FIFO queue of pointers
	DeadLetterURL   = "BACKSTOP_DEAD_LETTER_QUEUE_URL" // its FIFO dead-letter queue
	SigningSecrets  = "BACKSTOP_SIGNING_SECRETS"       // laptops only: whsec_..., comma separated
	SigningSecretID = "BACKSTOP_SIGNING_SECRET_ID"     // Secrets Manager secret holding the same text
	StripeKey       = "BACKSTOP_STRIPE_API_KEY"        // laptops only: rk_... or sk_...
	StripeKeyID     = "BACKSTOP_STRIPE_API_KEY_ID"     // Secrets Manager secret holding it
	StripeURL       = "BACKSTOP_STRIPE_URL"            // another base URL than https://api.stripe.com, for tests
	APIVersion      = "BACKSTOP_API_VERSION"           // the api_version expected; others are counted, never refused
	EventTypes      = "BACKSTOP_EVENT_TYPES"           // comma separated; the types the audit heals; empty: the catalog
	Accounts        = "BACKSTOP_ACCOUNTS"              // comma separated acct_...: connected accounts the audit also reads
	Journal         = "BACKSTOP_JOURNAL"               // on: one counted row per event and handler, to prove exactly-once
)

// Vars looks up environment variables. In main it is os.LookupEnv.
type Vars func(name string) (string, bool)

// Settings is what the functions share. Each function requires the fields it uses with Require.
type Settings struct {
	Stage, Mode                             string
	LedgerTable, ControlTable, BillingTable string
	QueueURL, DeadLetterURL                 string
	SigningSecrets                          []string
	SigningSecretID                         string
	StripeKey, StripeKeyID, StripeURL       string
	APIVersion                              string
	EventTypes, Accounts                    []string
	Journal                                 bool
}

// Read takes the settings from vars and checks that every name in required is set and that every value set is well
// formed. The error names every bad variable at once.
func Read(vars Vars, required ...string) (Settings, error) {
	get := func(name string) string {
		value, _ := vars(name)
		return strings.TrimSpace(value)
	}
	s := Settings{
		Stage:           get(Stage),
		Mode:            get(Mode),
		LedgerTable:     get(LedgerTable),
		ControlTable:    get(ControlTable),
		BillingTable:    get(BillingTable),
		QueueURL:        get(QueueURL),
		DeadLetterURL:   get(DeadLetterURL),
		SigningSecrets:  List(get(SigningSecrets)),
		SigningSecretID: get(SigningSecretID),
		StripeKey:       get(StripeKey),
		StripeKeyID:     get(StripeKeyID),
		StripeURL:       get(StripeURL),
		APIVersion:      get(APIVersion),
		EventTypes:      List(get(EventTypes)),
		Accounts:        List(get(Accounts)),
		Journal:         get(Journal) == "on",
	}
	var problems []error
	for _, name := range required {
		if get(name) == "" {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	if !slices.Contains([]string{"", "live", "test"}, s.Mode) {
		problems = append(problems, fmt.Errorf("%s is %q: want live or test", Mode, s.Mode))
	}
	if !slices.Contains([]string{"", "on", "off"}, get(Journal)) {
		problems = append(problems, fmt.Errorf("%s is %q: want on or off", Journal, get(Journal)))
	}
	return s, errors.Join(problems...)
}

// List splits a comma-separated value, dropping blanks: an empty element is never a value.
func List(value string) []string {
	var list []string
	for _, part := range strings.Split(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
