package dynamodb

import (
	"fmt"
	"strings"
	"testing"
)

const sample = `{"pk":{"S":"a"},"sk":{"S":"b"},"n":{"N":"5"},"s":{"S":"héllo"},"s2":{"S":"n"},
	"l":{"L":[{"N":"1"},{"S":"x"},{"N":"3"}]},"m":{"M":{"k":{"N":"3"},"q":{"N":"4"}}},"ss":{"SS":["x","y"]},"ns":{"NS":["1","2"]},
	"bs":{"BS":["YQ=="]},"bo":{"BOOL":true},"nu":{"NULL":true},"b":{"B":"YWJj"},"gpk":{"S":"g"},"due":{"N":"1"}}`

const sampleKey = `"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}`

func TestConditionsHoldAsDocumented(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	call(s, "PutItem", `{"TableName":"orders","Item":`+sample+`}`)
	const holds, fails = "", "ConditionalCheckFailedException"
	for _, c := range []struct{ expression, values, want string }{
		{"n = :a", `":a":{"N":"5.0"}`, holds},
		{"n = :a", `":a":{"S":"5"}`, fails},
		{"n <> :a", `":a":{"S":"5"}`, holds},
		{"n < :a", `":a":{"N":"10"}`, holds},
		{"n > :a", `":a":{"N":"10"}`, fails},
		{"s < :a", `":a":{"N":"10"}`, fails},
		{":a = :b", `":a":{"N":"1"},":b":{"N":"1"}`, holds},
		{"(n) = (:a)", `":a":{"N":"5"}`, holds},
		{"ss = :a", `":a":{"SS":["y","x"]}`, holds},
		{"m = :a", `":a":{"M":{"q":{"N":"4"},"k":{"N":"3"}}}`, holds},
		{"l[0] = :a AND m.k = :b", `":a":{"N":"1"},":b":{"N":"3"}`, holds},
		{"l[9] = :a", `":a":{"N":"1"}`, fails},
		{"n.k = :a", `":a":{"N":"1"}`, fails},
		{"nosuch = :a", `":a":{"N":"1"}`, fails},
		{"nosuch < :a", `":a":{"N":"1"}`, fails},
		{"nosuch <> :a", `":a":{"N":"1"}`, holds},
		{"nosuch = nosuch2", ``, fails},
		{"nosuch <> nosuch2", ``, holds},
		{"n BETWEEN :a AND :b", `":a":{"N":"1"},":b":{"N":"10"}`, holds},
		{"n BETWEEN :a AND :b AND n = :c", `":a":{"N":"5"},":b":{"N":"5"},":c":{"N":"6"}`, fails},
		{"n IN (:a, :b)", `":a":{"N":"1"},":b":{"N":"5"}`, holds},
		{"NOT n IN (:a, :b)", `":a":{"N":"1"},":b":{"N":"10"}`, holds},
		{"n = :a OR n = :b AND n = :a", `":a":{"N":"5"},":b":{"N":"6"}`, holds},
		{"(n = :a OR n = :b) AND n = :b", `":a":{"N":"5"},":b":{"N":"6"}`, fails},
		{"NOT n = :a AND n = :b", `":a":{"N":"6"},":b":{"N":"5"}`, holds},
		{"not (n = :a) or not attribute_exists(nosuch)", `":a":{"N":"5"}`, holds},
		{"attribute_exists(m.k) AND attribute_not_exists(m.z)", ``, holds},
		{"attribute_exists(l[3])", ``, fails},
		{"attribute_type(n, :a)", `":a":{"S":"N"}`, holds},
		{"attribute_type(bo, :a)", `":a":{"S":"BOOL"}`, holds},
		{"attribute_type(nosuch, :a)", `":a":{"S":"N"}`, fails},
		{"begins_with(s, :a)", `":a":{"S":"hé"}`, holds},
		{"begins_with(b, :a)", `":a":{"B":"YWI="}`, holds},
		{"begins_with(n, :a)", `":a":{"S":"5"}`, fails},
		{"begins_with(:a, s2)", `":a":{"S":"nx"}`, holds},
		{"contains(s, :a)", `":a":{"S":"llo"}`, holds},
		{"contains(ss, :a)", `":a":{"S":"x"}`, holds},
		{"contains(ss, :a)", `":a":{"SS":["x"]}`, fails},
		{"contains(ns, :a)", `":a":{"N":"1.0"}`, holds},
		{"contains(bs, :a)", `":a":{"B":"YQ=="}`, holds},
		{"contains(l, :a)", `":a":{"S":"x"}`, holds},
		{"contains(m, :a)", `":a":{"S":"k"}`, fails},
		{"contains(:a, s2)", `":a":{"S":"nnn"}`, holds},
		{"size(s) = :a AND size(b) = :b", `":a":{"N":"5"},":b":{"N":"3"}`, holds},
		{"size(ss) = :a AND size(m) = :a AND size(l) > :a", `":a":{"N":"2"}`, holds},
		{"size(n) = :a", `":a":{"N":"1"}`, fails},
		{"size(nosuch) <> :a", `":a":{"N":"1"}`, holds},
		{"size(:a) = n", `":a":{"S":"12345"}`, holds},
		{"b = :a", `":a":{"B":"YWJj"}`, holds},
		{"bo = :a AND nu = :b", `":a":{"BOOL":true},":b":{"NULL":true}`, holds},

		{"((n = :a))", `":a":{"N":"5"}`, "The expression has redundant parentheses;"},
		{"((n = :a) AND n = :a)", `":a":{"N":"5"}`, holds},
		{"n = n", ``, "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
		{"size(s)", ``, "The function is not allowed to be used this way in an expression; function: size"},
		{"attribute_exists(s) = :a", `":a":{"N":"1"}`, "The function is not allowed to be used this way in an expression; function: attribute_exists"},
		{"n = contains(s, :a)", `":a":{"S":"1"}`, "The function is not allowed to be used this way in an expression; function: contains"},
		{"foo(s)", ``, "Invalid function name; function: foo"},
		{"Size(s) = :a", `":a":{"N":"1"}`, "Invalid function name; function: Size"},
		{"attribute_exists(s, n)", ``, "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
		{"attribute_exists(:a)", `":a":{"N":"1"}`, "Operator or function requires a document path; operator or function: attribute_exists"},
		{"begins_with(s, :a)", `":a":{"N":"1"}`, "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"attribute_type(n, :a)", `":a":{"S":"X"}`, "Invalid attribute type name found; type: X"},
		{"size(:a) = n", `":a":{"N":"1"}`, "Incorrect operand type for operator or function; operator or function: size, operand type: N"},
		{"n < :a", `":a":{"BOOL":true}`, "Incorrect operand type for operator or function; operator or function: \\u003c, operand type: BOOL"},
		{"n BETWEEN :a AND :b", `":a":{"N":"9"},":b":{"N":"1"}`, "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:9}, upper bound operand: AttributeValue: {N:1}"},
		{"n BETWEEN :a AND :b", `":a":{"N":"9"},":b":{"S":"a"}`, "The BETWEEN operator requires same data type for lower and upper bounds"},
		{"n IN ()", ``, `Syntax error; token: \")\", near: \"()\"`},
		{"n IN (" + strings.Repeat(":a,", 100) + ":a)", `":a":{"N":"5"}`, "Too many operands"},
		{"n IN (" + strings.Repeat(":a,", 99) + ":a)", `":a":{"N":"5"}`, holds},
		{"n = :a =", `":a":{"N":"1"}`, `Syntax error; token: \"=\", near: \":a =\"`},
		{"n", ``, `Syntax error; token: \"\u003cEOF\u003e\", near: \"n\"`},
		{"n & :a", `":a":{"N":"1"}`, `Syntax error; token: \"\u0026\", near: \"n \u0026 :a\"`},
		{"_n = :a", `":a":{"N":"1"}`, "Syntax error"},
		{"n = :a AND", `":a":{"N":"5"}`, "Syntax error"},
		{"", ``, "Invalid ConditionExpression: The expression can not be empty;"},
		{"#x = :a", `":a":{"N":"5"}`, "An expression attribute name used in the document path is not defined; attribute name: #x"},
		{"n = :zz", ``, "An expression attribute value used in expression is not defined; attribute value: :zz"},
		{"n = :a", `":a":{"N":"5"},":b":{"N":"5"}`, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}"},
		{"status = :a", `":a":{"N":"5"}`, "Attribute name is a reserved keyword; reserved keyword: status"},
		{"n = :a" + strings.Repeat(" ", 4096), `":a":{"N":"5"}`, "Expression size has exceeded the maximum allowed size"},
	} {
		values := ""
		if c.values != "" {
			values = `,"ExpressionAttributeValues":{` + c.values + `}`
		}
		got := call(s, "DeleteItem", fmt.Sprintf(`{%s,"ConditionExpression":%q%s}`, sampleKey, c.expression, values))
		if c.want == holds && got == "{}" {
			call(s, "PutItem", `{"TableName":"orders","Item":`+sample+`}`)
			continue
		}
		if c.want == holds || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s:\n got %s\nwant %q", c.expression, c.values, got, c.want)
		}
	}
}

func TestUpdatesDoAsDocumented(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	for _, c := range []struct{ expression, values, returns, want string }{
		{"SET n = :a", `":a":{"N":"1"}`, "UPDATED_NEW", `{"Attributes":{"n":{"N":"1"}}}`},
		{"set n = :a remove s", `":a":{"N":"1"}`, "UPDATED_OLD", `{"Attributes":{"n":{"N":"5"},"s":{"S":"héllo"}}}`},
		{"SET n = n + :a", `":a":{"N":"0.5"}`, "UPDATED_NEW", `"n":{"N":"5.5"}`},
		{"SET n = :a - n", `":a":{"N":"1"}`, "UPDATED_NEW", `"n":{"N":"-4"}`},
		{"SET n = (n + n)", ``, "UPDATED_NEW", `"n":{"N":"10"}`},
		{"SET q = l[0] + l[2]", ``, "UPDATED_NEW", `"q":{"N":"4"}`},
		{"SET q = n, n = :a", `":a":{"N":"1"}`, "UPDATED_NEW", `{"Attributes":{"n":{"N":"1"},"q":{"N":"5"}}}`},
		{"SET q = if_not_exists(n, :a)", `":a":{"N":"1"}`, "UPDATED_NEW", `"q":{"N":"5"}`},
		{"SET q = if_not_exists(q, if_not_exists(r, :a)) + :a", `":a":{"N":"1"}`, "UPDATED_NEW", `"q":{"N":"2"}`},
		{"SET q = list_append(l, :a)", `":a":{"L":[{"N":"9"}]}`, "UPDATED_NEW", `"q":{"L":[{"N":"1"},{"S":"x"},{"N":"3"},{"N":"9"}]}`},
		{"SET q = list_append(:a, l)", `":a":{"L":[]}`, "UPDATED_NEW", `"q":{"L":[{"N":"1"},{"S":"x"},{"N":"3"}]}`},
		{"SET q = list_append(if_not_exists(q, :a), l)", `":a":{"L":[]}`, "UPDATED_NEW", `"q":{"L":[{"N":"1"},{"S":"x"},{"N":"3"}]}`},
		{"SET m.z = :a", `":a":{"N":"1"}`, "UPDATED_NEW", `{"Attributes":{"m":{"M":{"k":{"N":"3"},"q":{"N":"4"},"z":{"N":"1"}}}}}`},
		{"SET l[1] = :a", `":a":{"N":"2"}`, "UPDATED_NEW", `"l":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}]}`},
		{"SET l[9] = :b, l[5] = :a", `":a":{"N":"8"},":b":{"N":"9"}`, "ALL_NEW", `"l":{"L":[{"N":"1"},{"S":"x"},{"N":"3"},{"N":"8"},{"N":"9"}]}`},
		{"REMOVE l[0], l[1]", ``, "ALL_NEW", `"l":{"L":[{"N":"3"}]}`},
		{"REMOVE l[0] SET l[1] = :a", `":a":{"N":"7"}`, "ALL_NEW", `"l":{"L":[{"N":"7"},{"N":"3"}]}`},
		{"REMOVE l[7]", ``, "ALL_NEW", `"l":{"L":[{"N":"1"},{"S":"x"},{"N":"3"}]}`},
		{"REMOVE m.k, nosuch", ``, "ALL_NEW", `"m":{"M":{"q":{"N":"4"}}}`},
		{"ADD n :a, z :a", `":a":{"N":"1.5"}`, "UPDATED_NEW", `{"Attributes":{"n":{"N":"6.5"},"z":{"N":"1.5"}}}`},
		{"ADD ss :a", `":a":{"SS":["a","x"]}`, "UPDATED_NEW", `"ss":{"SS":["a","x","y"]}`},
		{"ADD m.k :a", `":a":{"N":"1"}`, "UPDATED_NEW", `"k":{"N":"4"}`},
		{"DELETE ss :a", `":a":{"SS":["x","z"]}`, "UPDATED_NEW", `"ss":{"SS":["y"]}`},
		{"DELETE ss :a", `":a":{"SS":["x","y"]}`, "UPDATED_NEW", `{}`},
		{"DELETE ss :a", `":a":{"SS":["x"]}`, "UPDATED_OLD", `"ss":{"SS":["x","y"]}`},
		{"DELETE nosuch :a", `":a":{"SS":["x"]}`, "UPDATED_NEW", `{}`},

		{"SET q = q + :a", `":a":{"N":"1"}`, "NONE", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET n = s + :a", `":a":{"N":"1"}`, "NONE", "An operand in the update expression has an incorrect data type"},
		{"SET n = n + :a", `":a":{"S":"1"}`, "NONE", "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"SET n = n + :a - :a", `":a":{"N":"1"}`, "NONE", "Syntax error"},
		{"SET n = (n + :a) - :a", `":a":{"N":"1"}`, "NONE", "Syntax error"},
		{"SET nosuch.k = :a", `":a":{"N":"1"}`, "NONE", "The document path provided in the update expression is invalid for update"},
		{"SET n.k = :a", `":a":{"N":"1"}`, "NONE", "The document path provided in the update expression is invalid for update"},
		{"SET m[0] = :a", `":a":{"N":"1"}`, "NONE", "The document path provided in the update expression is invalid for update"},
		{"REMOVE nosuch.k", ``, "NONE", "The document path provided in the update expression is invalid for update"},
		{"ADD s :a", `":a":{"N":"1"}`, "NONE", "An operand in the update expression has an incorrect data type"},
		{"ADD ss :a", `":a":{"NS":["1"]}`, "NONE", "An operand in the update expression has an incorrect data type"},
		{"ADD q :a", `":a":{"S":"x"}`, "NONE", "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"},
		{"DELETE n :a", `":a":{"N":"1"}`, "NONE", "operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND"},
		{"SET pk = :a", `":a":{"S":"x"}`, "NONE", "Cannot update attribute pk. This attribute is part of the key"},
		{"SET gpk = :a", `":a":{"N":"1"}`, "NONE", "Type mismatch for Index Key gpk Expected: S Actual: N IndexName: due"},
		{"SET gpk = :a", `":a":{"S":""}`, "NONE", "cannot contain an empty string value. IndexName: due, IndexKey: gpk"},
		{"SET a1 = :a SET b1 = :a", `":a":{"N":"1"}`, "NONE", `The \"SET\" section can only be used once in an update expression;`},
		{"SET m.k = :a, m = :a", `":a":{"N":"1"}`, "NONE", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, k], path two: [m]"},
		{"SET m.k = :a REMOVE m[0]", `":a":{"N":"1"}`, "NONE", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, k], path two: [m, [0]]"},
		{"SET q = if_not_exists(:a, n)", `":a":{"N":"1"}`, "NONE", "Operator or function requires a document path; operator or function: if_not_exists"},
		{"SET q = if_not_exists(n)", ``, "NONE", "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1"},
		{"SET q = list_append(s, :a)", `":a":{"L":[]}`, "NONE", "An operand in the update expression has an incorrect data type"},
		{"SET q = list_append(l, :a)", `":a":{"N":"1"}`, "NONE", "operator or function: list_append, operand type: N"},
		{"SET q = list_append(list_append(l, l), l)", ``, "NONE", "The function is not allowed to be used this way in an expression; function: list_append"},
		{"SET q = size(l)", ``, "NONE", "The function is not allowed in an update expression; function: size"},
		{"SET q = foo(l)", ``, "NONE", "Invalid function name; function: foo"},
		{"SET status = :a", `":a":{"N":"1"}`, "NONE", "Attribute name is a reserved keyword; reserved keyword: status"},
		{"SET n = n + :a", `":a":{"N":"1e-40"}`, "NONE", "Attempting to store more than 38 significant digits in a Number"},
		{"SET n = :a + :a", `":a":{"N":"9e125"}`, "NONE", "Number overflow"},
		{"SET n :a", `":a":{"N":"1"}`, "NONE", "Syntax error"},
		{"FOO n", ``, "NONE", `Syntax error; token: \"FOO\"`},
		{"SET n = :a", `":a":{"N":"1"}`, "SOME", "Member must satisfy enum value set"},
	} {
		call(s, "PutItem", `{"TableName":"orders","Item":`+sample+`}`)
		values := ""
		if c.values != "" {
			values = `,"ExpressionAttributeValues":{` + c.values + `}`
		}
		got := call(s, "UpdateItem", fmt.Sprintf(`{%s,"UpdateExpression":%q,"ReturnValues":%q%s}`, sampleKey, c.expression, c.returns, values))
		contains(t, c.expression, got, c.want)
		if after := call(s, "GetItem", `{`+sampleKey+`}`); strings.Contains(got, "__type") && !strings.Contains(after, `"n":{"N":"5"}`) {
			t.Errorf("%s failed and changed the item: %s", c.expression, after)
		}
	}
}

func TestUpdateOfAbsentItemMakesIt(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"REMOVE q":     `{"Attributes":{"pk":{"S":"a"},"sk":{"S":"b"}}}`,
		"ADD q :a":     `{"Attributes":{"pk":{"S":"a"},"q":{"NS":["1"]},"sk":{"S":"b"}}}`,
		"DELETE q :a":  `{"Attributes":{"pk":{"S":"a"},"sk":{"S":"b"}}}`,
		"SET #q.z = q": "The provided expression refers to an attribute that does not exist in the item",
	} {
		s := orders(t, Options{})
		extra := ""
		if strings.Contains(expression, ":a") {
			extra = `,"ExpressionAttributeValues":{":a":{"NS":["1"]}}`
		}
		if strings.Contains(expression, "#q") {
			extra = `,"ExpressionAttributeNames":{"#q":"w w"}`
		}
		contains(t, expression, call(s, "UpdateItem", fmt.Sprintf(`{%s,"UpdateExpression":%q,"ReturnValues":"ALL_NEW"%s}`, sampleKey, expression, extra)), want)
	}
}

func TestProjectionKeepsOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	call(s, "PutItem", `{"TableName":"orders","Item":`+sample+`}`)
	for expression, want := range map[string]string{
		"n":          `{"Item":{"n":{"N":"5"}}}`,
		"m.k, l[2]":  `{"Item":{"l":{"L":[{"N":"3"}]},"m":{"M":{"k":{"N":"3"}}}}}`,
		"l[2], l[0]": `{"Item":{"l":{"L":[{"N":"1"},{"N":"3"}]}}}`,
		"nosuch":     `{"Item":{}}`,
		"m.z":        `{"Item":{}}`,
		"n, n":       "Two document paths overlap",
		"n m":        "Syntax error",
		"(n)":        "Syntax error",
		"status":     "reserved keyword",
	} {
		contains(t, expression, call(s, "GetItem", fmt.Sprintf(`{%s,"ProjectionExpression":%q}`, sampleKey, expression)), want)
	}
}
