// Package ledgerbody lets the billing projection read the events it stored before out of the ledger.
package ledgerbody

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/billing"
	"backstop/internal/ledger"
)

// Getter reads an entry with its body; *ledger.Store is one.
type Getter interface {
	Get(ctx context.Context, key ledger.Key) (ledger.Entry, error)
}

// New returns the bodies of a ledger's entries.
func New(entries Getter) billing.Bodies { return bodies{entries} }

type bodies struct{ entries Getter }

// Body implements billing.Bodies. An entry past its time, or whose body cannot be unpacked, has none.
func (b bodies) Body(ctx context.Context, eventKey string) ([]byte, error) {
	entry, err := b.entries.Get(ctx, ledger.Key(eventKey))
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrCodec):
		return nil, billing.ErrNoBody
	case err != nil:
		return nil, fmt.Errorf("read %s from the ledger: %w", eventKey, err)
	}
	return entry.Body, nil
}
