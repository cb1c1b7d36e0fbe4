package dynamodb

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// operand is a path, a literal, or the size of either.
type operand struct {
	path path
	lit  *value
	size bool
}

// condition is a node of a condition, filter or key condition: AND, OR and NOT have kids, everything else args.
type condition struct {
	op   string
	kids []*condition
	args []operand
}

// condition parses a boolean expression. A nil src is the condition that always holds, nil.
func (sc *scope) condition(param string, src *string) (*condition, error) {
	if src == nil {
		return nil, nil
	}
	return parse(sc, param, *src, func(p *parser) *condition { return p.or() })
}

func (p *parser) or() *condition {
	c := p.and()
	for p.accept("OR") {
		c = &condition{op: "OR", kids: []*condition{c, p.and()}}
	}
	return c
}

func (p *parser) and() *condition {
	c := p.not()
	for p.accept("AND") {
		c = &condition{op: "AND", kids: []*condition{c, p.not()}}
	}
	return c
}

func (p *parser) not() *condition {
	if p.accept("NOT") {
		return &condition{op: "NOT", kids: []*condition{p.not()}}
	}
	return p.primary()
}

// closing is the place of the parenthesis that closes the one at tokens[at], or 0.
func (p *parser) closing(at int) int {
	depth := 0
	for i, t := range p.tokens[at:] {
		switch t.kind {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return at + i
			}
		}
	}
	return 0
}

// predicates are the functions that are conditions by themselves.
var predicates = []string{"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}

var comparators = []string{"=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN"}

// atGroup tells whether a condition in parentheses comes next, and not an operand in parentheses.
func (p *parser) atGroup() bool {
	end := p.closing(p.at)
	return p.peek().kind == '(' && (end == 0 || !slices.Contains(comparators, strings.ToUpper(p.tokens[end+1].text)))
}

func (p *parser) primary() *condition {
	if p.atGroup() {
		if end := p.closing(p.at); p.tokens[p.at+1].kind == '(' && end > 0 && p.closing(p.at+1) == end-1 {
			p.fail("The expression has redundant parentheses;")
		}
		p.next()
		c := p.or()
		p.expect(")")
		return c
	}
	if p.atFunction() && p.peek().text != "size" {
		name := p.peek().text
		c := p.function()
		if slices.Contains(comparators, strings.ToUpper(p.peek().text)) {
			p.notHere(name)
		}
		return c
	}
	left := p.operand()
	c := &condition{op: strings.ToUpper(p.peek().text), args: []operand{left}}
	if !slices.Contains(comparators, c.op) {
		if left.size {
			p.notHere("size")
		}
		p.failHere()
	}
	p.next()
	switch c.op {
	case "BETWEEN":
		c.args = append(c.args, p.operand())
		p.expect("AND")
		c.args = append(c.args, p.operand())
	case "IN":
		p.expect("(")
		c.args = append(c.args, p.operand())
		for p.accept(",") {
			c.args = append(c.args, p.operand())
		}
		p.expect(")")
		if len(c.args) > 101 { // the operand and up to 100 choices ("Quotas in Amazon DynamoDB")
			p.fail("Too many operands for operator or function; operator or function: IN, number of operands: %d", len(c.args))
		}
	default:
		c.args = append(c.args, p.operand())
	}
	p.checkOperands(c)
	return c
}

// operand parses a path, a value or size(), in any number of parentheses.
func (p *parser) operand() operand {
	switch {
	case p.accept("("):
		o := p.operand()
		p.expect(")")
		return o
	case p.peek().kind == ':':
		v := p.literal()
		return operand{lit: &v}
	case !p.atFunction():
		return operand{path: p.path()}
	case p.peek().text != "size":
		p.functionName(predicates...)
		p.notHere(p.peek().text)
	}
	args := p.arguments("size", 1)
	o := args[0]
	if o.size || o.lit != nil && (o.lit.kind == "N" || o.lit.kind == "BOOL" || o.lit.kind == "NULL") {
		kind := "N"
		if o.lit != nil {
			kind = o.lit.kind
		}
		p.wrongType("size", kind)
	}
	o.size = true
	return o
}

func (p *parser) wrongType(op, kind string) {
	p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", op, kind)
}

func (p *parser) functionName(known ...string) {
	if name := p.peek().text; !slices.Contains(known, name) {
		p.fail("Invalid function name; function: %s", name)
	}
}

// arguments takes a function's name and its arguments, of which there must be count.
func (p *parser) arguments(name string, count int) []operand {
	p.next()
	p.expect("(")
	args := []operand{p.operand()}
	for p.accept(",") {
		args = append(args, p.operand())
	}
	p.expect(")")
	if len(args) != count {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
	}
	return args
}

func (p *parser) function() *condition {
	name := p.peek().text
	p.functionName(predicates...)
	count := 2
	if strings.HasSuffix(name, "_exists") {
		count = 1
	}
	c := &condition{op: name, args: p.arguments(name, count)}
	if strings.HasPrefix(name, "attribute_") && (c.args[0].path == nil || c.args[0].size) {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
	}
	p.checkOperands(c)
	return c
}

// checkOperands refuses what can be seen to be wrong without an item.
func (p *parser) checkOperands(c *condition) {
	for i, o := range c.args {
		if i > 0 && o.path != nil && c.args[0].path != nil && o.size == c.args[0].size && slices.Equal(o.path, c.args[0].path) {
			p.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", c.op, o.path)
		}
		kind := ""
		switch {
		case o.size:
			kind = "N"
		case o.lit != nil:
			kind = o.lit.kind
		}
		var allowed []string
		switch c.op {
		case "<", "<=", ">", ">=", "BETWEEN":
			allowed = []string{"S", "N", "B"}
		case "begins_with":
			allowed = []string{"S", "B"}
		case "attribute_type":
			if i == 0 {
				continue
			}
			if allowed = []string{"S"}; kind == "" {
				kind = "a document path"
			}
		}
		if kind != "" && allowed != nil && !slices.Contains(allowed, kind) {
			p.wrongType(c.op, kind)
		}
	}
	switch c.op {
	case "BETWEEN":
		low, high := c.args[1].lit, c.args[2].lit
		if low == nil || high == nil || c.args[1].size || c.args[2].size {
			return
		}
		if low.kind != high.kind {
			p.fail("The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s", low, high)
		}
		if low.compare(*high) > 0 {
			p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s", low, high)
		}
	case "attribute_type":
		const kinds = " B BOOL BS L M N NS NULL S SS "
		if kind := c.args[1].lit.str; strings.Contains(kind, " ") || !strings.Contains(kinds, " "+kind+" ") {
			p.fail("Invalid attribute type name found; type: %s, valid types: {B,BOOL,BS,L,M,N,NS,NULL,S,SS}", kind)
		}
	}
}

func (o operand) eval(it item) (value, bool) {
	v, ok := value{}, true
	if o.lit != nil {
		v = *o.lit
	} else {
		v, ok = it.lookup(o.path)
	}
	if !o.size || !ok {
		return v, ok
	}
	n := 0
	switch v.kind {
	case "S":
		n = utf8.RuneCountInString(v.str)
	case "B":
		n = len(v.str)
	case "M":
		n = len(v.doc)
	case "L", "SS", "NS", "BS":
		n = len(v.list)
	default:
		return value{}, false
	}
	size, err := parseNumber(strconv.Itoa(n))
	return numberValue(size), err == nil
}

// holds evaluates the condition on an item; nil stands for an absent one. A comparison with something absent or of
// another type is false, but for <>, which is true.
func (c *condition) holds(it item) bool {
	if c == nil {
		return true
	}
	switch c.op {
	case "AND":
		return c.kids[0].holds(it) && c.kids[1].holds(it)
	case "OR":
		return c.kids[0].holds(it) || c.kids[1].holds(it)
	case "NOT":
		return !c.kids[0].holds(it)
	}
	a, found := c.args[0].eval(it)
	switch c.op {
	case "attribute_exists":
		return found
	case "attribute_not_exists":
		return !found
	case "attribute_type":
		return found && a.kind == c.args[1].lit.str
	case "BETWEEN":
		return c.compares(it, a, found, 1, ">=") && c.compares(it, a, found, 2, "<=")
	case "IN":
		for i := range c.args[1:] {
			if c.compares(it, a, found, i+1, "=") {
				return true
			}
		}
		return false
	}
	return c.compares(it, a, found, 1, c.op)
}

// compares tells whether op holds between a and the argument at index i.
func (c *condition) compares(it item, a value, found bool, i int, op string) bool {
	b, ok := c.args[i].eval(it)
	if !found || !ok {
		return op == "<>"
	}
	switch op {
	case "=":
		return a.equal(b)
	case "<>":
		return !a.equal(b)
	case "contains":
		return a.contains(b)
	}
	if a.kind != b.kind || !a.ordered() {
		return false
	}
	order := a.compare(b)
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return a.kind != "N" && strings.HasPrefix(a.str, b.str) // begins_with
}

func (v value) contains(o value) bool {
	switch v.kind {
	case "S", "B":
		return v.kind == o.kind && strings.Contains(v.str, o.str)
	case "L":
		return slices.ContainsFunc(v.list, o.equal)
	}
	_, ok := v.memberIndex(o)
	return ok
}

// String words a scalar as DynamoDB's messages do.
func (v value) String() string {
	text := v.str
	if v.kind == "N" {
		text = v.num.String()
	}
	return "{" + v.kind + ":" + text + "}"
}
