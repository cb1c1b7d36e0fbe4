package dynamodb

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbersComeBackNormalised(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0e500": "0", "007": "7", "+1.0": "1", "1.50e-3": "0.0015", "-1.5": "-1.5", ".5": "0.5", "5.": "5",
		"12345678901234567890123456789012345678":     "12345678901234567890123456789012345678",
		"0.0000000000000000000000000000000000000012": "0.0000000000000000000000000000000000000012",
		"100000000000000000000000000000000000000000": "100000000000000000000000000000000000000000",
		"1E3": "1000", "9.9999999999999999999999999999999999999e125": "99999999999999999999999999999999999999" + strings.Repeat("0", 88),
		"1e-130": "0." + strings.Repeat("0", 129) + "1",
	} {
		n, err := parseNumber(in)
		if err != nil || n.String() != want {
			t.Errorf("%s is %s, %v; want %s", in, n, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "cannot be converted", "abc": "cannot be converted", " 1": "cannot be converted", "1 ": "cannot be converted", "NaN": "cannot be converted",
		"1e": "cannot be converted", "--1": "cannot be converted", "1.2.3": "cannot be converted", ".": "cannot be converted", "0x1": "cannot be converted",
		"123456789012345678901234567890123456789": "more than 38 significant digits",
		"1e126": "Number overflow", "-1e126": "Number overflow", "1e-131": "Number underflow", "1e99999": "Number overflow",
	} {
		if n, err := parseNumber(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %s, %v; want an error with %q", in, n, err, want)
		}
	}
}

// numbers draws decimals and their exact values.
func numbers(t *rapid.T, label string) (number, *big.Rat) {
	mantissa, exp := rapid.Int64Range(-999999, 999999).Draw(t, label), rapid.IntRange(-12, 12).Draw(t, label+" exponent")
	text := fmt.Sprintf("%de%d", mantissa, exp)
	n, err := parseNumber(text)
	if err != nil {
		t.Fatal(err)
	}
	exact, _ := new(big.Rat).SetString(text)
	return n, exact
}

func TestNumbersAddAndCompareExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, exactA := numbers(t, "a")
		b, exactB := numbers(t, "b")
		if got, want := a.compare(b), exactA.Cmp(exactB); got != want {
			t.Fatalf("compare(%s, %s) = %d, want %d", a, b, got, want)
		}
		sum, err := a.plus(b)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := new(big.Rat).SetString(sum.String())
		if want := new(big.Rat).Add(exactA, exactB); got.Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s", a, b, sum)
		}
	})
}

func TestSortKeysHaveTheOrderOfStringsAndNoPrefixes(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.RuneFrom([]rune{0, 1, 2, 'a', 'b', 'ÿ'}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		keyA, keyB := stringValue(a).sortKey(), stringValue(b).sortKey()
		if strings.Compare(keyA, keyB) != strings.Compare(a, b) {
			t.Fatalf("order of %q and %q", a, b)
		}
		if a != b && strings.HasPrefix(keyA, keyB) {
			t.Fatalf("the key of %q begins the key of %q", b, a)
		}
		if strings.HasPrefix(keyA, stringValue(b).sortPrefix()) != strings.HasPrefix(a, b) {
			t.Fatalf("%q begins %q", b, a)
		}
	})
}

func TestSortedListBehavesLikeAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list sorted
		model := map[string]*record{}
		for range rapid.IntRange(0, 3000).Draw(t, "operations") {
			key := fmt.Sprintf("%04d", rapid.IntRange(0, 2000).Draw(t, "key"))
			if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				list.delete(key)
				delete(model, key)
			} else {
				rec := &record{key: key}
				list.set(key, rec)
				model[key] = rec
			}
		}
		want := slices.Sorted(maps.Keys(model))
		if list.count != len(want) {
			t.Fatalf("count %d, want %d", list.count, len(want))
		}
		low, high := "0500", "1500"
		want = slices.DeleteFunc(want, func(k string) bool { return k < low || k >= high })
		for _, forward := range []bool{true, false} {
			var got []string
			list.walk(low, high, forward, func(e entry) bool {
				if model[e.key] != e.rec || list.get(e.key) != e.rec {
					t.Fatalf("another record under %s", e.key)
				}
				got = append(got, e.key)
				return true
			})
			if !forward {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("forward %t: %d entries, want %d", forward, len(got), len(want))
			}
		}
	})
}

func TestBadValuesAreRefused(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	nested := func(depth int) string {
		return strings.Repeat(`{"L":[`, depth) + `{"N":"1"}` + strings.Repeat(`]}`, depth)
	}
	for value, want := range map[string]string{
		`{}`:                       "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		`null`:                     "Supplied AttributeValue is empty",
		`{"S":"a","N":"1"}`:        "more than one datatypes set",
		`{"SS":[]}`:                "An string set  may not be empty",
		`{"NS":[]}`:                "may not be empty",
		`{"SS":["a","a"]}`:         "Input collection [a a] contains duplicates.",
		`{"NS":["1","1.0"]}`:       "contains duplicates",
		`{"BS":["YQ==","YQ=="]}`:   "contains duplicates",
		`{"NULL":false}`:           "Null attribute value types must have the value of true",
		`{"N":"x"}`:                "cannot be converted to a numeric value: x",
		`{"L":[{"N":"x"}]}`:        "cannot be converted to a numeric value: x",
		`{"M":{"k":{"SS":[]}}}`:    "may not be empty",
		`{"N":1}`:                  "SerializationException",
		`{"B":"!!"}`:               "SerializationException",
		`{"X":"1"}`:                "is not supported by this endpoint",
		nested(32):                 "Nesting Levels have exceeded supported limits",
		nested(31):                 `{}`,
		`{"S":""}`:                 `{}`,
		`{"B":""}`:                 `{}`,
		`{"SS":[""]}`:              `{}`,
		`{"M":{}}`:                 `{}`,
		`{"L":[]}`:                 `{}`,
		`{"M":{"":{"S":"empty"}}}`: `{}`,
	} {
		got := call(s, "PutItem", `{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"b"},"v":`+value+`}}`)
		if strings.HasPrefix(want, "{") != (got == "{}") || !strings.Contains(got, want) {
			t.Errorf("%.60s: got %s, want %s", value, got, want)
		}
	}
	contains(t, "too deep after an update", call(s, "UpdateItem", `{`+sampleKey+`,"UpdateExpression":"SET m = :m","ExpressionAttributeValues":{":m":{"M":{"k":{"N":"1"}}}}}`), `{}`)
	contains(t, "too deep after an update", call(s, "UpdateItem", `{`+sampleKey+`,"UpdateExpression":"SET m.k = :m","ExpressionAttributeValues":{":m":`+nested(31)+`}}`), "Nesting Levels have exceeded supported limits")
}

func TestItemsWeighWhatDynamoDBSays(t *testing.T) {
	t.Parallel()
	n := func(s string) value { v, _ := parseNumber(s); return numberValue(v) }
	for _, c := range []struct {
		it   item
		want int
	}{
		{item{"a": stringValue("é")}, 3},
		{item{"a": n("0")}, 2},
		{item{"a": n("100")}, 3},
		{item{"a": n("-123")}, 5},
		{item{"a": {kind: "BOOL"}, "b": {kind: "NULL"}}, 4},
		{item{"a": {kind: "L"}}, 4},
		{item{"a": {kind: "L", list: []value{stringValue("xy"), stringValue("")}}}, 8},
		{item{"a": {kind: "M", doc: item{"key": stringValue("xy")}}}, 10},
		{item{"a": {kind: "SS", list: []value{stringValue("xy"), stringValue("z")}}}, 4},
	} {
		if got := c.it.size(); got != c.want {
			t.Errorf("%s weighs %d, want %d", c.it.appendJSON(nil), got, c.want)
		}
	}
}
