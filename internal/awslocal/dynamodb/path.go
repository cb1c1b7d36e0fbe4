package dynamodb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// step is one step of a document path: a map key, or, when name is empty, a list index.
type step struct {
	name  string
	index int
	key   bool
}

// path is a document path; its first step is a top-level attribute.
type path []step

func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if parts[i] = s.name; !s.key {
			parts[i] = fmt.Sprintf("[%d]", s.index)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func compareSteps(a, b step) int {
	return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
}

// lookup finds the value at the path.
func (it item) lookup(p path) (value, bool) {
	v := value{kind: "M", doc: it}
	for _, s := range p {
		switch {
		case s.key && v.kind == "M":
			next, ok := v.doc[s.name]
			if !ok {
				return value{}, false
			}
			v = next
		case !s.key && v.kind == "L" && s.index < len(v.list):
			v = v.list[s.index]
		default:
			return value{}, false
		}
	}
	return v, true
}

// checkPaths refuses pairs of which one is inside the other, or which take the same place for a map and for a list.
func checkPaths(param string, paths []path) error {
	for i, a := range paths {
		for _, b := range paths[:i] {
			n := 0
			for n < min(len(a), len(b)) && a[n] == b[n] {
				n++
			}
			switch {
			case n == min(len(a), len(b)):
				return validationf("Invalid %s: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", param, b, a)
			case a[n].key != b[n].key:
				return validationf("Invalid %s: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", param, b, a)
			}
		}
	}
	return nil
}

// shown is what a ProjectionExpression with the paths keeps; without paths, everything. Elements taken from a list
// close ranks, in their old order.
func (it item) shown(paths []path) item {
	if paths == nil {
		return it
	}
	out, ok := project(value{kind: "M", doc: it}, paths)
	if !ok {
		return item{}
	}
	return out.doc
}

func project(v value, paths []path) (value, bool) {
	groups := map[step][]path{}
	for _, p := range paths {
		if len(p) == 0 {
			return v, true
		}
		groups[p[0]] = append(groups[p[0]], p[1:])
	}
	out := value{kind: v.kind}
	steps := make([]step, 0, len(groups))
	for s := range groups {
		steps = append(steps, s)
	}
	slices.SortFunc(steps, compareSteps)
	for _, s := range steps {
		child, ok := (item{"": v}).lookup(path{{key: true}, s})
		if !ok {
			continue
		}
		if child, ok = project(child, groups[s]); !ok {
			continue
		}
		if s.key {
			if out.doc == nil {
				out.doc = item{}
			}
			out.doc[s.name] = child
		} else {
			out.list = append(out.list, child)
		}
	}
	return out, out.doc != nil || out.list != nil
}

// assign returns v with the value at the path replaced, or removed when to is nil. The containers on the way are
// copied. Setting an index past a list's end appends.
func assign(v value, p path, to *value) (value, error) {
	if len(p) == 0 {
		return *to, nil
	}
	invalid := validationf("The document path provided in the update expression is invalid for update")
	s, last := p[0], len(p) == 1
	switch {
	case s.key && v.kind == "M":
		doc := make(item, len(v.doc)+1)
		for k, e := range v.doc {
			doc[k] = e
		}
		child, ok := doc[s.name]
		switch {
		case last && to == nil:
			delete(doc, s.name)
		case last || ok:
			child, err := assign(child, p[1:], to)
			if err != nil {
				return v, err
			}
			doc[s.name] = child
		default:
			return v, invalid
		}
		return value{kind: "M", doc: doc}, nil
	case !s.key && v.kind == "L":
		list := slices.Clone(v.list)
		switch inside := s.index < len(list); {
		case last && to == nil && inside:
			list = slices.Delete(list, s.index, s.index+1)
		case last && to == nil:
		case last && !inside:
			list = append(list, *to)
		case inside:
			child, err := assign(list[s.index], p[1:], to)
			if err != nil {
				return v, err
			}
			list[s.index] = child
		default:
			return v, invalid
		}
		return value{kind: "L", list: list}, nil
	}
	return v, invalid
}
