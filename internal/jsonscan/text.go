package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// IsString reports whether a value returned by Value is a string.
func IsString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// IsNull reports whether a value returned by Value is null.
func IsNull(value []byte) bool { return len(value) > 0 && value[0] == 'n' }

// Bytes returns the bytes a string value stands for: a slice of the text itself when nothing in it is escaped, or a
// copy. Raw bytes are kept, UTF-8 or not. The value must come from Value and be a string.
func Bytes(value []byte) ([]byte, error) {
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	return Unescape(inner)
}

// Unescape resolves the escapes of what stands between a string's quotes, in one copy.
func Unescape(inner []byte) ([]byte, error) {
	// Nothing becomes longer: \uXXXX is six bytes for at most three, a pair of them twelve for four.
	out := make([]byte, len(inner))
	n := 0
	for len(inner) > 0 {
		// A body inside a string has an escape every ten bytes or so: too few for a search, too many for single bytes.
		if len(inner) >= 8 {
			word := binary.LittleEndian.Uint64(inner)
			binary.LittleEndian.PutUint64(out[n:], word)
			plain := unescaped(word)
			n += plain
			if inner = inner[plain:]; plain == 8 {
				continue
			}
		}
		if inner[0] != '\\' {
			out[n] = inner[0]
			n++
			inner = inner[1:]
			continue
		}
		size := escape(inner)
		switch size {
		case 0:
			return nil, ErrSyntax
		case 2:
			out[n] = plain(inner[1])
			n++
		default:
			r, _ := hex4(inner)
			if utf16.IsSurrogate(r) {
				low, _ := hex4(inner[6:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return nil, ErrSurrogate
				}
				size += 6
			}
			n += utf8.EncodeRune(out[n:], r)
		}
		inner = inner[size:]
	}
	return out[:n], nil
}

// unescaped returns how many of eight bytes, from the lowest, come before a backslash.
func unescaped(word uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	slash := word ^ ones*'\\'
	return bits.TrailingZeros64((slash-ones)&^slash&highs) / 8
}

// plain is the byte a two-character escape stands for.
func plain(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
