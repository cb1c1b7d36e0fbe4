package billing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/projection"
	"backstop/internal/stripeapi"
)

// source is where a snapshot comes from. eventType is empty for an object read from the API.
type source struct {
	account   string
	eventType string
}

// fact is one snapshot, ready to be projected.
type fact struct {
	object string // Stripe's kind, for the API
	id     string // of the object
	row    string // the id its row is keyed by, mostly the same
	kind   string // of the row
	part   string // of the row, when the object is only one of those that feed it

	set      handler.Row
	rank     int
	terminal bool
	first    bool // the event is the object's first: the pointer to its row is written, if it has none of its own
}

// snapshot knows how to read one kind of object into facts.
type snapshot[T any] struct {
	read func(source, *T) (fact, error)

	// complete reads what Stripe cut from an embedded list, reporting whether anything was changed. nil: no lists.
	complete func(context.Context, Stripe, string, *T) (bool, error)

	// fetch reads the object as it is now. nil: by its kind and id.
	fetch func(context.Context, Stripe, string, fact) (*T, error)

	// then names the rows that follow. nil: none.
	then func(p *projector, e handler.Event, f fact) func(context.Context, handler.Row) ([]handler.Project, error)
}

type projector struct{ Config }

// on registers the projection of one event type.
func on[T any](r *handler.Registry, p *projector, eventType string, s snapshot[T]) {
	handler.On(r, eventType, Name, func(ctx context.Context, e handler.Event, object *T) ([]handler.Effect, error) {
		return project(ctx, p, s, e, object)
	})
}

func project[T any](ctx context.Context, p *projector, s snapshot[T], e handler.Event, object *T) ([]handler.Effect, error) {
	if object == nil {
		return nil, handler.Skip("the event carries no snapshot")
	}
	src := source{e.Account, e.Type}
	sent, err := s.read(src, object)
	if err != nil {
		return nil, err
	}
	f, err := s.completed(ctx, p, src, object, sent)
	if err != nil {
		return nil, err
	}
	effect := handler.Project{
		Table:    p.Table,
		Key:      key(e.Account, f.row, f.kind),
		Set:      f.set,
		Version:  handler.Version{CreatedS: e.CreatedS, Rank: f.rank, EventID: e.ID},
		Part:     f.part,
		Terminal: f.terminal,
		Decide: func(ctx context.Context, stored handler.Stored) (handler.Decision, error) {
			return decide(ctx, p, e, f, stored)
		},
		Refetch: func(ctx context.Context) (handler.Fresh, error) { return refetch(ctx, p, s, src, f) },
	}
	if s.then != nil {
		effect.Then = s.then(p, e, f)
	}
	effects := []handler.Effect{effect}
	if f.first && f.row != f.id {
		effects = append(effects, handler.Project{
			Table:   p.Table,
			Key:     key(e.Account, f.id, kindPointer),
			Set:     handler.Row{attrRow: f.row, attrRowKind: f.kind},
			Version: effect.Version,
			Decide:  keepLater,
		})
	}
	return effects, nil
}

// keepLater decides ties between facts that say the same.
func keepLater(context.Context, handler.Stored) (handler.Decision, error) { return handler.Newer, nil }

// completed returns the fact of the object with its lists completed, or as sent where they cannot be.
func (s snapshot[T]) completed(ctx context.Context, p *projector, src source, object *T, sent fact) (fact, error) {
	if s.complete == nil || p.Stripe == nil {
		return sent, nil
	}
	changed, err := s.complete(ctx, p.Stripe, src.account, object)
	switch {
	case unreadable(err):
		return sent, nil
	case err != nil:
		return fact{}, err
	case !changed:
		return sent, nil
	}
	return s.read(src, object)
}

// unreadable reports whether Stripe will not tell, now or later: no key, no such object, no permission. A key that is
// refused altogether is an outage instead: it is noticed and put right, and nothing was lost meanwhile.
func unreadable(err error) bool {
	if errors.Is(err, stripeapi.ErrNoKey) {
		return true
	}
	var refused *stripeapi.Error
	if !errors.As(err, &refused) {
		return false
	}
	return refused.Status == 400 || refused.Status == 403 || refused.Status == 404
}

// refetch reads the object as Stripe has it now.
func refetch[T any](ctx context.Context, p *projector, s snapshot[T], src source, f fact) (handler.Fresh, error) {
	if p.Stripe == nil {
		return handler.Fresh{}, handler.ErrNoRefetch
	}
	object, err := s.fetched(ctx, p.Stripe, src.account, f)
	if unreadable(err) {
		return handler.Fresh{}, fmt.Errorf("%w: %w", handler.ErrNoRefetch, err)
	}
	if err != nil {
		return handler.Fresh{}, err
	}
	src.eventType = ""
	now, err := s.read(src, object)
	if err != nil {
		return handler.Fresh{}, fmt.Errorf("read the object of Stripe's answer: %w", err)
	}
	now, err = s.completed(ctx, p, src, object, now)
	if err != nil {
		return handler.Fresh{}, err
	}
	return handler.Fresh{Set: now.set, Terminal: now.terminal}, nil
}

func (s snapshot[T]) fetched(ctx context.Context, api Stripe, account string, f fact) (*T, error) {
	if s.fetch != nil {
		return s.fetch(ctx, api, account, f)
	}
	raw, err := api.Object(ctx, account, f.object, f.id)
	if err != nil {
		return nil, err
	}
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode Stripe's %s: it is of a shape not known", f.object)
	}
	return object, nil
}

// decide orders two facts of one second and rank; see the package documentation.
func decide(ctx context.Context, p *projector, e handler.Event, f fact, stored handler.Stored) (handler.Decision, error) {
	if sameRow(stored.Row, f.set) && !unsure(stored.Row, f.part) {
		// Nothing is at stake, however many tied. The larger id stands, so that every order of arrival ends alike.
		if stored.Version.EventID < e.ID {
			return handler.Newer, nil
		}
		return handler.Older, nil
	}
	if len(stored.Ties) > 0 || p.Bodies == nil {
		return handler.Unsure, nil
	}
	body, err := p.Bodies.Body(ctx, stored.EventKey)
	if errors.Is(err, ErrNoBody) {
		return handler.Unsure, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the event that is stored: %w", err)
	}
	envelope, err := event.Parse(body)
	if err != nil {
		return handler.Unsure, nil
	}
	newer := matches(e.Previous, envelope.Object)
	older := matches(envelope.Previous, e.Object)
	switch {
	case newer && !older:
		return handler.Newer, nil
	case older && !newer:
		return handler.Older, nil
	}
	return handler.Unsure, nil
}

// sameRow reports whether a row says already what a fact would set.
func sameRow(row, set handler.Row) bool {
	for name, value := range set {
		if !reflect.DeepEqual(row[name], value) {
			return false
		}
	}
	return true
}

// unsure reports whether the order of what the part holds is not known.
func unsure(row handler.Row, part string) bool {
	return slices.ContainsFunc(projection.Facts(row), func(f projection.Standing) bool { return f.Part == part && f.Unsure })
}
