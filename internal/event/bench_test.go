package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// ordinary is a small event written as Stripe writes them, with padding inside the object up to about size bytes.
func ordinary(size int) []byte {
	const head = `{
  "id": "evt_1QBenchmark0001",
  "object": "event",
  "api_version": "2025-08-27.basil",
  "created": 1790000000,
  "data": {
    "object": {
      "id": "in_1QBenchmark0001",
      "object": "invoice",
      "customer": "cus_QBenchmark01",
      "lines": {
        "object": "list",
        "data": [`
	const line = `
          {
            "id": "il_1QBenchmark0001",
            "object": "line_item",
            "amount": 1500,
            "currency": "eur",
            "description": "1 × Plan (at €15.00 / month)",
            "discountable": true,
            "livemode": false,
            "metadata": {},
            "period": {
              "end": 1792592000,
              "start": 1790000000
            },
            "quantity": 1
          }`
	const tail = `
        ]
      },
      "status": "paid"
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": null,
    "idempotency_key": null
  },
  "type": "invoice.paid"
}`
	lines := max((size-len(head)-len(tail))/(len(line)+1), 1)
	return []byte(head + strings.Repeat(line+",", lines-1) + line + tail)
}

// BenchmarkParse reads the envelope at the sizes of issue 2, beside one HMAC pass over the same bytes.
func BenchmarkParse(b *testing.B) {
	for _, size := range []int{1 << 10, 3 << 10, 12 << 10, 120 << 10} {
		body := ordinary(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dKB/hmac", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				h := hmac.New(sha256.New, []byte("whsec_benchmark"))
				h.Write(body)
				h.Sum(nil)
			}
		})
	}
}
