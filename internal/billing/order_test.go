package billing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"backstop/events"
	"backstop/internal/billing"
	"backstop/internal/handler"
)

// randomOrders is how many orders of a story of more than seven events are tried; of shorter ones it is all.
const randomOrders = 5000

// TestAllOrdersEndInTheSameRows is the promise of the projection, for every story. In every order one event is
// delivered twice.
//
// As the story is, DESIGN's rule decides every order from the events alone. With two neighbours, or the whole story, moved
// into one second an order ends in the final state or a row says order_unsure; with Stripe answering refetches it ends
// in the final state.
func TestAllOrdersEndInTheSameRows(t *testing.T) {
	t.Parallel()
	var orders, steps, left, asked atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d orders of %d stories run, through %d different steps; %d unsure without a key, %d reads of Stripe with one",
			orders.Load(), len(stories(t)), steps.Load(), left.Load(), asked.Load())
		if left.Load() == 0 || asked.Load() == 0 {
			t.Error("no order needed Stripe: the suite tries too little")
		}
	})
	for _, s := range stories(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			suite := &suite{TB: t, story: s, list: storyEvents(t, s)}
			all := ordersOf(len(s.Events))
			if unsure := suite.run("alone", suite.list, nil, all); unsure > 0 {
				t.Errorf("%d of the story's own %d orders are unsure: DESIGN's rule decides them all", unsure, len(all))
			}
			some := all
			if len(some) > 1000 {
				some = all[:1000]
			}
			pairs := suite.list[1:]
			if underRace {
				pairs, all = nil, some[:min(len(some), 200)]
			}
			for i := range pairs {
				name := fmt.Sprintf("event %d within the second of event %d, ", i+1, i)
				squeezed := slices.Clone(suite.list)
				squeezed[i+1].CreatedS = squeezed[i].CreatedS
				left.Add(int64(suite.run(name+"alone", squeezed, nil, some)))
				suite.run(name+"asking", squeezed, stubOf(s), some)
			}
			second := slices.Clone(suite.list)
			for i := range second {
				second[i].CreatedS = second[0].CreatedS
			}
			left.Add(int64(suite.run("all within one second, alone", second, nil, all)))
			suite.run("all within one second, asking", second, stubOf(s), all)
			orders.Add(suite.orders)
			steps.Add(suite.steps)
			asked.Add(suite.asked)
		})
	}
}

type suite struct {
	testing.TB
	story events.Story
	list  []handler.Event

	orders, steps, asked int64
}

// run delivers a list of events in orders, and returns how many ended unsure. api may be nil.
func (s *suite) run(name string, list []handler.Event, api *stub, orders [][]int) (unsure int) {
	s.Helper()
	var asked billing.Stripe
	if api != nil {
		asked = api
	}
	m := newMachine(s, list, asked)
	random := rand.New(rand.NewPCG(uint64(len(orders)), 1))
	for _, order := range orders {
		order = slices.Insert(slices.Clone(order), random.IntN(len(order)+1), order[random.IntN(len(order))])
		ended := m.end(m.run(order), func(unsure bool) {
			if unsure && api != nil {
				s.Errorf("%s: the order %v leaves a row unsure", name, order)
			}
			if !unsure {
				m.w.final(s.story, "")
			}
			if s.Failed() {
				s.Fatalf("%s: the order was %v", name, order)
			}
		})
		if ended {
			unsure++
		}
	}
	s.orders += int64(len(orders))
	s.steps += int64(len(m.steps))
	if api != nil {
		s.asked += int64(api.calls)
	}
	return unsure
}

// ordersOf returns all permutations of up to seven events, and a random selection of more.
func ordersOf(n int) [][]int {
	var orders [][]int
	if n > 7 {
		random := rand.New(rand.NewPCG(uint64(n), 5000))
		for range randomOrders {
			orders = append(orders, random.Perm(n))
		}
		return orders
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			orders = append(orders, slices.Clone(order))
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
	return orders
}
