package eventsource

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// service answers the Lambda API by a function, without a socket.
type service func(method, path, body string) string

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, s(r.Method, r.URL.RequestURI(), string(body)))
	return w.Result(), r.Context().Err()
}

func client(s service) *Client {
	return New(lambda.NewFromConfig(aws.Config{
		Region: "us-east-1", HTTPClient: &http.Client{Transport: s},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}))
}

const mapping = `{"UUID":"m-1","State":%q,"FunctionArn":"arn:f","BatchSize":10,"FunctionResponseTypes":["ReportBatchItemFailures"],"ScalingConfig":{"MaximumConcurrency":20}}`

func TestMappingIsFoundByItsQueue(t *testing.T) {
	t.Parallel()
	c := client(func(_, path, _ string) string {
		if !strings.Contains(path, "EventSourceArn=arn%3Aqueue") {
			t.Errorf("asked for %s", path)
		}
		return `{"EventSourceMappings":[` + fmt.Sprintf(mapping, "Enabled") + `]}`
	})
	got, err := c.Find(t.Context(), "arn:queue")
	if want := (Mapping{ID: "m-1", State: "Enabled", Function: "arn:f", BatchSize: 10, ReportsItems: true, MaxConcurrency: 20}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoneOrTwoMappingsAreNotGuessedAbout(t *testing.T) {
	t.Parallel()
	one := fmt.Sprintf(mapping, "Enabled")
	for n, list := range map[int]string{0: "", 2: one + "," + one} {
		c := client(func(string, string, string) string { return `{"EventSourceMappings":[` + list + `]}` })
		if _, err := c.Find(t.Context(), "arn:queue"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d mappings", n)) {
			t.Errorf("%d: got %v", n, err)
		}
	}
}

func TestSwitchingWaitsUntilItIsSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looked := 0
		c := client(func(method, _, body string) string {
			if method == http.MethodPut {
				if !strings.Contains(body, `"Enabled":false`) {
					t.Errorf("asked for %s", body)
				}
				return fmt.Sprintf(mapping, "Disabling")
			}
			if looked++; looked < 3 {
				return fmt.Sprintf(mapping, "Disabling")
			}
			return fmt.Sprintf(mapping, "Disabled")
		})
		start := time.Now()
		if err := c.Switch(t.Context(), "m-1", false); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestSwitchingGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second+time.Second/2) // between two looks
		defer cancel()
		err := client(func(string, string, string) string { return fmt.Sprintf(mapping, "Enabling") }).Switch(ctx, "m-1", true)
		if err == nil || !strings.Contains(err.Error(), "Enabl") {
			t.Errorf("got %v", err)
		}
	})
}
