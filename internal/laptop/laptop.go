package laptop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/httpapi"
	"backstop/internal/awslocal/lambda"
	"backstop/internal/awslocal/stack"
	"backstop/internal/config"
	"backstop/internal/schema"
	"backstop/internal/stripefake"
)

// Region is where the local AWS says it is.
const Region = "us-east-1"

// Options say what to start. Binaries is required.
type Options struct {
	Binaries string // the folder Build wrote to

	Port    int // of the webhook; 0: any free one
	AWSPort int // of the local AWS; 0: any free one

	Secrets    []string // signing secrets; empty: one is made up
	StripeKey  string   // optional
	StripeURL  string   // optional: another Stripe API, such as a stub
	FakeStripe bool     // without StripeKey and StripeURL, start a fake of Stripe's API and tell the functions of it
	StripePort int      // of the fake; 0: any free one
	Mode       string   // live or test; empty: both are taken
	Accounts   []string

	Receivers, Processors int           // processes of each; 0: 2
	SweepEvery            time.Duration // 0: a minute, as deployed
	AuditEvery            time.Duration // 0: 15 minutes, as deployed

	// Environments, when set, says what each function gets instead of the laptop's own environment: a test gives
	// them what the deployed ones get. It is called when tables and queues exist and before a function starts.
	Environments func(context.Context, *Laptop) (map[string]map[string]string, error)

	Log      func(function, line string) // every line the functions write
	Recorder *awslocal.Recorder
	Observe  func(*awslocal.Call, int, []byte)
	Now      func() time.Time
}

// Laptop is the running pipeline. Close ends it.
type Laptop struct {
	Endpoint    string // of the webhook
	AWSEndpoint string
	Secrets     []string
	Environment map[string]string // what the functions got
	AWS         aws.Config        // an operator's way in
	Names       stack.Names
	Host        *lambda.Host
	Poller      *lambda.Poller
	Local       *awslocal.Server
	Gateway     *httpapi.Gateway

	StripeEndpoint string             // of the fake; empty: there is none
	Stripe         *stripefake.Server // nil: there is none

	closing   atomic.Bool
	functions []lambda.Function
	servers   []*http.Server
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// Start starts everything and returns when the functions have asked for work.
func Start(ctx context.Context, opts Options) (*Laptop, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if len(opts.Secrets) == 0 {
		opts.Secrets = []string{"whsec_" + rand.Text()}
	}
	l := &Laptop{Secrets: opts.Secrets}
	log := opts.Log
	opts.Log = func(function, line string) {
		if !l.closing.Load() { // what is cut off by Close is nobody's trouble
			log(function, line)
		}
	}
	var work context.Context
	work, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := l.start(ctx, work, opts); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Laptop) start(ctx, work context.Context, opts Options) error {
	front, err := listen(opts.Port, "webhook", "--port")
	if err != nil {
		return err
	}
	l.Endpoint = "http://" + front.Addr().String() + "/webhooks/stripe"
	back, err := listen(opts.AWSPort, "local AWS", "--aws-port")
	if err != nil {
		front.Close()
		return err
	}
	l.AWSEndpoint = "http://" + back.Addr().String()

	l.Local = awslocal.New(awslocal.Options{
		Now: opts.Now, Region: Region, BaseURL: l.AWSEndpoint, Recorder: opts.Recorder, Observe: opts.Observe,
	})
	l.serve(back, l.Local)
	l.AWS = operator(l.AWSEndpoint, "operator")
	if l.Names, err = stack.Create(ctx, l.AWS, "dev"); err != nil {
		front.Close()
		return fmt.Errorf("create the local tables and queues: %w", err)
	}

	if opts.fakesStripe() {
		if opts, err = l.startStripe(opts); err != nil {
			front.Close()
			return err
		}
	}
	if err := l.storeSecrets(ctx); err != nil {
		front.Close()
		return err
	}
	l.Environment = l.environment(opts)
	if err := l.startFunctions(ctx, opts); err != nil {
		front.Close()
		return err
	}
	l.Gateway = httpapi.New(httpapi.Options{
		Invoker: l.Host,
		Routes:  map[string]string{"POST /webhooks/stripe": Receiver, "GET /health": Receiver},
		Now:     opts.Now,
		OnError: func(route string, err error) { opts.Log("httpapi", route+": "+err.Error()) },
	})
	l.serve(front, l.Gateway)
	return l.startSources(work, opts)
}

func (l *Laptop) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	l.servers = append(l.servers, server)
	l.running.Go(func() { _ = server.Serve(listener) }) // it ends with ErrServerClosed, by Close
}

func operator(endpoint, key string) aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider(key, "local", ""),
	}
}

func (l *Laptop) environment(opts Options) map[string]string {
	environment := l.Names.Environment()
	maps.Copy(environment, map[string]string{
		config.Stage:           "dev",
		config.SigningSecretID: signingSecret,
		config.Journal:         "on", // which handles every type there is
		config.EventTypes:      strings.Join(eventTypes(), ","),
	})
	for name, value := range map[string]string{
		config.Mode:      opts.Mode,
		config.StripeKey: opts.StripeKey,
		config.StripeURL: opts.StripeURL,
		config.Accounts:  strings.Join(opts.Accounts, ","),
	} {
		if value != "" {
			environment[name] = value
		}
	}
	return environment
}

func (l *Laptop) startFunctions(ctx context.Context, opts Options) error {
	environments := map[string]map[string]string{}
	for _, name := range functions {
		environments[name] = l.Environment
	}
	if opts.Environments != nil {
		var err error
		if environments, err = opts.Environments(ctx, l); err != nil {
			return fmt.Errorf("make the functions' environments: %w", err)
		}
	}
	function := func(name string, timeout time.Duration, concurrency int) lambda.Function {
		return lambda.Function{
			Name: name, Binary: filepath.Join(opts.Binaries, name, "bootstrap"), Env: environments[name],
			Timeout: timeout, Concurrency: concurrency,
		}
	}
	l.functions = []lambda.Function{
		function(Receiver, schema.ReceiverTimeout, max(opts.Receivers, 2)),
		function(Processor, schema.ProcessorTimeout, max(opts.Processors, 2)),
		function(Reconciler, schema.ReconcilerTimeout, 1),
	}
	host, err := lambda.NewHost(lambda.HostOptions{
		Functions: l.functions,
		Endpoint:  l.AWSEndpoint, Region: Region, Log: opts.Log, Now: opts.Now,
	})
	if err != nil {
		return err
	}
	l.Host = host
	if err := host.Start(ctx); err != nil {
		return fmt.Errorf("start the functions: %w", err)
	}
	return nil
}

func (l *Laptop) startSources(work context.Context, opts Options) error {
	poller, err := lambda.NewPoller(lambda.PollerOptions{
		SQS:     awssqs.NewFromConfig(operator(l.AWSEndpoint, "lambda")),
		Invoker: l.Host, Function: Processor,
		QueueURL: l.Names.QueueURL, QueueARN: l.Names.QueueARN,
		BatchSize: schema.BatchSize, MaximumConcurrency: max(opts.Processors, 2),
		WaitTime: 2 * time.Second, // a pause is felt at once
		OnError:  func(err error) { opts.Log("event source", err.Error()) },
		Now:      opts.Now,
	})
	if err != nil {
		return err
	}
	l.Poller = poller
	l.Local.SetLambda(lambda.NewControl(lambda.ControlOptions{
		Invoker: l.Host, Functions: l.functions, Pollers: []*lambda.Poller{poller},
	}))
	l.running.Go(func() { poller.Run(work) })
	l.schedule(work, `{"task":"sweep"}`, orElse(opts.SweepEvery, time.Minute), opts)
	if l.Environment[config.StripeKey] != "" { // without a key there is nothing to compare with
		l.schedule(work, `{"task":"audit"}`, orElse(opts.AuditEvery, 15*time.Minute), opts)
	}
	return nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func (l *Laptop) schedule(work context.Context, payload string, every time.Duration, opts Options) {
	schedule := lambda.Schedule{
		Invoker: l.Host, Function: Reconciler, Payload: []byte(payload), Every: every,
		OnResult: func(r lambda.Response, err error) {
			if err != nil {
				opts.Log("schedule", err.Error())
			} else if r.FunctionError != "" {
				opts.Log("schedule", "the reconciler failed on "+payload+": "+r.FunctionError)
			}
		},
	}
	l.running.Go(func() { schedule.Run(work) })
}

// Close ends the sources, the front, the functions and the local AWS, in this order, and waits for all of them.
//
// What the functions write from then on is dropped.
func (l *Laptop) Close() error {
	l.closing.Store(true)
	l.stop()
	var problems []error
	if l.Host != nil {
		problems = append(problems, l.Host.Close())
	}
	for _, server := range l.servers {
		problems = append(problems, server.Close())
	}
	l.running.Wait()
	if l.Gateway != nil {
		l.Gateway.Wait()
	}
	return errors.Join(problems...)
}
