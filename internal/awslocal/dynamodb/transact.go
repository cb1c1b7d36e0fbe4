package dynamodb

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Limits of transactions ("Amazon DynamoDB Transactions: How it works").
const (
	maxTransact      = 100
	maxTransactBytes = 4 << 20
	tokenLife        = 10 * time.Minute
)

// reason tells why one member of a transaction made it fail, or that it did not.
type reason struct {
	Code    string
	Message string `json:",omitempty"`
	Item    item   `json:",omitempty"`
}

// receipt remembers a transaction that succeeded, for the ten minutes its ClientRequestToken stands.
type receipt struct {
	request [sha256.Size]byte
	until   time.Time
	costs   map[string]units // what a replay is billed: reads of the same items
}

type transactReply struct {
	ConsumedCapacity []*capacity `json:",omitempty"`
}

type transactItem struct {
	Put            *putParams
	Update         *updateParams
	Delete         *deleteParams
	ConditionCheck *deleteParams
}

func (m transactItem) prepare() (w write, err error) {
	members := 0
	if m.Put != nil {
		members++
		w, err = m.Put.prepare()
	}
	if m.Update != nil {
		members++
		if w, err = m.Update.prepare(); err == nil && m.Update.UpdateExpression == nil {
			err = checkName("transactItems.1.member.update.updateExpression", "")
		}
	}
	if m.Delete != nil {
		members++
		w, err = m.Delete.prepare()
	}
	if m.ConditionCheck != nil {
		members++
		w, err = m.ConditionCheck.prepare()
		w.deletes = false
		if err == nil && w.cond == nil {
			err = checkName("transactItems.1.member.conditionCheck.conditionExpression", "")
		}
	}
	if members != 1 {
		return w, validationf("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return w, err
}

// fingerprint is the same for requests that differ only in the order of their JSON members.
func fingerprint(raw []json.RawMessage) ([sha256.Size]byte, error) {
	var tree any
	b, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(b, &tree)
	}
	if err == nil {
		b, err = json.Marshal(tree)
	}
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint a transaction: %w", err)
	}
	return sha256.Sum256(b), nil
}

// decodeMembers decodes the members of a transaction strictly, and checks their number.
func decodeMembers[T any](raw []json.RawMessage) ([]T, error) {
	switch {
	case len(raw) == 0:
		return nil, validationf("1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(raw) > maxTransact:
		return nil, validationf("1 validation error detected: Value '[...]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d", maxTransact)
	}
	out := make([]T, len(raw))
	for i, r := range raw {
		decode := serve(func(m T) (T, error) { return m, nil })
		m, err := decode(r)
		if err != nil {
			return nil, err
		}
		out[i] = m.(T)
	}
	return out, nil
}

func (s *Server) transactWriteItems(in struct {
	TransactItems               []json.RawMessage
	ClientRequestToken          string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}) (transactReply, error) {
	if err := checkCapacity(in.ReturnConsumedCapacity); err != nil {
		return transactReply{}, err
	}
	if len(in.ClientRequestToken) > 36 {
		return transactReply{}, validationf("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36", in.ClientRequestToken)
	}
	members, err := decodeMembers[transactItem](in.TransactItems)
	if err != nil {
		return transactReply{}, err
	}
	writes := make([]write, len(members))
	for i, m := range members {
		if writes[i], err = m.prepare(); err != nil {
			return transactReply{}, err
		}
	}
	sum, err := fingerprint(in.TransactItems)
	if err != nil {
		return transactReply{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if in.ClientRequestToken != "" {
		maps.DeleteFunc(s.tokens, func(_ string, t *receipt) bool { return now.After(t.until) })
		if t := s.tokens[in.ClientRequestToken]; t != nil {
			if t.request != sum {
				return transactReply{}, errorf("IdempotentParameterMismatchException", "Idempotent parameter mismatch: the request uses the same client token as a previous, but non-identical request.")
			}
			return transactReport(t.costs, in.ReturnConsumedCapacity, false), nil
		}
	}
	costs, err := s.transact(writes)
	if err != nil {
		return transactReply{}, err
	}
	if in.ClientRequestToken != "" {
		replay := map[string]units{}
		for _, w := range writes {
			t, _ := s.table(w.table)
			place, _ := w.place(t)
			cost := replay[w.table]
			cost.table += 2 * readUnits(t.rows.get(place).bytes())
			replay[w.table] = cost
		}
		s.tokens[in.ClientRequestToken] = &receipt{sum, now.Add(tokenLife), replay}
	}
	return transactReport(costs, in.ReturnConsumedCapacity, true), nil
}

// transact does all of the writes or none. The caller holds the lock.
func (s *Server) transact(writes []write) (map[string]units, error) {
	type plan struct {
		t        *table
		old, new *record
	}
	places := make([]string, len(writes))
	seen := map[string]bool{}
	for i, w := range writes {
		t, err := s.table(w.table)
		if err != nil {
			return nil, err
		}
		if places[i], err = w.place(t); err != nil {
			return nil, err
		}
		if id := t.name + "/" + places[i]; seen[id] {
			return nil, validationf("Transaction request cannot include multiple operations on one item")
		} else {
			seen[id] = true
		}
	}
	plans := make([]plan, len(writes))
	reasons := make([]reason, len(writes))
	codes := make([]string, len(writes))
	failed, bytes := false, 0
	for i, w := range writes {
		t, _ := s.table(w.table)
		old, new, err := w.plan(t, places[i])
		reasons[i] = reason{Code: "None"}
		if err != nil {
			failed = true
			reasons[i] = reasonFor(err)
		}
		codes[i] = reasons[i].Code
		plans[i] = plan{t, old, new}
		bytes += new.bytes()
	}
	if bytes > maxTransactBytes {
		return nil, validationf("Collection size of items in transaction cannot exceed limit of 4MB")
	}
	costs := map[string]units{}
	for i, p := range plans {
		var cost units
		if failed || writes[i].checks() {
			cost.table = writeUnits(max(p.old.bytes(), p.new.bytes()))
		} else {
			cost = s.commit(p.t, p.old, p.new)
		}
		cost = cost.times(2)
		p.t.used.Write += cost.total()
		sum := costs[writes[i].table]
		sum.add(cost)
		costs[writes[i].table] = sum
	}
	if failed {
		return nil, &apiError{
			code:    "TransactionCanceledException",
			message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
			reasons: reasons,
		}
	}
	return costs, nil
}

// checks tells whether the write is a ConditionCheck.
func (w write) checks() bool { return w.item == nil && !w.updates && !w.deletes }

func reasonFor(err error) reason {
	e, ok := err.(*apiError)
	switch {
	case !ok:
		return reason{Code: "InternalServerError", Message: err.Error()}
	case e.code == "ConditionalCheckFailedException":
		return reason{"ConditionalCheckFailed", e.message, e.item}
	}
	return reason{Code: "ValidationError", Message: e.message}
}

func transactReport(costs map[string]units, how string, wrote bool) transactReply {
	var out transactReply
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		c := costs[name].report(name, how)
		if c == nil {
			continue
		}
		if wrote {
			c.WriteCapacityUnits = c.CapacityUnits
		} else {
			c.ReadCapacityUnits = c.CapacityUnits
		}
		out.ConsumedCapacity = append(out.ConsumedCapacity, c)
	}
	return out
}

type transactGetReply struct {
	Responses        []transactGetItem
	ConsumedCapacity []*capacity `json:",omitempty"`
}

type transactGetItem struct {
	Item *item `json:",omitempty"`
}

func (s *Server) transactGetItems(in struct {
	TransactItems          []json.RawMessage
	ReturnConsumedCapacity string
}) (transactGetReply, error) {
	var reply transactGetReply
	if err := checkCapacity(in.ReturnConsumedCapacity); err != nil {
		return reply, err
	}
	members, err := decodeMembers[struct{ Get getParams }](in.TransactItems)
	if err != nil {
		return reply, err
	}
	gets := make([]get, len(members))
	for i, m := range members {
		if gets[i], err = m.Get.prepare(); err != nil {
			return reply, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	costs := map[string]units{}
	seen := map[string]bool{}
	bytes := 0
	for _, g := range gets {
		t, err := s.table(g.table)
		if err != nil {
			return reply, err
		}
		rec, err := g.find(t)
		if err != nil {
			return reply, err
		}
		place, _ := t.schema.key(g.key)
		if id := t.name + "/" + place; seen[id] {
			return reply, validationf("Transaction request cannot include multiple operations on one item")
		} else {
			seen[id] = true
		}
		if bytes += rec.bytes(); bytes > maxTransactBytes {
			return reply, validationf("Collection size of items in transaction cannot exceed limit of 4MB")
		}
		cost := units{table: 2 * readUnits(rec.bytes())}
		t.used.Read += cost.table
		sum := costs[g.table]
		sum.add(cost)
		costs[g.table] = sum
		reply.Responses = append(reply.Responses, transactGetItem{itemOrNil(rec, g.view(rec))})
	}
	reply.ConsumedCapacity = transactReport(costs, in.ReturnConsumedCapacity, false).ConsumedCapacity
	return reply, nil
}
