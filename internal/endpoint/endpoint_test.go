package endpoint_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/internal/awslocal"
	"backstop/internal/endpoint"
	"backstop/internal/endpoint/secretstore"
	"backstop/internal/signature"
	"backstop/internal/stripeadmin"
	"backstop/internal/stripefake"
)

const url = "https://example.test/webhooks/stripe"

// world is a provisioner over a fake Stripe, the local Secrets Manager and a receiver that reads it.
type world struct {
	*testing.T
	*endpoint.Provisioner
	stripe  *stripefake.Server
	api     string
	secrets *secretsmanager.Client
	store   *secretstore.Store
	slept   []time.Duration
	asked   int
	refuses string // a secret the receiver does not take
	dirty   string // why the ledger is not clean
	fault   func(*http.Request) stripefake.Fault
}

func setup(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t}
	w.stripe = stripefake.New(stripefake.Options{Fault: func(r *http.Request) stripefake.Fault {
		if w.fault == nil {
			return stripefake.Fault{}
		}
		return w.fault(r)
	}})
	server := httptest.NewServer(w.stripe)
	t.Cleanup(server.Close)
	w.api = server.URL
	w.secrets = secretsmanager.NewFromConfig(awslocal.Config(&awslocal.Transport{Server: awslocal.New(awslocal.Options{})}))
	if _, err := w.secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("signing")}); err != nil {
		t.Fatal(err)
	}
	w.store = secretstore.New(w.secrets, "signing")
	w.Provisioner = &endpoint.Provisioner{
		Admin: stripeadmin.New(server.URL, "rk_test_1"), Store: w.store, Now: time.Now,
		Sleep: func(_ context.Context, d time.Duration) error { w.slept = append(w.slept, d); return nil },
		Accepts: func(ctx context.Context, _, secret string) (bool, error) {
			w.asked++
			stored, err := w.store.Load(ctx)
			known := slices.ContainsFunc(stored, func(s struct{ Name, Value string }) bool { return s.Value == secret })
			return known && secret != w.refuses, err
		},
		Clean: func(context.Context, time.Time) (string, error) { return w.dirty, nil },
	}
	return w
}

// byHand makes an endpoint as a person does in Stripe's dashboard: in service, and without our metadata.
func (w *world) byHand() {
	w.Helper()
	form := neturl.Values{"url": {url}, "enabled_events[0]": {"*"}}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.api+"/v1/webhook_endpoints", strings.NewReader(form.Encode()))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk_test_1")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("%v, %v", response, err)
	}
	response.Body.Close()
}

func (w *world) put(text string) {
	w.Helper()
	if _, err := w.secrets.PutSecretValue(w.Context(), &secretsmanager.PutSecretValueInput{SecretId: aws.String("signing"), SecretString: &text}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) names() []string {
	w.Helper()
	stored, err := w.store.Load(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return stored.Names()
}

func (w *world) apply(wanted stripeadmin.Wanted) endpoint.Outcome {
	w.Helper()
	o, err := w.Apply(w.Context(), wanted, true)
	if err != nil {
		w.Fatal(err)
	}
	return o
}

func (w *world) roll() endpoint.Outcome {
	w.Helper()
	o, err := w.Roll(w.Context(), wanted, true)
	if err != nil {
		w.Fatal(err)
	}
	return o
}

var wanted = stripeadmin.Wanted{Stage: "test", URL: url, Types: []string{"charge.refunded", "invoice.paid"}}

func TestEndpointIsCreatedAsWantedAndItsSecretStored(t *testing.T) {
	w := setup(t)
	o := w.apply(wanted)
	made := w.stripe.Endpoints()
	if len(made) != 1 {
		t.Fatalf("%d endpoints", len(made))
	}
	e := made[0]
	if e.URL != url || !slices.Equal(e.EnabledEvents, wanted.Types) || e.APIVersion != "2025-08-27.basil" || e.Metadata["backstop_stage"] != "test" {
		t.Errorf("got %+v", e)
	}
	stored, err := w.store.Load(t.Context())
	if err != nil || len(stored) != 1 || stored.Value(e.ID) != e.Secret {
		t.Errorf("the secret is not stored under the endpoint's id: %v, %v", stored.Names(), err)
	}
	if text := strings.Join(append(o.Steps, o.Notes...), " "); strings.Contains(text, "whsec_") {
		t.Errorf("a secret is said: %s", text)
	}
	if o := w.apply(wanted); len(o.Steps) != 0 || len(w.stripe.Endpoints()) != 1 {
		t.Errorf("a second apply changes something: %+v", o)
	}
}

func TestNewEndpointDeliversWhenItsSecretIsTakenAndNotBefore(t *testing.T) {
	w := setup(t)
	accepts := w.Accepts
	w.Accepts = func(context.Context, string, string) (bool, error) { return false, errors.New("not deployed yet") }
	if _, err := w.Apply(t.Context(), wanted, true); err == nil || !strings.Contains(err.Error(), "goes on with it") {
		t.Errorf("got %v", err)
	}
	begun := w.stripe.Endpoints()
	if len(begun) != 1 || slices.Equal(begun[0].EnabledEvents, wanted.Types) || len(w.names()) != 1 {
		t.Fatalf("got %+v", begun)
	}
	if _, err := w.Roll(t.Context(), wanted, true); err == nil {
		t.Error("what is not in service is rolled")
	}
	w.Accepts = accepts
	w.apply(wanted)
	if e := w.stripe.Endpoints(); len(e) != 1 || e[0].ID != begun[0].ID || !slices.Equal(e[0].EnabledEvents, wanted.Types) {
		t.Errorf("got %+v", e)
	}
	if !slices.Equal(w.slept, []time.Duration{15 * time.Second, 15 * time.Second}) {
		t.Errorf("slept %v", w.slept)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	w := setup(t)
	for range 2 {
		o, err := w.Apply(t.Context(), wanted, false)
		if err != nil || len(o.Steps) != 3 || len(w.stripe.Endpoints()) != 0 {
			t.Errorf("got %+v, %v", o, err)
		}
	}
	w.apply(wanted)
	o, err := w.Roll(t.Context(), wanted, false)
	if err != nil || len(o.Steps) != 3 || len(w.stripe.Endpoints()) != 1 || len(w.names()) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestEndpointIsBroughtToWhatIsWanted(t *testing.T) {
	w := setup(t)
	w.apply(stripeadmin.Wanted{Stage: "test", URL: "https://old.test/", Types: []string{"payout.paid", "invoice.paid"}})
	w.stripe.Disable(w.stripe.Endpoints()[0].ID)
	o := w.apply(wanted)
	e := w.stripe.Endpoints()[0]
	if e.URL != url || !slices.Equal(e.EnabledEvents, wanted.Types) || e.Status != "enabled" || len(o.Steps) != 1 {
		t.Errorf("got %+v, %+v", e, o)
	}
}

func TestEndpointMadeByHandIsFoundByItsURL(t *testing.T) {
	w := setup(t)
	w.byHand()
	w.put("whsec_by_hand")
	w.apply(wanted)
	if e := w.stripe.Endpoints(); len(e) != 1 || e[0].Metadata["backstop_stage"] != "test" {
		t.Errorf("got %+v", e)
	}
	if names := w.names(); !slices.Equal(names, []string{"unnamed-1"}) {
		t.Errorf("stored: %q", names)
	}
}

func TestStageAndConnectEndpointsDoNotTouchEachOther(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	other := wanted
	other.Stage = "prod"
	w.apply(other)
	connect := wanted
	connect.Connect = true
	w.apply(connect)
	if n := len(w.stripe.Endpoints()); n != 3 {
		t.Errorf("%d endpoints, want 3", n)
	}
}

// readOnly cannot store.
type readOnly struct{ endpoint.Store }

var errReadOnly = errors.New("read only")

func (readOnly) Save(context.Context, endpoint.Named) error { return errReadOnly }

func TestEndpointWhoseSecretCannotBeStoredIsDeletedAgain(t *testing.T) {
	w := setup(t)
	w.Store = readOnly{w.store}
	if _, err := w.Apply(t.Context(), wanted, true); !errors.Is(err, errReadOnly) {
		t.Errorf("got %v", err)
	}
	if n := len(w.stripe.Endpoints()); n != 0 {
		t.Errorf("%d endpoints are left whose secret nobody knows", n)
	}
}

func TestRollGoesStepByStepAndEndsWithOneSecret(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	old := w.stripe.Endpoints()[0]
	w.slept, w.asked = nil, 0
	// Stored before the successor delivers anything.
	w.fault = func(r *http.Request) stripefake.Fault {
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/webhook_endpoints/") && len(w.stripe.Endpoints()) == 2 {
			if names := w.names(); len(names) != 2 || len(w.slept) == 0 || w.slept[0] != 15*time.Second || w.asked != 20 {
				t.Errorf("the successor goes live too early: stored %q, slept %v, asked %d", names, w.slept, w.asked)
			}
		}
		return stripefake.Fault{}
	}
	if o := w.roll(); len(o.Steps) != 3 || len(o.Waiting) != 1 {
		t.Errorf("got %+v", o)
	}
	both := w.stripe.Endpoints()
	if len(both) != 2 || !slices.Equal(both[1].EnabledEvents, wanted.Types) || both[1].Secret == old.Secret {
		t.Fatalf("got %+v", both)
	}
	if names := w.names(); !slices.Equal(names, []string{both[1].ID, old.ID}) {
		t.Errorf("stored: %q, want the newest first", names)
	}
	w.fault = nil
	w.slept = nil
	if o := w.roll(); len(o.Waiting) != 0 {
		t.Errorf("got %+v", o)
	}
	left := w.stripe.Endpoints()
	if len(left) != 1 || left[0].ID != both[1].ID || left[0].Metadata["backstop_replaces"] != "" {
		t.Errorf("got %+v", left)
	}
	if names := w.names(); !slices.Equal(names, []string{both[1].ID}) {
		t.Errorf("stored: %q", names)
	}
	if !slices.Equal(w.slept, []time.Duration{time.Minute}) {
		t.Errorf("slept %v before the old secret was removed, want 1m", w.slept)
	}
}

func TestOldEndpointStaysWhileSomethingDependsOnIt(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	old := w.stripe.Endpoints()[0]
	w.roll()
	pending := []byte(`{"id":"evt_1","object":"event","type":"invoice.paid","pending_webhooks":1,"created":` + strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10) + `,"data":{"object":{}}}`)
	if err := w.stripe.Register(pending); err != nil {
		t.Fatal(err)
	}
	w.dirty = "the last audit found something missing"
	w.refuses = w.stripe.Endpoints()[1].Secret
	o := w.roll()
	if len(o.Waiting) != 3 || !strings.Contains(o.Waiting[0], "1 events from before") || !strings.Contains(o.Waiting[1], "the last audit") || !strings.Contains(o.Waiting[2], "does not take") {
		t.Errorf("got %q", o.Waiting)
	}
	if len(w.stripe.Endpoints()) != 2 || w.stripe.Endpoints()[0].ID != old.ID {
		t.Error("the old endpoint is gone")
	}
}

func TestReceiverThatDoesNotTakeTheSecretStopsTheRoll(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	w.Accepts = func(context.Context, string, string) (bool, error) { return false, nil }
	if _, err := w.Roll(t.Context(), wanted, true); err == nil {
		t.Error("no error")
	}
	if e := w.stripe.Endpoints(); len(e) != 2 || slices.Equal(e[1].EnabledEvents, wanted.Types) {
		t.Errorf("the successor delivers: %+v", e)
	}
}

func TestRollThatDiedGoesOn(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	old := w.stripe.Endpoints()[0]
	// It died after the secret was stored.
	sleep := w.Sleep
	w.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	if _, err := w.Roll(t.Context(), wanted, true); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	w.Sleep = sleep
	successor := w.stripe.Endpoints()[1]
	w.roll()
	if e := w.stripe.Endpoints(); len(e) != 2 || e[1].ID != successor.ID {
		t.Errorf("it began anew: %+v", e)
	}
	// It died after the old endpoint was deleted.
	if err := w.Admin.Delete(t.Context(), old.ID); err != nil {
		t.Fatal(err)
	}
	w.roll()
	if names := w.names(); !slices.Equal(names, []string{successor.ID}) {
		t.Errorf("stored: %q", names)
	}
}

func TestSuccessorWithoutAStoredSecretIsMadeAgain(t *testing.T) {
	w := setup(t)
	w.apply(wanted)
	old := w.stripe.Endpoints()[0]
	lost, _, err := w.Admin.Create(t.Context(), wanted, old.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.roll()
	e := w.stripe.Endpoints()
	if len(e) != 2 || e[1].ID == lost.ID || len(w.names()) != 2 {
		t.Errorf("got %+v, stored %q", e, w.names())
	}
}

func TestSecretStoredByHandGoesWithItsEndpoint(t *testing.T) {
	w := setup(t)
	w.byHand()
	w.put("whsec_by_hand")
	w.roll()
	if names := w.names(); len(names) != 2 || names[1] != "unnamed-1" {
		t.Errorf("stored: %q", names)
	}
	w.roll()
	if names := w.names(); len(names) != 1 || names[0] != w.stripe.Endpoints()[0].ID {
		t.Errorf("stored: %q", names)
	}
}

func TestMissingSecretIsNoEmptyOne(t *testing.T) {
	w := setup(t)
	w.Store = secretstore.New(w.secrets, "nowhere")
	if _, err := w.Apply(t.Context(), wanted, true); err == nil || len(w.stripe.Endpoints()) != 0 {
		t.Errorf("got %v, %d endpoints", err, len(w.stripe.Endpoints()))
	}
}

func TestErrorsHoldNothingOfTheAnswer(t *testing.T) {
	w := setup(t)
	w.fault = func(*http.Request) stripefake.Fault { return stripefake.Fault{Status: 403} }
	_, err := w.Apply(t.Context(), wanted, true)
	var refused *stripeadmin.Error
	if !errors.As(err, &refused) || refused.Status != 403 || strings.Contains(err.Error(), "planted") {
		t.Errorf("got %v", err)
	}
}

func TestEveryFormOfStoredTextKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`whsec_1,whsec_2`:                `{"unnamed-1":"whsec_1","unnamed-2":"whsec_2"}`,
		`["whsec_1"]`:                    `{"unnamed-1":"whsec_1"}`,
		`{"we_2":"whsec_2","we_1":"w1"}`: `{"we_2":"whsec_2","we_1":"w1"}`,
		`{"note":null,"we_1":"w1"}`:      `{"we_1":"w1"}`,
	} {
		named, err := endpoint.Parse(text)
		if err != nil || named.Text() != want {
			t.Errorf("%s: got %s, %v, want %s", text, named.Text(), err, want)
		}
	}
	for _, text := range []string{`{"we_1":`, `["`, `{"we_1":"whsec_x"`} {
		if named, err := endpoint.Parse(text); err == nil || strings.Contains(err.Error(), "whsec") {
			t.Errorf("%s: got %v, %v", text, named.Names(), err)
		}
	}
}

func TestProbeTellsWhetherASecretIsTaken(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := []byte(`{"object":"backstop.probe"}`)
		_, err := signature.Verify([]string{"whsec_good"}, r.Header.Get(signature.Header), body, time.Now())
		switch {
		case r.URL.Path != "/":
			w.WriteHeader(http.StatusNotFound)
		case err != nil:
			http.Error(w, `{"error":"no_signature_matches"}`, http.StatusBadRequest)
		default:
			http.Error(w, `{"error":"not_an_event"}`, http.StatusBadRequest)
		}
	}))
	t.Cleanup(receiver.Close)
	accepts := endpoint.Probe(http.DefaultClient, time.Now)
	for secret, want := range map[string]bool{"whsec_good": true, "whsec_bad": false} {
		if got, err := accepts(t.Context(), receiver.URL, secret); err != nil || got != want {
			t.Errorf("%s: got %v, %v", secret, got, err)
		}
	}
	if _, err := accepts(t.Context(), receiver.URL+"/elsewhere", "whsec_good"); err == nil {
		t.Error("what is no receiver is no answer")
	}
}
