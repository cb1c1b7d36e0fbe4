package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"

	"backstop/internal/sender"
	"backstop/internal/stripefake"
)

// atOnce is how many events one request tells of: some megabytes.
const atOnce = 500

// tellStripe tells the fake Stripe what happened.
func tellStripe(ctx context.Context, endpoint string, list []sender.Event) error {
	for chunk := range slices.Chunk(list, atOnce) {
		bodies := make([]json.RawMessage, len(chunk))
		for i, event := range chunk {
			bodies[i] = event.Body
		}
		if err := tell(ctx, endpoint+stripefake.RegisterPath, bodies); err != nil {
			return err
		}
	}
	return nil
}

// tellDelivered tells it what has been acknowledged.
func tellDelivered(ctx context.Context, endpoint string, acknowledged map[string]bool) error {
	return tell(ctx, endpoint+stripefake.DeliveredPath, slices.Sorted(maps.Keys(acknowledged)))
}

func tell(ctx context.Context, url string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("tell the fake Stripe: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
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
