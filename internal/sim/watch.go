package sim

import (
	"encoding/json"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/ledger"
)

// witness is what was seen of one event, at the wire and at the handlers.
type witness struct {
	*planned

	// Of the entry, as the wire shows it.
	status     ledger.Status // empty: absent
	generation int64
	leaseMS    int64
	holder     *proc     // who claimed it last
	lateClaim  bool      // that claim was applied when its caller had given up
	lives      int       // how often it was recorded anew
	enqueuedAt time.Time // first
	settledAt  time.Time // last
	sweeps     int       // since recorded or replayed
	recordedAt time.Time // or replayed
	again      int       // replays of it when it was done or skipped
	parkings   int
	idle       int  // leases found run out under which no handler had started, since recorded or replayed
	ran        bool // a handler started under the last claim
	recordedBy map[string]bool

	// Of its pointers.
	firstSequence string // of this life
	moved         bool   // one is in a queue under an id nobody has seen yet
	lost          bool   // a purge took its pointer

	// Of its handlers.
	runs    map[string]int // by handler
	owed    bool           // an attempt ended in a way that is charged
	suspect bool           // the last attempt ended with its process
	applied []int          // the order of its transactional effects among all

	acked, discarded bool
}

// pointerMessage is a message in a queue.
type pointerMessage struct {
	key        ledger.Key
	generation int64
	hidden     time.Time // until when, while it is in flight
}

// groupState is what is under way in one group.
type groupState struct {
	events []*witness
	live   map[*proc]liveHandler
	ready  time.Time // since when its head could be claimed; zero: it need not be
}

type liveHandler struct {
	event     string
	unguarded bool // its process froze, or its message was purged: nothing keeps another from starting
}

func (w *world) group(name string) *groupState {
	g := w.groups[name]
	if g == nil {
		g = &groupState{live: make(map[*proc]liveHandler)}
		w.groups[name] = g
	}
	return g
}

// request bodies, as far as they are looked at.
type wireRequest struct {
	TableName        string
	UpdateExpression string
	Values           map[string]struct{ S, N string } `json:"ExpressionAttributeValues"`
	Item, Key        map[string]struct{ S, N string }
	TransactItems    []struct {
		Update *struct {
			Key map[string]struct{ S, N string }
		}
	}
	ClientRequestToken string

	QueueUrl, MessageBody, ReceiptHandle string
	Entries                              []struct {
		Id, MessageBody, ReceiptHandle string
		VisibilityTimeout              int
	}
}

type wireAnswer struct {
	MessageId, SequenceNumber string
	Successful                []struct{ Id, MessageId, SequenceNumber string }
	Messages                  []struct {
		MessageId, Body string
		Attributes      struct{ SequenceNumber string }
	}
}

// observe sees every call that was applied, at the moment it was, and who made it.
func (w *world) observe(c *awslocal.Call, status int, body []byte) {
	w.mu.Lock()
	name, late := strings.CutSuffix(c.Caller, lateMark)
	p := w.processes[name]
	if status == 200 {
		w.look(p, late, c, body)
	}
	dies := p != nil && p.dieAfter[c]
	w.mu.Unlock()
	if w.Trace && p != nil && status != 200 {
		w.note(p.name, "", "answered "+strconv.Itoa(status)+" "+c.Action+" "+subjectOf(c.Body)+": "+errorCode(body))
	}
	if dies {
		p.end(faultDeath2)
		runtime.Goexit()
	}
}

func errorCode(body []byte) string {
	var answer struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(body, &answer)
	return answer.Type[strings.LastIndexByte(answer.Type, '#')+1:]
}

// look takes what an applied call changed. The caller holds the lock.
func (w *world) look(p *proc, late bool, c *awslocal.Call, body []byte) {
	switch c.Action {
	case "PutItem", "UpdateItem", "TransactWriteItems", "SendMessage", "SendMessageBatch", "DeleteMessage",
		"DeleteMessageBatch", "ReceiveMessage", "ChangeMessageVisibilityBatch", "PurgeQueue":
	default:
		return
	}
	var in wireRequest
	if json.Unmarshal(c.Body, &in) != nil {
		return
	}
	switch c.Action {
	case "PutItem":
		if in.TableName == w.names.LedgerTable {
			w.recorded(in)
		}
	case "UpdateItem":
		if in.TableName == w.names.LedgerTable {
			w.updated(p, late, in)
		}
	case "TransactWriteItems":
		w.transacted(p, in)
	default:
		w.lookAtQueue(c.Action, in, body)
	}
}

func (w *world) recorded(in wireRequest) {
	wit := w.events[ledger.Key(in.Item["pk"].S)]
	if wit == nil {
		w.violate("stored", "", "an entry nobody sent: "+in.Item["pk"].S)
		return
	}
	if wit.status != "" && !wit.status.Settled() || wit.status == ledger.Parked {
		w.violate("lost", wit.id, "it was recorded anew while "+string(wit.status))
	}
	wit.status, wit.generation, wit.leaseMS, wit.holder = ledger.Recorded, 0, 0, nil
	wit.lives++
	wit.recordedAt, wit.sweeps = time.Now(), 0
	wit.firstSequence, wit.suspect, wit.owed, wit.idle = "", false, false, 0
	if wit.recordedBy == nil {
		wit.recordedBy = make(map[string]bool)
	}
	wit.recordedBy[in.Item["token"].S] = true
}

// assignment is one attribute that an update sets to a value.
var assignment = regexp.MustCompile(`#(\w+) = (:v\d+)`)

func (w *world) updated(p *proc, late bool, in wireRequest) {
	wit := w.events[ledger.Key(in.Key["pk"].S)]
	if wit == nil {
		return
	}
	set := make(map[string]string)
	sets, _, _ := strings.Cut(in.UpdateExpression, " REMOVE ")
	sets, adds, _ := strings.Cut(sets, "ADD ")
	if _, more, found := strings.Cut(in.UpdateExpression, "ADD "); found {
		adds = more
	}
	for _, m := range assignment.FindAllStringSubmatch(sets, -1) {
		v := in.Values[m[2]]
		set[m[1]] = v.S + v.N
	}
	charges := strings.Contains(adds, "#attempts")
	status := ledger.Status(set["status"])
	switch {
	case status == "":
		wit.sweeps++
	case status == ledger.Processing:
		w.claimed(p, late, wit, set, charges)
	case set["replay"] != "":
		if wit.status == ledger.Done || wit.status == ledger.Skipped {
			wit.again++
		}
		wit.status, wit.owed, wit.firstSequence, wit.idle = status, false, "", 0
		wit.recordedAt, wit.sweeps = time.Now(), 0
	default:
		w.left(p, wit, status, charges)
	}
}

func (w *world) claimed(p *proc, late bool, wit *witness, set map[string]string, charges bool) {
	if wit.status == ledger.Processing {
		if wit.leaseMS > time.Now().UnixMilli() {
			w.violate("claimed", wit.id, "it was claimed while another's lease was live")
		}
		if charges {
			if !wit.ran {
				wit.idle++
			}
			if h := wit.holder; h.kind == processorKind && !h.ended && !h.abandoned && !wit.lateClaim && !(w.profile.down && !w.deaf) {
				w.violate("charged", wit.id, "it was charged for a lease its holder never gave up")
			}
		}
		wit.suspect = true
		wit.holder.overtake()
	}
	wit.status, wit.holder, wit.lateClaim, wit.ran = ledger.Processing, p, late, false
	wit.generation++
	wit.leaseMS, _ = strconv.ParseInt(set["lease_until_ms"], 10, 64)
}

// left is the end of a claim, or of an entry that nobody claims: settled, released, unclaimed, parked, discarded.
func (w *world) left(p *proc, wit *witness, status ledger.Status, charges bool) {
	if p != nil && p.kind == processorKind {
		switch {
		case wit.status != ledger.Processing:
			w.violate("fenced", wit.id, "a write as "+string(status)+" of one who did not hold it, while it was "+string(wit.status))
		case wit.holder != p:
			w.violate("fenced", wit.id, "a write as "+string(status)+" under another's claim")
		}
	}
	if charges && !wit.owed && wit.conduct != unparsed {
		w.violate("charged", wit.id, "an attempt was charged that was not the event's fault")
	}
	if charges || status.Settled() {
		wit.owed = false
	}
	if status.Settled() {
		wit.suspect, wit.settledAt = false, time.Now()
	}
	wit.status = status
	if status == ledger.Parked {
		wit.parkings++
		if !wit.conduct.mayPark() {
			w.violate("parked", wit.id, "it was parked, and "+string(wit.conduct))
		}
		if !w.isDead(wit) {
			w.violate("unheard of", wit.id, "it was parked, and nothing in the dead-letter queue says so")
		}
	}
	if status == ledger.Done && wit.conduct.mayPark() && wit.fixed == 0 {
		w.violate("model", wit.id, "it is done, and "+string(wit.conduct))
	}
}

// isDead reports whether a message says that the entry is parked at its generation: in the dead-letter queue, or on
// its way back from there.
func (w *world) isDead(wit *witness) bool {
	for _, messages := range []map[string]pointerMessage{w.dead, w.messages} {
		for _, m := range messages {
			if m.key == wit.key && m.generation == wit.generation {
				return true
			}
		}
	}
	return wit.moved
}

func (w *world) transacted(p *proc, in wireRequest) {
	if len(in.TransactItems) == 0 || in.TransactItems[0].Update == nil {
		return
	}
	wit := w.events[ledger.Key(in.TransactItems[0].Update.Key["pk"].S)]
	if wit == nil || w.tokens[in.ClientRequestToken] {
		return // the same transaction once more, which changed nothing
	}
	w.tokens[in.ClientRequestToken] = true
	if wit.status != ledger.Processing || wit.holder != p {
		w.violate("fenced", wit.id, "effects of one who did not hold it")
	}
	w.effects++
	wit.applied = append(wit.applied, w.effects)
}
