package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"

	"backstop/internal/sender"
	"backstop/internal/stripefake"
)

// tellStripe tells the fake Stripe what happened.
func tellStripe(ctx context.Context, endpoint string, list []sender.Event) error {
	const atOnce = 500
	for chunk := range slices.Chunk(list, atOnce) {
		bodies := make([]json.RawMessage, len(chunk))
		for i, event := range chunk {
			bodies[i] = event.Body
		}
		text, err := json.Marshal(bodies)
		if err != nil {
			return fmt.Errorf("tell the fake Stripe: %w", err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+stripefake.RegisterPath, bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("tell the fake Stripe: %w", err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("tell the fake Stripe: %w", err)
		}
		_ = response.Body.Close() // only the status counts
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("tell the fake Stripe: it answered %d", response.StatusCode)
		}
	}
	return nil
}

// drop returns the events without a share of them, chosen by chance.
func drop(list []sender.Event, share float64, random *rand.Rand) []sender.Event {
	lost := make(map[int]bool)
	for _, i := range random.Perm(len(list))[:int(math.Round(share*float64(len(list))))] {
		lost[i] = true
	}
	kept := make([]sender.Event, 0, len(list))
	for i, event := range list {
		if !lost[i] {
			kept = append(kept, event)
		}
	}
	return kept
}
