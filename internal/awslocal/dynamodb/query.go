package dynamodb

import (
	"encoding/binary"
	"slices"
)

// maxPage is how many bytes one Query or Scan reads ("Paginating table query results in DynamoDB").
const maxPage = 1 << 20

// readParams are common to Query and Scan.
type readParams struct {
	TableName            string
	IndexName            string
	FilterExpression     *string
	ProjectionExpression *string
	expressionParams
	ConsistentRead         bool
	ExclusiveStartKey      map[string]*wireValue
	Limit                  *int
	Select                 string
	ReturnConsumedCapacity string
}

// read is a validated Query or Scan, ready to meet a table.
type read struct {
	readParams
	filter *condition
	paths  []path
	start  item
}

type readReply struct {
	Items            []item `json:",omitzero"`
	Count            int
	ScannedCount     int
	LastEvaluatedKey item      `json:",omitempty"`
	ConsumedCapacity *capacity `json:",omitempty"`
}

func (p readParams) prepare(keyCondition *string) (r read, keys *condition, err error) {
	r.readParams = p
	for _, err := range []error{
		checkName("tableName", p.TableName),
		checkCapacity(p.ReturnConsumedCapacity),
		checkEnum("select", p.Select, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
	} {
		if err != nil {
			return r, nil, err
		}
	}
	switch {
	case p.Limit != nil && *p.Limit < 1:
		return r, nil, validationf("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *p.Limit)
	case p.ProjectionExpression != nil && p.Select == "COUNT":
		return r, nil, validationf("Cannot specify the ProjectionExpression when choosing to get only the Count")
	case p.ProjectionExpression != nil && p.Select != "" && p.Select != "SPECIFIC_ATTRIBUTES":
		return r, nil, validationf("Cannot specify the ProjectionExpression when choosing to get %s", p.Select)
	case p.ProjectionExpression == nil && p.Select == "SPECIFIC_ATTRIBUTES":
		return r, nil, validationf("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	case p.Select == "ALL_PROJECTED_ATTRIBUTES" && p.IndexName == "":
		return r, nil, validationf("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	sc, err := p.scope(p.FilterExpression, p.ProjectionExpression, keyCondition)
	if err != nil {
		return r, nil, err
	}
	if keys, err = sc.condition("KeyConditionExpression", keyCondition); err != nil {
		return r, nil, err
	}
	if r.filter, err = sc.condition("FilterExpression", p.FilterExpression); err != nil {
		return r, nil, err
	}
	if p.ProjectionExpression != nil {
		if r.paths, err = sc.projection(*p.ProjectionExpression); err != nil {
			return r, nil, err
		}
	}
	if err := sc.finish(); err != nil {
		return r, nil, err
	}
	if p.ExclusiveStartKey != nil {
		if r.start, err = decodeItem(p.ExclusiveStartKey); err != nil {
			return r, nil, validationf("The provided starting key is invalid: %s", err.(*apiError).message)
		}
	}
	return r, keys, nil
}

// source finds what to read: a table and, if one is named, its index. The caller holds the lock.
func (s *Server) source(r read) (t *table, ix *index, err error) {
	if t, err = s.table(r.TableName); err != nil || r.IndexName == "" {
		return t, nil, err
	}
	if ix = t.index(r.IndexName); ix == nil {
		return nil, nil, validationf("The table does not have the specified index: %s", r.IndexName)
	}
	if r.ConsistentRead {
		return nil, nil, validationf("Consistent reads are not supported on global secondary indexes")
	}
	if ix.projection == "ALL" {
		return t, ix, nil
	}
	if r.Select == "ALL_ATTRIBUTES" {
		return nil, nil, invalidf("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", ix.name)
	}
	for _, p := range r.filter.paths() {
		if !slices.Contains(ix.names, p[0].name) {
			return nil, nil, invalidf("Secondary index %s does not project one or more filter attributes: [%s]", ix.name, p[0].name)
		}
	}
	for _, p := range r.paths {
		if !slices.Contains(ix.names, p[0].name) {
			return nil, nil, invalidf("Global secondary index %s does not project [%s]", ix.name, p[0].name)
		}
	}
	return t, ix, nil
}

// startKey is the place ExclusiveStartKey names, "" without one.
func (r read) startKey(t *table, ix *index) (string, error) {
	if r.start == nil {
		return "", nil
	}
	invalid := validationf("The provided starting key is invalid")
	place, ok := t.schema.key(r.start)
	if !ok || len(r.start) != len(t.keyNames(ix)) {
		return "", invalid
	}
	if ix == nil {
		return place, nil
	}
	at, ok := ix.schema.key(r.start)
	if !ok {
		return "", invalid
	}
	return at + place, nil
}

// page reads from low up to high, and stops at the limit or before the item that would make it more than 1 MB.
// It returns the views to filter, the key to go on from, nil when the range is done, and what it cost.
func (r read) page(t *table, ix *index, low, high string, forward bool) (views []item, last item, cost units) {
	list := &t.rows
	if ix != nil {
		list = &ix.entries
	}
	bytes := 0
	var previous *record
	list.walk(low, high, forward, func(e entry) bool {
		view, size := e.rec.item, e.rec.size
		if ix != nil && ix.projection != "ALL" {
			view = ix.view(e.rec.item)
			size = view.size()
		}
		if bytes += size; bytes > maxPage && len(views) > 0 {
			bytes -= size
			last = previous.item
			return false
		}
		previous = e.rec
		views = append(views, view)
		if r.Limit != nil && len(views) == *r.Limit {
			last = previous.item
			return false
		}
		return true
	})
	if last != nil {
		key := item{}
		for _, name := range t.keyNames(ix) {
			key[name] = last[name]
		}
		last = key
	}
	n := readUnits(bytes) * consistency(r.ConsistentRead)
	t.used.Read += n
	if ix == nil {
		cost.table = n
	} else {
		cost.addIndex(ix.name, n)
	}
	return views, last, cost
}

// reply filters and projects a page. It needs no lock: items never change.
func (r read) reply(views []item, last item, cost units) readReply {
	out := readReply{Items: []item{}, ScannedCount: len(views), LastEvaluatedKey: last, ConsumedCapacity: cost.report(r.TableName, r.ReturnConsumedCapacity)}
	for _, it := range views {
		if !r.filter.holds(it) {
			continue
		}
		out.Count++
		if r.Select != "COUNT" {
			out.Items = append(out.Items, it.shown(r.paths))
		}
	}
	if r.Select == "COUNT" {
		out.Items = nil
	}
	return out
}

// run reads one page: bounds gives the range of keys to read, and outside words the refusal of a start key that is
// not in it.
func (s *Server) run(r read, forward bool, bounds func(keySchema) (low, high string, err error), outside error) (readReply, error) {
	views, last, cost, err := func() (views []item, last item, cost units, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, ix, err := s.source(r)
		if err != nil {
			return nil, nil, cost, err
		}
		schema := t.schema
		if ix != nil {
			schema = ix.schema
		}
		low, high, err := bounds(schema)
		if err != nil {
			return nil, nil, cost, err
		}
		start, err := r.startKey(t, ix)
		switch {
		case err != nil:
			return nil, nil, cost, err
		case start == "":
		case start < low || high != "" && start >= high:
			return nil, nil, cost, outside
		case forward:
			low = start + "\x00"
		default:
			high = start
		}
		views, last, cost = r.page(t, ix, low, high, forward)
		return views, last, cost, nil
	}()
	if err != nil {
		return readReply{}, err
	}
	return r.reply(views, last, cost), nil
}

func (s *Server) query(in struct {
	readParams
	KeyConditionExpression *string
	ScanIndexForward       *bool
}) (readReply, error) {
	if in.KeyConditionExpression == nil {
		return readReply{}, validationf("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	r, keys, err := in.prepare(in.KeyConditionExpression)
	if err != nil {
		return readReply{}, err
	}
	bounds := func(schema keySchema) (low, high string, err error) {
		for _, p := range r.filter.paths() {
			if schema.has(p[0].name) {
				return "", "", validationf("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", p[0].name)
			}
		}
		return keys.bounds(schema)
	}
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	return s.run(r, forward, bounds, validationf("The provided starting key is outside query boundaries based on provided conditions"))
}

func (s *Server) scan(in struct {
	readParams
	Segment       *int
	TotalSegments *int
}) (readReply, error) {
	r, _, err := in.prepare(nil)
	if err != nil {
		return readReply{}, err
	}
	segment, total := 0, 1
	switch {
	case in.Segment == nil && in.TotalSegments == nil:
	case in.Segment == nil:
		return readReply{}, validationf("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.TotalSegments == nil:
		return readReply{}, validationf("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	default:
		segment, total = *in.Segment, *in.TotalSegments
	}
	switch {
	case total < 1 || total > 1000000:
		return readReply{}, validationf("1 validation error detected: Value '%d' at 'totalSegments' failed to satisfy constraint: Member must have value between 1 and 1000000", total)
	case segment < 0 || segment >= total:
		return readReply{}, validationf("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment, total)
	}
	bounds := func(keySchema) (low, high string, err error) {
		return segmentStart(segment, total), segmentStart(segment+1, total), nil
	}
	return s.run(r, true, bounds, validationf("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", total, segment))
}

// segmentStart is where a segment of a parallel scan begins: the segments divide the space of partition hashes.
// The end of the last one is "", no end.
func segmentStart(segment, total int) string {
	if segment == total {
		return ""
	}
	at := (uint64(segment)<<32 + uint64(total) - 1) / uint64(total)
	return string(binary.BigEndian.AppendUint32(nil, uint32(at)))
}
