package dynamodb

import "strings"

// token is a word of an expression. The kind is 'a' for a name, '#' and ':' for placeholders, '0' for digits, 0 for
// the end, and for punctuation its first character.
type token struct {
	kind byte
	text string
	pos  int
}

const maxExpression = 4096 // bytes: "Quotas in Amazon DynamoDB", expression parameters

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// lex splits an expression of the named parameter into tokens; the last one is always the end.
func lex(param, src string) ([]token, error) {
	if len(src) > maxExpression {
		return nil, validationf("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d", param, len(src))
	}
	var out []token
	for i := 0; i < len(src); {
		c := src[i]
		if strings.IndexByte(" \t\r\n", c) >= 0 {
			i++
			continue
		}
		j := i + 1
		kind := c
		switch {
		case isLetter(c) && c != '_':
			kind = 'a'
			for j < len(src) && (isLetter(src[j]) || isDigit(src[j])) {
				j++
			}
		case isDigit(c):
			kind = '0'
			for j < len(src) && isDigit(src[j]) {
				j++
			}
		case c == '#' || c == ':':
			for j < len(src) && (isLetter(src[j]) || isDigit(src[j])) {
				j++
			}
			if j == i+1 {
				return nil, nearError(param, src, out, i, j)
			}
		case c == '<' && j < len(src) && (src[j] == '=' || src[j] == '>'), c == '>' && j < len(src) && src[j] == '=':
			j++
		case strings.IndexByte("=<>()[],.+-", c) < 0:
			return nil, nearError(param, src, out, i, j)
		}
		out = append(out, token{kind, src[i:j], i})
		i = j
	}
	return append(out, token{pos: len(src)}), nil
}

// nearError is about the text src[from:to] after the tokens that were good.
func nearError(param, src string, before []token, from, to int) error {
	return syntaxError(param, src, append(before, token{'?', src[from:to], from}, token{pos: len(src)}), len(before))
}

// syntaxError names a token, and as its surroundings the tokens before and after it.
func syntaxError(param, src string, tokens []token, at int) error {
	from, to, text := tokens[max(0, at-1)].pos, len(src), tokens[at].text
	if text == "" {
		text = "<EOF>"
	} else if next := tokens[at+1]; next.text != "" {
		to = next.pos + len(next.text)
	}
	return validationf("Invalid %s: Syntax error; token: %q, near: %q", param, text, strings.TrimSpace(src[from:to]))
}
