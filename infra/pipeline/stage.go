package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/config"
	"backstop/internal/schema"
)

// Function is the size of one Lambda function.
type Function struct {
	MemoryMB int
	Timeout  time.Duration

	// Reserved is the concurrency set aside for the function, which is also its limit. 0: none, which leaves the
	// function to what the account has left; a new account has ten in all and refuses to reserve any.
	Reserved int
}

// Settings are all the numbers and switches of one stage.
type Settings struct {
	Stage string // dev or prod; it names the stack and is the dimension of every metric
	Mode  string // live or test: which of Stripe's modes this deployment is for

	// Retain keeps tables, secrets and logs when the stack is deleted, and protects tables from deletion.
	Retain bool
	// CustomerKey encrypts the tables under a KMS key of this stack ($1 a month) instead of AWS's own.
	CustomerKey bool
	// Tracing turns X-Ray on for the three functions: $5.00 a million traces.
	Tracing bool
	// Audit compares Stripe's own list with the ledger every 15 minutes. It needs a Stripe API key; a deployment
	// without one turns it off rather than live with an alarm that is always on.
	Audit bool

	Receiver, Processor, Reconciler Function

	// MaxConcurrency is how many batches the event source mapping runs at once.
	MaxConcurrency int
	// Rate (requests a second) and Burst bound what the API lets through; more is answered 429 and Stripe comes again.
	Rate, Burst int
	// LogDays is how long log lines are kept.
	LogDays int

	// Objective is how old the oldest open entry, or message, may become before somebody is told.
	Objective time.Duration
	// AckP99 is the slowest acknowledgement of a hundred that needs no attention.
	AckP99 time.Duration
	// UsualGap is the longest time between two deliveries on an ordinary day; SilentGaps times that is silence.
	// UsualGap 0 turns the alarm off.
	UsualGap   time.Duration
	SilentGaps int

	// APIVersion is the api_version expected of events; others are counted, never refused.
	APIVersion string
	// EventTypes and Accounts narrow and widen what the audit reads; comma separated, empty for the defaults.
	EventTypes, Accounts string

	// Email and Pager (an https URL) subscribe to alarms; either may be empty.
	Email, Pager string
	// Domain is the API's own host name and Certificate the ARN of its certificate in the same region; both or none.
	Domain, Certificate string
}

// common is what the stages share.
func common(stage string) Settings {
	return Settings{
		Stage: stage,
		Audit: true,

		// 256 MB: a 4 MB body is held as JSON event (5.4 MB), base64 text (5.4) and bytes (4), beside 8 MB of Go
		// runtime and encoder. CPU comes with memory: at 256 MB, 15 ms of waiting for DynamoDB and SQS cost
		// $0.05 a million; 512 MB would double that to save 2 ms.
		Receiver: Function{MemoryMB: 256, Timeout: schema.ReceiverTimeout},
		// 512 MB: ten groups in parallel, each with a body of up to 3 MB, its decoded object and its effects. Ordinary
		// events need a tenth; the rest is CPU for decoding.
		Processor: Function{MemoryMB: 512, Timeout: schema.ProcessorTimeout},
		// 256 MB: one page of Stripe's list, 100 events of up to 100 KB, and the entries compared with it.
		Reconciler: Function{MemoryMB: 256, Timeout: schema.ReconcilerTimeout},

		// 3 s: a third of the receiver's time-out, and 30 times an ordinary acknowledgement: something is wrong, but
		// nothing is refused yet.
		AckP99: 3 * time.Second,

		// The version stripe-go v82 is written for, with which the endpoint is created.
		APIVersion: "2025-08-27.basil",
	}
}

// Dev is a stage that is thrown away: it tears down clean and fits a new account.
func Dev() Settings {
	s := common("dev")
	s.Mode = "test"
	s.MaxConcurrency = 2     // the least SQS takes; enough for 20 events at once
	s.Rate, s.Burst = 50, 50 // what a new account's ten concurrent executions answer at 200 ms each
	s.LogDays = 7            // a week of trying things
	s.Objective = time.Hour
	return s
}

// Prod is the stage that matters: it keeps its data and has concurrency of its own.
func Prod() Settings {
	s := common("prod")
	s.Mode = "live"
	s.Retain = true

	// 500 a second is 43 million events a day, far over the bursts of a billing run; Stripe repeats what gets a 429.
	s.Rate, s.Burst = 500, 500
	// 200: 500 a second at 0.3 s each, which an ordinary acknowledgement with a tenth of cold starts stays under, is
	// 150; the rest is room. An account has 1,000 and keeps 100 unreserved.
	s.Receiver.Reserved = 200
	// 20 batches of ten at about 100 ms are 2,000 events a second: a million waiting are gone in under ten minutes.
	// More would press on Stripe's 100 reads a second when handlers refetch.
	s.MaxConcurrency = 20
	// 25: the mapping's 20 and some for overlap while instances are replaced. Below the mapping's number, throttled
	// invocations would burn receives.
	s.Processor.Reserved = 25
	// 2: one sweep and one audit; both end before the next of their kind starts.
	s.Reconciler.Reserved = 2
	// 90: a quarter, the span of questions about a customer's bill.
	s.LogDays = 90
	// 15 minutes: an event that fails every attempt is parked after at most 8 attempts of 30 s and waits of
	// 4+8+...+256 s, 12.5 minutes in all. So one bad event is parked before it counts as late.
	s.Objective = 15 * time.Minute
	// A business with live customers sees an event an hour even at night; six hours without one is an endpoint
	// disabled at Stripe, a wrong URL or a broken domain.
	s.UsualGap, s.SilentGaps = time.Hour, 6
	return s
}

// What one bad event does, for the arithmetic of objective and alarms: 8 attempts (the ledger's budget) and the waits
// between them, doubling from at most 4 s (DESIGN: 2 s x 2^n).
const (
	attempts   = 8
	totalWaits = (4 + 8 + 16 + 32 + 64 + 128 + 256) * time.Second
)

// failingWithin is how long an event may be open that fails each attempt as late as it can.
func (s Settings) failingWithin() time.Duration { return attempts*s.Processor.Timeout + totalWaits }

// hiddenBeyond is how much longer than its function a batch stays hidden when the process dies: the processor hides it
// until a second after its leases end, which is five seconds after the function's deadline (package process; a test
// of infra/template compares).
const hiddenBeyond = 6 * time.Second

// killingWithin is how long an event may be open that kills its process each time.
func (s Settings) killingWithin() time.Duration {
	return attempts * (s.Processor.Timeout + hiddenBeyond)
}

// Validate checks each number against what AWS takes and against the numbers it depends on. The error names all that
// are wrong.
func (s Settings) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(s.Stage != "" && strings.Trim(s.Stage, "abcdefghijklmnopqrstuvwxyz0123456789") == "",
		"stage %q: want lower-case letters and digits", s.Stage)
	check(s.Mode == "live" || s.Mode == "test", "mode %q: want live or test", s.Mode)
	for name, f := range map[string]Function{"receiver": s.Receiver, "processor": s.Processor, "reconciler": s.Reconciler} {
		check(f.MemoryMB >= 128 && f.MemoryMB <= 10240, "%s: %d MB: Lambda takes 128 to 10240", name, f.MemoryMB)
		check(f.Reserved == 0 || f.Reserved >= 2,
			"%s: %d reserved: one instance that hangs would stop the function", name, f.Reserved)
		check(f.Timeout > 0 && f.Timeout <= 15*time.Minute, "%s: time-out %s: Lambda takes up to 15 minutes", name, f.Timeout)
	}
	check(s.Receiver.Timeout <= 29*time.Second,
		"receiver: time-out %s: API Gateway gives up after 30 s, and the function must answer before", s.Receiver.Timeout)
	check(schema.VisibilityTimeout >= 6*s.Processor.Timeout,
		"visibility time-out %s is under six times the processor's %s", schema.VisibilityTimeout, s.Processor.Timeout)
	check(s.Reconciler.Timeout <= sweepEvery,
		"reconciler: time-out %s: a sweep would run into the next, %s later", s.Reconciler.Timeout, sweepEvery)
	check(s.MaxConcurrency >= 2 && s.MaxConcurrency <= 1000, "maximum concurrency %d: SQS takes 2 to 1000", s.MaxConcurrency)
	check(s.Processor.Reserved == 0 || s.Processor.Reserved >= s.MaxConcurrency,
		"processor: %d reserved are fewer than the mapping's %d", s.Processor.Reserved, s.MaxConcurrency)
	check(s.Rate > 0 && s.Burst >= s.Rate, "burst %d: at least a second's worth of the rate %d", s.Burst, s.Rate)
	check(s.Receiver.Reserved == 0 || 10*s.Receiver.Reserved >= 3*s.Rate,
		"receiver: %d reserved do not carry %d requests a second at 0.3 s", s.Receiver.Reserved, s.Rate)
	check(retention(s.LogDays) != "", "log retention %d days: CloudWatch Logs does not take it", s.LogDays)
	check(s.Objective >= max(s.failingWithin(), s.killingWithin()),
		"objective %s: one bad event uses up its attempts in %s and would ring", s.Objective, max(s.failingWithin(), s.killingWithin()))
	check(s.Objective <= 24*time.Hour, "objective %s: an outage parks after 24 hours", s.Objective)
	check(s.AckP99 > 0 && s.AckP99 < s.Receiver.Timeout, "acknowledgement p99 %s: want less than the time-out %s",
		s.AckP99, s.Receiver.Timeout)
	// CloudWatch looks back at most seven days at periods of an hour or more.
	check(s.UsualGap == 0 || (s.UsualGap >= time.Hour && s.UsualGap%time.Hour == 0 && s.SilentGaps >= 2 &&
		s.UsualGap*time.Duration(s.SilentGaps) <= 7*24*time.Hour),
		"silence %d x %s: want at least 2 whole hours and at most 7 days in all", s.SilentGaps, s.UsualGap)
	check(s.APIVersion != "", "no API version: every event would count as another's")
	check((s.Domain == "") == (s.Certificate == ""), "a domain needs its certificate's ARN, and the other way round")
	check(s.Pager == "" || strings.HasPrefix(s.Pager, "https://"), "pager %q: want an https URL", s.Pager)
	check(s.Email == "" || strings.Contains(s.Email, "@"), "email %q: want an address", s.Email)
	return errors.Join(problems...)
}

// Context reads one value of the CDK's context (-c name=value); empty when it is not given.
type Context func(name string) string

// Names are those that Read understands.
var Names = []string{
	"stage", "email", "pager", "domain", "certificate", "mode", "key", "tracing", "audit", "silence", "reserve",
	"apiVersion", "eventTypes", "accounts",
}

// CheckNames refuses context names that Read does not understand: a mistyped email would be an address that hears of
// nothing. The CDK's own names hold a colon or a slash and are none of ours.
func CheckNames(given []string) error {
	var unknown []string
	for _, name := range given {
		if !strings.ContainsAny(name, ":/") && !slices.Contains(Names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("nothing is called %s: want one of %s", strings.Join(unknown, ", "), strings.Join(Names, ", "))
}

// Read makes the settings from the stage's defaults and the context:
//
//	stage        dev (default) or prod
//	email        address that gets every alarm
//	pager        https URL that gets the alarms that page
//	domain       host name of the API, with
//	certificate  the ARN of its certificate in the stack's region
//	mode         live or test, where the stage's own is not wanted
//	key          on: a KMS key of this stack encrypts the tables
//	tracing      on: X-Ray
//	audit        off: no audit, for a deployment without a Stripe API key
//	silence      off, or hours without a verified delivery until the alarm rings
//	reserve      off: reserve no concurrency, for an account too small for it
//	apiVersion   the api_version expected of events
//	eventTypes   comma separated types the audit heals
//	accounts     comma separated acct_...: connected accounts the audit also reads
func Read(context Context) (Settings, error) {
	var s Settings
	switch stage := context("stage"); stage {
	case "", "dev":
		s = Dev()
	case "prod":
		s = Prod()
	default:
		return Settings{}, fmt.Errorf("stage %q: want dev or prod", stage)
	}
	var problems []error
	flag := func(name string, target *bool) {
		switch value := context(name); value {
		case "":
		case "on", "off":
			*target = value == "on"
		default:
			problems = append(problems, fmt.Errorf("%s %q: want on or off", name, value))
		}
	}
	text := func(name string, target *string) {
		if value := context(name); value != "" {
			*target = value
		}
	}
	reserve := true
	flag("key", &s.CustomerKey)
	flag("tracing", &s.Tracing)
	flag("audit", &s.Audit)
	flag("reserve", &reserve)
	text("email", &s.Email)
	text("pager", &s.Pager)
	text("domain", &s.Domain)
	text("certificate", &s.Certificate)
	text("mode", &s.Mode)
	text("apiVersion", &s.APIVersion)
	text("eventTypes", &s.EventTypes)
	text("accounts", &s.Accounts)
	if !reserve {
		s.Receiver.Reserved, s.Processor.Reserved, s.Reconciler.Reserved = 0, 0, 0
	}
	if err := s.readSilence(context("silence")); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, s.Validate())
	return s, errors.Join(problems...)
}

func (s *Settings) readSilence(value string) error {
	switch value {
	case "":
		return nil
	case "off":
		s.UsualGap, s.SilentGaps = 0, 0
		return nil
	}
	var hours int
	if _, err := fmt.Sscanf(value, "%d", &hours); err != nil || fmt.Sprint(hours) != value {
		return fmt.Errorf("silence %q: want off or a number of hours", value)
	}
	s.UsualGap, s.SilentGaps = time.Hour, hours
	return nil
}

// environment returns the variables of the named function that do not name resources.
func (s Settings) environment(name string) map[string]string {
	variables := map[string]string{config.Stage: s.Stage}
	optional := func(variable, value string) {
		if value != "" {
			variables[variable] = value
		}
	}
	size := map[string]Function{"receiver": s.Receiver, "processor": s.Processor, "reconciler": s.Reconciler}[name]
	// 85 %: the limit is Go's own memory; the rest is for the binary's pages and the kernel. The collector then works
	// harder before Lambda ends the process for what it holds.
	variables["GOMEMLIMIT"] = fmt.Sprintf("%dMiB", size.MemoryMB*85/100)
	switch name {
	case "receiver":
		variables[config.APIVersion] = s.APIVersion
	case "processor":
		variables[config.Mode] = s.Mode
	case "reconciler":
		variables[config.Mode] = s.Mode
		optional(config.EventTypes, s.EventTypes)
		optional(config.Accounts, s.Accounts)
	}
	return variables
}

// silentHours returns how many whole hours without a delivery are silence.
func (s Settings) silentHours() int { return int(s.UsualGap/time.Hour) * s.SilentGaps }
