package laptop_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/events"
	"backstop/internal/event"
	"backstop/internal/laptop"
	"backstop/internal/laptop/laptoptest"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// binaries holds the functions, built once for all tests.
var binaries string

func TestMain(m *testing.M) { laptoptest.Main(m, &binaries) }

// lines gathers what the functions wrote.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) add(function, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, function+" "+line)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

func start(t *testing.T) (*laptop.Laptop, *lines) {
	t.Helper()
	var log lines
	l, err := laptop.Start(t.Context(), laptop.Options{Binaries: binaries, Log: log.add, SweepEvery: 2 * time.Second})
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

func fresh(t testing.TB, count int, types ...string) []sender.Event {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	list := make([]sender.Event, count)
	for i := range list {
		sample, err := events.Sample(types[i%len(types)])
		if err != nil {
			t.Fatal(err)
		}
		body, err := events.Fresh(sample, events.FreshOptions{Now: time.Now(), Rand: random})
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := event.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = sender.Event{ID: envelope.ID, Type: envelope.Type, Key: envelope.Key(""), Body: body}
	}
	return list
}

func count(t testing.TB, l *laptop.Laptop, list []sender.Event, patience time.Duration) tally.Tally {
	t.Helper()
	db := dynamodb.NewFromConfig(l.AWS)
	counter := tally.Counter{
		Ledger: ledger.New(db, l.Names.LedgerTable, time.Now), Rows: projection.New(db), BillingTable: l.Names.BillingTable,
	}
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = e.Key
	}
	found, err := counter.Await(t.Context(), keys, patience, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Half a minute passes here: the lease of a killed processor has to run out. When it is killed in the moment between
// the receive and its first call, the queue's own time-out has to, which is three minutes.
func TestKilledFunctionsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	l, log := start(t)
	list := fresh(t, 400, "invoice.paid", "customer.subscription.updated", "charge.refunded")
	deliveries := sender.Duplicate(list, 0.05, rand.New(rand.NewPCG(1, 1)))
	if len(deliveries) == len(list) {
		t.Fatal("no event is delivered twice")
	}

	var answered int
	kills := map[int]string{60: laptop.Receiver, 120: laptop.Processor, 180: laptop.Receiver, 240: laptop.Reconciler}
	killed := 0
	report, err := sender.Send(t.Context(), deliveries, sender.Options{
		Endpoint: l.Endpoint, Secret: l.Secrets[0], Retries: 20, Now: time.Now,
		Progress: func(sender.Answer) {
			answered++
			if victim, now := kills[answered]; now {
				for _, pid := range l.Host.PIDs(victim)[:1] {
					if syscall.Kill(pid, syscall.SIGKILL) == nil {
						killed++
					}
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if killed != len(kills) {
		t.Fatalf("%d of %d processes were killed", killed, len(kills))
	}
	if len(report.Acknowledged) != len(list) {
		t.Errorf("%d of %d events were acknowledged", len(report.Acknowledged), len(list))
	}
	found := count(t, l, list, 4*time.Minute)
	if found.Once != len(list) || found.Done != len(list) || !found.Clean() {
		t.Errorf("of %d events: %+v\n%s", len(list), found, tail(log.all(), 20))
	}
}

func TestBadRequestsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	l, log := start(t)
	good := fresh(t, 1, "invoice.paid")[0]
	post := func(body, signature string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.Endpoint, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if signature != "" {
			request.Header.Set("Stripe-Signature", signature)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	for name, status := range map[string]int{
		"no signature":    post(string(good.Body), ""),
		"wrong signature": post(string(good.Body), "t=1,v1=00"),
	} {
		if status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", name, status)
		}
	}
	if n := l.Local.DynamoDB.Items(l.Names.LedgerTable); n != 0 {
		t.Errorf("%d entries are left behind", n)
	}
	// The positive control: the same event, signed, gets in.
	report, err := sender.Send(t.Context(), []sender.Event{good}, sender.Options{Endpoint: l.Endpoint, Secret: l.Secrets[0], Now: time.Now})
	if err != nil || len(report.Acknowledged) != 1 {
		t.Fatalf("the signed event was not acknowledged: %v %+v", err, report)
	}
	if found := count(t, l, []sender.Event{good}, time.Minute); found.Once != 1 {
		t.Errorf("the signed event took effect %d times: %+v\n%s", found.Once, found, log.all())
	}
}

func TestHealthSaysTheRelease(t *testing.T) {
	t.Parallel()
	l, _ := start(t)
	response, err := http.Get(strings.TrimSuffix(l.Endpoint, "/webhooks/stripe") + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var health map[string]any
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || health["version"] != "0.1.0" {
		t.Errorf("GET /health answers %d %v, want 200 and version 0.1.0", response.StatusCode, health)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, _ := start(t)
	var port int
	if _, err := fmt.Sscanf(l.Endpoint, "http://127.0.0.1:%d/", &port); err != nil {
		t.Fatal(err)
	}
	_, err := laptop.Start(t.Context(), laptop.Options{Binaries: filepath.Join(binaries), Port: port, Log: func(string, string) {}})
	if err == nil || !strings.Contains(err.Error(), "is taken") || !strings.Contains(err.Error(), "--port") {
		t.Errorf("a second start on port %d: %v, want an error that names the port and the flag", port, err)
	}
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
