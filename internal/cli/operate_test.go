package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"backstop/internal/config"
	"backstop/internal/control"
	"backstop/internal/doctor"
	"backstop/internal/endpoint"
	"backstop/internal/endpoint/secretstore"
	"backstop/internal/ledger"
	"backstop/internal/reconcile"
	"backstop/internal/signature"
	"backstop/internal/stripeadmin"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestParkedEventsAreReplayedByFilterInOrder(t *testing.T) {
	s := newStage(t)
	s.breakHandler(true)
	var want [20][]string // by customer
	for n := range 200 {
		id := fmt.Sprintf("evt_%03d", n)
		customer := n * 7 % 20
		want[customer] = append(want[customer], id)
		s.accept(body(id, "invoice.paid", fmt.Sprintf("cus_%02d", customer), 0))
	}
	s.accept(body("evt_other", "charge.refunded", "cus_00", 0))
	s.await(ledger.Parked, 201)
	s.breakHandler(false)

	dry := read[replayed](s, 0, "replay", "--status", "parked", "--type", "invoice.*")
	if len(dry.Events) != 200 || !dry.DryRun {
		t.Fatalf("%d events would be replayed, want 200", len(dry.Events))
	}
	if got := len(s.await(ledger.Parked, 201)); got != 201 {
		t.Fatalf("the dry run changed something: %d parked", got)
	}
	done := read[replayed](s, 0, "replay", "--status", "parked", "--type", "invoice.*", "--error-class", "permanent", "--rate", "0", "--yes", "--reason", "the bug is fixed")
	if len(done.Events) != 200 || len(done.Left) != 0 {
		t.Fatalf("%d replayed, %d left", len(done.Events), len(done.Left))
	}
	entries := s.await(ledger.Done, 200)
	if r := entries[0].Replays; len(r) != 1 || r[0].By != "ada" || r[0].Why != "the bug is fixed" {
		t.Errorf("who and why: %+v", r)
	}
	var got [20][]string
	for _, id := range s.order() {
		var n int
		if _, err := fmt.Sscanf(id, "evt_%d", &n); err != nil {
			t.Fatalf("%s was run", id)
		}
		got[n*7%20] = append(got[n*7%20], id)
	}
	for customer := range want {
		if !slices.Equal(got[customer], want[customer]) {
			t.Errorf("customer %d: got %q, want %q", customer, got[customer], want[customer])
		}
	}
	// Their dead-letter messages are gone; that of the one that was left is not.
	if tidy := read[reconcile.Tidied](s, 0, "dlq", "tidy"); len(tidy.Ghosts) != 0 || tidy.Kept != 1 {
		t.Errorf("the dead-letter queue: %+v", tidy)
	}
}

func TestLostMessagesAreDoneAfterOneSweep(t *testing.T) {
	s := newStage(t)
	s.want(0, "pause", "--yes", "--reason", "test")
	for n := range 50 {
		s.accept(body(fmt.Sprintf("evt_%02d", n), "invoice.paid", fmt.Sprintf("cus_%d", n%5), 0))
	}
	if _, err := s.sqs.PurgeQueue(t.Context(), &awssqs.PurgeQueueInput{QueueUrl: &s.names.QueueURL}); err != nil {
		t.Fatal(err)
	}
	s.want(0, "resume", "--yes", "--reason", "test")
	later := func() time.Time { return time.Now().Add(2 * time.Minute) }
	db := dynamodb.NewFromConfig(localAWS(s.local.AWSEndpoint, s.local.Region))
	sweeper := reconcile.Sweeper{Ledger: s.ledger, Queue: s.queue, Control: control.New(db, s.names.ControlTable), Now: later}
	time.Sleep(time.Second)
	if n := len(s.order()); n != 0 {
		t.Fatalf("%d events ran although their messages are gone", n)
	}
	if swept, err := sweeper.Run(t.Context()); err != nil || swept.Enqueued != 50 {
		t.Fatalf("%+v, %v", swept, err)
	}
	s.await(ledger.Done, 50)
}

func TestPauseStopsAndResumeGoesOn(t *testing.T) {
	s := newStage(t)
	if before := read[status](s, 0, "status"); before.Mapping.State != "Enabled" || before.Paused != nil {
		t.Errorf("got %+v", before)
	}
	s.want(0, "pause")
	if got := read[status](s, 0, "status"); got.Mapping.State != "Enabled" {
		t.Error("a dry run paused")
	}
	s.want(2, "pause", "--yes")
	s.want(0, "pause", "--yes", "--reason", "moving house")
	s.accept(body("evt_1", "invoice.paid", "cus_1", 0))
	time.Sleep(1500 * time.Millisecond)
	paused := read[status](s, 1, "status")
	if paused.Mapping.State != "Disabled" || paused.Paused == nil || paused.Paused.By != "ada" || paused.Paused.Why != "moving house" || paused.Todo != 1 || paused.Queue.Visible != 1 {
		t.Errorf("got %+v", paused)
	}
	if text := s.want(1, "status"); !strings.Contains(text, "by ada") || !strings.Contains(text, "moving house") {
		t.Errorf("got %s", text)
	}
	s.want(0, "resume", "--yes", "--reason", "moved")
	s.await(ledger.Done, 1)
	if after := read[status](s, 0, "status"); after.Paused != nil || after.Mapping.State != "Enabled" {
		t.Errorf("got %+v", after)
	}
}

func TestDiscardSettlesParkedEventsOnly(t *testing.T) {
	s := newStage(t)
	s.accept(body("evt_done", "invoice.paid", "cus_1", 0))
	s.await(ledger.Done, 1)
	s.breakHandler(true)
	s.accept(body("evt_parked", "invoice.paid", "cus_1", 0))
	s.await(ledger.Parked, 1)
	s.want(2, "discard")
	s.want(1, "discard", "evt_nowhere", "--yes", "--reason", "test")
	s.want(0, "discard", "evt_parked")
	s.want(1, "discard", "evt_done", "--yes", "--reason", "test")
	s.want(0, "discard", "evt_parked", "--yes", "--reason", "a test of last year")
	if e := s.await(ledger.Skipped, 1)[0]; e.LastError != "discarded by ada: a test of last year" {
		t.Errorf("got %q", e.LastError)
	}
	if tidy := read[reconcile.Tidied](s, 0, "dlq", "tidy"); tidy.Looked != 0 {
		t.Errorf("its dead-letter message is left: %+v", tidy)
	}
}

func TestReplayIsCalledRightly(t *testing.T) {
	s := newStage(t)
	s.accept(body("evt_done", "invoice.paid", "cus_1", 0))
	s.await(ledger.Done, 1)
	s.want(2, "replay")
	s.want(2, "replay", "evt_1", "--type", "invoice.*")
	s.want(2, "replay", "--type", "[")
	s.want(2, "replay", "evt_done", "--yes")
	s.want(1, "replay", "evt_nowhere")
	if r := read[replayed](s, 0, "replay", "evt_done"); len(r.Events) != 0 || len(r.Left) != 1 || !strings.Contains(r.Left[0].Why, "--again") {
		t.Errorf("got %+v", r)
	}
	s.want(1, "replay", "evt_done", "--yes", "--reason", "test")
	s.want(0, "replay", "evt_done", "--again", "--handler", "mailer", "--yes", "--reason", "mail was lost")
	for range 100 {
		if len(s.order()) == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got := s.order(); !slices.Equal(got, []string{"evt_done", "evt_done"}) {
		t.Errorf("run: %q", got)
	}
}

// audited is what audit prints for machines.
type audited struct {
	reconcile.Audited
	Unexpected []reconcile.Finding `json:"unexpected"`
}

func TestAuditSaysWhatIsWrongAndHealsWhenTold(t *testing.T) {
	s := newStage(t)
	if err := s.stripe.Register(body("evt_known", "invoice.paid", "cus_1", time.Hour), body("evt_lost", "invoice.paid", "cus_1", time.Hour),
		body("evt_young", "invoice.paid", "cus_1", 0)); err != nil {
		t.Fatal(err)
	}
	s.accept(body("evt_known", "invoice.paid", "cus_1", time.Hour))
	s.accept(body("evt_forged", "invoice.paid", "cus_1", time.Hour))
	s.await(ledger.Done, 2)
	s.want(2, "audit", "--since", "yesterday")
	r := read[audited](s, 1, "audit", "--since", "2h")
	if r.Listed != 2 || r.Missing != 1 || r.Healed != 0 || len(r.Unexpected) != 1 || r.Unexpected[0].Key != "stripe#-#evt_forged" {
		t.Errorf("got %+v", r)
	}
	if text := s.want(1, "audit", "--since", "2h"); !strings.Contains(text, "evt_lost") || !strings.Contains(text, "--yes") {
		t.Errorf("got %s", text)
	}
	if r := read[audited](s, 1, "audit", "--since", "2h", "--yes"); r.Healed != 1 {
		t.Errorf("got %+v", r)
	}
	s.await(ledger.Done, 3)
	if r := read[audited](s, 1, "audit", "--since", "40d"); !r.Gap || r.Missing != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestFilterOfAPersonsCustomerAndAge(t *testing.T) {
	s := newStage(t)
	s.breakHandler(true)
	s.accept(body("evt_1", "invoice.paid", "cus_1", 0))
	s.accept(body("evt_2", "invoice.paid", "cus_2", 0))
	s.await(ledger.Parked, 2)
	if r := read[replayed](s, 0, "replay", "--customer", "cus_2", "--since", "1h"); len(r.Events) != 1 || r.Events[0].Event != "evt_2" {
		t.Errorf("got %+v", r.Events)
	}
	if r := read[replayed](s, 0, "replay", "--error-class", "decode"); len(r.Events) != 0 {
		t.Errorf("got %+v", r.Events)
	}
}

// receiver plays the receiver for probes: it takes the secrets that are stored.
func (s *stage) receiver() string {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	store := secretstore.New(s.secrets, "signing")
	s.serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stored, err := store.Load(r.Context())
		var values []string
		for _, secret := range stored {
			values = append(values, secret.Value)
		}
		body := []byte(`{"object":"backstop.probe"}`)
		if _, verified := signature.Verify(values, r.Header.Get(signature.Header), body, time.Now()); err != nil || verified != nil {
			http.Error(w, `{"error":"signature_mismatch"}`, http.StatusBadRequest)
			return
		}
		http.Error(w, `{"error":"not_an_event"}`, http.StatusBadRequest)
	}))
	return "http://" + listener.Addr().String() + "/webhooks/stripe"
}

func TestDoctorLeadsFromNoEndpointToHealth(t *testing.T) {
	s := newStage(t)
	url := s.receiver()
	type findings struct{ Findings []doctor.Finding }
	sick := read[findings](s, 1, "doctor", "--url", url)
	if len(sick.Findings) == 0 || !strings.Contains(sick.Findings[0].What, "no endpoint of the stage dev") {
		t.Fatalf("got %+v", sick)
	}
	s.want(2, "endpoint", "apply")
	s.want(0, "endpoint", "apply", "--url", url)
	if n := len(s.stripe.Endpoints()); n != 0 {
		t.Fatalf("the dry run made %d endpoints", n)
	}
	made := read[endpoint.Outcome](s, 0, "endpoint", "apply", "--url", url, "--yes")
	if e := s.stripe.Endpoints(); len(e) != 1 || !slices.Equal(e[0].EnabledEvents, []string{"invoice.paid", "charge.refunded"}) || made.Endpoint.ID != e[0].ID {
		t.Fatalf("got %+v", e)
	}
	for _, f := range read[findings](s, 0, "doctor", "--url", url).Findings {
		if f.Severity != doctor.Note {
			t.Errorf("a new endpoint is no trouble: %+v", f)
		}
	}
	s.stripe.Disable(s.stripe.Endpoints()[0].ID)
	if text := s.want(1, "doctor", "--url", url); !strings.Contains(text, "is disabled") || !strings.Contains(text, "-> backstop endpoint apply") {
		t.Errorf("got %s", text)
	}
	s.want(0, "endpoint", "apply", "--url", url, "--yes")
	s.want(0, "doctor", "--url", url)
	roll := read[endpoint.Outcome](s, 0, "endpoint", "roll", "--url", url)
	if len(roll.Steps) != 3 || len(s.stripe.Endpoints()) != 1 {
		t.Errorf("got %+v", roll)
	}
}

func TestRollWaitsForACleanAudit(t *testing.T) {
	t.Parallel()
	live := time.Date(2026, 9, 22, 9, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		last *reconcile.Audited
		want string
	}{
		"none":      {nil, "no audit"},
		"earlier":   {&reconcile.Audited{ToS: live.Unix(), Complete: true}, "wait for one"},
		"missing":   {&reconcile.Audited{ToS: live.Unix() + 1, Complete: true, Missing: 1}, "not clean"},
		"cut short": {&reconcile.Audited{ToS: live.Unix() + 1}, "not clean"},
		"clean":     {&reconcile.Audited{ToS: live.Unix() + 1, Complete: true}, ""},
	} {
		got := vouches(test.last, live)
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestDeployedStageIsFoundByItsFunctions(t *testing.T) {
	listing := `{"Functions":[
		{"FunctionName":"other","Environment":{"Variables":{"BACKSTOP_STAGE":"dev","BACKSTOP_LEDGER_TABLE":"dev-ledger"}}},
		{"FunctionName":"r","Environment":{"Variables":{"BACKSTOP_STAGE":"prod","BACKSTOP_LEDGER_TABLE":"prod-ledger","BACKSTOP_SIGNING_SECRET_ID":"arn:signing"}}},
		{"FunctionName":"x"},
		{"FunctionName":"p","Environment":{"Variables":{"BACKSTOP_STAGE":"prod","BACKSTOP_LEDGER_TABLE":"prod-ledger","BACKSTOP_QUEUE_URL":"https://queue"}}}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/2015-03-31/functions" && r.URL.Path != "/2015-03-31/functions/" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(listing))
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"} {
		t.Setenv(name, value)
	}
	mine := map[string]string{config.StripeKey: "rk_live_mine", config.LedgerTable: "dev-ledger"}
	e := &env{stage: "prod", now: time.Now, vars: func(name string) (string, bool) { value, ok := mine[name]; return value, ok }}
	found, err := e.target(t.Context(), config.LedgerTable, config.QueueURL)
	if err != nil {
		t.Fatal(err)
	}
	if found.LedgerTable != "prod-ledger" || found.QueueURL != "https://queue" || found.SigningSecretID != "arn:signing" || found.StripeKey != "rk_live_mine" || found.Local != nil {
		t.Errorf("got %+v", found.Settings)
	}
	e.stage = "nowhere"
	if _, err := e.target(t.Context()); err == nil || !strings.Contains(err.Error(), `stage "nowhere"`) {
		t.Errorf("got %v", err)
	}
}

func TestEndpointTypesAreThoseAnEndpointCanHave(t *testing.T) {
	t.Parallel()
	deployment := target{Settings: config.Settings{Stage: "prod", EventTypes: []string{"invoice.paid", "v1.billing.meter.error_report_triggered"}}}
	if got := deployment.wanted("https://x.test", false); !slices.Equal(got.Types, []string{"invoice.paid"}) || got.Stage != "prod" {
		t.Errorf("got %+v", got)
	}
	var _ stripeadmin.Wanted = deployment.wanted("", true)
}

func TestEveryCommandHasAnExampleAndHelp(t *testing.T) {
	t.Parallel()
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			walk(child)
		}
		if !cmd.HasParent() || cmd.Name() == "help" || cmd.Name() == "completion" || cmd.Parent().Name() == "completion" {
			return
		}
		seen++
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s has no example or no help", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its example is of another command: %s", cmd.CommandPath(), cmd.Example)
		}
	}
	walk(newRoot(&env{}))
	if seen < 15 {
		t.Errorf("only %d commands were looked at", seen)
	}
}
