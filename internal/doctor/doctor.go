// Package doctor explains what is wrong with a deployment: it compares what was found, at Stripe and at AWS, with what
// this release declares, and names for each finding how bad it is and the command that mends it.
//
// It judges only; who gathers the facts is the command. What could not be looked at is a finding, too: a missing right
// must not look like health.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/endpoint"
	"backstop/internal/eventsource"
	"backstop/internal/reconcile"
	"backstop/internal/schema"
	"backstop/internal/stripeadmin"
)

// Severity says what a finding means.
type Severity string

// The severities. Only errors make the command fail.
const (
	Error   Severity = "error"   // events are lost, refused or not processed, or soon will be
	Warning Severity = "warning" // it works, and something is not as it should be
	Note    Severity = "note"    // worth knowing
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	About    string   `json:"about"` // stripe, secret, receiver, clock, queue, ledger, mapping, audit, rights
	What     string   `json:"what"`
	Fix      string   `json:"fix,omitempty"` // the command, or what to do where no command can
}

// Facts are what was found. A field that could not be found is zero, and Denied says why.
type Facts struct {
	Wanted stripeadmin.Wanted // stage, URL if known, types
	Mode   string             // live, test, or empty: both are taken
	Stage  string             // for the commands: the --stage flag, if one was given

	Practice bool // a local stack with a fake Stripe, which needs no endpoint

	Accounts bool // connected accounts are configured

	Key       string                 // the API key's first letters, such as rk_test; empty: there is none
	Endpoints []stripeadmin.Endpoint // all of the account; nil: could not be listed
	Handled   map[string]bool        // types with a handler

	SecretNames []string        // of the stored secrets; nil: could not be read
	Accepted    map[string]bool // by name: whether the receiver takes it; nil: was not asked

	Skews map[string]time.Duration // by whose clock: how far it is ahead of this machine's

	Queue, DeadLetters map[string]string // attributes; nil: could not be read
	Ledger             *Table
	Mapping            *eventsource.Mapping
	Paused             string // who and why; empty: it is not
	Audit              *reconcile.Audited
	Parked             int
	Now                time.Time

	Denied []Denied
}

// Table is what of a table matters.
type Table struct {
	Keys         []string            // attribute names
	Indexes      map[string][]string // by name: attribute names of the key
	KeysOnly     map[string]bool     // by index
	TTL          string              // attribute; empty: off
	PayPerAccess bool
}

// Denied is something that could not be looked at.
type Denied struct {
	What  string // what was to be looked at
	Err   error
	Right string // what it takes
}

type examination struct {
	Facts
	findings []Finding
}

// Diagnose returns the findings, the worst first.
func Diagnose(facts Facts) []Finding {
	x := &examination{Facts: facts}
	x.key()
	x.endpoints()
	x.secrets()
	x.clocks()
	x.queues()
	x.ledger()
	x.mapping()
	x.audit()
	for _, d := range facts.Denied {
		x.find(Warning, "rights", "grant "+d.Right, "%s could not be looked at: %v", d.What, d.Err)
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(x.findings, func(a, b Finding) int { return rank[a.Severity] - rank[b.Severity] })
	return x.findings
}

func (x *examination) find(s Severity, about, fix, what string, args ...any) {
	x.findings = append(x.findings, Finding{s, about, fmt.Sprintf(what, args...), fix})
}

// command is a command line with the stage that was asked for.
func (x *examination) command(text string) string {
	if x.Stage == "" {
		return "backstop " + text
	}
	return "backstop " + text + " --stage " + x.Stage
}

// url is where Stripe should post, or a word for it.
func (x *examination) url() string { return cmp.Or(x.Wanted.URL, "URL") }

func (x *examination) deploy() string { return "npx cdk deploy -c stage=" + x.Wanted.Stage }

func (x *examination) key() {
	switch {
	case x.Key == "":
		x.find(Warning, "stripe", "aws secretsmanager put-secret-value: the stack's output PutStripeKey has the command",
			"there is no Stripe API key: nothing can be compared with Stripe's list, and objects cannot be read again")
		return
	case !strings.HasPrefix(x.Key, "rk_"):
		x.find(Note, "stripe", "make a restricted key at Stripe with: Events read; Customers, Charges, Checkout Sessions, Invoices, PaymentIntents, Refunds, Disputes, Subscriptions, Entitlements read; and, for this command's own use, Webhook Endpoints write",
			"the API key is a secret key, which may do everything; a restricted key suffices")
	}
	if x.Mode != "" && !strings.Contains(x.Key, "_"+x.Mode) {
		x.find(Error, "stripe", "put a key of the right mode into the deployment's secret", "the API key (%s_...) is not of the deployment's mode, %s", x.Key, x.Mode)
	}
}

func (x *examination) endpoints() {
	if x.Endpoints == nil {
		return
	}
	ours := endpoint.Ours(x.Endpoints, x.Wanted)
	if len(ours) == 0 {
		if x.Practice {
			x.find(Note, "stripe", "", "the fake Stripe has no endpoint, and needs none: `backstop send` posts what happens there")
			return
		}
		x.find(Error, "stripe", x.command("endpoint apply --url "+x.url()+" --yes"), "Stripe has no endpoint of the stage %s", x.Wanted.Stage)
		return
	}
	connect := x.Wanted
	connect.Connect = true
	if x.Accounts && len(endpoint.Ours(x.Endpoints, connect)) == 0 {
		x.find(Error, "stripe", x.command("endpoint apply --connect --url "+x.url()+" --yes"),
			"connected accounts are configured, and no endpoint of this stage listens to them")
	}
	rolling := false
	serving := 0
	for _, e := range ours {
		rolling = rolling || e.Replaces != ""
		if !e.Idle() {
			serving++
			x.endpoint(e)
		}
	}
	switch {
	case rolling:
		x.find(Note, "stripe", x.command("endpoint roll --yes"), "a signing secret is being rolled: two endpoints deliver until the old one is deleted")
	case serving > 1:
		x.find(Warning, "stripe", "delete all but one at Stripe", "%d endpoints of this stage deliver every event: each is received %d times", serving, serving)
	}
	for _, e := range x.Endpoints {
		stranger := !slices.ContainsFunc(ours, func(o stripeadmin.Endpoint) bool { return o.ID == e.ID })
		if stranger && !e.Connect && slices.ContainsFunc(ours, func(o stripeadmin.Endpoint) bool { return o.URL == e.URL }) {
			x.find(Warning, "stripe", "delete one of them at Stripe", "%s, of stage %q, posts to the same URL: its deliveries are refused, or received twice", e.ID, e.Stage)
		}
	}
}

func (x *examination) endpoint(e stripeadmin.Endpoint) {
	apply := x.command("endpoint apply --url " + e.URL + " --yes")
	if !e.Enabled {
		x.find(Error, "stripe", apply, "%s is disabled: Stripe delivers nothing", e.ID)
	}
	if x.Wanted.URL != "" && e.URL != x.Wanted.URL {
		x.find(Error, "stripe", x.command("endpoint apply --url "+x.Wanted.URL+" --yes"), "%s posts to %s, not to %s", e.ID, e.URL, x.Wanted.URL)
	}
	if e.APIVersion != stripeadmin.APIVersion {
		x.find(Warning, "stripe", x.command("endpoint roll --yes"),
			"%s delivers in API version %q; handlers expect %s, and an endpoint's version is fixed when it is created", e.ID, e.APIVersion, stripeadmin.APIVersion)
	}
	if x.Mode != "" && e.Livemode != (x.Mode == "live") {
		x.find(Error, "stripe", "use an API key of the deployment's mode", "%s is of the other mode than this deployment (%s): its events are skipped", e.ID, x.Mode)
	}
	missing, unwanted := endpoint.Compare(e.Types, x.Wanted.Types)
	if len(missing) > 0 {
		x.find(Error, "stripe", apply, "%s does not subscribe to %s, which have handlers", e.ID, list(missing))
	}
	var unhandled []string
	for _, t := range unwanted {
		if !x.Handled[t] {
			unhandled = append(unhandled, t)
		}
	}
	if len(unhandled) > 0 {
		x.find(Warning, "stripe", apply, "%s subscribes to %s, which nobody handles: they are received, recorded and skipped", e.ID, list(unhandled))
	}
}

func (x *examination) secrets() {
	if x.SecretNames == nil {
		return
	}
	if len(x.SecretNames) == 0 {
		x.find(Error, "secret", x.command("endpoint apply --url "+x.url()+" --yes"), "no signing secret is stored: the receiver refuses every delivery")
		return
	}
	for _, e := range endpoint.Ours(x.Endpoints, x.Wanted) {
		named := slices.Contains(x.SecretNames, e.ID)
		unnamed := slices.ContainsFunc(x.SecretNames, func(n string) bool { return strings.HasPrefix(n, "unnamed-") })
		switch {
		case named || e.Idle():
		case unnamed:
			x.find(Note, "secret", x.command("endpoint roll --yes"), "which stored secret is that of %s cannot be told: it was stored by hand", e.ID)
		default:
			x.find(Error, "secret", x.command("endpoint roll --yes"), "the signing secret of %s is not stored: its deliveries are refused", e.ID)
		}
	}
	for name, taken := range x.Accepted {
		if !taken {
			x.find(Error, "receiver", "wait ten seconds and look again; then see the receiver's log", "the receiver does not take the stored secret of %s", name)
		}
	}
}

// maxSkew is well below the tolerance of five minutes within which a delivery must be signed.
const maxSkew = 30 * time.Second

func (x *examination) clocks() {
	for whose, skew := range x.Skews {
		if skew.Abs() > maxSkew {
			x.find(Warning, "clock", "set this machine's clock", "the clock of %s is %s ahead of this machine's: deliveries signed here may be refused as too old or too new", whose, skew.Round(time.Second))
		}
	}
}

func (x *examination) queues() {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
	fifo := map[string]string{
		"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
		"MessageRetentionPeriod": seconds(schema.MessageRetention),
	}
	x.attributes("queue", x.Queue, fifo)
	x.attributes("queue", x.Queue, map[string]string{"VisibilityTimeout": seconds(schema.VisibilityTimeout)})
	x.attributes("dead-letter queue", x.DeadLetters, fifo)
	if x.Queue == nil {
		return
	}
	policy := strings.ReplaceAll(x.Queue["RedrivePolicy"], " ", "")
	if dead := x.DeadLetters["QueueArn"]; dead != "" && !strings.Contains(policy, dead) {
		x.find(Error, "queue", x.deploy(), "the queue does not redrive to the dead-letter queue")
	}
	count := strconv.Itoa(schema.MaxReceiveCount)
	if !strings.Contains(policy, `"maxReceiveCount":`+count) && !strings.Contains(policy, `"maxReceiveCount":"`+count) {
		x.find(Error, "queue", x.deploy(), "the queue's maxReceiveCount is not %s: messages handed back unrun would be dead-lettered", count)
	}
}

func (x *examination) attributes(queue string, have, want map[string]string) {
	if have == nil {
		return
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if have[name] != want[name] {
			x.find(Error, "queue", x.deploy(), "the %s has %s %q, declared is %q", queue, name, have[name], want[name])
		}
	}
}

func (x *examination) ledger() {
	t := x.Ledger
	if t == nil {
		return
	}
	if !slices.Equal(t.Keys, []string{schema.PK}) {
		x.find(Error, "ledger", x.deploy(), "the ledger's key is %s, declared is %s", list(t.Keys), schema.PK)
	}
	if !slices.Equal(t.Indexes[schema.OpenIndex], []string{schema.Open, schema.RecordedMS}) {
		x.find(Error, "ledger", x.deploy(), "the ledger's index %s is not as declared: nothing can be swept or counted", schema.OpenIndex)
	} else if !t.KeysOnly[schema.OpenIndex] {
		x.find(Warning, "ledger", x.deploy(), "the ledger's index %s holds more than keys: every write costs more", schema.OpenIndex)
	}
	if t.TTL != schema.DeleteAfterS {
		x.find(Warning, "ledger", x.deploy(), "the ledger's time to live is not by %s: settled events are kept for ever", schema.DeleteAfterS)
	}
	if !t.PayPerAccess {
		x.find(Warning, "ledger", x.deploy(), "the ledger has provisioned capacity: a burst of deliveries is throttled")
	}
}

func (x *examination) mapping() {
	m := x.Mapping
	if m == nil {
		return
	}
	switch {
	case x.Paused != "":
		x.find(Warning, "mapping", x.command("resume --yes --reason WHY"), "the pipeline is paused %s", x.Paused)
	case m.State != eventsource.Enabled:
		x.find(Error, "mapping", x.command("resume --yes --reason WHY"), "the event source mapping is %s, and nobody has paused it: events are not processed", m.State)
	}
	if m.BatchSize != schema.BatchSize {
		x.find(Warning, "mapping", x.deploy(), "the mapping's batch size is %d, declared is %d", m.BatchSize, schema.BatchSize)
	}
	if !m.ReportsItems {
		x.find(Error, "mapping", x.deploy(), "the mapping does not ask for ReportBatchItemFailures: events that are to be retried are deleted")
	}
}

// late is when an audit that should run every quarter of an hour is missed.
const late = 45 * time.Minute

func (x *examination) audit() {
	if x.Parked > 0 {
		x.find(Warning, "ledger", x.command("events --status parked"), "%s parked and %s for a person", counted(x.Parked, "event is", "events are"), map[bool]string{true: "waits", false: "wait"}[x.Parked == 1])
	}
	a := x.Audit
	switch {
	case x.Key == "":
	case a == nil:
		x.find(Note, "audit", "wait: the reconciler runs the first one within 15 minutes (one that a person runs is not kept)", "the reconciler has not audited yet")
	case x.Now.Sub(time.UnixMilli(a.RanMS)) > late:
		x.find(Error, "audit", x.command("audit --since 24h"), "the last audit ran %s ago", x.Now.Sub(time.UnixMilli(a.RanMS)).Round(time.Minute))
	case !a.Complete:
		x.find(Warning, "audit", "look at the audit's line in the reconciler's log", "the last audit did not come to its end")
	case a.Unhealed > 0:
		x.find(Error, "audit", x.command("audit --since 24h"), "the last audit found %s that could not be recorded", counted(a.Unhealed, "event", "events"))
	case a.Missing > 0:
		x.find(Warning, "audit", "look at the endpoint's failed deliveries at Stripe", "the last audit found %s that never arrived, of which %d were healed", counted(a.Missing, "event", "events"), a.Healed)
	}
	if a != nil && a.Gap {
		x.find(Warning, "audit", "look at Stripe's dashboard for what is older", "the last audit had a gap of more than 30 days, which cannot be compared")
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// list names a few texts.
func list(texts []string) string {
	const most = 5
	if len(texts) > most {
		return strings.Join(texts[:most], ", ") + fmt.Sprintf(" and %d more", len(texts)-most)
	}
	return strings.Join(texts, ", ")
}
