// Package awsclient builds the AWS configuration of a function by hand.
//
// config.LoadDefaultConfig looks for credentials and settings in files, single sign-on, containers and instance
// metadata. A function has all of it in its environment (AWS Lambda Developer Guide, "Using Lambda environment
// variables"), and the search costs 2 MB of binary and milliseconds of every start.
//
// # Retries
//
// The SDK's standard retryer has a token bucket: a retry takes 5 to 14 of 500 tokens, and only a success gives some
// back. It protects a service from a fleet that hammers it. Here it does harm: the bucket does not refill with time,
// an instance that lives through an outage comes out of it with an empty bucket, and from then on one lost reply is an
// error at once, however long ago the outage was. So the bucket is off (ratelimit.None), and the number of tries is
// what bounds the load: Attempts, with full jitter, and whoever called tries the whole delivery or message again later
// with a backoff of their own.
//
// # Time
//
// One try may take tryTimeout, whatever the context still allows: a connection that hangs must leave time for another
// try before the delivery is due.
package awsclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"backstop/internal/config"
)

// Names of the environment variables Lambda sets, and the SDKs' standard one for another endpoint.
const (
	accessKeyID     = "AWS_ACCESS_KEY_ID"
	secretAccessKey = "AWS_SECRET_ACCESS_KEY"
	sessionToken    = "AWS_SESSION_TOKEN"
	region          = "AWS_REGION"
	endpointURL     = "AWS_ENDPOINT_URL"
)

const (
	// Attempts is how often a call is tried: three tries that each fail once in a hundred times leave one in a
	// million; the fourth is for a throttle that needs a moment longer.
	Attempts = 4

	// The wait after the n-th try is anything up to baseBackoff x 2^n, at most maxBackoff: 100, 200 and 400 ms, so that
	// four quick failures take 350 ms on average. The SDK's own backoff counts in whole seconds and, bounded below one,
	// has no jitter left.
	baseBackoff = 50 * time.Millisecond
	maxBackoff  = 500 * time.Millisecond

	// tryTimeout is over a hundred times what DynamoDB and SQS usually take, and lets two hanging tries and a good
	// one fit in a receiver's 10 s.
	tryTimeout = 3 * time.Second

	// idlePerHost is how many connections to one service are kept: a batch of ten groups works on each in parallel,
	// with room for its settles.
	idlePerHost = 32

	// warmTimeout bounds Warm: an unreachable service must not eat the 10 s of a function's init phase.
	warmTimeout = time.Second
)

// New returns the configuration from a function's environment variables. All of them that are missing are named.
func New(vars config.Vars) (aws.Config, error) {
	var problems []error
	get := func(name string, required bool) string {
		value, _ := vars(name)
		if value == "" && required {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
		return value
	}
	credentials := aws.Credentials{
		AccessKeyID:     get(accessKeyID, true),
		SecretAccessKey: get(secretAccessKey, true),
		SessionToken:    get(sessionToken, false),
		Source:          "environment",
	}
	cfg := aws.Config{
		Region:     get(region, true),
		HTTPClient: newHTTPClient(),
		Retryer:    Retryer(rand.Float64),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
		// An account's own endpoint would be another host than the one Warm opens connections to.
		AccountIDEndpointMode: aws.AccountIDEndpointModeDisabled,
	}
	if endpoint := get(endpointURL, false); endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	if err := errors.Join(problems...); err != nil {
		return aws.Config{}, fmt.Errorf("read the AWS environment: %w", err)
	}
	return cfg, nil
}

// Retryer returns the retry policy of every client, with a source of numbers in [0, 1): simulations give their own.
func Retryer(random func() float64) func() aws.Retryer {
	return func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = Attempts
			o.MaxBackoff = maxBackoff
			o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
				bound := min(baseBackoff<<min(attempt, Attempts), maxBackoff)
				return time.Duration(random() * float64(bound)), nil
			})
			o.RateLimiter = ratelimit.None
		})
	}
}

// newHTTPClient returns a client that keeps connections and resumes TLS sessions, which matters after an instance was
// frozen for longer than a service keeps an idle connection.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: tryTimeout,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: warmTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: warmTimeout,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(8)},
			MaxIdleConns:        2 * idlePerHost,
			MaxIdleConnsPerHost: idlePerHost,
			IdleConnTimeout:     90 * time.Second,
		},
		// The services do not redirect; a signed request must not follow one to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Warm opens a connection to each of the services, by their endpoint prefix ("dynamodb", "sqs"), in parallel, so that
// the first delivery after a cold start does not wait for name resolution and TLS handshakes at a fraction of a CPU.
// It sends an unsigned GET of "/", which needs no right and changes nothing; DynamoDB answers it with its health, the
// others with an error. Only the connection counts: what goes wrong is ignored, and the real call reports it.
func Warm(ctx context.Context, cfg aws.Config, services ...string) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	var group sync.WaitGroup
	for _, service := range services {
		group.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, Endpoint(cfg, service)+"/", nil)
			if err != nil {
				return
			}
			response, err := cfg.HTTPClient.Do(request)
			if err != nil {
				return
			}
			// Read to the end, the connection goes back to the pool.
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
			_ = response.Body.Close()
		})
	}
	group.Wait()
}

// Endpoint returns the base URL of a service, without a slash at its end.
func Endpoint(cfg aws.Config, service string) string {
	if cfg.BaseEndpoint != nil {
		return strings.TrimRight(*cfg.BaseEndpoint, "/")
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(cfg.Region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return "https://" + service + "." + cfg.Region + "." + domain
}
