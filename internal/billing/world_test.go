package billing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/events"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/billing"
	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
	"backstop/internal/projection"
	"backstop/internal/stripeapi"
)

// world is the projection over the real store and the local AWS, without queue and ledger: bodies are at hand.
type world struct {
	testing.TB
	db       *dynamodb.Client
	table    string
	store    *projection.Store
	reader   *billing.Reader
	registry handler.Registry
	bodies   *bodies
}

// bodies are the events that were delivered, by id.
type bodies struct {
	mu   sync.Mutex
	byID map[string][]byte
	err  error
}

func (b *bodies) Body(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, found := b.byID[key[strings.LastIndexByte(key, '#')+1:]]
	if !found {
		return nil, billing.ErrNoBody
	}
	return body, b.err
}

func newWorld(t testing.TB, api billing.Stripe, options ...func(*dynamodb.Options)) *world {
	t.Helper()
	server := awslocal.New(awslocal.Options{})
	cfg := awslocal.Config(&awslocal.Transport{Server: server})
	names, err := stack.Create(context.Background(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, db: dynamodb.NewFromConfig(cfg, options...), table: names.BillingTable, bodies: &bodies{byID: map[string][]byte{}}}
	w.store = projection.New(w.db)
	w.reader = billing.NewReader(w.store, w.table)
	billing.Register(&w.registry, billing.Config{Table: w.table, Rows: w.store, Bodies: w.bodies, Stripe: api})
	return w
}

// deliver handles one event as the processor does. It returns the error the handler ended with.
func (w *world) deliver(e handler.Event) error {
	w.Helper()
	w.bodies.mu.Lock()
	w.bodies.byID[e.ID] = e.Body
	w.bodies.mu.Unlock()
	ctx := context.Background()
	for _, h := range w.registry.For(e.Type) {
		effects, err := h.Run(ctx, e)
		if err != nil {
			return err
		}
		for _, effect := range effects {
			if _, err := w.store.Apply(ctx, e.Key, effect.(handler.Project)); err != nil {
				return err
			}
		}
	}
	return nil
}

// send delivers a body that must be projected or skipped.
func (w *world) send(body string) {
	w.Helper()
	if err := w.deliver(handlertest.Event(w, []byte(body))); err != nil && handler.Classify(err).Verdict != handler.Skips {
		w.Fatal(err)
	}
}

// object reads an object of the platform's account, as JSON says it.
func (w *world) object(id string) map[string]any {
	w.Helper()
	return w.objectOf("", id)
}

func (w *world) objectOf(account, id string) map[string]any {
	w.Helper()
	object, err := w.reader.Object(context.Background(), account, id)
	if err != nil {
		w.Fatal(err)
	}
	if object == nil {
		return nil
	}
	return plain(w, object)
}

// plain is a value as its JSON reads, numbers as written.
func plain(t testing.TB, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// wants checks the fields of an object that want names; null stands for absent.
func (w *world) wants(id, want string) {
	w.Helper()
	if got := w.object(id); !holds(got, parse(w, want)) {
		w.Errorf("%s is %s\nwant %s", id, show(got), want)
	}
}

func parse(t testing.TB, text string) any {
	t.Helper()
	var v any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// holds reports whether got has what want names. A map of items by id stands for a list of items with ids.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		if list, isList := got.([]any); isList {
			byID := map[string]any{}
			for _, element := range list {
				id, _ := element.(map[string]any)["id"].(string)
				byID[id] = element
			}
			got = byID
		}
		object, isObject := got.(map[string]any)
		if !isObject {
			return false
		}
		for name, value := range want {
			if !holds(object[name], value) {
				return false
			}
		}
		return true
	case []any:
		list, isList := got.([]any)
		return isList && slices.EqualFunc(list, want, func(a, b any) bool { return holds(a, b) })
	}
	return got == want
}

// stub answers from objects by id, as Stripe's API would.
type stub struct {
	objects      map[string]json.RawMessage
	entitlements map[string]json.RawMessage
	lines        map[string][]json.RawMessage
	err          error

	mu    sync.Mutex
	calls int
}

func stubOf(s events.Story) *stub {
	return &stub{objects: s.Stripe.Objects, entitlements: s.Stripe.ActiveEntitlements}
}

func (s *stub) called() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.err
}

func (s *stub) Object(_ context.Context, _, _, id string) (json.RawMessage, error) {
	if err := s.called(); err != nil {
		return nil, err
	}
	if object, found := s.objects[id]; found {
		return object, nil
	}
	return nil, &stripeapi.Error{Status: 404}
}

func (s *stub) InvoiceLines(_ context.Context, _, invoice string) ([]json.RawMessage, bool, error) {
	return s.lines[invoice], true, s.called()
}

func (s *stub) SubscriptionItems(_ context.Context, _, subscription string) ([]json.RawMessage, bool, error) {
	return s.lines[subscription], true, s.called()
}

func (s *stub) ActiveEntitlements(_ context.Context, _, customer string) ([]json.RawMessage, bool, error) {
	if err := s.called(); err != nil {
		return nil, false, err
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(s.entitlements[customer], &list); err != nil {
		return nil, false, fmt.Errorf("the story's entitlements: %w", err)
	}
	return list.Data, true, nil
}

// within is the same event in another account: an account each keeps orders apart in one table.
func within(e handler.Event, account string) handler.Event {
	e.Account = account
	e.Key = event.Key(event.Source, account, e.ID)
	return e
}

// scan reads every row of the table.
func (w *world) scan() []handler.Row {
	w.Helper()
	out, err := w.db.Scan(context.Background(), &dynamodb.ScanInput{TableName: &w.table})
	if err != nil {
		w.Fatal(err)
	}
	var rows []handler.Row
	for _, item := range out.Items {
		row := handler.Row{}
		for name, value := range item {
			if s, isText := value.(*types.AttributeValueMemberS); isText {
				row[name] = s.Value
			} else {
				row[name] = value
			}
		}
		rows = append(rows, row)
	}
	return rows
}
