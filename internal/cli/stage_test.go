package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/lambda"
	"backstop/internal/awslocal/stack"
	"backstop/internal/config"
	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/stripefake"
	"backstop/internal/telemetry"
)

// stage is a local stack whose processor runs in this process, with one handler the test decides about, and a fake
// Stripe. Commands find it as they find a `backstop dev`: by the file in the folder they run in.
type stage struct {
	*testing.T
	local   devTarget
	ledger  *ledger.Store
	queue   *queue.SQS
	sqs     *sqs.Client
	names   stack.Names
	stripe  *stripefake.Server
	poller  *lambda.Poller
	secrets *secretsmanager.Client

	mu      sync.Mutex
	broken  bool
	handled []string // events the handler was run for to the end, in order
}

// invoker is Lambda with one function.
type invoker struct{ processor *process.Processor }

func (i invoker) Invoke(ctx context.Context, _ string, payload []byte) (lambda.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	answer, err := i.processor.Invoke(ctx, payload)
	if err != nil {
		return lambda.Response{FunctionError: "Unhandled"}, nil
	}
	return lambda.Response{Payload: answer}, nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, stripe: stripefake.New(stripefake.Options{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	address := "http://" + listener.Addr().String()
	server := awslocal.New(awslocal.Options{BaseURL: address})
	s.serve(listener, server)
	cfg := localAWS(address, "us-east-1")
	s.names, err = stack.Create(t.Context(), cfg, "dev")
	s.check(err)
	s.secrets = secretsmanager.NewFromConfig(cfg)
	_, err = s.secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("signing"), SecretString: aws.String("whsec_first")})
	s.check(err)
	stripeListener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	s.serve(stripeListener, s.stripe)

	db := dynamodb.NewFromConfig(cfg)
	s.sqs = sqs.NewFromConfig(cfg)
	s.ledger = ledger.New(db, s.names.LedgerTable, time.Now)
	s.queue = queue.New(s.sqs, s.names.QueueURL, s.names.DeadLetterURL)
	var registry handler.Registry
	handler.On(&registry, "invoice.paid", "mailer", s.handle)
	handler.On(&registry, "charge.refunded", "mailer", s.handle)
	processor, err := process.New(process.Config{
		Ledger: s.ledger, Queue: s.queue, Projector: projection.New(db), Registry: &registry, Breakers: handler.NewBreakers(time.Now),
		Log: telemetry.New(io.Discard, "dev", time.Now), Now: time.Now, Random: rand.Float64, Exit: func() {},
	})
	s.check(err)
	s.poller, err = lambda.NewPoller(lambda.PollerOptions{
		SQS: s.sqs, Invoker: invoker{processor}, Function: "processor", QueueURL: s.names.QueueURL, QueueARN: s.names.QueueARN,
		BatchSize: 10, MaximumConcurrency: 4, WaitTime: time.Second,
	})
	s.check(err)
	server.SetLambda(lambda.NewControl(lambda.ControlOptions{Invoker: invoker{processor}, Pollers: []*lambda.Poller{s.poller}}))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.poller.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })

	environment := s.names.Environment()
	environment[config.Stage] = "dev"
	environment[config.SigningSecretID] = "signing"
	environment[config.StripeURL] = "http://" + stripeListener.Addr().String()
	environment[config.StripeKey] = "rk_test_stage"
	environment[config.EventTypes] = "invoice.paid,charge.refunded"
	s.local = devTarget{AWSEndpoint: address, Region: "us-east-1", StripeEndpoint: environment[config.StripeURL], Environment: environment}
	t.Chdir(t.TempDir())
	s.check(s.local.save())
	return s
}

func (s *stage) serve(listener net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // it ends by Close
	s.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
}

func (s *stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) handle(_ context.Context, ev handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil, handler.Permanent(errors.New("the mailer has a bug"))
	}
	s.handled = append(s.handled, ev.ID)
	return nil, nil
}

func (s *stage) breakHandler(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

func (s *stage) order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.handled...)
}

// body is an event about an object of a customer.
func body(id, typ, customer string, ago time.Duration) json.RawMessage {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","type":%q,"created":%d,"livemode":false,"pending_webhooks":0,"data":{"object":{"id":"in_%s","object":"invoice","customer":%q}}}`,
		id, typ, time.Now().Add(-ago).Unix(), id, customer)
}

// record records an event, as the receiver does; accept also enqueues it.
func (s *stage) record(raw []byte) ledger.Entry {
	s.Helper()
	ev, err := event.Parse(raw)
	s.check(err)
	found, err := s.ledger.Record(s.Context(), ledger.Recording{
		Key: ledger.Key(ev.Key("")), Type: ev.Type, CreatedS: ev.CreatedS, Group: ev.Group, ObjectID: ev.ObjectID,
		Origin: ledger.Webhook, Body: raw, Token: ev.ID,
	})
	s.check(err)
	return found.Entry
}

func (s *stage) accept(raw []byte) {
	s.Helper()
	e := s.record(raw)
	s.check(s.queue.Send(s.Context(), queue.Send{Pointer: queue.Pointer{Key: string(e.Key), Type: e.Type, CreatedS: e.CreatedS}, Group: e.Group}))
}

// await waits until so many entries have a status.
func (s *stage) await(status ledger.Status, n int) []ledger.Entry {
	s.Helper()
	var entries []ledger.Entry
	for range 300 {
		var err error
		entries, _, err = s.ledger.List(s.Context(), func(e ledger.Entry) bool { return e.Status == status }, "", 10_000)
		s.check(err)
		if len(entries) >= n {
			return entries
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("%d entries are %s, want %d", len(entries), status, n)
	return nil
}

// run runs a command line and returns its exit code and what it printed. No secret may be in it.
func (s *stage) run(args ...string) (code int, out, errs string) {
	s.Helper()
	return s.runUntil(s.Context(), args...)
}

// runUntil is run with a context of its own.
func (s *stage) runUntil(ctx context.Context, args ...string) (code int, out, errs string) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	code = run(ctx, args, &env{
		Streams: Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		vars:    func(name string) (string, bool) { return "ada", name == "USER" },
		now:     time.Now,
		sleep:   func(context.Context, time.Duration) error { return nil }, // nobody here keeps a secret in memory
	})
	for _, secret := range []string{"whsec_", "rk_test_stage"} {
		if strings.Contains(stdout.String()+stderr.String(), secret) {
			s.Errorf("%v prints a secret", args)
		}
	}
	return code, stdout.String(), stderr.String()
}

// want runs a command line that must end with a code, and returns what it printed.
func (s *stage) want(code int, args ...string) string {
	s.Helper()
	got, out, errs := s.run(args...)
	if got != code {
		s.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, out, errs)
	}
	return out
}

// read runs a command with --json and reads what it printed.
func read[T any](s *stage, code int, args ...string) T {
	s.Helper()
	var value T
	out := s.want(code, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		s.Fatalf("%v: %v in %s", args, err, out)
	}
	return value
}
