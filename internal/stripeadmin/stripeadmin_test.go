package stripeadmin_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/stripeadmin"
)

// mock is where stripe-mock listens, which checks every request against Stripe's own description of its API.
var mock string

func TestMain(m *testing.M) {
	code, err := withMock(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withMock runs a function while stripe-mock, built from the module's own pin, listens.
func withMock(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "stripe-mock-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "stripe-mock")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/stripe/stripe-mock").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build stripe-mock: %w\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return 0, err
	}
	cmd := exec.Command(binary, "-http-addr", address, "-https-addr", "127.0.0.1:") // else it takes 12112 of all addresses
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start stripe-mock: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its end is ours
	}()
	mock = "http://" + address
	for range 100 {
		if response, err := http.Get(mock); err == nil {
			return run(), response.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, fmt.Errorf("stripe-mock does not answer at %s", mock)
}

var wanted = stripeadmin.Wanted{Stage: "test", URL: "https://example.test/webhooks/stripe", Types: []string{"invoice.paid", "charge.refunded"}}

// Every call is made as Stripe's description of its API wants it: stripe-mock refuses unknown parameters and wrong types.
func TestStripesOwnDescriptionTakesEveryCall(t *testing.T) {
	t.Parallel()
	client := stripeadmin.New(mock, "sk_test_1")
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"list":   func() error { _, err := client.List(ctx); return err },
		"update": func() error { _, err := client.Update(ctx, "we_1", wanted); return err },
		"live":   func() error { _, err := client.GoLive(ctx, "we_1", wanted, time.Now()); return err },
		"mark":   func() error { return client.Succeeded(ctx, "we_1") },
		"delete": func() error { return client.Delete(ctx, "we_1") },
		"pending": func() error {
			_, err := client.Pending(ctx, time.Now(), time.Now())
			return err
		},
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Its fixture holds no secret, which is what Create asks for; every parameter was taken before.
	for _, w := range []stripeadmin.Wanted{wanted, {Stage: "test", URL: wanted.URL, Types: wanted.Types, Connect: true}} {
		if _, secret, err := client.Create(ctx, w, ""); err != nil && !strings.Contains(err.Error(), "holds no secret") {
			t.Errorf("create: %q, %v", secret, err)
		}
	}
}

func TestIdleTypeIsOneThatStripeHas(t *testing.T) {
	t.Parallel()
	client := stripeadmin.New(mock, "sk_test_1")
	if _, _, err := client.Create(t.Context(), wanted, "we_1"); err != nil && !strings.Contains(err.Error(), "holds no secret") {
		t.Errorf("got %v", err)
	}
	// The control: a type that Stripe does not have is refused.
	unknown := wanted
	unknown.Types = []string{"dance.party"}
	if _, err := client.Update(t.Context(), "we_1", unknown); err == nil {
		t.Error("a type that does not exist is taken")
	}
}

func TestEndedContextEndsTheCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stripeadmin.New(mock, "sk_test_1").List(ctx); err == nil {
		t.Error("no error")
	}
}
