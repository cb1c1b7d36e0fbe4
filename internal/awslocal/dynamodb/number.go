package dynamodb

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of a Number ("Supported data types and naming rules in Amazon DynamoDB", section Numbers): 38
// significant digits, magnitudes from 1E-130 up to, but not including, 1E+126.
const (
	maxDigits = 38
	minExp10  = -130
	maxExp10  = 125
)

// number is an exact decimal: 0.d1d2d3... times ten to the exp. The digits carry neither leading nor trailing zeros,
// so equal numbers have equal fields; zero has no digits.
type number struct {
	neg    bool
	exp    int
	digits string
}

// parseNumber reads the decimal notation DynamoDB accepts, an exponent included.
func parseNumber(s string) (number, error) {
	bad := validationf("The parameter cannot be converted to a numeric value: %s", s)
	rest, neg := s, false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		neg, rest = rest[0] == '-', rest[1:]
	}
	exp := 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		e, err := strconv.Atoi(rest[i+1:])
		if err != nil || len(rest) > i+8 {
			return number{}, bad
		}
		exp, rest = e, rest[:i]
	}
	whole, frac, _ := strings.Cut(rest, ".")
	digits := whole + frac
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return number{}, bad
	}
	return normalise(neg, digits, exp+len(whole))
}

// normalise trims zeros and applies the limits.
func normalise(neg bool, digits string, exp int) (number, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return number{}, nil
	case exp-1 > maxExp10:
		return number{}, validationf("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case exp-1 < minExp10:
		return number{}, validationf("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case len(trimmed) > maxDigits:
		return number{}, validationf("Attempting to store more than 38 significant digits in a Number")
	}
	return number{neg: neg, exp: exp, digits: trimmed}, nil
}

// String writes the number without an exponent, as DynamoDB returns it.
func (n number) String() string {
	if n.digits == "" {
		return "0"
	}
	var b strings.Builder
	if n.neg {
		b.WriteByte('-')
	}
	switch l := len(n.digits); {
	case n.exp <= 0:
		b.WriteString("0." + strings.Repeat("0", -n.exp) + n.digits)
	case n.exp >= l:
		b.WriteString(n.digits + strings.Repeat("0", n.exp-l))
	default:
		b.WriteString(n.digits[:n.exp] + "." + n.digits[n.exp:])
	}
	return b.String()
}

// scaled is the number times ten to the -scale; scale must not exceed the place of its last digit.
func (n number) scaled(scale int) *big.Int {
	i := new(big.Int)
	if n.digits == "" {
		return i
	}
	i.SetString(n.digits+strings.Repeat("0", n.exp-len(n.digits)-scale), 10)
	if n.neg {
		i.Neg(i)
	}
	return i
}

// plus adds exactly; a sum outside the limits is an error, never rounded.
func (n number) plus(m number) (number, error) {
	scale := min(n.exp-len(n.digits), m.exp-len(m.digits))
	sum := n.scaled(scale)
	sum.Add(sum, m.scaled(scale))
	digits := new(big.Int).Abs(sum).String()
	return normalise(sum.Sign() < 0, digits, len(digits)+scale)
}

func (n number) negated() number {
	n.neg = !n.neg && n.digits != ""
	return n
}

// compare orders numbers by value: -1, 0 or 1.
func (n number) compare(m number) int {
	return strings.Compare(n.sortKey(), m.sortKey())
}

// sortKey is a string whose byte order is the numeric order, and of which none is a prefix of another.
func (n number) sortKey() string {
	if n.digits == "" {
		return "\x02"
	}
	b := make([]byte, 0, len(n.digits)+4)
	e := n.exp + 1000 // positive for every exponent allowed
	b = append(b, byte(e>>8), byte(e))
	b = append(b, n.digits...)
	b = append(b, 0)
	if !n.neg {
		return "\x03" + string(b)
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return "\x01" + string(b)
}

// size is what a number weighs ("DynamoDB item sizes and formats"): a byte for each two significant digits, one
// more, and one for the sign of a negative.
func (n number) size() int {
	size := (len(n.digits)+1)/2 + 1
	if n.neg {
		size++
	}
	return size
}
