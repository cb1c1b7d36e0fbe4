package dynamodb

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// expressionParams are the placeholders of a request.
type expressionParams struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]*wireValue
}

// scope holds the placeholders while the expressions of one request are parsed, and which of them were used.
type scope struct {
	names                 map[string]string
	values                map[string]value
	usedNames, usedValues map[string]bool
}

func (p expressionParams) scope(expressions ...*string) (*scope, error) {
	sc := &scope{names: p.ExpressionAttributeNames, values: map[string]value{}, usedNames: map[string]bool{}, usedValues: map[string]bool{}}
	given := slices.ContainsFunc(expressions, func(s *string) bool { return s != nil })
	if p.ExpressionAttributeNames != nil {
		if !given {
			return nil, validationf("ExpressionAttributeNames can only be specified when using expressions")
		}
		if len(p.ExpressionAttributeNames) == 0 {
			return nil, validationf("ExpressionAttributeNames must not be empty")
		}
	}
	if p.ExpressionAttributeValues != nil {
		if !given {
			return nil, validationf("ExpressionAttributeValues can only be specified when using expressions")
		}
		if len(p.ExpressionAttributeValues) == 0 {
			return nil, validationf("ExpressionAttributeValues must not be empty")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.ExpressionAttributeNames)) {
		if !isPlaceholder(k, '#') {
			return nil, validationf("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", k)
		}
		if p.ExpressionAttributeNames[k] == "" {
			return nil, validationf("ExpressionAttributeNames contains invalid value: Attribute name is empty for key %s", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.ExpressionAttributeValues)) {
		if !isPlaceholder(k, ':') {
			return nil, validationf("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", k)
		}
		v, err := p.ExpressionAttributeValues[k].decode(1)
		if err != nil {
			return nil, validationf("ExpressionAttributeValues contains invalid value: %s for key %s", err.(*apiError).message, k)
		}
		sc.values[k] = v
	}
	return sc, nil
}

func isPlaceholder(s string, prefix byte) bool {
	return len(s) > 1 && s[0] == prefix && strings.IndexFunc(s[1:], func(r rune) bool { return r > 127 || !isLetter(byte(r)) && !isDigit(byte(r)) }) < 0
}

// finish refuses placeholders no expression used.
func (sc *scope) finish() error {
	unused := func(keys []string, used map[string]bool) string {
		return strings.Join(slices.DeleteFunc(keys, func(k string) bool { return used[k] }), ", ")
	}
	if s := unused(slices.Sorted(maps.Keys(sc.names)), sc.usedNames); s != "" {
		return validationf("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", s)
	}
	if s := unused(slices.Sorted(maps.Keys(sc.values)), sc.usedValues); s != "" {
		return validationf("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", s)
	}
	return nil
}

// parser reads one expression. Its methods stop at the first error by panicking with it; parse recovers.
type parser struct {
	*scope
	param  string
	src    string
	tokens []token
	at     int // the next token
}

// parse runs read over the whole expression src, which the request gave in param.
func parse[T any](sc *scope, param, src string, read func(*parser) T) (out T, err error) {
	tokens, err := lex(param, src)
	if err != nil {
		return out, err
	}
	p := &parser{scope: sc, param: param, src: src, tokens: tokens}
	if p.peek().kind == 0 {
		return out, validationf("Invalid %s: The expression can not be empty;", param)
	}
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(*apiError)
			if !ok {
				panic(r)
			}
			err = failed
		}
	}()
	out = read(p)
	if p.peek().kind != 0 {
		p.failHere()
	}
	return out, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(validationf("Invalid "+p.param+": "+format, args...))
}

func (p *parser) failHere() {
	panic(syntaxError(p.param, p.src, p.tokens, p.at))
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != 0 {
		p.at++
	}
	return t
}

// accept takes the next token if it is this punctuation or, in any case, this keyword.
func (p *parser) accept(text string) bool {
	if t := p.peek(); t.kind == 0 || !strings.EqualFold(t.text, text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.failHere()
	}
}

// atFunction tells whether a name followed by a parenthesis comes next.
func (p *parser) atFunction() bool {
	return p.peek().kind == 'a' && p.tokens[p.at+1].kind == '('
}

func (p *parser) path() path {
	var out path
	for {
		t := p.peek()
		name := t.text
		switch t.kind {
		case '#':
			known, ok := p.names[name]
			if !ok {
				p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			p.usedNames[name] = true
			name = known
		case 'a':
			if isReserved(name) {
				p.fail("Attribute name is a reserved keyword; reserved keyword: %s", name)
			}
		default:
			p.failHere()
		}
		p.next()
		out = append(out, step{name: name, key: true})
		for p.accept("[") {
			t := p.peek()
			if t.kind != '0' {
				p.failHere()
			}
			i, err := strconv.Atoi(t.text)
			if err != nil || i > 1<<31-1 {
				p.fail("List index is not within the allowable range; index: [%s]", t.text)
			}
			p.next()
			p.expect("]")
			out = append(out, step{index: i})
		}
		if len(out) > maxDepth {
			p.fail("The document path has too many nesting elements; nesting level: %d", len(out))
		}
		if !p.accept(".") {
			return out
		}
	}
}

func (p *parser) literal() value {
	t := p.next()
	v, ok := p.values[t.text]
	if !ok {
		p.fail("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	p.usedValues[t.text] = true
	return v
}

// projection parses a ProjectionExpression.
func (sc *scope) projection(src string) ([]path, error) {
	const param = "ProjectionExpression"
	paths, err := parse(sc, param, src, func(p *parser) []path {
		out := []path{p.path()}
		for p.accept(",") {
			out = append(out, p.path())
		}
		return out
	})
	if err != nil {
		return nil, err
	}
	return paths, checkPaths(param, paths)
}
