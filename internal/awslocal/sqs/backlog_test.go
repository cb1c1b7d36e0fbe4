package sqs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"backstop/internal/awslocal/sqs"
)

// raw calls a server without AWS's client, for tests of many messages.
type raw struct {
	testing.TB
	server *sqs.Server
	now    time.Time
}

func newRaw(t testing.TB) *raw {
	r := &raw{TB: t, now: time.Unix(1_000_000_000, 0)}
	ids := 0
	r.server = sqs.New(sqs.Options{BaseURL: "http://local.test", Now: func() time.Time { return r.now }, NewID: func() string {
		ids++
		return fmt.Sprint(ids)
	}})
	return r
}

type rawMessage struct {
	MessageId, Body, ReceiptHandle string
	Attributes                     map[string]string
}

type rawResult struct {
	QueueUrl           string
	Messages           []rawMessage
	Successful, Failed []struct{ Id, MessageId string }
	Code               string `json:"__type"`
}

func (r *raw) call(action string, in map[string]any) rawResult {
	body, err := json.Marshal(in)
	if err != nil {
		r.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	answer := httptest.NewRecorder()
	r.server.ServeHTTP(answer, request)
	var out rawResult
	if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil {
		r.Fatalf("%s: %v in %s", action, err, answer.Body)
	}
	return out
}

func (r *raw) create(name string, attributes map[string]string) string {
	attributes["FifoQueue"] = "true"
	out := r.call("CreateQueue", map[string]any{"QueueName": name, "Attributes": attributes})
	if out.QueueUrl == "" {
		r.Fatalf("creating %s: %s", name, out.Code)
	}
	return out.QueueUrl
}

// sendTen sends ten messages, numbered from first; group names the group of each.
func (r *raw) sendTen(queue string, first int, group func(n int) string) {
	var entries []map[string]string
	for i := range 10 {
		n := fmt.Sprint(first + i)
		entries = append(entries, map[string]string{"Id": fmt.Sprint(i), "MessageBody": n,
			"MessageGroupId": group(first + i), "MessageDeduplicationId": n})
	}
	if out := r.call("SendMessageBatch", map[string]any{"QueueUrl": queue, "Entries": entries}); len(out.Successful) != 10 {
		r.Fatalf("sending: %+v", out)
	}
}

func (r *raw) receive(queue string, limit int) []rawMessage {
	return r.call("ReceiveMessage", map[string]any{"QueueUrl": queue, "MaxNumberOfMessages": limit, "AttributeNames": []string{"All"}}).Messages
}

func (r *raw) delete(queue string, messages []rawMessage) {
	var entries []map[string]string
	for i, m := range messages {
		entries = append(entries, map[string]string{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle})
	}
	if out := r.call("DeleteMessageBatch", map[string]any{"QueueUrl": queue, "Entries": entries}); len(out.Failed) > 0 {
		r.Fatalf("deleting: %+v", out.Failed)
	}
}

func rawBodies(messages []rawMessage) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return strings.Join(all, ",")
}

func TestBacklogOfOneGroupStarvesGroupsBehindTheFirst120000Messages(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	q := r.create("q.fifo", map[string]string{"VisibilityTimeout": "3600"})
	for _, part := range []struct {
		group        string
		count, first int
	}{{"big", 119_999, 0}, {"edge", 3, 200_000}, {"behind", 1, 300_000}} {
		if err := r.server.Fill("q.fifo", part.count, part.first, func(int) string { return part.group }); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) []rawMessage {
		t.Helper()
		got := r.receive(q, 10)
		if rawBodies(got) != want {
			t.Fatalf("received %q, want %q", rawBodies(got), want)
		}
		return got
	}
	big := expect("0,1,2,3,4,5,6,7,8,9")
	edge := expect("200000") // number 120,000 is looked at, the next two of its group are not
	expect("")
	r.delete(q, edge)
	edge = expect("200001")
	r.delete(q, big[:1]) // all but the last are looked at now, but the group edge is busy
	expect("")
	r.delete(q, edge)
	expect("200002,300000")
}

// BenchmarkReceive is one turn of a consumer: receive ten, delete them, send ten
// new ones, with a backlog that stays as long as it is.
func BenchmarkReceive(b *testing.B) {
	for _, groups := range []int{1, 500} {
		for _, backlog := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("groups=%d/backlog=%d", groups, backlog), func(b *testing.B) {
				r := newRaw(b)
				q := r.create("q.fifo", map[string]string{"DeduplicationScope": "messageGroup"})
				group := func(n int) string { return fmt.Sprint("g", n%groups) }
				if err := r.server.Fill("q.fifo", backlog, 0, group); err != nil {
					b.Fatal(err)
				}
				sent := backlog
				b.ReportAllocs()
				for b.Loop() {
					got := r.receive(q, 10)
					if len(got) != 10 {
						b.Fatalf("received %d", len(got))
					}
					r.delete(q, got)
					r.sendTen(q, sent, group)
					sent += 10
				}
			})
		}
	}
}
