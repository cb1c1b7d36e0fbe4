package dynamodb

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxDepth is how deep lists and maps may nest ("Supported data types and naming rules in Amazon DynamoDB").
const maxDepth = 32

// wireValue is an attribute value as the JSON of a request carries it.
type wireValue struct {
	S    *string
	N    *string
	B    *[]byte
	BOOL *bool
	NULL *bool
	SS   *[]string
	NS   *[]string
	BS   *[][]byte
	L    *[]*wireValue
	M    *map[string]*wireValue
}

// value is one attribute value. Values are never changed once made: an update builds new ones around the parts that
// stay, so that a stored item may be read and encoded without holding the store's lock.
type value struct {
	kind string  // the type descriptor: S, N, B, BOOL, NULL, SS, NS, BS, L or M
	str  string  // S, and the raw bytes of B
	num  number  // N
	flag bool    // BOOL
	list []value // L, and the sorted members of a set
	doc  item    // M
}

// item is a stored item, or the inside of a map.
type item map[string]value

func stringValue(s string) value { return value{kind: "S", str: s} }
func numberValue(n number) value { return value{kind: "N", num: n} }

// decodeItem validates the attributes of a request.
func decodeItem(w map[string]*wireValue) (item, error) {
	return decodeMap(w, 1)
}

func decodeMap(w map[string]*wireValue, depth int) (item, error) {
	it := make(item, len(w))
	for k, v := range w {
		d, err := v.decode(depth)
		if err != nil {
			return nil, err
		}
		if len(k) > 65535 {
			return nil, invalidf("Attribute name is too large, must be less than 65536 bytes")
		}
		it[k] = d
	}
	return it, nil
}

func (w *wireValue) decode(depth int) (value, error) {
	if w == nil {
		return value{}, validationf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	if depth > maxDepth {
		return value{}, validationf("Nesting Levels have exceeded supported limits: Attributes present in the item have nested levels beyond supported limit")
	}
	var out value
	var err error
	kinds := 0
	if w.S != nil {
		kinds++
		out = stringValue(*w.S)
	}
	if w.N != nil {
		kinds++
		out.kind = "N"
		out.num, err = parseNumber(*w.N)
	}
	if w.B != nil {
		kinds++
		out = value{kind: "B", str: string(*w.B)}
	}
	if w.BOOL != nil {
		kinds++
		out = value{kind: "BOOL", flag: *w.BOOL}
	}
	if w.NULL != nil {
		kinds++
		out = value{kind: "NULL"}
		if !*w.NULL {
			err = invalidf("Null attribute value types must have the value of true")
		}
	}
	if w.SS != nil {
		kinds++
		out, err = decodeSet("SS", "An string set ", *w.SS, func(s string) (value, error) { return stringValue(s), nil })
	}
	if w.NS != nil {
		kinds++
		out, err = decodeSet("NS", "An number set ", *w.NS, func(s string) (value, error) {
			n, err := parseNumber(s)
			return numberValue(n), err
		})
	}
	if w.BS != nil {
		kinds++
		out, err = decodeSet("BS", "Binary sets ", *w.BS, func(b []byte) (value, error) { return value{kind: "B", str: string(b)}, nil })
	}
	if w.L != nil {
		kinds++
		out = value{kind: "L", list: make([]value, len(*w.L))}
		for i, e := range *w.L {
			if out.list[i], err = e.decode(depth + 1); err != nil {
				break
			}
		}
	}
	if w.M != nil {
		kinds++
		out = value{kind: "M"}
		out.doc, err = decodeMap(*w.M, depth+1)
	}
	switch {
	case kinds == 0:
		return value{}, validationf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case kinds > 1:
		return value{}, validationf("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	return out, err
}

func decodeSet[T any](kind, name string, members []T, decode func(T) (value, error)) (value, error) {
	out := value{kind: kind, list: make([]value, len(members))}
	for i, m := range members {
		var err error
		if out.list[i], err = decode(m); err != nil {
			return value{}, err
		}
	}
	if len(members) == 0 {
		return value{}, invalidf("%s may not be empty", name)
	}
	slices.SortFunc(out.list, value.compare)
	for i := 1; i < len(out.list); i++ {
		if out.list[i-1].compare(out.list[i]) == 0 {
			return value{}, invalidf("Input collection %v contains duplicates.", members)
		}
	}
	return out, nil
}

// compare orders two scalars of the same kind S, N or B.
func (v value) compare(o value) int {
	if v.kind == "N" {
		return v.num.compare(o.num)
	}
	return strings.Compare(v.str, o.str)
}

func (v value) isSet() bool { return v.kind == "SS" || v.kind == "NS" || v.kind == "BS" }

// ordered tells whether the kind has an order that expressions may ask for.
func (v value) ordered() bool { return v.kind == "S" || v.kind == "N" || v.kind == "B" }

func (v value) equal(o value) bool {
	return v.kind == o.kind && v.str == o.str && v.num == o.num && v.flag == o.flag &&
		slices.EqualFunc(v.list, o.list, value.equal) && v.doc.equal(o.doc)
}

func (it item) equal(o item) bool { return maps.EqualFunc(it, o, value.equal) }

// depth is the number of levels, 1 for a scalar.
func (v value) depth() int {
	deepest := 0
	for _, e := range v.list {
		deepest = max(deepest, e.depth())
	}
	for _, e := range v.doc {
		deepest = max(deepest, e.depth())
	}
	return deepest + 1
}

// memberIndex finds m in a set by binary search.
func (v value) memberIndex(m value) (int, bool) {
	if v.kind != m.kind+"S" {
		return 0, false
	}
	return slices.BinarySearchFunc(v.list, m, value.compare)
}

// size is what the value weighs ("DynamoDB item sizes and formats").
func (v value) size() int {
	switch v.kind {
	case "S", "B":
		return len(v.str)
	case "N":
		return v.num.size()
	case "BOOL", "NULL":
		return 1
	case "M":
		return 3 + len(v.doc) + v.doc.size()
	}
	size := 0
	for _, e := range v.list {
		size += e.size()
	}
	if v.kind == "L" {
		size += 3 + len(v.list)
	}
	return size
}

// size is the weight of all attributes, names included, in bytes.
func (it item) size() int {
	size := 0
	for k, v := range it {
		size += len(k) + v.size()
	}
	return size
}

// MarshalJSON encodes the item with its attributes in the order of their names.
func (it item) MarshalJSON() ([]byte, error) {
	return it.appendJSON(nil), nil
}

func (it item) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, k := range slices.Sorted(maps.Keys(it)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, k)
		b = append(b, ':')
		b = it[k].appendJSON(b)
	}
	return append(b, '}')
}

func (v value) appendJSON(b []byte) []byte {
	b = append(b, `{"`...)
	b = append(b, v.kind...)
	b = append(b, `":`...)
	switch v.kind {
	case "NULL":
		b = append(b, "true"...)
	case "BOOL":
		if v.flag {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case "M":
		b = v.doc.appendJSON(b)
	case "L", "SS", "NS", "BS":
		b = append(b, '[')
		for i, e := range v.list {
			if i > 0 {
				b = append(b, ',')
			}
			if v.kind == "L" {
				b = e.appendJSON(b)
			} else {
				b = e.appendScalar(b)
			}
		}
		b = append(b, ']')
	default:
		b = v.appendScalar(b)
	}
	return append(b, '}')
}

func (v value) appendScalar(b []byte) []byte {
	switch v.kind {
	case "S":
		return appendString(b, v.str)
	case "N":
		b = append(b, '"')
		b = append(b, v.num.String()...)
	default:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(v.str))
	}
	return append(b, '"')
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return append(b, q...)
}
