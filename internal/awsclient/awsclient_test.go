package awsclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, found := values[name]
		return value, found
	}
}

func TestConfigurationComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg, err := New(environment(map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
	}))
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil || credentials.AccessKeyID != "AKID" || credentials.SecretAccessKey != "secret" || credentials.SessionToken != "token" {
		t.Errorf("credentials of %s, %v", credentials.AccessKeyID, err)
	}
	if cfg.Region != "eu-west-1" || cfg.BaseEndpoint != nil {
		t.Errorf("region %s, endpoint %v", cfg.Region, cfg.BaseEndpoint)
	}
	if got := Endpoint(cfg, "sqs"); got != "https://sqs.eu-west-1.amazonaws.com" {
		t.Error(got)
	}
	cfg.Region = "cn-north-1"
	if got := Endpoint(cfg, "dynamodb"); got != "https://dynamodb.cn-north-1.amazonaws.com.cn" {
		t.Error(got)
	}
}

func TestEveryMissingVariableIsNamed(t *testing.T) {
	t.Parallel()
	_, err := New(environment(map[string]string{"AWS_REGION": ""}))
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// transport fails every call the way fail says and counts them.
type transport struct {
	calls atomic.Int64
	fail  func(call int64) error
}

func (tr *transport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, tr.fail(tr.calls.Add(1))
}

var errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

func client(t *testing.T, rt http.RoundTripper) *sqs.Client {
	t.Helper()
	cfg, err := New(environment(map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}))
	if err != nil {
		t.Fatal(err)
	}
	cfg.HTTPClient = &http.Client{Transport: rt, Timeout: tryTimeout}
	return sqs.NewFromConfig(cfg)
}

func send(ctx context.Context, c *sqs.Client, options ...func(*sqs.Options)) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/1/q.fifo"), MessageBody: aws.String("x")}, options...)
	return err
}

// With the SDK's default token bucket, calls after some forty retries would be tried once.
func TestRetriesDoNotRunDryAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{fail: func(int64) error { return errReset }}
		c := client(t, tr)
		for range 100 {
			if err := send(t.Context(), c); err == nil {
				t.Fatal("sent")
			}
		}
		if got := tr.calls.Load(); got != 400 {
			t.Errorf("%d tries of 100 calls, want 400", got)
		}
	})
}

func TestWaitsAreJitteredAndShort(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64]time.Duration{0: 0, 0.5: 350 * time.Millisecond, 0.99: 693 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			tr := &transport{fail: func(int64) error { return errReset }}
			c := client(t, tr)
			start := time.Now()
			err := send(t.Context(), c, func(o *sqs.Options) { o.Retryer = Retryer(func() float64 { return random })() })
			if took := time.Since(start); err == nil || tr.calls.Load() != 4 || took != want {
				t.Errorf("%v: %d tries in %v, want 4 in %v", random, tr.calls.Load(), took, want)
			}
		})
	}
}

func TestHangingTryLeavesTimeForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		hang := roundTrip(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		if err := send(ctx, client(t, hang)); err == nil {
			t.Fatal("sent")
		}
		if got := calls.Load(); got != 3 {
			t.Errorf("%d tries within 8 s, want 3", got)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWarmOpensTheConnectionThatIsUsedAfterwards(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	opened := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a signed request")
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("unknown"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			opened++
		}
	}
	server.Start()
	defer server.Close()
	cfg, err := New(environment(map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": server.URL,
	}))
	if err != nil {
		t.Fatal(err)
	}
	Warm(t.Context(), cfg, "dynamodb")
	response, err := cfg.HTTPClient.Do(must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	mu.Lock()
	defer mu.Unlock()
	if opened != 1 {
		t.Errorf("%d connections opened, want 1", opened)
	}
}

func TestWarmGivesUpAfterASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		Warm(t.Context(), aws.Config{Region: "eu-west-1", HTTPClient: &http.Client{Transport: hang}}, "dynamodb", "sqs")
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func must(r *http.Request, err error) *http.Request {
	if err != nil {
		panic(err)
	}
	return r
}
