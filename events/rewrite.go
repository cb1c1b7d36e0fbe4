package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// idPattern finds the ids that change from one event to the next. Kinds that
// are a seller's set-up (price, prod, feat, acct, pmc, we) are left out.
var idPattern = regexp.MustCompile(
	`\b(?:evt|cus|sub|sub_sched|si|in|upcoming_in|il|ii|inpay|pi|ch|py|re|pyr|du|dp|txn|pm|src|card|cs|txi|ent|po|ba|seti|setatt|payatt|req|mtr|cn|di|clock)` +
		`(?:_test|_live)?_[A-Za-z0-9]{6,}`)

// isTime says whether a number under this key is a time, in unix seconds.
func isTime(key string) bool {
	switch key {
	case "created", "start", "end", "start_date", "billing_cycle_anchor", "next_payment_attempt", "arrival_date", "available_on", "due_by", "due_date",
		"subscription_proration_date", "next_pending_invoice_item_invoice", "cancel_at":
		return true
	}
	return strings.HasSuffix(key, "_at") || strings.HasSuffix(key, "_start") || strings.HasSuffix(key, "_end")
}

// rewriter replaces ids and moves times in JSON texts. What it has replaced
// once it replaces by the same in every later text.
type rewriter struct {
	random   *rand.Rand
	shift    int64  // seconds
	customer string // what every customer id becomes, if not empty
	ids      map[string]string
}

func newRewriter(opts FreshOptions) *rewriter {
	return &rewriter{random: opts.random(), customer: opts.Customer, ids: map[string]string{}}
}

// become decides what one id turns into, whatever it looks like; an empty fresh
// one is minted.
func (r *rewriter) become(old, fresh string) {
	if old == "" {
		return
	}
	if fresh == "" {
		fresh = r.mint(old)
	}
	r.ids[old] = fresh
}

func (r *rewriter) rewrite(text []byte) ([]byte, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, t := range tokens {
		old := text[t.start:t.end]
		fresh := r.token(t, old)
		if bytes.Equal(old, fresh) {
			continue
		}
		out.Write(text[done:t.start])
		out.Write(fresh)
		done = t.end
	}
	out.Write(text[done:])
	return out.Bytes(), nil
}

func (r *rewriter) token(t token, old []byte) []byte {
	switch {
	case old[0] == '"' && t.key == "idempotency_key" && !t.isKey:
		return r.shuffle(old)
	case old[0] == '"' && t.key == "created" && !t.isKey:
		return r.shiftText(old)
	case old[0] == '"':
		if fresh, ok := r.ids[string(old[1:len(old)-1])]; ok { // also one that looks like no id of Stripe's
			return strconv.AppendQuote(nil, fresh)
		}
		if bytes.IndexByte(old, '_') < 0 {
			return old
		}
		return idPattern.ReplaceAllFunc(old, r.id)
	case old[0] >= '1' && old[0] <= '9' && isTime(t.key):
		if n, err := strconv.ParseInt(string(old), 10, 64); err == nil && n >= 1e9 { // less is a length of time, not a time
			return strconv.AppendInt(nil, n+r.shift, 10)
		}
	}
	return old
}

// shiftText moves the created of a thin notification.
func (r *rewriter) shiftText(old []byte) []byte {
	at, err := time.Parse(`"`+time.RFC3339+`"`, string(old))
	if err != nil || r.shift == 0 {
		return old
	}
	return at.Add(time.Duration(r.shift)*time.Second).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`)
}

func (r *rewriter) id(old []byte) []byte {
	name := string(old)
	body := name[strings.LastIndexByte(name, '_')+1:]
	if strings.ToLower(body) == body && !strings.ContainsAny(body, "0123456789") {
		return old // a word, such as card_declined
	}
	if r.customer != "" && strings.HasPrefix(name, "cus_") {
		return []byte(r.customer)
	}
	fresh, ok := r.ids[name]
	if !ok {
		fresh = r.mint(name)
		r.ids[name] = fresh
	}
	return []byte(fresh)
}

// mint makes an id of the same prefix and length. A leading digit stays: Stripe's
// ids tell a generation or a region by it. An id too short to be unique grows.
func (r *rewriter) mint(old string) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	cut := strings.LastIndexByte(old, '_') + 1
	b := []byte(old[cut:])
	for len(b) < 10 { // 62^8 and up: thousands of fresh events will hardly meet
		b = append(b, 'x')
	}
	for i := range b {
		if i > 0 || b[0] < '0' || b[0] > '9' {
			b[i] = alphabet[r.random.IntN(len(alphabet))]
		}
	}
	b[len(b)-1] = alphabet[r.random.IntN(10)] // a digit at the end, so that no id reads as a word
	return old[:cut] + string(b)
}

// shuffle makes another idempotency key: every hex digit of it new. The same
// key becomes the same one, for several events can come from one request.
func (r *rewriter) shuffle(old []byte) []byte {
	fresh, ok := r.ids[string(old)]
	if !ok {
		b := bytes.Clone(old)
		for i, c := range b {
			if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
				b[i] = "0123456789abcdef"[r.random.IntN(16)]
			}
		}
		fresh = string(b)
		r.ids[string(old)] = fresh
	}
	return []byte(fresh)
}

// token is one scalar of a JSON text, or one key: where it stands, the key it
// belongs to, and how many objects and lists it is inside of.
type token struct {
	start, end int
	key        string
	isKey      bool
	depth      int
}

// scan finds all keys and scalars of one JSON text, in order. encoding/json
// judges the text; walking it by hand afterwards is many times faster than its
// tokens, and keeps the places.
func scan(text []byte) ([]token, error) {
	if !json.Valid(text) {
		return nil, errors.New("not one valid JSON value")
	}
	type level struct {
		object, wantKey bool
		key             string
	}
	tokens := make([]token, 0, len(text)/24)
	stack := []level{{}}
	for i := 0; i < len(text); {
		in := &stack[len(stack)-1]
		switch c := text[i]; c {
		case '{', '[':
			stack = append(stack, level{object: c == '{', wantKey: c == '{', key: in.key})
			i++
		case '}', ']':
			stack = stack[:len(stack)-1]
			i++
		case ',':
			in.wantKey = in.object
			i++
		case ':', ' ', '\n', '\r', '\t':
			i++
		default:
			end := scalarEnd(text, i)
			t := token{start: i, end: end, isKey: in.wantKey, depth: len(stack) - 1}
			if t.isKey {
				in.key = string(text[i+1 : end-1])
				in.wantKey = false
			}
			t.key = in.key
			tokens = append(tokens, t)
			i = end
		}
	}
	return tokens, nil
}

// scalarEnd is where the string, number or word that starts at i ends.
func scalarEnd(text []byte, i int) int {
	if text[i] != '"' {
		for i < len(text) && !isSpace(text[i]) && text[i] != ',' && text[i] != '}' && text[i] != ']' {
			i++
		}
		return i
	}
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}
