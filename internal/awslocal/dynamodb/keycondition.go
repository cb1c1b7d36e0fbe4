package dynamodb

import "strings"

// paths are all document paths in the condition.
func (c *condition) paths() []path {
	if c == nil {
		return nil
	}
	var out []path
	for _, k := range c.kids {
		out = append(out, k.paths()...)
	}
	for _, o := range c.args {
		if o.path != nil {
			out = append(out, o.path)
		}
	}
	return out
}

// bounds turns a key condition into the range of keys low <= key < high it selects in the schema's order.
func (c *condition) bounds(schema keySchema) (low, high string, err error) {
	conditions := map[string]*condition{}
	if err := c.collect(conditions); err != nil {
		return "", "", err
	}
	for i, part := range schema {
		k := conditions[part.name]
		if k == nil {
			if i == 0 || len(conditions) > i {
				return "", "", validationf("Query condition missed key schema element: %s", part.name)
			}
			return low, high, nil
		}
		for _, o := range k.args[1:] {
			if o.lit.kind != part.kind {
				return "", "", invalidf("Condition parameter type does not match schema type")
			}
			if err := (keySchema{part}).checkValues(item{part.name: *o.lit}, ""); err != nil {
				return "", "", err
			}
		}
		if i == 0 {
			if k.op != "=" {
				return "", "", validationf("Query key condition not supported")
			}
			low = partition(*k.args[1].lit)
			high = prefixEnd(low)
			continue
		}
		low, high = k.within(low)
	}
	if len(conditions) > len(schema) {
		return "", "", validationf("Query key condition not supported")
	}
	return low, high, nil
}

// collect gathers the conditions of a conjunction by the attribute they are on.
func (c *condition) collect(into map[string]*condition) error {
	const param = "KeyConditionExpression"
	switch c.op {
	case "AND":
		for _, k := range c.kids {
			if err := k.collect(into); err != nil {
				return err
			}
		}
		return nil
	case "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with":
	default:
		return validationf("Invalid operator used in %s: %s", param, c.op)
	}
	k := *c
	if k.args[0].path == nil && len(k.args) == 2 && k.op != "begins_with" {
		k.args = []operand{k.args[1], k.args[0]}
		k.op = strings.NewReplacer("<", ">", ">", "<").Replace(k.op)
	}
	for i, o := range k.args {
		if o.size {
			return validationf("Invalid operator used in %s: size", param)
		}
		if (i == 0) != (o.path != nil) {
			return validationf("Invalid condition in %s: Multiple attribute names used in one condition", param)
		}
	}
	p := k.args[0].path
	if len(p) > 1 {
		return validationf("Invalid %s: KeyConditionExpressions cannot have conditions on nested attributes", param)
	}
	if into[p[0].name] != nil {
		return validationf("KeyConditionExpressions must only contain one condition per key")
	}
	into[p[0].name] = &k
	return nil
}

// within is the range the sort key condition selects in the partition with the prefix.
func (c *condition) within(prefix string) (low, high string) {
	low, high = prefix, prefixEnd(prefix)
	first := *c.args[1].lit
	key := prefix + first.sortKey()
	switch c.op {
	case "=":
		return key, prefixEnd(key)
	case "<":
		return low, key
	case "<=":
		return low, prefixEnd(key)
	case ">":
		return prefixEnd(key), high
	case ">=":
		return key, high
	case "BETWEEN":
		return key, prefixEnd(prefix + c.args[2].lit.sortKey())
	}
	key = prefix + first.sortPrefix() // begins_with
	return key, prefixEnd(key)
}

// prefixEnd is the first string after all that begin with the prefix, "" if there is none.
func prefixEnd(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 {
		if b[len(b)-1]++; b[len(b)-1] != 0 {
			return string(b)
		}
		b = b[:len(b)-1]
	}
	return ""
}
