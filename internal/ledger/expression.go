package ledger

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/schema"
)

// An expression collects one conditional write: its clauses, its assignments, and the names and values they use.
// Every name goes through an alias, since many (status, group, type, token) are reserved words (Amazon DynamoDB
// Developer Guide, "Reserved words in DynamoDB").
type expression struct {
	clauses, sets, removes, adds []string

	names  map[string]string
	values map[string]types.AttributeValue
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: map[string]types.AttributeValue{}}
}

// name returns the path's alias: each part of the path is one attribute or map key, whatever characters it has.
func (x *expression) name(path ...string) string {
	aliases := make([]string, len(path))
	for i, part := range path {
		alias := "#" + part
		if !plain(part) {
			alias = "#n" + strconv.Itoa(len(x.names))
			for known, name := range x.names {
				if name == part {
					alias = known
				}
			}
		}
		x.names[alias] = part
		aliases[i] = alias
	}
	return strings.Join(aliases, ".")
}

// plain reports whether a name can stand in an alias as it is.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

func (x *expression) value(v types.AttributeValue) string {
	alias := ":v" + strconv.Itoa(len(x.values))
	x.values[alias] = v
	return alias
}

func (x *expression) when(clauses ...string) { x.clauses = append(x.clauses, clauses...) }

func (x *expression) set(v types.AttributeValue, path ...string) {
	x.sets = append(x.sets, x.name(path...)+" = "+x.value(v))
}

func (x *expression) setIfAbsent(v types.AttributeValue, name string) {
	x.sets = append(x.sets, x.name(name)+" = if_not_exists("+x.name(name)+", "+x.value(v)+")")
}

func (x *expression) add(n int64, name string) {
	x.adds = append(x.adds, x.name(name)+" "+x.value(number(n)))
}

func (x *expression) remove(names ...string) {
	for _, name := range names {
		x.removes = append(x.removes, x.name(name))
	}
}

func (x *expression) removePath(path ...string) { x.removes = append(x.removes, x.name(path...)) }

// condition joins the clauses; nil means that there are none.
func (x *expression) condition() *string { return text(strings.Join(x.clauses, " AND ")) }

// update joins the assignments; nil means that there are none.
func (x *expression) update() *string {
	var parts []string
	for _, section := range []struct {
		verb  string
		items []string
	}{{"SET ", x.sets}, {"REMOVE ", x.removes}, {"ADD ", x.adds}} {
		if len(section.items) > 0 {
			parts = append(parts, section.verb+strings.Join(section.items, ", "))
		}
	}
	return text(strings.Join(parts, " "))
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// The named clauses. Each takes an item past its time to live for absent, because DynamoDB deletes it only within
// days (Amazon DynamoDB Developer Guide, "Using time to live (TTL) in DynamoDB").

// absent: there is no entry, or only one past its time to live.
func (x *expression) absent(nowS int64) string {
	return "(attribute_not_exists(" + x.name(schema.PK) + ") OR " +
		x.name(schema.DeleteAfterS) + " < " + x.value(number(nowS)) + ")"
}

// live: the entry is not past its time to live. It holds for an absent item, too, and stands beside clauses that
// do not.
func (x *expression) live(nowS int64) string {
	return "(attribute_not_exists(" + x.name(schema.DeleteAfterS) + ") OR " +
		x.name(schema.DeleteAfterS) + " >= " + x.value(number(nowS)) + ")"
}

// is: the status is as given.
func (x *expression) is(status Status) string {
	return x.name(attrStatus) + " = " + x.value(str(string(status)))
}

// equals: a number is as seen; numbers that are 0 are not stored.
func (x *expression) equals(name string, seen int64) string {
	if seen == 0 {
		return "attribute_not_exists(" + x.name(name) + ")"
	}
	return x.name(name) + " = " + x.value(number(seen))
}

// lapsed: the lease has passed. It ends with the millisecond it names; where none is, nobody works under it.
func (x *expression) lapsed(nowMS int64) string {
	return "(attribute_not_exists(" + x.name(attrLeaseUntilMS) + ") OR " +
		x.name(attrLeaseUntilMS) + " <= " + x.value(number(nowMS)) + ")"
}

// mine: the entry is being processed under the claim's generation.
func (x *expression) mine(generation int64) string {
	return x.is(Processing) + " AND " + x.equals(attrGeneration, generation)
}
