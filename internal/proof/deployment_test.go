package proof

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/events"
	"backstop/infra/template"
	"backstop/internal/awslocal"
	"backstop/internal/config"
	"backstop/internal/event"
	"backstop/internal/laptop"
	"backstop/internal/laptop/laptoptest"
	"backstop/internal/ledger"
	"backstop/internal/sender"
	"backstop/internal/stripefake"
)

// binaries holds the functions, built once for all tests.
var binaries string

func TestMain(m *testing.M) { laptoptest.Main(m, &binaries) }

// The secrets of a deployment, where the template says they are: in Secrets Manager.
const (
	signingSecret = "whsec_fake_proof"
	stripeKey     = "rk_test_fake_proof"
)

// deployment is a stage as its committed template has it, on this machine.
type deployment struct {
	testing.TB
	*laptop.Laptop
	stage    string
	live     bool
	stack    template.Template
	more     []string
	given    map[string]map[string]string // each function's environment, as the template gives it
	arns     map[template.Part]string
	recorder *awslocal.Recorder
	stripe   *stripe
	store    *ledger.Store
	random   *rand.Rand

	mu    sync.Mutex
	lines map[string][]string // by function
}

// deploy starts the functions with the environments of the stage's template. The only addition is where Stripe's API
// is, or the tests would call the real one, and pairs of names and values in more.
func deploy(t testing.TB, stage string, more ...string) *deployment {
	t.Helper()
	stack, err := template.Golden(stage)
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{
		TB: t, stage: stage, more: more, live: stage == "prod", stack: stack, recorder: &awslocal.Recorder{}, stripe: newStripe(t),
		random: rand.New(rand.NewPCG(4, 4)), lines: map[string][]string{},
	}
	d.Laptop, err = laptop.Start(t.Context(), laptop.Options{
		Binaries: binaries, Recorder: d.recorder, Environments: d.environments,
		// The schedules would come in between: tasks are asked for one by one.
		SweepEvery: time.Hour, AuditEvery: time.Hour,
		Log: func(function, line string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lines[function] = append(d.lines[function], line)
		},
	})
	if err != nil {
		t.Fatalf("start %s with its template's environment: %v\n%s", stage, err, d.log())
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	d.store = ledger.New(dynamodb.NewFromConfig(d.AWS), d.Names.LedgerTable, time.Now)
	return d
}

// environments puts the secrets where a person would, and resolves the references of the template.
func (d *deployment) environments(ctx context.Context, l *laptop.Laptop) (map[string]map[string]string, error) {
	local := map[template.Part]string{
		template.Ledger: l.Names.LedgerTable, template.Billing: l.Names.BillingTable, template.Control: l.Names.ControlTable,
		template.Queue: l.Names.QueueURL, template.DeadLetterQueue: l.Names.DeadLetterURL,
	}
	d.arns = map[template.Part]string{template.Queue: l.Names.QueueARN, template.DeadLetterQueue: l.Names.DeadLetterARN}
	for _, table := range []template.Part{template.Ledger, template.Billing, template.Control} {
		d.arns[table] = "arn:aws:dynamodb:" + laptop.Region + ":000000000000:table/" + local[table]
	}
	for part, value := range map[template.Part]string{template.SigningSecret: signingSecret, template.StripeKey: stripeKey} {
		created, err := secretsmanager.NewFromConfig(l.AWS).CreateSecret(ctx, &secretsmanager.CreateSecretInput{
			Name: aws.String(string(part)), SecretString: &value,
		})
		if err != nil {
			return nil, err
		}
		local[part], d.arns[part] = *created.ARN, *created.ARN
	}
	d.given = map[string]map[string]string{}
	full := map[string]map[string]string{}
	for _, name := range template.FunctionNames {
		function, err := d.stack.Function(name)
		if err != nil {
			return nil, err
		}
		if d.given[name], err = function.Variables(local); err != nil {
			return nil, err
		}
		full[name] = map[string]string{config.StripeURL: d.stripe.URL}
		for variable, value := range d.given[name] {
			full[name][variable] = value
		}
		for i := 0; i < len(d.more); i += 2 {
			full[name][d.more[i]] = d.more[i+1]
		}
	}
	return full, nil
}

// log is what each function wrote last.
func (d *deployment) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var last []string
	for function, lines := range d.lines {
		for _, line := range lines[max(0, len(lines)-3):] {
			last = append(last, function+" "+line)
		}
	}
	return strings.Join(last, "\n")
}

// logged reports whether the function writes a line with these fields, soon: lines come a moment after answers. Of a
// text, that it holds the one wanted.
func (d *deployment) logged(function string, fields map[string]any) bool {
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		if d.hasLogged(function, fields) {
			return true
		}
	}
	return false
}

func (d *deployment) hasLogged(function string, fields map[string]any) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.lines[function], func(text string) bool {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) != nil {
			return false
		}
		for name, want := range fields {
			part, isText := want.(string)
			whole, _ := line[name].(string)
			if isText && !strings.Contains(whole, part) || !isText && line[name] != want {
				return false
			}
		}
		return true
	})
}

// sample makes a new event of a type, of the stage's own mode. edits are pairs of old and new text.
func (d *deployment) sample(name string, opts events.FreshOptions, edits ...string) sender.Event {
	d.Helper()
	sample, err := events.Sample(name)
	if err != nil {
		d.Fatal(err)
	}
	opts.Rand = d.random
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	body, err := events.Fresh(sample, opts)
	if err != nil {
		d.Fatal(err)
	}
	return d.event(body, edits...)
}

func (d *deployment) event(body []byte, edits ...string) sender.Event {
	d.Helper()
	text := string(body)
	if d.live {
		edits = append([]string{`"livemode": false`, `"livemode": true`}, edits...)
	}
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			d.Fatalf("the event has no %s to change", edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	envelope, err := event.Parse([]byte(text))
	if err != nil {
		d.Fatal(err)
	}
	return sender.Event{ID: envelope.ID, Type: envelope.Type, Key: envelope.Key(""), Body: []byte(text)}
}

// deliver makes events happen at Stripe and posts them; each must be acknowledged.
func (d *deployment) deliver(list ...sender.Event) {
	d.Helper()
	for _, e := range list {
		if err := d.stripe.fake.Register(e.Body); err != nil {
			d.Fatal(err)
		}
	}
	report, err := sender.Send(d.Context(), list, sender.Options{
		Endpoint: d.Endpoint, Secret: signingSecret, Workers: 4, Now: time.Now,
	})
	if err != nil || len(report.Refused) > 0 {
		d.Fatalf("not all were acknowledged: %v %+v\n%s", err, report.Refused, d.log())
	}
}

// await waits until all events have the status, and returns their entries.
func (d *deployment) await(want ledger.Status, list ...sender.Event) []ledger.Entry {
	d.Helper()
	return d.awaitEntries(string(want), func(e ledger.Entry) bool { return e.Status == want }, list...)
}

func (d *deployment) awaitEntries(what string, good func(ledger.Entry) bool, list ...sender.Event) []ledger.Entry {
	d.Helper()
	entries := make([]ledger.Entry, len(list))
	for i, e := range list {
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			entry, err := d.store.Get(d.Context(), ledger.Key(e.Key))
			if err == nil && good(entry) {
				entries[i] = entry
				break
			}
			if time.Since(began) > 30*time.Second {
				d.Fatalf("%s %s is not %s: %+v %v\n%s", e.Type, e.Key, what, entry, err, d.log())
			}
		}
	}
	return entries
}

// run starts the reconciler on a task, as the schedule does.
func (d *deployment) run(task string) {
	d.Helper()
	answer, err := d.Host.Invoke(d.Context(), template.Reconciler, []byte(`{"task":"`+task+`"}`))
	if err != nil || answer.FunctionError != "" {
		d.Fatalf("the reconciler failed on %s: %v %s %s\n%s", task, err, answer.FunctionError, answer.Payload, d.log())
	}
}

// stripe is Stripe's API, where what is delivered has happened. It notes the keys that requests came with.
type stripe struct {
	*httptest.Server
	fake *stripefake.Server

	mu   sync.Mutex
	keys map[string]bool
}

func newStripe(t testing.TB) *stripe {
	s := &stripe{fake: stripefake.New(stripefake.Options{}), keys: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] = true
		s.mu.Unlock()
		s.fake.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// onlyKey reports whether all requests came with this key, and there were some.
func (s *stripe) onlyKey(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) == 1 && s.keys[key]
}
