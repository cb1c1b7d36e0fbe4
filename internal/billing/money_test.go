package billing_test

import (
	"math"
	"testing"

	"backstop/internal/billing"
)

func TestFormatMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{1900, "usd", "19.00 USD"}, {5, "EUR", "0.05 EUR"}, {0, "usd", "0.00 USD"}, {-1, "usd", "-0.01 USD"}, {-12345, "usd", "-123.45 USD"},
		{500, "jpy", "500 JPY"}, {0, "krw", "0 KRW"}, {-3, "vnd", "-3 VND"}, {500, "ugx", "500 UGX"}, {7, "clp", "7 CLP"},
		{5124, "kwd", "5.124 KWD"}, {5, "bhd", "0.005 BHD"}, {-50, "tnd", "-0.050 TND"}, {1000, "jod", "1.000 JOD"}, {10, "omr", "0.010 OMR"},
		{500, "isk", "5.00 ISK"}, {500, "huf", "5.00 HUF"}, {500, "twd", "5.00 TWD"}, // special cases: two decimals in the API
		{math.MinInt64, "jpy", "-9223372036854775808 JPY"}, {math.MaxInt64, "usd", "92233720368547758.07 USD"},
		{1900, "", "19.00"}, {1900, "xyz", "19.00 XYZ"}, {1900, "p", "19.00 P"}, {1900, "bif clp", "19.00 BIF CLP"},
	} {
		if got := billing.FormatMoney(c.amount, c.currency); got != c.want {
			t.Errorf("%d %s: got %s, want %s", c.amount, c.currency, got, c.want)
		}
	}
}
