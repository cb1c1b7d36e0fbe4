package dynamodb

import (
	"slices"
	"strings"
)

// updateOperand is a path, a literal, or an operator (if_not_exists, list_append, +, -) on two operands.
type updateOperand struct {
	path path
	lit  *value
	op   string
	args []updateOperand
}

// action is one thing an update expression does: SET, REMOVE, ADD or DELETE.
type action struct {
	verb string
	path path
	arg  updateOperand
}

type update []action

// update parses an UpdateExpression. A nil src does nothing.
func (sc *scope) update(src *string) (update, error) {
	if src == nil {
		return nil, nil
	}
	const param = "UpdateExpression"
	u, err := parse(sc, param, *src, (*parser).update)
	if err != nil {
		return nil, err
	}
	paths := make([]path, len(u))
	for i, a := range u {
		paths[i] = a.path
	}
	return u, checkPaths(param, paths)
}

func (p *parser) update() update {
	var out update
	var seen []string
	for p.peek().kind != 0 {
		verb := strings.ToUpper(p.peek().text)
		if !slices.Contains([]string{"SET", "REMOVE", "ADD", "DELETE"}, verb) {
			p.failHere()
		}
		if slices.Contains(seen, verb) {
			p.fail("The %q section can only be used once in an update expression;", verb)
		}
		seen = append(seen, verb)
		p.next()
		for more := true; more; more = p.accept(",") {
			out = append(out, p.action(verb))
		}
	}
	return out
}

func (p *parser) action(verb string) action {
	a := action{verb: verb, path: p.path()}
	switch verb {
	case "SET":
		p.expect("=")
		a.arg = p.sum()
	case "ADD", "DELETE":
		if p.peek().kind != ':' {
			p.failHere()
		}
		v := p.literal()
		if !v.isSet() && (verb == "DELETE" || v.kind != "N") {
			p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", verb, longKinds[v.kind], verb)
		}
		a.arg = updateOperand{lit: &v}
	}
	return a
}

var longKinds = map[string]string{"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL", "L": "LIST", "M": "MAP"}

func (p *parser) sum() updateOperand {
	left := p.term()
	op := p.peek().text
	if op != "+" && op != "-" {
		return left
	}
	if left.op == "+" || left.op == "-" { // one operator a clause, in parentheses or not
		p.failHere()
	}
	p.next()
	out := updateOperand{op: op, args: []updateOperand{left, p.term()}}
	for _, o := range out.args {
		if o.op != "" && o.op != "if_not_exists" {
			p.notHere(o.op)
		}
		if o.lit != nil && o.lit.kind != "N" {
			p.wrongType(op, o.lit.kind)
		}
	}
	return out
}

func (p *parser) notHere(function string) {
	p.fail("The function is not allowed to be used this way in an expression; function: %s", function)
}

func (p *parser) term() updateOperand {
	switch {
	case p.accept("("):
		o := p.sum()
		p.expect(")")
		return o
	case p.peek().kind == ':':
		v := p.literal()
		return updateOperand{lit: &v}
	case !p.atFunction():
		return updateOperand{path: p.path()}
	}
	name := p.next().text
	if name != "if_not_exists" && name != "list_append" {
		if name == "size" || slices.Contains(predicates, name) {
			p.fail("The function is not allowed in an update expression; function: %s", name)
		}
		p.fail("Invalid function name; function: %s", name)
	}
	p.expect("(")
	out := updateOperand{op: name, args: []updateOperand{p.term()}}
	for p.accept(",") {
		out.args = append(out.args, p.term())
	}
	p.expect(")")
	if len(out.args) != 2 {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(out.args))
	}
	if name == "if_not_exists" && out.args[0].path == nil {
		p.fail("Operator or function requires a document path; operator or function: if_not_exists")
	}
	for _, o := range out.args {
		if o.op != "" && o.op != "if_not_exists" {
			p.notHere(o.op)
		}
		if name == "list_append" && o.lit != nil && o.lit.kind != "L" {
			p.wrongType(name, o.lit.kind)
		}
	}
	return out
}

func (o updateOperand) eval(it item) (value, error) {
	switch o.op {
	case "":
		if o.lit != nil {
			return *o.lit, nil
		}
		v, ok := it.lookup(o.path)
		if !ok {
			return v, validationf("The provided expression refers to an attribute that does not exist in the item")
		}
		return v, nil
	case "if_not_exists":
		if v, ok := it.lookup(o.args[0].path); ok {
			return v, nil
		}
		return o.args[1].eval(it)
	}
	a, err := o.args[0].eval(it)
	if err != nil {
		return a, err
	}
	b, err := o.args[1].eval(it)
	if err != nil {
		return b, err
	}
	switch {
	case o.op == "list_append" && a.kind == "L" && b.kind == "L":
		return value{kind: "L", list: slices.Concat(a.list, b.list)}, nil
	case o.op == "list_append" || a.kind != "N" || b.kind != "N":
		return a, wrongOperand()
	case o.op == "-":
		b.num = b.num.negated()
	}
	sum, err := a.num.plus(b.num)
	return numberValue(sum), err
}

func wrongOperand() error {
	return validationf("An operand in the update expression has an incorrect data type")
}

// result is what the action leaves at its path, computed from the item as it was; nil means nothing.
func (a action) result(it item) (*value, error) {
	if a.verb == "REMOVE" {
		return nil, nil
	}
	arg, err := a.arg.eval(it)
	if err != nil || a.verb == "SET" {
		return &arg, err
	}
	old, ok := it.lookup(a.path)
	switch {
	case !ok && a.verb == "DELETE":
		return nil, nil
	case !ok:
		return &arg, nil
	case old.kind != arg.kind:
		return nil, wrongOperand()
	case arg.kind == "N":
		sum, err := old.num.plus(arg.num)
		v := numberValue(sum)
		return &v, err
	}
	out := value{kind: old.kind, list: slices.Clone(old.list)}
	for _, m := range arg.list {
		i, found := out.memberIndex(m)
		switch {
		case found && a.verb == "DELETE":
			out.list = slices.Delete(out.list, i, i+1)
		case !found && a.verb == "ADD":
			out.list = slices.Insert(out.list, i, m)
		}
	}
	if len(out.list) == 0 {
		return nil, nil
	}
	return &out, nil
}

// apply returns the item with all actions done. All of them see the item as it was; list elements go away only
// after everything else is in place, so that indexes mean what they meant in the old item.
func (u update) apply(it item) (item, error) {
	type change struct {
		path path
		to   *value
	}
	var sets, removals []change
	for _, a := range u {
		to, err := a.result(it)
		if err != nil {
			return nil, err
		}
		if to != nil {
			sets = append(sets, change{a.path, to})
		} else {
			removals = append(removals, change{a.path, nil})
		}
	}
	byPath := func(a, b change) int { return slices.CompareFunc(a.path, b.path, compareSteps) }
	slices.SortFunc(sets, byPath)
	slices.SortFunc(removals, func(a, b change) int { return byPath(b, a) })
	out := value{kind: "M", doc: it}
	for _, c := range append(sets, removals...) {
		var err error
		if out, err = assign(out, c.path, c.to); err != nil {
			return nil, err
		}
	}
	for name, v := range out.doc {
		if v.depth() > maxDepth {
			return nil, validationf("Nesting Levels have exceeded supported limits: Attribute %s has nested levels beyond supported limit", name)
		}
	}
	return out.doc, nil
}

// touched is what UPDATED_OLD and UPDATED_NEW return of an item: the top-level attributes of those paths of the
// update that exist in it, whole, as DynamoDB Local does.
func (u update) touched(it item) item {
	out := item{}
	for _, a := range u {
		if _, ok := it.lookup(a.path); ok {
			out[a.path[0].name] = it[a.path[0].name]
		}
	}
	return out
}
