package billing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"backstop/events"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

// BenchmarkStories reports what an event of each story costs in effects: write units of the table, and of its index.
func BenchmarkStories(b *testing.B) {
	for _, s := range stories(b) {
		b.Run(s.Name, func(b *testing.B) {
			list := storyEvents(b, s)
			var table, index float64
			for b.Loop() {
				m := &meter{}
				w := newWorld(b, nil, m.option)
				for _, e := range list {
					if err := w.deliver(e); err != nil && handler.Classify(err).Verdict != handler.Skips {
						b.Fatal(err)
					}
				}
				table, index = m.table, m.index
			}
			b.ReportMetric(table/float64(len(list)), "table-WU/event")
			b.ReportMetric(index/float64(len(list)), "index-WU/event")
		})
	}
}

// BenchmarkDispatch is what stands between an event and its effects: reading the envelope, decoding the object and
// making the row.
func BenchmarkDispatch(b *testing.B) {
	for _, eventType := range []string{"invoice.paid", "customer.subscription.updated", "charge.succeeded", "customer.updated"} {
		b.Run(eventType, func(b *testing.B) {
			w := newWorld(b, nil)
			body, err := events.Sample(eventType)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				e := handlertest.Event(b, body)
				for _, h := range w.registry.For(e.Type) {
					if _, err := h.Run(context.Background(), e); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// meter adds up the write units of updates.
type meter struct {
	table, index float64
	largest      float64 // of one write of the table
}

func (m *meter) option(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			update, isUpdate := in.Parameters.(*dynamodb.UpdateItemInput)
			if isUpdate {
				update.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
			}
			out, metadata, err := next.HandleInitialize(ctx, in)
			var failed *types.ConditionalCheckFailedException
			switch {
			case isUpdate && errors.As(err, &failed):
				m.table++ // billed as a write of the row it met, which is one unit in the stories
			case isUpdate && err == nil:
				used := out.Result.(*dynamodb.UpdateItemOutput).ConsumedCapacity
				m.table += *used.Table.CapacityUnits
				m.largest = max(m.largest, *used.Table.CapacityUnits)
				for _, index := range used.GlobalSecondaryIndexes {
					m.index += *index.CapacityUnits
				}
			}
			return out, metadata, err
		}), middleware.Before)
	})
}

func TestRowsOfOrdinarySizeAreOneWriteUnit(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		m := &meter{}
		w := newWorld(t, nil, m.option)
		for _, e := range storyEvents(t, s) {
			if err := w.deliver(e); err != nil && handler.Classify(err).Verdict != handler.Skips {
				t.Fatal(err)
			}
		}
		if want := writeUnits[s.Name]; m.largest > max(want, 1) {
			t.Errorf("%s: a row took %v write units, want %v", s.Name, m.largest, max(want, 1))
		}
	}
}

// writeUnits names the stories with a larger row.
var writeUnits = map[string]float64{
	"refund-parts": 2, // an intent, a charge and three refunds, each with its version
}
