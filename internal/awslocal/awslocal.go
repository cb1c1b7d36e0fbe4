package awslocal

import (
	"net/http"
	"sync/atomic"
	"time"

	"backstop/internal/awslocal/dynamodb"
	"backstop/internal/awslocal/secretsmanager"
	"backstop/internal/awslocal/sqs"
)

// Options configure a [Server]; all are optional.
type Options struct {
	Now     func() time.Time // default time.Now
	Region  string           // default us-east-1
	Account string           // default 000000000000
	// BaseURL is where the server is reached, the start of queue URLs and the
	// endpoint of [Config]. Default http://aws.local, which suits in-process
	// use only.
	BaseURL string
	// Intercept is asked about every call before anything happens. It and
	// Observe run on the goroutine that serves the call, an in-process caller's
	// own, with no lock held, so they may block or end that goroutine.
	Intercept func(*Call) Fault
	// Observe sees every answer of a service, also one that is then lost.
	Observe func(call *Call, status int, body []byte)
	// Recorder counts permissions used.
	Recorder *Recorder
}

// Server is the local AWS. Make it with New. Its services can be looked into
// directly; calls that faults and records should see go through the Server.
type Server struct {
	DynamoDB *dynamodb.Server
	SQS      *sqs.Server
	Secrets  *secretsmanager.Server

	opts   Options
	lambda atomic.Pointer[http.Handler]
}

// SetLambda serves the Lambda API with h, a lambda.Control. It comes after New
// because what h controls needs clients of this server. Without it Lambda
// calls are refused.
func (s *Server) SetLambda(h http.Handler) { s.lambda.Store(&h) }

// New returns a local AWS without tables, queues or secrets.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	if opts.BaseURL == "" {
		opts.BaseURL = "http://aws.local"
	}
	return &Server{
		opts:     opts,
		DynamoDB: dynamodb.New(dynamodb.Options{Now: opts.Now, Region: opts.Region, Account: opts.Account}),
		SQS:      sqs.New(sqs.Options{Now: opts.Now, BaseURL: opts.BaseURL, Region: opts.Region, Account: opts.Account}),
		Secrets:  secretsmanager.New(secretsmanager.Options{Now: opts.Now, Region: opts.Region, Account: opts.Account}),
	}
}

func (s *Server) handler(service string) http.Handler {
	switch service {
	case DynamoDB:
		return s.DynamoDB
	case SQS:
		return s.SQS
	case SecretsManager:
		return s.Secrets
	case Lambda:
		if h := s.lambda.Load(); h != nil {
			return *h
		}
	}
	return nil
}
