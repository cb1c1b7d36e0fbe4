package billing

import (
	"strconv"
	"strings"
)

// Currencies whose minor unit is not a hundredth (Stripe documentation, "Supported currencies"). ISK, HUF and TWD are
// not among them: they have no fractions in daily life, but the API counts them in hundredths ("Special cases").
const (
	zeroDecimal  = " bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf "
	threeDecimal = " bhd jod kwd omr tnd "
)

// Decimals is how many digits of an amount of this currency stand behind the point. Letters may be of either case;
// what is not known has two.
func Decimals(currency string) int {
	name := " " + strings.ToLower(currency) + " "
	switch {
	case len(name) != 5:
		return 2
	case strings.Contains(zeroDecimal, name):
		return 0
	case strings.Contains(threeDecimal, name):
		return 3
	}
	return 2
}

// FormatMoney writes an amount in minor units as a person would: 1900 in usd is "19.00 USD", 500 in jpy "500 JPY",
// -5 in kwd "-0.005 KWD". It is the only place that turns minor units into a decimal, and no float is involved.
func FormatMoney(amount int64, currency string) string {
	decimal := formatDecimal(amount, Decimals(currency))
	if currency == "" {
		return decimal
	}
	return decimal + " " + strings.ToUpper(currency)
}

func formatDecimal(amount int64, decimals int) string {
	digits, sign := strconv.FormatInt(amount, 10), ""
	if digits[0] == '-' {
		digits, sign = digits[1:], "-"
	}
	if decimals == 0 {
		return sign + digits
	}
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - decimals
	return sign + digits[:point] + "." + digits[point:]
}
