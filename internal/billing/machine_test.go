package billing_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/billing"
	"backstop/internal/handler"
	"backstop/internal/schema"
)

// machine runs orders of delivery over the real store. What an event does depends on nothing but the event and the
// partitions it touches, all of which go through the store's keys, so a step that was taken once from a state of those
// partitions is not taken again: it is looked up. That makes hundreds of thousands of orders affordable without a
// second implementation of anything.
type machine struct {
	w       *world
	list    []handler.Event
	touches [][]string // partitions by event

	states map[string]int // a partition's rows as text, to its number
	rows   [][]map[string]types.AttributeValue
	table  []map[string]types.AttributeValue // what is in it
	steps  map[string][]int                  // event and states before, to states after
	ends   map[string]bool                   // states of all partitions, to whether a row is unsure
}

func newMachine(t testing.TB, list []handler.Event, api billing.Stripe) *machine {
	t.Helper()
	m := &machine{
		w: newWorld(t, api), list: list, states: map[string]int{}, steps: map[string][]int{}, ends: map[string]bool{},
	}
	m.intern(nil)
	for _, e := range list {
		m.w.bodies.byID[e.ID] = e.Body
		touched := map[string]bool{}
		for _, h := range m.w.registry.For(e.Type) {
			effects, err := h.Run(context.Background(), e)
			if err != nil && handler.Classify(err).Verdict != handler.Skips {
				t.Fatal(err)
			}
			for _, effect := range effects {
				touched[effect.(handler.Project).Key[schema.PK]] = true
			}
		}
		m.touches = append(m.touches, slices.Sorted(maps.Keys(touched)))
	}
	return m
}

// run delivers the events in this order and returns the states of the partitions.
func (m *machine) run(order []int) map[string]int {
	m.w.Helper()
	now := map[string]int{}
	for _, n := range order {
		key := []byte{byte(n)}
		for _, pk := range m.touches[n] {
			key = append(key, byte(now[pk]), byte(now[pk]>>8))
		}
		after, known := m.steps[string(key)]
		if !known {
			after = m.take(n, now)
			m.steps[string(key)] = after
		}
		for i, pk := range m.touches[n] {
			now[pk] = after[i]
		}
	}
	return now
}

// take takes a step for real: the touched partitions are put into their state, and nothing else is in the table.
func (m *machine) take(n int, now map[string]int) []int {
	m.w.Helper()
	m.load(m.touches[n], now)
	if err := m.w.deliver(m.list[n]); err != nil && handler.Classify(err).Verdict != handler.Skips {
		m.w.Fatal(err)
	}
	m.table = m.all()
	var after []int
	total := 0
	for _, pk := range m.touches[n] {
		rows := partition(m.table, pk)
		after = append(after, m.intern(rows))
		total += len(rows)
	}
	if len(m.table) != total {
		m.w.Fatalf("%s: %d rows in the table, %d in the partitions it touches", m.list[n].Type, len(m.table), total)
	}
	return after
}

// end loads the states an order ended in and calls check with the table that holds them, once for each end. It
// reports whether any row is unsure.
func (m *machine) end(now map[string]int, check func(unsure bool)) bool {
	m.w.Helper()
	pks := slices.Sorted(maps.Keys(now))
	var key []byte
	for _, pk := range pks {
		key = append(key, byte(now[pk]), byte(now[pk]>>8))
	}
	unsure, known := m.ends[string(key)]
	if known {
		return unsure
	}
	m.load(pks, now)
	for _, item := range m.table {
		for name := range item {
			unsure = unsure || strings.HasPrefix(name, "order_unsure")
		}
	}
	m.ends[string(key)] = unsure
	check(unsure)
	return unsure
}

func (m *machine) load(pks []string, now map[string]int) {
	m.w.Helper()
	ctx := context.Background()
	for _, item := range m.table {
		key := map[string]types.AttributeValue{schema.PK: item[schema.PK], schema.SK: item[schema.SK]}
		if _, err := m.w.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &m.w.table, Key: key}); err != nil {
			m.w.Fatal(err)
		}
	}
	m.table = nil
	for _, pk := range pks {
		for _, item := range m.rows[now[pk]] {
			m.table = append(m.table, item)
			if _, err := m.w.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &m.w.table, Item: item}); err != nil {
				m.w.Fatal(err)
			}
		}
	}
}

func (m *machine) all() []map[string]types.AttributeValue {
	m.w.Helper()
	out, err := m.w.db.Scan(context.Background(), &dynamodb.ScanInput{TableName: &m.w.table})
	if err != nil {
		m.w.Fatal(err)
	}
	return out.Items
}

func partition(items []map[string]types.AttributeValue, pk string) []map[string]types.AttributeValue {
	return slices.DeleteFunc(slices.Clone(items), func(item map[string]types.AttributeValue) bool {
		return item[schema.PK].(*types.AttributeValueMemberS).Value != pk
	})
}

// intern returns the number of a partition's rows.
func (m *machine) intern(rows []map[string]types.AttributeValue) int {
	slices.SortFunc(rows, func(a, b map[string]types.AttributeValue) int {
		return strings.Compare(a[schema.SK].(*types.AttributeValueMemberS).Value, b[schema.SK].(*types.AttributeValueMemberS).Value)
	})
	text, err := json.Marshal(rows)
	if err != nil {
		m.w.Fatal(err)
	}
	n, known := m.states[string(text)]
	if !known {
		n = len(m.rows)
		m.states[string(text)] = n
		m.rows = append(m.rows, rows)
	}
	return n
}
