package lambda

import (
	"context"
	"time"
)

// Schedule invokes a function at a fixed rate, in the place of EventBridge
// Scheduler with retries off. A run that takes longer than Every delays the
// next instead of overlapping it.
type Schedule struct {
	Invoker  Invoker
	Function string
	Payload  []byte
	Every    time.Duration
	// OnResult hears how each run ended. Default: nothing.
	OnResult func(Response, error)
}

// Run invokes the function every Every, first after one Every, until ctx ends.
func (s Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		resp, err := s.Invoker.Invoke(ctx, s.Function, s.Payload)
		if s.OnResult != nil && ctx.Err() == nil {
			s.OnResult(resp, err)
		}
	}
}
