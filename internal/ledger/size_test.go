package ledger_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/events"
	"backstop/internal/ledger"
)

// unit is what DynamoDB bills a write by.
const unit = 1024

// itemSize is an item's size by the rules of the Amazon DynamoDB Developer Guide, "DynamoDB item sizes and formats",
// written here independently of the store's own.
func itemSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberM:
		size := 3
		for name, element := range v.Value {
			size += len(name) + itemSize(element) + 1
		}
		return size
	case *types.AttributeValueMemberBOOL:
		return 1
	default:
		panic(fmt.Sprintf("an entry has no %T", v))
	}
}

// private is what no dictionary can know: names, addresses, numbers people gave.
var private = regexp.MustCompile(`("(?:name|account_name|customer_name|line1|city|workspace|fingerprint|number|statement_descriptor|calculated_statement_descriptor)": "|")([^"]+@[^"]+|[^"]+)"`)

// strange makes an event of a sample that shares nothing with it but the shape: other ids, times, names and
// addresses, so that the samples the dictionary was made of are measured like anybody's events.
func strange(t testing.TB, typ string) []byte {
	t.Helper()
	sample, err := events.Sample(typ)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, uint64(len(typ))))
	fresh, err := events.Fresh(sample, events.FreshOptions{Rand: random, Now: start})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	other := func(s string) string {
		if known[s] == "" {
			known[s] = strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return 'a' + rune(random.IntN(26))
				}
				return r
			}, s)
		}
		return known[s]
	}
	return private.ReplaceAllFunc(fresh, func(match []byte) []byte {
		parts := private.FindSubmatch(match)
		if len(parts[1]) == 1 && !strings.Contains(string(parts[2]), "@") {
			return match // an ordinary string
		}
		return []byte(string(parts[1]) + other(string(parts[2])) + `"`)
	})
}

// A measured event: the body as sent, packed, and the whole item at its largest, which is while it is processed or
// when it is done.
type measured struct {
	typ                string
	body, packed, item int
}

func measure(t testing.TB, typ string, event []byte) measured {
	t.Helper()
	var envelope struct {
		ID         string `json:"id"`
		APIVersion string `json:"api_version"`
		Data       struct {
			Object struct {
				ID       string `json:"id"`
				Customer string `json:"customer"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(event, &envelope); err != nil {
		t.Fatal(err)
	}
	group := envelope.Data.Object.Customer
	if group == "" {
		group = envelope.Data.Object.ID
	}
	w := newWorld(t)
	k := ledger.Key("stripe#-#" + envelope.ID)
	if _, err := w.store.Record(t.Context(), ledger.Recording{
		Key: k, Type: typ, CreatedS: 1767225600, Livemode: true, APIVersion: envelope.APIVersion, ObjectID: envelope.Data.Object.ID,
		Group: group, Origin: ledger.Webhook, Body: event, Token: "7f3c1a2e5b",
	}); err != nil {
		t.Fatal(err)
	}
	m := measured{typ: typ, body: len(event)}
	look := func() {
		it := w.row(t, ledgerTable, string(k))
		m.packed = len(it["body"].(*types.AttributeValueMemberB).Value)
		m.item = max(m.item, itemSize(&types.AttributeValueMemberM{Value: it})-3-len(it))
	}
	look()
	c, err := w.store.Claim(t.Context(), ledger.Claiming{Key: k, Token: "1b4e28ba-2fa1-11d2-883f-0016d3cca427:1", Until: start.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	look()
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Done}); err != nil {
		t.Fatal(err)
	}
	look()
	return m
}

// An ordinary event costs one write unit at each of its writes. Those that do not are the fullest invoices: five
// times 24 random characters of ids, the 50 of an address to pay at, names and an address, which no packing takes
// away. BenchmarkItemOfEachSample lists them.
func TestOrdinaryEventFitsOneWriteUnit(t *testing.T) {
	t.Parallel()
	var over []string
	types := events.Types()
	for _, typ := range types {
		if m := measure(t, typ.Name, strange(t, typ.Name)); m.item > unit {
			over = append(over, fmt.Sprintf("%s %d", m.typ, m.item))
		}
	}
	if len(over) > 3 || len(types) < 25 {
		t.Errorf("of %d samples %d do not fit %d bytes: %v", len(types), len(over), unit, over)
	}
}

// BenchmarkItemOfEachSample reports, of all samples with their ids, times and names replaced, how many whole items
// fit a write unit, and lists those that do not.
func BenchmarkItemOfEachSample(b *testing.B) {
	for b.Loop() {
		packed, fit, all := 0, 0, events.Types()
		for _, typ := range all {
			m := measure(b, typ.Name, strange(b, typ.Name))
			packed += m.packed
			if m.item <= unit {
				fit++
				continue
			}
			b.Logf("%s: %d bytes pack to %d, the item has %d: its ids, addresses and names are new in each event",
				m.typ, m.body, m.packed, m.item)
		}
		b.ReportMetric(float64(packed)/float64(len(all)), "packed-B")
		b.ReportMetric(100*float64(fit)/float64(len(all)), "fit-%")
	}
}

func BenchmarkPack(b *testing.B) {
	for _, typ := range []string{"refund.created", "charge.succeeded", "invoice.paid", "customer.subscription.updated"} {
		body := strange(b, typ)
		b.Run(fmt.Sprintf("%s-%dB", typ, len(body)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				shared().Pack(body, 700)
			}
		})
	}
	large := []byte("[" + strings.Repeat(string(strange(b, "invoice.paid"))+",", 24) + "0]")
	b.Run(fmt.Sprintf("24-invoices-%dB", len(large)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			shared().Pack(large, 700)
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	for _, typ := range []string{"refund.created", "charge.succeeded", "invoice.paid"} {
		packed, codec := shared().Pack(strange(b, typ), 700)
		b.Run(typ, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := shared().Unpack(packed, codec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCold is what a function pays once, during its init.
func BenchmarkCold(b *testing.B) {
	b.Run("encoder", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ledger.NewCodec().Warm()
		}
	})
	b.Run("unwarmed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ledger.NewCodec()
		}
	})
}
