package main

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"math/big"
	"strings"
	"time"
)

//go:embed shapes
var shapes embed.FS

// shape is a fresh copy of one of the object shapes: all keys that Stripe sends
// for such an object, with the values they have when nothing is set.
func shape(name string) *object {
	raw, err := shapes.ReadFile("shapes/" + name + ".json")
	if err != nil {
		panic(err)
	}
	return parse(string(raw)).(*object)
}

// world is one Stripe account over a stretch of time: the objects in it and the
// events that their changes caused. A sample and a story are both read from a
// world, so an event always agrees with the state it tells of.
type world struct {
	now     int // unix seconds
	mint    func(prefix string) string
	objects []*object // in order of creation; each carries its current state
	events  []*object
	// requestID and key are those of the API request that causes what happens
	// now; both empty while Stripe itself acts (renewals, dunning).
	requestID, key string
	sent           int // messages sent to the queue
}

// symbolic mints ids that a reader can follow: prefix, tag, running number.
func symbolic(tag string) func(string) string {
	count := map[string]int{}
	return func(prefix string) string {
		count[prefix]++
		return fmt.Sprintf("%s_1%s%0*d", prefix, tag, 15-len(tag), count[prefix])
	}
}

// idLengths are the lengths of the random parts of Stripe's ids; 24 unless told.
var idLengths = map[string]int{"cus": 14, "si": 14, "req": 14, "cs_test": 58, "ent_test": 40, "mtr_test": 40, "evt_test": 48}

// realistic mints ids that look like Stripe's own. They are drawn from a hash,
// so that a second run of the generator mints the same.
func realistic(seed string) func(string) string {
	count := map[string]int{}
	return func(prefix string) string {
		count[prefix]++
		n := idLengths[prefix]
		if n == 0 {
			n = 24
		}
		body := base62(fmt.Sprintf("%s/%s/%d", seed, prefix, count[prefix]), n)
		if n == 24 { // all later objects of one account share a middle part
			body = "1S" + body[:8] + "BxlTnrVo" + body[8:14]
			switch prefix {
			case "pi", "ch", "re", "txn": // payments have another leading digit
				body = "3" + body[1:]
			}
		}
		return prefix + "_" + body
	}
}

func base62(seed string, n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	for block := 0; out.Len() < n; block++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", seed, block))
		x, base, digit := new(big.Int).SetBytes(sum[:]), big.NewInt(62), new(big.Int)
		for i := 0; i < 40 && out.Len() < n; i++ {
			x.DivMod(x, base, digit)
			out.WriteByte(digits[digit.Int64()])
		}
	}
	return out.String()
}

// wait lets time pass.
func (w *world) wait(d time.Duration) { w.now += int(d / time.Second) }

// toRenewal lets time pass to the end of a subscription's period.
func (w *world) toRenewal(sub *object) { w.now = sub.num("items.data.0.current_period_end") }

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// request says that what follows is caused by an API request of the account.
func (w *world) request() {
	w.requestID = w.mint("req")
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(w.requestID)))
	w.key = strings.Join([]string{h[:8], h[8:12], "4" + h[13:16], "a" + h[17:20], h[20:32]}, "-")
}

// unprompted says that what follows is Stripe's own doing.
func (w *world) unprompted() { w.requestID, w.key = "", "" }

// make creates an object. Its id is minted when prefix is not empty.
func (w *world) make(name, prefix string, pairs ...any) *object {
	o := shape(name)
	if prefix != "" {
		o.set("id", w.mint(prefix))
	}
	if o.find("created") != nil {
		o.set("created", w.now)
	}
	w.objects = append(w.objects, o.set(pairs...))
	return o
}

// emit records an event of type typ that carries o as it is now.
func (w *world) emit(typ string, o *object) *object {
	e := shape("event").set(
		"id", w.mint("evt"),
		"created", w.now,
		"data.object", o.clone(),
		"type", typ,
	)
	if w.requestID != "" {
		e.set("request.id", w.requestID, "request.idempotency_key", w.key)
	}
	w.events = append(w.events, e)
	return e
}

// change applies pairs to o and records an event with the previous attributes.
func (w *world) change(typ string, o *object, pairs ...any) *object {
	return w.changeBy(typ, o, func() { o.set(pairs...) })
}

// changeBy is change for what pairs cannot say.
func (w *world) changeBy(typ string, o *object, apply func()) *object {
	before := o.clone()
	apply()
	prev := previous(before, o)
	e := w.emit(typ, o)
	data := (*e.slot("data")).(*object)
	data.fields = append(data.fields, field{"previous_attributes", prev})
	return e
}
