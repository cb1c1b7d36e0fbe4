package sim

import (
	"fmt"
	"slices"
	"time"

	"backstop/internal/ledger"
)

// conduct is what an event's handler does with it.
type conduct string

const (
	works    conduct = "works"
	slow     conduct = "is slow"
	skips    conduct = "skips"
	fails    conduct = "fails some times" // charged
	panics   conduct = "panics some times"
	retries  conduct = "asks to run again some times" // uncharged
	waits    conduct = "asks to run again later"      // uncharged, with a time
	calls    conduct = "calls the outside"            // uncharged while that is down
	hangs    conduct = "hangs some times"
	kills    conduct = "kills its process some times"
	refuses  conduct = "refuses for ever" // permanent
	poison   conduct = "fails always"
	killer   conduct = "kills its process always"
	hangman  conduct = "hangs always"
	unheard  conduct = "has no handler"
	unparsed conduct = "does not decode"
)

// mayPark reports whether an event of this conduct may end parked: nothing else may.
func (c conduct) mayPark() bool {
	return slices.Contains([]conduct{refuses, poison, killer, hangman, unparsed}, c)
}

// The event types, by which handlers listen.
const (
	typeOnce    = "sim.once"    // one transactional effect
	typeProject = "sim.project" // one projected row
	typeBoth    = "sim.both"    // both, of one handler
	typeTwo     = "sim.two"     // two handlers: a transactional effect, and a call to the outside
	typeUnheard = "sim.unheard" // nobody
)

// planned is one event as Stripe will send it.
type planned struct {
	n       int
	id      string
	key     ledger.Key
	group   string
	typ     string
	at      time.Duration // when it comes to be
	created int64         // Stripe's second
	state   int           // of its object; the state before is state-1
	conduct conduct
	times   int           // for conducts that end
	fixed   time.Duration // when a deployment mends its conduct; 0: never
	body    []byte

	deliveries []delivery
}

// delivery is one POST Stripe means to make.
type delivery struct {
	at     time.Duration
	event  *planned
	line   int
	try    int
	forged bool // nobody signed it
	resend bool // a person pressed Resend
	deaf   bool // the answer does not reach Stripe, which comes again
	gives  int  // Stripe gives up after so many tries

	expired bool // after the event's time to live
}

// profile is the kind of history.
type profile struct {
	events, customers     int
	span                  time.Duration
	receivers, processors int
	parallel              int     // groups at a time in a processor
	wire                  float64 // share of calls with a fault
	deaths                float64 // share of calls at which the process dies
	freezes               float64 // share of batches at one call of which the process freezes
	answers               float64 // share of batch answers lost
	duplicates            float64
	bad                   float64       // share of events whose conduct is not to work
	visibility            time.Duration // of the queue, when somebody set it wrong; 0: as it should be
	purge, people, pause  bool
	outages               bool     // of what handlers call
	outage                interval // when; zero: by the seed
	down                  bool     // a service of AWS is, for a while
	expiry                bool     // then 36 days pass
	swept                 bool     // in which DynamoDB deleted what had expired
}

// interval is a time since the history's start.
type interval struct{ from, to time.Duration }

func profileOf(d dice, lifecycles int) profile {
	p := profile{
		events:     24 + d.about("events").below(33),
		customers:  3 + d.about("customers").below(7),
		span:       d.about("span").between(2*time.Minute, 20*time.Minute),
		receivers:  1 + d.about("receivers").below(3),
		processors: 1 + d.about("processors").below(3),
		parallel:   10,
		duplicates: 0.05 + 0.25*d.about("duplicates").share(),
		bad:        0.1 + 0.4*d.about("bad").share(),
		people:     d.about("people").chance(0.5),
		pause:      d.about("pause").chance(0.2),
		outages:    d.about("outages").chance(0.4),
		purge:      d.about("purge").chance(0.1),
		expiry:     d.about("expiry").chance(0.2),
		swept:      d.about("swept").chance(0.3),
	}
	if lifecycles > 0 {
		p.events = min(p.events, lifecycles)
	}
	if p.outages {
		// Which of several events becomes the breaker's probe must not depend on who came first.
		p.parallel = 1
	}
	if d.about("rough").chance(0.75) { // the others are calm: nothing but what handlers do
		p.wire = 0.08 * d.about("wire").share()
		p.deaths = 0.012 * d.about("deaths").share()
		p.freezes = 0.15 * d.about("freezes").share()
		p.answers = 0.05 * d.about("answers").share()
		p.down = d.about("down").chance(0.2)
		if d.about("visibility").chance(0.2) {
			p.visibility = d.about("visibility", "time").between(5*time.Second, 30*time.Second).Truncate(time.Second)
		}
	}
	return p
}

// calm reports whether only handlers go wrong in this history.
func (p profile) calm() bool {
	return p.wire == 0 && p.deaths == 0 && p.freezes == 0 && p.answers == 0 && p.visibility == 0 && !p.purge && !p.down
}

// plan makes the events of a history.
func (p profile) plan(d dice, start time.Time) []*planned {
	events := make([]*planned, p.events)
	states := make(map[string]int)
	ats := make([]time.Duration, p.events)
	for n := range ats {
		ats[n] = d.about("at").number(n).between(0, p.span)
		if n > 0 && d.about("together").number(n).chance(0.3) {
			ats[n] = ats[n-1]
		}
	}
	slices.Sort(ats)
	for n := range events {
		e := d.about("event").number(n)
		id := fmt.Sprintf("evt_%d", n)
		customer := fmt.Sprintf("cus_%d", e.about("customer").below(p.customers))
		created := start.Add(ats[n]).Unix()
		states[customer]++
		events[n] = &planned{
			n: n, id: id, key: ledger.Key("stripe#-#" + id), group: customer, at: ats[n], created: created, state: states[customer],
			conduct: works, times: 1 + e.about("times").below(4),
		}
		events[n].choose(e, p)
		events[n].body = events[n].write()
		events[n].schedule(e, p)
	}
	return events
}

func (e *planned) choose(d dice, p profile) {
	e.typ = []string{typeOnce, typeOnce, typeProject, typeProject, typeBoth, typeTwo, typeTwo}[d.about("type").below(7)]
	if d.about("unheard").chance(0.03) {
		e.typ, e.conduct = typeUnheard, unheard
		return
	}
	if e.typ == typeTwo {
		e.conduct = calls
	}
	if !d.about("bad").chance(p.bad) {
		return
	}
	common := []conduct{slow, slow, skips, fails, fails, panics, retries, retries, waits, kills, refuses, poison}
	rare := []conduct{hangs, hangs, killer, hangman, unparsed}
	if d.about("rare").chance(0.15) {
		e.conduct = rare[d.about("conduct").below(len(rare))]
	} else {
		e.conduct = common[d.about("conduct").below(len(common))]
	}
	if e.conduct.mayPark() && e.conduct != unparsed && d.about("fixed").chance(0.4) {
		e.fixed = p.span + time.Minute
	}
}

// write is the event's body: as small as it can be, since its content is other packages' matter.
func (e *planned) write() []byte {
	object := fmt.Sprintf(`{"id":"obj_%d","object":"thing","customer":%q,"state":%d}`, e.n, e.group, e.state)
	if e.conduct == unparsed {
		object = fmt.Sprintf(`{"id":"obj_%d","object":"thing","customer":%q,"state":{"odd":true}}`, e.n, e.group)
	}
	return fmt.Appendf(nil, `{"id":%q,"object":"event","type":%q,"created":%d,"livemode":false,`+
		`"data":{"object":%s,"previous_attributes":{"state":%d}}}`, e.id, e.typ, e.created, object, e.state-1)
}

// schedule is what Stripe does with the event by itself: it delivers it, not always in order, and sometimes more than
// once.
func (e *planned) schedule(d dice, p profile) {
	first := delivery{
		at: e.at + d.about("delay").between(100*time.Millisecond, 2*time.Second), event: e,
		line: d.about("line").below(p.receivers),
		deaf: d.about("deaf").chance(p.wire),
	}
	if d.about("late").chance(0.1) { // overtaken by others
		first.at += d.about("late", "by").between(time.Second, time.Minute)
	}
	if d.about("gives up").chance(p.wire) {
		first.gives = 1
	}
	e.deliveries = []delivery{first}
	for n := range 3 {
		if d.about("duplicate").number(n).chance(p.duplicates) {
			again := first
			again.line = d.about("duplicate line").number(n).below(p.receivers)
			again.at += d.about("duplicate at").number(n).between(0, 20*time.Second)
			if n == 2 {
				again.at += d.about("resend at").between(time.Minute, 10*time.Minute)
				again.resend = true
			}
			e.deliveries = append(e.deliveries, again)
		}
	}
	if d.about("forged").chance(0.05) {
		forged := first
		forged.at = d.about("forged at").between(0, p.span)
		forged.forged, forged.deaf = true, false
		if d.about("only forged").chance(0.5) {
			e.deliveries = nil
		}
		e.deliveries = append(e.deliveries, forged)
	}
}
