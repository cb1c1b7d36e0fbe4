package process_test

import (
	"context"
	"encoding/json"
	"sync"

	"backstop/internal/handler"
)

// gauge is how many handlers run at once.
type gauge struct {
	mu             sync.Mutex
	now, mostSoFar int
}

// enter counts one until what it returns is called.
func (g *gauge) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.mostSoFar = max(g.mostSoFar, g.now)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now--
	}
}

func (g *gauge) highest() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mostSoFar
}

// calls collects which events a handler was called for.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) add(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, id)
}

func (c *calls) of(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, other := range c.list {
		if other == id {
			n++
		}
	}
	return n
}

// handle registers a handler for a type that notes its calls and then does f.
func (w *world) listen(typ, name string, f func(ctx context.Context, e handler.Event) ([]handler.Effect, error), options ...handler.Option) *calls {
	seen := &calls{}
	handler.On(&w.registry, typ, name, func(ctx context.Context, e handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
		seen.add(e.ID)
		return f(ctx, e)
	}, options...)
	return seen
}
