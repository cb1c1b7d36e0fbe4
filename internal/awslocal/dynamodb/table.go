package dynamodb

import (
	"slices"
	"time"
)

// maxItem is the largest item, names and values ("Quotas in Amazon DynamoDB", item size).
const maxItem = 400 * 1024

// record is a stored item. It never changes: a write replaces it.
type record struct {
	key  string // its place in the table
	item item
	size int
}

// index is a global secondary index: the records that have its key, in its order.
type index struct {
	name       string
	schema     keySchema
	projection string   // ALL, KEYS_ONLY or INCLUDE
	include    []string // NonKeyAttributes
	names      []string // what it holds unless ALL: keys of table and index, and the included
	entries    sorted
	bytes      int
}

type table struct {
	name       string
	arn        string
	created    time.Time
	defined    []attributeDefinition
	schema     keySchema
	indexes    []*index
	rows       sorted
	bytes      int
	ttl        string // attribute, "" while disabled
	protected  bool
	streamView string // "" without a stream
	changes    []change
	used       Usage
}

// Usage is capacity used, in the units DynamoDB bills ("DynamoDB read and write operations").
type Usage struct{ Read, Write float64 }

// units is the capacity one operation used: on the table and on its indexes.
type units struct {
	table   float64
	indexes map[string]float64
}

func (u *units) add(o units) {
	u.table += o.table
	for name, n := range o.indexes {
		u.addIndex(name, n)
	}
}

func (u *units) addIndex(name string, n float64) {
	if u.indexes == nil {
		u.indexes = map[string]float64{}
	}
	u.indexes[name] += n
}

func (u units) total() float64 {
	sum := u.table
	for _, n := range u.indexes {
		sum += n
	}
	return sum
}

// times multiplies: 2 for transactions, one half for eventually consistent reads.
func (u units) times(f float64) units {
	out := units{table: u.table * f}
	for name, n := range u.indexes {
		out.addIndex(name, n*f)
	}
	return out
}

func ceilUnits(size, unit int) float64 { return float64(max(1, (size+unit-1)/unit)) }

// writeUnits is what writing an item of the size costs: one for each KB begun.
func writeUnits(size int) float64 { return ceilUnits(size, 1024) }

// readUnits is what reading so many bytes strongly consistently costs: one for each 4 KB begun.
func readUnits(size int) float64 { return ceilUnits(size, 4096) }

func (t *table) index(name string) *index {
	for _, ix := range t.indexes {
		if ix.name == name {
			return ix
		}
	}
	return nil
}

// key is the record's place in the index, "" if the index does not hold it.
func (ix *index) key(rec *record) string {
	if rec == nil {
		return ""
	}
	if key, ok := ix.schema.key(rec.item); ok {
		return key + rec.key
	}
	return ""
}

// view is the part of an item the index holds.
func (ix *index) view(it item) item {
	if ix.projection == "ALL" {
		return it
	}
	out := make(item, len(ix.names))
	for _, name := range ix.names {
		if v, ok := it[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (rec *record) bytes() int {
	if rec == nil {
		return 0
	}
	return rec.size
}

// replace puts new in the place of old, either of which may be nil, and keeps the indexes. It returns what a
// write of this kind costs ("Write operation consumption"): the larger of the two items, and for every index entry
// added, changed or removed the size of that entry; a changed index key is a removal and an addition.
func (t *table) replace(old, new *record) units {
	cost := units{table: writeUnits(max(old.bytes(), new.bytes()))}
	switch {
	case new != nil:
		t.rows.set(new.key, new)
	case old != nil:
		t.rows.delete(old.key)
	}
	t.bytes += new.bytes() - old.bytes()
	for _, ix := range t.indexes {
		from, to := ix.key(old), ix.key(new)
		if from == "" && to == "" {
			continue
		}
		var before, after item
		if from != "" {
			before = ix.view(old.item)
		}
		if to != "" {
			after = ix.view(new.item)
		}
		ix.bytes += after.size() - before.size()
		switch {
		case from != to:
			if from != "" {
				ix.entries.delete(from)
				cost.addIndex(ix.name, writeUnits(before.size()))
			}
			if to != "" {
				ix.entries.set(to, new)
				cost.addIndex(ix.name, writeUnits(after.size()))
			}
		default:
			ix.entries.set(to, new)
			if !before.equal(after) {
				cost.addIndex(ix.name, writeUnits(max(before.size(), after.size())))
			}
		}
	}
	return cost
}

// newRecord validates an item about to be stored.
func (t *table) newRecord(it item) (*record, error) {
	for _, ix := range t.indexes {
		for _, part := range ix.schema {
			if v, ok := it[part.name]; ok && v.kind != part.kind {
				return nil, invalidf("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", part.name, part.kind, v.kind, ix.name)
			}
		}
		if err := ix.schema.checkValues(it, ix.name); err != nil {
			return nil, err
		}
	}
	size := it.size()
	if size > maxItem {
		return nil, validationf("Item size to update has exceeded the maximum allowed size")
	}
	key, _ := t.schema.key(it)
	return &record{key: key, item: it, size: size}, nil
}

// checkPut validates the key inside an item to be put.
func (t *table) checkPut(it item) error {
	for _, part := range t.schema {
		v, ok := it[part.name]
		if !ok {
			return invalidf("Missing the key %s in the item", part.name)
		}
		if v.kind != part.kind {
			return invalidf("Type mismatch for key %s expected: %s actual: %s", part.name, part.kind, v.kind)
		}
	}
	return t.schema.checkValues(it, "")
}

// keyNames are the attributes that make up a place in the table, or in its index if ix is not nil.
func (t *table) keyNames(ix *index) []string {
	var out []string
	for _, part := range t.schema {
		out = append(out, part.name)
	}
	if ix != nil {
		for _, part := range ix.schema {
			if !slices.Contains(out, part.name) {
				out = append(out, part.name)
			}
		}
	}
	return out
}
