package dynamodb

import (
	"encoding/json"
	"maps"
	"slices"
)

// Limits of batches ("BatchGetItem", "BatchWriteItem").
const (
	maxBatchGet      = 100
	maxBatchWrite    = 25
	maxBatchGetBytes = 16 << 20
)

// getParams name an item and what of it to return.
type getParams struct {
	TableName                string
	Key                      map[string]*wireValue
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

// get is a validated read of one item.
type get struct {
	table string
	key   item
	paths []path
}

func projectionOf(src *string, names map[string]string) ([]path, error) {
	sc, err := expressionParams{ExpressionAttributeNames: names}.scope(src)
	if err != nil || src == nil {
		return nil, err
	}
	paths, err := sc.projection(*src)
	if err != nil {
		return nil, err
	}
	return paths, sc.finish()
}

func (p getParams) prepare() (get, error) {
	g := get{table: p.TableName}
	if err := checkName("tableName", p.TableName); err != nil {
		return g, err
	}
	if p.Key == nil {
		return g, checkName("key", "")
	}
	var err error
	if g.key, err = decodeItem(p.Key); err != nil {
		return g, err
	}
	g.paths, err = projectionOf(p.ProjectionExpression, p.ExpressionAttributeNames)
	return g, err
}

// find reads the record, nil if there is none. The caller holds the lock.
func (g get) find(t *table) (*record, error) {
	if err := t.schema.checkKey(g.key); err != nil {
		return nil, err
	}
	place, _ := t.schema.key(g.key)
	return t.rows.get(place), nil
}

// view is what the reply shows of the record.
func (g get) view(rec *record) item {
	if rec == nil {
		return nil
	}
	return rec.item.shown(g.paths)
}

// consistency is the factor reads are billed with.
func consistency(strong bool) float64 {
	if strong {
		return 1
	}
	return 0.5
}

type getReply struct {
	Item             *item     `json:",omitempty"`
	ConsumedCapacity *capacity `json:",omitempty"`
}

func itemOrNil(rec *record, it item) *item {
	if rec == nil {
		return nil
	}
	return &it
}

func (s *Server) getItem(in struct {
	getParams
	ConsistentRead         bool
	ReturnConsumedCapacity string
}) (getReply, error) {
	g, err := in.prepare()
	if err != nil {
		return getReply{}, err
	}
	if err := checkCapacity(in.ReturnConsumedCapacity); err != nil {
		return getReply{}, err
	}
	rec, cost, err := func() (*record, units, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, err := s.table(g.table)
		if err != nil {
			return nil, units{}, err
		}
		rec, err := g.find(t)
		if err != nil {
			return nil, units{}, err
		}
		cost := units{table: readUnits(rec.bytes()) * consistency(in.ConsistentRead)}
		t.used.Read += cost.table
		return rec, cost, nil
	}()
	if err != nil {
		return getReply{}, err
	}
	return getReply{itemOrNil(rec, g.view(rec)), cost.report(in.TableName, in.ReturnConsumedCapacity)}, nil
}

// batchKeys is what BatchGetItem asks of one table; it is also what it hands back unprocessed.
type batchKeys struct {
	Keys                     []json.RawMessage
	ConsistentRead           bool              `json:",omitempty"`
	ProjectionExpression     *string           `json:",omitempty"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
}

type batchGetReply struct {
	Responses        map[string][]item
	UnprocessedKeys  map[string]batchKeys
	ConsumedCapacity []*capacity `json:",omitempty"`
}

func (s *Server) batchGetItem(in struct {
	RequestItems           map[string]batchKeys
	ReturnConsumedCapacity string
}) (batchGetReply, error) {
	reply := batchGetReply{Responses: map[string][]item{}, UnprocessedKeys: map[string]batchKeys{}}
	if err := checkCapacity(in.ReturnConsumedCapacity); err != nil {
		return reply, err
	}
	names := slices.Sorted(maps.Keys(in.RequestItems))
	gets := map[string][]get{}
	count := 0
	for _, name := range names {
		r := in.RequestItems[name]
		paths, err := projectionOf(r.ProjectionExpression, r.ExpressionAttributeNames)
		if err != nil {
			return reply, err
		}
		if len(r.Keys) == 0 {
			return reply, validationf("1 validation error detected: Value '[]' at 'requestItems.%s.member.keys' failed to satisfy constraint: Member must have length greater than or equal to 1", name)
		}
		count += len(r.Keys)
		for _, raw := range r.Keys {
			var wire map[string]*wireValue
			if err := json.Unmarshal(raw, &wire); err != nil {
				return reply, errorf("SerializationException", "a key of table %s is not a map of attribute values", name)
			}
			key, err := decodeItem(wire)
			if err != nil {
				return reply, err
			}
			gets[name] = append(gets[name], get{table: name, key: key, paths: paths})
		}
	}
	switch {
	case count == 0:
		return reply, validationf("1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case count > maxBatchGet:
		return reply, validationf("Too many items requested for the BatchGetItem call")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]*record{}
	for _, name := range names {
		t, err := s.table(name)
		if err != nil {
			return reply, err
		}
		seen := map[string]bool{}
		for _, g := range gets[name] {
			rec, err := g.find(t)
			if err != nil {
				return reply, err
			}
			place, _ := t.schema.key(g.key)
			if seen[place] {
				return reply, validationf("Provided list of item keys contains duplicates")
			}
			seen[place] = true
			found[name] = append(found[name], rec)
		}
	}
	bytes := 0
	for _, name := range names {
		r := in.RequestItems[name]
		var cost units
		reply.Responses[name] = []item{}
		for i, rec := range found[name] {
			if bytes += rec.bytes(); bytes > maxBatchGetBytes {
				rest := r
				rest.Keys = append(reply.UnprocessedKeys[name].Keys, r.Keys[i])
				reply.UnprocessedKeys[name] = rest
				continue
			}
			cost.table += readUnits(rec.bytes()) * consistency(r.ConsistentRead)
			if rec != nil {
				reply.Responses[name] = append(reply.Responses[name], gets[name][i].view(rec))
			}
		}
		t, _ := s.table(name)
		t.used.Read += cost.table
		if c := cost.report(name, in.ReturnConsumedCapacity); c != nil {
			reply.ConsumedCapacity = append(reply.ConsumedCapacity, c)
		}
	}
	return reply, nil
}

type batchWriteReply struct {
	UnprocessedItems map[string]any
	ConsumedCapacity []*capacity `json:",omitempty"`
}

func (s *Server) batchWriteItem(in struct {
	RequestItems map[string][]struct {
		PutRequest    *struct{ Item map[string]*wireValue }
		DeleteRequest *struct{ Key map[string]*wireValue }
	}
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}) (batchWriteReply, error) {
	reply := batchWriteReply{UnprocessedItems: map[string]any{}}
	if err := checkCapacity(in.ReturnConsumedCapacity); err != nil {
		return reply, err
	}
	names := slices.Sorted(maps.Keys(in.RequestItems))
	writes := map[string][]write{}
	count := 0
	for _, name := range names {
		count += len(in.RequestItems[name])
		for _, r := range in.RequestItems[name] {
			p := writeParams{TableName: name}
			var w write
			var err error
			switch {
			case (r.PutRequest == nil) == (r.DeleteRequest == nil):
				err = validationf("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
			case r.PutRequest != nil:
				w, err = putParams{p, r.PutRequest.Item}.prepare()
			default:
				w, err = deleteParams{p, r.DeleteRequest.Key}.prepare()
			}
			if err != nil {
				return reply, err
			}
			writes[name] = append(writes[name], w)
		}
		if len(writes[name]) == 0 {
			count = 0
			break
		}
	}
	switch {
	case count == 0:
		return reply, validationf("1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case count > maxBatchWrite:
		return reply, validationf("Too many items requested for the BatchWriteItem call")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	type pair struct{ old, new *record }
	plans := map[string][]pair{}
	for _, name := range names {
		t, err := s.table(name)
		if err != nil {
			return reply, err
		}
		seen := map[string]bool{}
		for _, w := range writes[name] {
			place, err := w.place(t)
			if err != nil {
				return reply, err
			}
			if seen[place] {
				return reply, validationf("Provided list of item keys contains duplicates")
			}
			seen[place] = true
			old, new, err := w.plan(t, place)
			if err != nil {
				return reply, err
			}
			plans[name] = append(plans[name], pair{old, new})
		}
	}
	for _, name := range names {
		t, _ := s.table(name)
		var cost units
		for _, p := range plans[name] {
			cost.add(s.commit(t, p.old, p.new))
		}
		t.used.Write += cost.total()
		if c := cost.report(name, in.ReturnConsumedCapacity); c != nil {
			reply.ConsumedCapacity = append(reply.ConsumedCapacity, c)
		}
	}
	return reply, nil
}
