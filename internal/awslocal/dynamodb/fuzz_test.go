package dynamodb

import (
	"encoding/json"
	"testing"
)

func fuzzScope(t testing.TB) (*scope, item) {
	t.Helper()
	var wire map[string]*wireValue
	if err := json.Unmarshal([]byte(sample), &wire); err != nil {
		t.Fatal(err)
	}
	p := expressionParams{
		ExpressionAttributeNames:  map[string]string{"#n": "n", "#m": "m", "#l": "l"},
		ExpressionAttributeValues: map[string]*wireValue{":n": wire["n"], ":s": wire["s"], ":l": wire["l"], ":ss": wire["ss"], ":m": wire["m"]},
	}
	none := ""
	sc, err := p.scope(&none)
	if err != nil {
		t.Fatal(err)
	}
	it, err := decodeItem(wire)
	if err != nil {
		t.Fatal(err)
	}
	return sc, it
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		"#n = :n AND NOT (#l[0] < :s OR size(#m.k) >= :n)", "attribute_type(n, :s) OR begins_with(s, :s)", "n BETWEEN :n AND :n",
		"n IN (:n, :s) AND contains(ss, :s)", "((n)) = (:n)", "((n = :n))", "size(size(n))", "a.b[1][2].c <> :m", "(", ")(", "#", ":", "n = :n AND",
	} {
		f.Add(s)
	}
	sc, it := fuzzScope(f)
	f.Fuzz(func(t *testing.T, src string) {
		c, err := sc.condition("ConditionExpression", &src)
		if err != nil {
			if _, ok := err.(*apiError); !ok {
				t.Fatalf("%q: %v", src, err)
			}
			return
		}
		if not := (&condition{op: "NOT", kids: []*condition{c}}); c.holds(it) == not.holds(it) || c.holds(nil) == not.holds(nil) {
			t.Fatalf("%q and its negation agree", src)
		}
		low, high, err := c.bounds(keySchema{{"n", "N"}, {"s", "S"}})
		if err == nil && low > high && high != "" {
			t.Fatalf("%q: range from %q to %q", src, low, high)
		}
	})
}

func FuzzUpdate(f *testing.F) {
	for _, s := range []string{
		"SET #n = #n + :n, #m.q = if_not_exists(z, :s) REMOVE #l[0], bo ADD ns :n DELETE ss :ss", "SET l[9] = list_append(l, :l)",
		"SET z = (n - :n)", "DELETE ss :ss ADD n :n", "REMOVE l[1], l[2] SET l[0] = :m", "set", "SET n = = :n", "ADD", "REMOVE a..b", "SET l[18446744073709551616] = :n",
	} {
		f.Add(s)
	}
	sc, it := fuzzScope(f)
	before := string(it.appendJSON(nil))
	f.Fuzz(func(t *testing.T, src string) {
		u, err := sc.update(&src)
		if err != nil {
			return
		}
		after, err := u.apply(it)
		if string(it.appendJSON(nil)) != before {
			t.Fatalf("%q changed the stored item", src)
		}
		if err != nil {
			return
		}
		u.touched(after)
		var wire map[string]*wireValue
		encoded := after.appendJSON(nil)
		if err := json.Unmarshal(encoded, &wire); err != nil {
			t.Fatalf("%q made %s: %v", src, encoded, err)
		}
		again, err := decodeItem(wire)
		if err != nil || !again.equal(after) {
			t.Fatalf("%q made %s, which is not an item: %v", src, encoded, err)
		}
	})
}

func FuzzProjection(f *testing.F) {
	for _, s := range []string{"n, m.k, l[0], l[2]", "#m, #l[1]", "n,", "a[b]"} {
		f.Add(s)
	}
	sc, it := fuzzScope(f)
	f.Fuzz(func(t *testing.T, src string) {
		paths, err := sc.projection(src)
		if err != nil {
			return
		}
		if out := it.shown(paths); out.size() > it.size() {
			t.Fatalf("%q shows more than there is: %s", src, out.appendJSON(nil))
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-1.5e-3", "12345678901234567890123456789012345678", "1e125", "+.5", "1e", "--1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		n, err := parseNumber(src)
		if err != nil {
			return
		}
		again, err := parseNumber(n.String())
		if err != nil || again != n {
			t.Fatalf("%q is %s, which is %s, %v", src, n, again, err)
		}
		if sum, err := n.plus(n.negated()); err != nil || sum != (number{}) {
			t.Fatalf("%s minus itself is %s, %v", n, sum, err)
		}
	})
}
