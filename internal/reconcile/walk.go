package reconcile

import (
	"context"

	"backstop/internal/ledger"
)

// walk goes through several partitions of the open index as if they were one, oldest entry first: entries of one
// message group lie in all of them, and enqueueing partition by partition would put the younger before the older.
type walk struct {
	ledger  Ledger
	until   int64 // RecordedMS of the youngest entry wanted
	streams []*stream
	ended   bool // nothing wanted is left
}

// stream is one partition while it is walked.
type stream struct {
	partition string
	page      []ledger.Open // what is left of the page in hand
	start     ledger.Cursor // where that page began
	next      ledger.Cursor // where the one after begins
	read      bool          // a page was read
}

func streams(partitions []string, cursors map[string]ledger.Cursor) []*stream {
	list := make([]*stream, len(partitions))
	for i, partition := range partitions {
		list[i] = &stream{partition: partition, start: cursors[partition], next: cursors[partition]}
	}
	return list
}

// places says where to begin so that nothing from here on is left out. A page that is partly walked is read again.
func (w *walk) places() map[string]ledger.Cursor {
	cursors := make(map[string]ledger.Cursor)
	for _, s := range w.streams {
		place := s.start
		if len(s.page) == 0 {
			place = s.next
		}
		if place != "" {
			cursors[s.partition] = place
		}
	}
	return cursors
}

// batch returns the next keys, at most a page, oldest first.
func (w *walk) batch(ctx context.Context) ([]ledger.Key, error) {
	var keys []ledger.Key
	for len(keys) < page {
		var oldest *stream
		for _, s := range w.streams {
			if err := w.fill(ctx, s); err != nil {
				return nil, err
			}
			if len(s.page) > 0 && (oldest == nil || s.page[0].RecordedMS < oldest.page[0].RecordedMS) {
				oldest = s
			}
		}
		if oldest == nil || oldest.page[0].RecordedMS > w.until {
			w.ended = true
			break
		}
		keys = append(keys, oldest.page[0].Key)
		oldest.page = oldest.page[1:]
	}
	return keys, nil
}

// fill reads the partition's next page when the one in hand is used up.
func (w *walk) fill(ctx context.Context, s *stream) error {
	for len(s.page) == 0 && (!s.read || s.next != "") {
		open, next, err := w.ledger.Open(ctx, s.partition, s.next, page)
		if err != nil {
			return err
		}
		s.page, s.start, s.next, s.read = open, s.next, next, true
	}
	return nil
}
