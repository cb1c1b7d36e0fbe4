package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"backstop/internal/signature"
)

// probe is a body that is signed and is no event: the receiver checks the signature first, so that its reason for
// refusing tells whether it took the secret. Nothing is recorded.
const probe = `{"object":"backstop.probe"}`

// Probe returns a function that asks a receiver whether it takes deliveries signed with a secret.
func Probe(client *http.Client, now func() time.Time) func(ctx context.Context, url, secret string) (bool, error) {
	return func(ctx context.Context, url, secret string) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(probe)))
		if err != nil {
			return false, fmt.Errorf("make the request: %w", err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(signature.Header, signature.Sign(secret, []byte(probe), now()))
		response, err := client.Do(request)
		if err != nil {
			return false, fmt.Errorf("reach the receiver: %w", err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		if err != nil {
			return false, fmt.Errorf("read the receiver's answer: %w", err)
		}
		if response.StatusCode != http.StatusBadRequest {
			return false, fmt.Errorf("the receiver answered %d, which a probe should not be answered", response.StatusCode)
		}
		return strings.Contains(string(answer), `"not_an_event"`), nil
	}
}
