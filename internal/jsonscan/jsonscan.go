// Package jsonscan walks one JSON text once: it checks the syntax and hands out the parts the caller asks for in the
// same pass, as slices of the text, without copying or decoding the rest.
//
// It exists for the two places where a delivery is read, the gateway's envelope and the event's own: there a handful
// of fields is wanted out of kilobytes, the text may be hostile, and the bytes must come out exactly as they went in.
// encoding/json takes several times as long and replaces what is not a Unicode scalar value by U+FFFD, so that a body
// could be recorded that nobody signed; a validity check followed by one search a level reads the same bytes three
// or four times.
//
// The syntax is that of RFC 8259, any value at the top. Nesting is bounded by MaxDepth. Whether strings are UTF-8 is
// not looked at: raw bytes stay as they are.
package jsonscan

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// MaxDepth bounds how deep arrays and objects may nest. Stripe's objects, expanded four levels, stay under 40.
const MaxDepth = 512

// Errors of the scanner.
var (
	// ErrSyntax says that the text is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrDepth says that the text nests deeper than MaxDepth.
	ErrDepth = errors.New("JSON nested too deep")
	// ErrSurrogate says that a string escapes half a surrogate pair, which no sequence of bytes stands for.
	ErrSurrogate = errors.New("JSON string with half a surrogate pair")
)

// Scanner walks a text from its beginning. Every method stops at the first error, and the scanner is then spent.
type Scanner struct {
	text  []byte
	pos   int
	depth int
}

// New returns a scanner at the beginning of text, which must not change while its parts are in use.
func New(text []byte) Scanner { return Scanner{text: text} }

// Next skips white space and returns the byte the next value begins with, or 0 at the end of the text.
func (s *Scanner) Next() byte {
	if s.pos < len(s.text) {
		if c := s.text[s.pos]; c > ' ' {
			return c
		}
	}
	return s.space()
}

// eightSpaces is indentation, of which Stripe's bodies are a third: it is skipped eight bytes at a time.
const eightSpaces = 0x2020202020202020

func (s *Scanner) space() byte {
	text, i := s.text, s.pos
	for i < len(text) {
		switch c := text[i]; c {
		case ' ', '\n', '\t', '\r':
			i++
			for len(text)-i >= 8 && binary.LittleEndian.Uint64(text[i:]) == eightSpaces {
				i += 8
			}
		default:
			s.pos = i
			return c
		}
	}
	s.pos = i
	return 0
}

// Pos returns the position in the text, to be given to Since.
func (s *Scanner) Pos() int { return s.pos }

// Since returns the text from a position to here.
func (s *Scanner) Since(pos int) []byte { return s.text[pos:s.pos:s.pos] }

// End checks that nothing but white space is left.
func (s *Scanner) End() error {
	if s.Next(); s.pos != len(s.text) {
		return ErrSyntax
	}
	return nil
}

// Object walks the object that comes next and calls member at each value with its key, unescaped. member must consume
// the value by exactly one call of Object, Array or Value. A key that stands twice is handed out twice.
func (s *Scanner) Object(member func(key []byte) error) error {
	if s.Next() != '{' {
		return ErrSyntax
	}
	s.pos++
	if s.depth++; s.depth > MaxDepth {
		return ErrDepth
	}
	if s.Next() == '}' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if s.Next() != '"' {
			return ErrSyntax
		}
		start := s.pos + 1
		escaped, err := s.string()
		if err != nil {
			return err
		}
		key := s.text[start : s.pos-1]
		if escaped {
			if key, err = Unescape(key); err != nil {
				return err
			}
		}
		if s.Next() != ':' {
			return ErrSyntax
		}
		s.pos++
		if err := member(key); err != nil {
			return err
		}
		switch s.Next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			s.depth--
			return nil
		default:
			return ErrSyntax
		}
	}
}

// Array walks the array that comes next and calls element at each value, which it must consume like Object's member.
func (s *Scanner) Array(element func() error) error {
	if s.Next() != '[' {
		return ErrSyntax
	}
	s.pos++
	if s.depth++; s.depth > MaxDepth {
		return ErrDepth
	}
	if s.Next() == ']' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.Next() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			s.depth--
			return nil
		default:
			return ErrSyntax
		}
	}
}

// Value checks the value that comes next and returns it as it stands in the text.
func (s *Scanner) Value() ([]byte, error) {
	s.Next()
	start := s.pos
	if err := s.skip(); err != nil {
		return nil, err
	}
	return s.text[start:s.pos:s.pos], nil
}

func (s *Scanner) skip() error {
	switch c := s.Next(); c {
	case '"':
		_, err := s.string()
		return err
	case '{':
		return s.skipObject()
	case '[':
		return s.skipArray()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// skipObject is Object without a caller to tell: most of a text is walked by it.
func (s *Scanner) skipObject() error {
	s.pos++
	if s.depth++; s.depth > MaxDepth {
		return ErrDepth
	}
	if s.Next() == '}' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		if s.Next() != '"' {
			return ErrSyntax
		}
		if _, err := s.string(); err != nil {
			return err
		}
		if s.Next() != ':' {
			return ErrSyntax
		}
		s.pos++
		if err := s.skip(); err != nil {
			return err
		}
		switch s.Next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			s.depth--
			return nil
		default:
			return ErrSyntax
		}
	}
}

func (s *Scanner) skipArray() error {
	return s.Array(s.skip)
}

func (s *Scanner) literal(word string) error {
	end := s.pos + len(word)
	if end > len(s.text) || string(s.text[s.pos:end]) != word {
		return ErrSyntax
	}
	s.pos = end
	return nil
}

func (s *Scanner) number() error {
	text, i := s.text, s.pos
	digits := func() bool {
		start := i
		for i < len(text) && text[i]-'0' <= 9 {
			i++
		}
		return i > start
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else if !digits() {
		return ErrSyntax
	}
	if i < len(text) && text[i] == '.' {
		if i++; !digits() {
			return ErrSyntax
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return ErrSyntax
		}
	}
	s.pos = i
	return nil
}

// special marks the bytes that do not stand for themselves in a string: its end, escapes and control characters.
var special = func() (table [256]bool) {
	for c := range 0x20 {
		table[c] = true
	}
	table['"'], table['\\'] = true, true
	return table
}()

// ordinary returns how many of eight bytes, from the lowest, are not special: the subtraction borrows into the high
// bit of the first byte that is zero, or less than the bound. A byte over 0x7f stops it, too, for a closer look.
func ordinary(word uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := word^ones*'"', word^ones*'\\'
	return bits.TrailingZeros64(((quote-ones)|(slash-ones)|(word-ones*' ')|word)&highs) / 8
}

// string moves past the string that begins at the current quote and says whether it holds escapes.
func (s *Scanner) string() (escaped bool, err error) {
	text, i := s.text, s.pos+1
	for i < len(text) {
		for len(text)-i >= 8 {
			n := ordinary(binary.LittleEndian.Uint64(text[i:]))
			if i += n; n < 8 {
				break
			}
		}
		if i == len(text) {
			break
		}
		c := text[i]
		if !special[c] {
			i++
			continue
		}
		switch c {
		case '"':
			s.pos = i + 1
			return escaped, nil
		case '\\':
			escaped = true
			n := escape(text[i:])
			if n == 0 {
				return false, ErrSyntax
			}
			i += n
		default:
			return false, ErrSyntax
		}
	}
	return false, ErrSyntax
}

// escape returns the length of the escape text begins with, or 0 if it is none.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(text); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads the four digits of a \uXXXX escape.
func hex4(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[2:6] {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
