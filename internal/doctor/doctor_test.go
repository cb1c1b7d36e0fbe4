package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/eventsource"
	"backstop/internal/reconcile"
	"backstop/internal/stripeadmin"
)

var now = time.Date(2026, 9, 22, 9, 0, 0, 0, time.UTC)

const url = "https://example.test/webhooks/stripe"

// healthy are the facts of a deployment that is as it should be.
func healthy() Facts {
	queue := func(arn string) map[string]string {
		return map[string]string{
			"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
			"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "180", "QueueArn": arn,
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:dead","maxReceiveCount":1000}`,
		}
	}
	return Facts{
		Wanted: stripeadmin.Wanted{Stage: "prod", URL: url, Types: []string{"charge.refunded", "invoice.paid"}},
		Mode:   "live", Stage: "prod", Key: "rk_live",
		Endpoints: []stripeadmin.Endpoint{{
			ID: "we_1", URL: url, Enabled: true, APIVersion: "2025-08-27.basil", Stage: "prod", Livemode: true,
			Types: []string{"charge.refunded", "invoice.paid"},
		}},
		Handled:     map[string]bool{"charge.refunded": true, "invoice.paid": true},
		SecretNames: []string{"we_1"}, Accepted: map[string]bool{"we_1": true},
		Skews: map[string]time.Duration{"Stripe": time.Second, "AWS": -time.Second},
		Queue: queue("arn:main"), DeadLetters: queue("arn:dead"),
		Ledger: &Table{
			Keys: []string{"pk"}, Indexes: map[string][]string{"open": {"open", "recorded_ms"}},
			KeysOnly: map[string]bool{"open": true}, TTL: "delete_after_s", PayPerAccess: true,
		},
		Mapping: &eventsource.Mapping{ID: "m", State: "Enabled", BatchSize: 10, ReportsItems: true},
		Audit:   &reconcile.Audited{RanMS: now.Add(-10 * time.Minute).UnixMilli(), Complete: true},
		Now:     now,
	}
}

func TestHealthyDeploymentHasNoFindings(t *testing.T) {
	t.Parallel()
	if findings := Diagnose(healthy()); len(findings) != 0 {
		t.Errorf("got %+v", findings)
	}
}

func TestEachTroubleIsFoundWithItsSeverityAndItsFix(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   func(*Facts)
		severity Severity
		what     string
		fix      string
	}{
		"no endpoint":    {func(f *Facts) { f.Endpoints = []stripeadmin.Endpoint{} }, Error, "no endpoint of the stage prod", "backstop endpoint apply --url https://example.test/webhooks/stripe --yes --stage prod"},
		"disabled":       {func(f *Facts) { f.Endpoints[0].Enabled = false }, Error, "is disabled", "endpoint apply --url " + url + " --yes"},
		"other URL":      {func(f *Facts) { f.Endpoints[0].URL = "https://old.test/" }, Error, "posts to https://old.test/, not to " + url, "endpoint apply --url " + url},
		"other version":  {func(f *Facts) { f.Endpoints[0].APIVersion = "2020-08-27" }, Warning, `API version "2020-08-27"`, "endpoint roll"},
		"not subscribed": {func(f *Facts) { f.Endpoints[0].Types = []string{"invoice.paid"} }, Error, "does not subscribe to charge.refunded", "endpoint apply"},
		"not handled":    {func(f *Facts) { f.Endpoints[0].Types = append(f.Endpoints[0].Types, "payout.paid") }, Warning, "subscribes to payout.paid, which nobody handles", "endpoint apply"},
		"two endpoints": {func(f *Facts) {
			f.Endpoints = append(f.Endpoints, f.Endpoints[0])
			f.Endpoints[1].ID = "we_2"
			f.SecretNames = []string{"we_1", "we_2"}
		}, Warning, "2 endpoints of this stage", "delete all but one"},
		"stranger": {func(f *Facts) {
			e := f.Endpoints[0]
			e.ID, e.Stage = "we_2", "dev"
			f.Endpoints = append(f.Endpoints, e)
		}, Warning, "posts to the same URL", "delete one"},
		"rolling": {func(f *Facts) {
			e := f.Endpoints[0]
			e.ID, e.Replaces = "we_2", "we_1"
			f.Endpoints = append(f.Endpoints, e)
			f.SecretNames = append(f.SecretNames, "we_2")
		}, Note, "being rolled", "endpoint roll --yes --stage prod"},
		"endpoint's mode":     {func(f *Facts) { f.Endpoints[0].Livemode = false }, Error, "of the other mode", "key of the deployment's mode"},
		"no Connect endpoint": {func(f *Facts) { f.Accounts = true }, Error, "no endpoint of this stage listens to them", "endpoint apply --connect"},
		"no key":              {func(f *Facts) { f.Key, f.Endpoints, f.SecretNames, f.Audit = "", nil, nil, nil }, Warning, "no Stripe API key", "PutStripeKey"},
		"secret key":          {func(f *Facts) { f.Key = "sk_live" }, Note, "restricted key suffices", "Events read"},
		"key's mode":          {func(f *Facts) { f.Key = "rk_test" }, Error, "not of the deployment's mode, live", "right mode"},
		"no secret":           {func(f *Facts) { f.SecretNames = []string{} }, Error, "refuses every delivery", "endpoint apply"},
		"other's secret":      {func(f *Facts) { f.SecretNames = []string{"we_9"} }, Error, "secret of we_1 is not stored", "endpoint roll"},
		"nameless secret":     {func(f *Facts) { f.SecretNames = []string{"unnamed-1"} }, Note, "cannot be told", "endpoint roll"},
		"secret not taken":    {func(f *Facts) { f.Accepted["we_1"] = false }, Error, "does not take the stored secret of we_1", "receiver's log"},
		"clock":               {func(f *Facts) { f.Skews["Stripe"] = -4 * time.Minute }, Warning, "the clock of Stripe is -4m0s ahead", "clock"},
		"standard queue":      {func(f *Facts) { f.Queue["FifoQueue"] = "" }, Error, "FifoQueue", "cdk deploy -c stage=prod"},
		"short visibility":    {func(f *Facts) { f.Queue["VisibilityTimeout"] = "30" }, Error, `VisibilityTimeout "30", declared is "180"`, "cdk deploy"},
		"short retention":     {func(f *Facts) { f.DeadLetters["MessageRetentionPeriod"] = "345600" }, Error, "dead-letter queue has MessageRetentionPeriod", "cdk deploy"},
		"receive count":       {func(f *Facts) { f.Queue["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:dead","maxReceiveCount":3}` }, Error, "maxReceiveCount is not 1000", "cdk deploy"},
		"redrive elsewhere":   {func(f *Facts) { f.Queue["RedrivePolicy"] = `{"maxReceiveCount":"1000"}` }, Error, "does not redrive", "cdk deploy"},
		"index":               {func(f *Facts) { f.Ledger.Indexes["open"] = []string{"open"} }, Error, "nothing can be swept", "cdk deploy"},
		"wide index":          {func(f *Facts) { f.Ledger.KeysOnly["open"] = false }, Warning, "more than keys", "cdk deploy"},
		"key schema":          {func(f *Facts) { f.Ledger.Keys = []string{"id"} }, Error, "key is id", "cdk deploy"},
		"no TTL":              {func(f *Facts) { f.Ledger.TTL = "" }, Warning, "kept for ever", "cdk deploy"},
		"provisioned":         {func(f *Facts) { f.Ledger.PayPerAccess = false }, Warning, "provisioned", "cdk deploy"},
		"paused":              {func(f *Facts) { f.Paused, f.Mapping.State = "by ada", "Disabled" }, Warning, "paused by ada", "backstop resume"},
		"disabled mapping":    {func(f *Facts) { f.Mapping.State = "Disabled" }, Error, "nobody has paused it", "backstop resume"},
		"batch size":          {func(f *Facts) { f.Mapping.BatchSize = 1 }, Warning, "batch size is 1", "cdk deploy"},
		"whole batches":       {func(f *Facts) { f.Mapping.ReportsItems = false }, Error, "ReportBatchItemFailures", "cdk deploy"},
		"practice":            {func(f *Facts) { f.Endpoints, f.Practice = []stripeadmin.Endpoint{}, true }, Note, "needs none", ""},
		"no audit":            {func(f *Facts) { f.Audit = nil }, Note, "has not audited yet", "within 15 minutes"},
		"late audit":          {func(f *Facts) { f.Audit.RanMS -= time.Hour.Milliseconds() }, Error, "last audit ran 1h10m0s ago", "backstop audit"},
		"cut audit":           {func(f *Facts) { f.Audit.Complete = false }, Warning, "did not come to its end", "log"},
		"missing events":      {func(f *Facts) { f.Audit.Missing, f.Audit.Healed = 3, 3 }, Warning, "3 events that never arrived", "failed deliveries"},
		"unhealed events":     {func(f *Facts) { f.Audit.Missing, f.Audit.Unhealed = 1, 1 }, Error, "1 event that could not be recorded", "backstop audit"},
		"gap":                 {func(f *Facts) { f.Audit.Gap = true }, Warning, "more than 30 days", "dashboard"},
		"parked":              {func(f *Facts) { f.Parked = 2 }, Warning, "2 events are parked", "backstop events --status parked --stage prod"},
		"denied":              {func(f *Facts) { f.Mapping = nil; f.Denied = []Denied{{"the mapping", errors.New("no"), "lambda:List"}} }, Warning, "the mapping could not be looked at: no", "grant lambda:List"},
	} {
		f := healthy()
		test.change(&f)
		findings := Diagnose(f)
		if len(findings) != 1 {
			t.Errorf("%s: %d findings, want 1: %+v", name, len(findings), findings)
			continue
		}
		if got := findings[0]; got.Severity != test.severity || !strings.Contains(got.What, test.what) || !strings.Contains(got.Fix, test.fix) {
			t.Errorf("%s: got %+v, want %s %q, fix %q", name, got, test.severity, test.what, test.fix)
		}
	}
}

func TestWorstComesFirst(t *testing.T) {
	t.Parallel()
	f := healthy()
	f.Key, f.Ledger.TTL, f.Mapping.ReportsItems = "sk_live", "", false
	var severities []Severity
	for _, finding := range Diagnose(f) {
		severities = append(severities, finding.Severity)
	}
	if want := []Severity{Error, Warning, Note}; !slices.Equal(severities, want) {
		t.Errorf("got %v, want %v", severities, want)
	}
}

func TestNothingLookedAtIsNoHealth(t *testing.T) {
	t.Parallel()
	findings := Diagnose(Facts{Key: "rk_live", Denied: []Denied{{"everything", errors.New("no"), "all"}}})
	if !slices.ContainsFunc(findings, func(f Finding) bool { return f.About == "rights" }) {
		t.Errorf("got %+v", findings)
	}
}
