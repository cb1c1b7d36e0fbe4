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
				return nil, syntaxError(param, src, i, j)
			}
		case c == '<' && j < len(src) && (src[j] == '=' || src[j] == '>'), c == '>' && j < len(src) && src[j] == '=':
			j++
		case strings.IndexByte("=<>()[],.+-", c) < 0:
			return nil, syntaxError(param, src, i, j)
		}
		out = append(out, token{kind, src[i:j], i})
		i = j
	}
	return append(out, token{pos: len(src)}), nil
}

// syntaxError names the token src[from:to] and its surroundings.
func syntaxError(param, src string, from, to int) error {
	if from >= len(src) {
		return validationf("Invalid %s: Syntax error; token: \"<EOF>\", near: %q", param, src[max(0, len(src)-10):])
	}
	return validationf("Invalid %s: Syntax error; token: %q, near: %q", param, src[from:to], src[max(0, from-5):min(len(src), to+5)])
}
