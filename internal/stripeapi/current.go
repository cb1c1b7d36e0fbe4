package stripeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/handler"
)

// Current reads an event's object as Stripe has it now, in the event's account: for a handler that wants to know how
// things are rather than how they were. T is one of stripe-go's types, a type of the handler's own, or
// json.RawMessage. Of a thin event it reads the related object.
//
// A handler runs in its customer's turn, so what it reads here is no older than any event it was given before. What
// changes later has an event of its own.
//
// Errors are those of Object. An object that was deleted reads as Stripe says it: mostly with deleted true, else
// ErrMissing.
func Current[T any](ctx context.Context, c *Client, e handler.Event) (*T, error) {
	raw, err := c.current(ctx, e)
	if err != nil {
		return nil, err
	}
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode Stripe's answer: it does not fit a %T", *object)
	}
	return object, nil
}

func (c *Client) current(ctx context.Context, e handler.Event) (json.RawMessage, error) {
	if e.Thin {
		return c.Related(ctx, e.Account, e.RelatedObject().URL)
	}
	var object struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	if err := json.Unmarshal(e.Object, &object); err != nil || object.ID == "" {
		return nil, errors.New("read the event's object from Stripe: it has no id")
	}
	return c.Object(ctx, e.Account, object.Object, object.ID)
}
