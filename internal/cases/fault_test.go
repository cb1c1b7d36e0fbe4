package cases

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/awslocal"
)

// onTransaction are the kinds that are answers of DynamoDB to a transaction, or to a write that meets one.
var onTransaction = map[string]bool{"transaction_conflict": true, "transaction_cancelled": true, "idempotent_parameter_mismatch": true}

// take finds the first fault that matches and has times left, and uses it up by one. The caller holds the world's lock.
func (p *proc) take(about string, matches func(*fault) bool) *fault {
	for _, f := range p.faults {
		if f.hits < f.Times && (f.Event == "" || strings.Contains(about, f.Event)) && matches(f) {
			f.hits++
			return f
		}
	}
	return nil
}

// touches reports whether a call is at a point. Where a fault is an answer to a transaction, that is the call meant.
func (p *proc) touches(c *awslocal.Call, f *fault) bool {
	w := p.w
	table := ""
	if c.Service == awslocal.DynamoDB {
		table = c.Resource()
	}
	effects := p.kind == processor && c.Action == "TransactWriteItems"
	if onTransaction[f.Kind] && f.Kind != "transaction_conflict" {
		return effects && f.Point != "record"
	}
	switch f.Point {
	case "record":
		return p.kind == receiver && c.Action == "PutItem" && table == w.names.LedgerTable
	case "between_record_and_forward", "forward", "after_forward_before_response":
		return p.kind == receiver && c.Service == awslocal.SQS && strings.HasPrefix(c.Action, "SendMessage")
	case "after_claim_before_effect", "before_effect":
		return effects && (onTransaction[f.Kind] || f.Kind == "timeout_after_commit")
	case "after_effect_before_done", "done":
		return p.kind == processor && c.Action == "UpdateItem" && table == w.names.LedgerTable && bytes.Contains(c.Body, []byte(`"settled_ms"`))
	case "projection_read":
		return p.kind == processor && table == w.names.BillingTable && c.Action != "TransactWriteItems"
	case "projection_write":
		return p.kind == processor && table == w.names.BillingTable && (c.Action == "UpdateItem" || c.Action == "PutItem")
	}
	return false
}

// intercept stands at the process's wire.
func (p *proc) intercept(c *awslocal.Call) awslocal.Fault {
	p.stopIfDead()
	w := p.w
	w.mu.Lock()
	if c.Action == "GetSecretValue" {
		w.secretReads++
	}
	f := p.take(string(c.Body), func(f *fault) bool { return p.touches(c, f) })
	w.mu.Unlock()
	if f == nil {
		return awslocal.Fault{}
	}
	switch f.Kind {
	case "error":
		if f.Point == "after_forward_before_response" {
			return awslocal.Fault{Kind: awslocal.ReplyLost}
		}
		return awslocal.Fault{Kind: awslocal.Unavailable}
	case "throttle":
		return awslocal.Fault{Kind: awslocal.Throttle}
	case "crash", "panic":
		if f.Point == "after_forward_before_response" {
			w.mu.Lock()
			w.dying[c] = p
			w.mu.Unlock()
			return awslocal.Fault{}
		}
		if f.Kind == "panic" && p.kind == receiver {
			panic("an injected panic")
		}
		p.die()
	case "hang":
		if f.Point == "after_forward_before_response" {
			return awslocal.Fault{ReplyDelay: time.Hour}
		}
		return awslocal.Fault{Kind: awslocal.Reset, Delay: time.Hour}
	case "hang_then_error":
		return awslocal.Fault{Kind: awslocal.Unavailable, Delay: f.duration(3 * time.Second)}
	case "stall_until":
		p.stall(f)
	case "timeout_after_commit":
		return awslocal.Fault{Kind: awslocal.ReplyLost}
	case "transaction_conflict":
		if c.Action != "TransactWriteItems" {
			return awslocal.Fault{Kind: awslocal.Refuse, Code: "TransactionConflictException"}
		}
		return cancelled(c, "TransactionConflict")
	case "transaction_cancelled":
		return cancelled(c, f.Reasons...)
	case "idempotent_parameter_mismatch":
		return awslocal.Fault{Kind: awslocal.Refuse, Code: "IdempotentParameterMismatchException"}
	}
	return awslocal.Fault{}
}

// cancelled refuses a transaction. What the local AWS cannot be asked to say, the reasons, travel in the message until
// the process's wire writes them out.
func cancelled(c *awslocal.Call, reasons ...string) awslocal.Fault {
	var sent struct{ TransactItems []json.RawMessage }
	_ = json.Unmarshal(c.Body, &sent) // the SDK wrote it
	if len(reasons) == 0 {
		reasons = []string{"ThrottlingError"}
	}
	for len(reasons) < len(sent.TransactItems) {
		reasons = append([]string{"None"}, reasons...)
	}
	return awslocal.Fault{Kind: awslocal.Refuse, Code: cancellation, Message: reasonsMark + strings.Join(reasons, ", ") + "]"}
}

const (
	cancellation = "TransactionCanceledException"
	reasonsMark  = "Transaction cancelled, please refer cancellation reasons for specific reasons ["
)

// cancelling writes an injected cancellation's reasons into the answer, where DynamoDB has them (Amazon DynamoDB API
// Reference, "TransactWriteItems").
type cancelling struct {
	p    *proc
	wire http.RoundTripper
}

func (c cancelling) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.wire.RoundTrip(r)
	c.p.stopIfDead()
	if err != nil || response.StatusCode != http.StatusBadRequest {
		return response, err
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if json.Unmarshal(raw, &answer) == nil {
		for _, name := range []string{"message", "Message"} {
			message, _ := answer[name].(string)
			if list, found := strings.CutPrefix(message, reasonsMark); found && answer["CancellationReasons"] == nil {
				var reasons []map[string]string
				for code := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ", ") {
					reasons = append(reasons, map[string]string{"Code": code})
				}
				answer["CancellationReasons"] = reasons
				if raw, err = json.Marshal(answer); err != nil {
					return nil, err
				}
				response.Header.Del("X-Amz-Crc32") // of the answer without the reasons
			}
		}
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	response.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return response, nil
}

// observe sees every answer of the local AWS, before it can be lost.
func (w *world) observe(c *awslocal.Call, status int, _ []byte) {
	w.mu.Lock()
	p := w.dying[c]
	if status == http.StatusOK && c.Action == "TransactWriteItems" {
		w.commits(c.Body)
	}
	w.mu.Unlock()
	if p != nil {
		p.die()
	}
}

// commits notes an effect that was committed. The caller holds the world's lock.
func (w *world) commits(body []byte) {
	_, rest, found := bytes.Cut(body, []byte(`"sink#`))
	if !found {
		return
	}
	key, _, _ := bytes.Cut(rest, []byte(`"`))
	for _, earlier := range w.committed {
		if earlier == string(key) {
			return
		}
	}
	w.committed = append(w.committed, string(key))
}
