package laptop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/events"
	"backstop/internal/config"
	"backstop/internal/endpoint"
	"backstop/internal/endpoint/secretstore"
	"backstop/internal/event"
	"backstop/internal/laptop"
	"backstop/internal/sender"
	"backstop/internal/stripeadmin"
	"backstop/internal/stripefake"
)

func startWithStripe(t *testing.T) (*laptop.Laptop, *lines) {
	t.Helper()
	var log lines
	l, err := laptop.Start(t.Context(), laptop.Options{Binaries: binaries, Log: log.add, SweepEvery: 2 * time.Second, FakeStripe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, &log
}

// freshAt makes events that happened some time ago.
func freshAt(t *testing.T, random *rand.Rand, typ string, ago time.Duration) sender.Event {
	t.Helper()
	sample, err := events.Sample(typ)
	if err != nil {
		t.Fatal(err)
	}
	body, err := events.Fresh(sample, events.FreshOptions{Now: time.Now().Add(-ago), Rand: random})
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := event.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return sender.Event{ID: envelope.ID, Type: envelope.Type, Key: envelope.Key(""), Body: body}
}

func TestOneAuditHealsWhatWasLostOnTheWay(t *testing.T) {
	t.Parallel()
	l, log := startWithStripe(t)
	random := rand.New(rand.NewPCG(3, 3))
	var all, delivered []sender.Event
	for i := range 1000 {
		e := freshAt(t, random, []string{"invoice.paid", "charge.refunded"}[i%2], 20*time.Minute)
		all = append(all, e)
		if err := l.Stripe.Register(json.RawMessage(e.Body)); err != nil {
			t.Fatal(err)
		}
		if i%20 != 7 {
			delivered = append(delivered, e)
		}
	}
	if len(delivered) != 950 {
		t.Fatalf("%d are delivered, want 950", len(delivered))
	}
	if _, err := sender.Send(t.Context(), delivered, sender.Options{Endpoint: l.Endpoint, Secret: l.Secrets[0], Retries: 5, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if found := count(t, l, delivered, time.Minute); found.Done != 950 {
		t.Fatalf("before the audit: %+v", found)
	}
	answer, err := l.Host.Invoke(t.Context(), laptop.Reconciler, []byte(`{"task":"audit"}`))
	if err != nil || answer.FunctionError != "" {
		t.Fatalf("the audit failed: %v %s %s\n%s", err, answer.FunctionError, answer.Payload, tail(log.all(), 5))
	}
	if found := count(t, l, all, time.Minute); found.Done != 1000 || found.Once != 1000 || !found.Clean() {
		t.Errorf("after one audit: %+v", found)
	}
}

// stripeUnderLoad plays Stripe: each event is delivered to each endpoint that subscribes to it, signed with that
// endpoint's secret, once. It counts what was not acknowledged at once.
type stripeUnderLoad struct {
	t       *testing.T
	laptop  *laptop.Laptop
	mu      sync.Mutex
	sent    map[string]int // by endpoint
	refused map[string]int // by endpoint and answer
	events  []sender.Event
}

func (s *stripeUnderLoad) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(5, 5))
	var flying sync.WaitGroup
	for ctx.Err() == nil {
		e := freshAt(s.t, random, "invoice.paid", 0)
		s.events = append(s.events, e)
		for _, to := range s.laptop.Stripe.Endpoints() {
			if slices.Contains(to.EnabledEvents, "invoice.paid") {
				flying.Go(func() { s.deliver(e, to) })
			}
		}
		time.Sleep(15 * time.Millisecond)
	}
	flying.Wait()
}

func (s *stripeUnderLoad) deliver(e sender.Event, to stripefake.Endpoint) {
	report, err := sender.Send(context.WithoutCancel(s.t.Context()), []sender.Event{e}, sender.Options{
		Endpoint: to.URL, Secret: to.Secret, Now: time.Now, Client: http.DefaultClient,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[to.ID]++
	if err != nil {
		s.refused[to.ID+" "+err.Error()]++
	}
	for _, r := range report.Refused {
		s.refused[fmt.Sprintf("%s %d", to.ID, r.Status)]++
	}
}

// Half a minute passes here: the receiver's instances keep what they read of the store.
func TestRolledSecretRefusesNotOneDeliveryUnderLoad(t *testing.T) {
	t.Parallel()
	l, log := startWithStripe(t)
	store := secretstore.New(secretsmanager.NewFromConfig(l.AWS), l.Environment[config.SigningSecretID])
	p := &endpoint.Provisioner{
		Admin: stripeadmin.New(l.StripeEndpoint, "rk_test_operator"), Store: store, Now: time.Now,
		Accepts: endpoint.Probe(http.DefaultClient, time.Now),
		Clean:   func(context.Context, time.Time) (string, error) { return "", nil },
		Sleep: func(ctx context.Context, d time.Duration) error {
			time.Sleep(min(d, endpoint.Settle)) // a minute for deliveries under way; ours take milliseconds
			return nil
		},
	}
	wanted := stripeadmin.Wanted{Stage: "dev", URL: l.Endpoint, Types: []string{"invoice.paid"}}
	if _, err := p.Apply(t.Context(), wanted, true); err != nil {
		t.Fatal(err)
	}
	load := &stripeUnderLoad{t: t, laptop: l, sent: map[string]int{}, refused: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { load.run(ctx) })
	old := l.Stripe.Endpoints()[0].ID
	time.Sleep(time.Second)
	if o, err := p.Roll(t.Context(), wanted, true); err != nil {
		t.Fatalf("%+v, %v", o, err)
	}
	time.Sleep(2 * time.Second) // both deliver
	if o, err := p.Roll(t.Context(), wanted, true); err != nil || len(o.Waiting) > 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	time.Sleep(2 * time.Second) // the new one alone
	stop()
	running.Wait()

	left := l.Stripe.Endpoints()
	if len(left) != 1 || left[0].ID == old {
		t.Fatalf("endpoints left: %d", len(left))
	}
	stored, err := store.Load(t.Context())
	if err != nil || len(stored.Names()) != 1 {
		t.Errorf("secrets left: %q, %v", stored.Names(), err)
	}
	if len(load.refused) > 0 {
		t.Errorf("refused: %v\n%s", load.refused, tail(log.all(), 5))
	}
	if load.sent[old] < 500 || load.sent[left[0].ID] < 100 {
		t.Errorf("too little load: %v", load.sent)
	}
	if found := count(t, l, load.events, time.Minute); found.Once != len(load.events) || !found.Clean() {
		t.Errorf("of %d events: %+v", len(load.events), found)
	}
}
