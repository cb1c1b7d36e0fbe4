package proof

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/events"
	"backstop/infra/template"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/sender"
)

// TestTemplateCarriesThePipeline runs each stage as its committed template has it, through everything the functions do.
func TestTemplateCarriesThePipeline(t *testing.T) {
	t.Parallel()
	if len(template.Stages) != 2 {
		t.Fatalf("stages are %v", template.Stages)
	}
	simulated := simulated(t)
	for _, stage := range template.Stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, stage)
			d.everything()
			t.Run("EveryVariableIsUsed", func(t *testing.T) { everyVariableIsUsed(t, d) })
			t.Run("EveryCallIsGrantedAndEveryGrantIsCalled", func(t *testing.T) { everyCallIsGranted(t, d, simulated) })
			t.Run("LocalLambdaIsMadeAsTheTemplateSays", func(t *testing.T) { localLambdaIsMadeAsTheTemplateSays(t, d) })
		})
	}
}

// everything makes the functions do all they can do in a deployment, each once at least.
func (d *deployment) everything() {
	d.health()
	d.stories()
	d.duplicate()
	d.foreignVersion()
	d.otherMode()
	d.tie()
	d.park()
	d.sweepAbandoned()
	d.audit()
}

func (d *deployment) health() {
	d.Helper()
	answer, err := http.Get(strings.TrimSuffix(d.Endpoint, "/webhooks/stripe") + "/health")
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		d.Errorf("GET /health answers %s", answer.Status)
	}
}

// stories delivers every story: all kinds of rows, with the rows that follow from them.
func (d *deployment) stories() {
	d.Helper()
	stories, err := events.Stories()
	if err != nil || len(stories) < 10 {
		d.Fatalf("%d stories, %v", len(stories), err)
	}
	var list []sender.Event
	for _, story := range stories {
		fresh, err := story.Fresh(events.FreshOptions{Now: time.Now(), Rand: d.random})
		if err != nil {
			d.Fatal(err)
		}
		for _, body := range fresh.Events {
			list = append(list, d.event(body))
		}
	}
	d.deliver(list...)
	settled := d.awaitEntries("settled", func(e ledger.Entry) bool { return e.Status.Settled() }, list...)
	done := 0
	for _, entry := range settled {
		if entry.Status == ledger.Done {
			done++
		}
	}
	if done < len(list)/2 {
		d.Errorf("only %d of the stories' %d events are done", done, len(list))
	}
}

func (d *deployment) duplicate() {
	d.Helper()
	once := d.sample("invoice.paid", events.FreshOptions{})
	d.deliver(once)
	d.await(ledger.Done, once)
	d.deliver(once)
	if !d.logged("receiver", map[string]any{"outcome": "duplicate", "Duplicates": 1.0}) {
		d.Errorf("no duplicate was noticed\n%s", d.log())
	}
}

func (d *deployment) foreignVersion() {
	d.Helper()
	foreign := d.sample("invoice.paid", events.FreshOptions{}, events.APIVersion, "2020-08-27")
	d.deliver(foreign)
	d.awaitEntries("settled", func(e ledger.Entry) bool { return e.Status.Settled() }, foreign)
}

func (d *deployment) otherMode() {
	d.Helper()
	other := d.inOtherMode(d.sample("invoice.paid", events.FreshOptions{}))
	d.deliver(other)
	d.await(ledger.Skipped, other)
}

func (d *deployment) inOtherMode(e sender.Event) sender.Event {
	mine, others := []byte(`"livemode": false`), []byte(`"livemode": true`)
	if d.live {
		mine, others = others, mine
	}
	e.Body = bytes.ReplaceAll(e.Body, mine, others)
	return e
}

// tie delivers two events of one object, of one second, that say nothing of each other: Stripe has to be asked.
func (d *deployment) tie() {
	d.Helper()
	now := time.Now()
	first := d.sample("customer.created", events.FreshOptions{Now: now})
	envelope, err := event.Parse(first.Body)
	if err != nil {
		d.Fatal(err)
	}
	var list []sender.Event
	for _, name := range []string{"Una", "Una B"} { // two that say the same need no order
		update := d.sample("customer.updated", events.FreshOptions{Now: now, Customer: envelope.ObjectID}, `"name": "Una`, `"name": "`+name)
		list = append(list, d.event(withoutPrevious(d, update.Body)))
	}
	d.deliver(append(list, first)...)
	d.await(ledger.Done, append(list, first)...)
	if d.stripe.fake.Calls("GET /v1/customers/"+envelope.ObjectID) == 0 {
		d.Errorf("Stripe was not asked about the tie\n%s", d.log())
	}
}

// withoutPrevious takes data.previous_attributes out of an event.
func withoutPrevious(t testing.TB, body []byte) []byte {
	t.Helper()
	var envelope map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&envelope); err != nil {
		t.Fatal(err)
	}
	delete(envelope["data"].(map[string]any), "previous_attributes")
	text, err := json.MarshalIndent(envelope, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(text, []byte(`"livemode": true`), []byte(`"livemode": false`))
}

// park delivers an event nobody can decode, which is parked; a person presses Resend, which replays it, and it is
// parked again, so that its first message in the dead-letter queue is a ghost.
func (d *deployment) park() {
	d.Helper()
	poison := d.sample("invoice.paid", events.FreshOptions{}, `"amount_due":`, `"amount_due": "none", "amount_was":`)
	d.deliver(poison)
	parked := d.await(ledger.Parked, poison)[0]
	d.deliver(poison)
	d.awaitEntries("parked again", func(e ledger.Entry) bool {
		return e.Status == ledger.Parked && e.Generation > parked.Generation
	}, poison)
}

// sweepAbandoned records an event as a receiver does that died before it enqueued, three minutes ago.
func (d *deployment) sweepAbandoned() {
	d.Helper()
	abandoned := d.sample("invoice.paid", events.FreshOptions{})
	past := ledger.New(dynamodb.NewFromConfig(d.AWS), d.Names.LedgerTable, func() time.Time { return time.Now().Add(-3 * time.Minute) })
	envelope, err := event.Parse(abandoned.Body)
	if err != nil {
		d.Fatal(err)
	}
	recording := ledger.Recording{
		Key: ledger.Key(abandoned.Key), Token: "died", Type: envelope.Type, CreatedS: envelope.CreatedS, Livemode: d.live,
		APIVersion: envelope.APIVersion, ObjectID: envelope.ObjectID, Group: envelope.Group, Origin: ledger.Webhook, Body: abandoned.Body,
	}
	if _, err := past.Record(d.Context(), recording); err != nil {
		d.Fatal(err)
	}
	d.run("sweep")
	d.await(ledger.Done, abandoned)
}

// audit has two events happen at Stripe half an hour ago that were never delivered, one of the other mode.
func (d *deployment) audit() {
	d.Helper()
	halfAnHourAgo := events.FreshOptions{Now: time.Now().Add(-30 * time.Minute)}
	missing := d.sample("invoice.paid", halfAnHourAgo)
	other := d.inOtherMode(d.sample("invoice.paid", halfAnHourAgo))
	if err := d.stripe.fake.Register(missing.Body, other.Body); err != nil {
		d.Fatal(err)
	}
	d.run("audit")
	entry := d.await(ledger.Done, missing)[0]
	if entry.Origin != ledger.Backfill {
		d.Errorf("the missing event came by %s", entry.Origin)
	}
}
