package sqs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxRequestBytes is what a request may hold: 1 MiB of message text can take six
// times that as JSON escapes, and a batch shares the 1 MiB.
const maxRequestBytes = 8 << 20

// Options configures a Server. The zero value works.
type Options struct {
	// Now is the clock; nil means time.Now. Long polls wait on timers of package
	// time, so a clock of another pace is only good for tests that never wait.
	Now func() time.Time
	// NewID makes message ids and task handles; nil means random UUIDs. It is
	// called under the server's lock, once for each message stored or moved.
	NewID func() string
	// BaseURL starts the queue URLs, such as http://127.0.0.1:4566. Empty means
	// the host the request was sent to.
	BaseURL string
	// Region and Account are part of queue ARNs and URLs; empty means us-east-1
	// and 000000000000.
	Region, Account string
}

// Server holds queues and serves the SQS API for them. It is safe for concurrent
// use and needs no closing.
type Server struct {
	opts     Options
	requests atomic.Uint64

	mu       sync.Mutex
	queues   map[string]*queue
	deleted  map[string]time.Time // when a queue of that name was deleted
	tasks    map[string][]moveTask
	touched  []*queue // to be settled before the lock is released
	sequence uint64   // of the last message stored in any queue
	receipts uint64   // of the last receive of any message
}

// New returns a server without queues.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		opts.NewID = randomUUID
	}
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	return &Server{opts: opts, queues: map[string]*queue{}, deleted: map[string]time.Time{}, tasks: map[string][]moveTask{}}
}

func randomUUID() string {
	var b [16]byte
	// crypto/rand.Read never fails: it ends the process where the system has no randomness.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Stats are a queue's counts at one moment. They are exact.
type Stats struct {
	Visible, InFlight, Delayed int
	// Oldest is when the oldest message was sent; zero when there is none.
	Oldest time.Time
}

// Stats returns the counts of the queue with that name, and whether it exists.
func (s *Server) Stats(name string) (Stats, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		return Stats{}, false
	}
	now := s.opts.Now()
	s.touch(q)
	s.settle(now)
	st := Stats{Visible: q.visible(), InFlight: q.inFlight, Delayed: q.delayed}
	if q.all.head != nil {
		st.Oldest = q.all.head.sent
	}
	return st, true
}

// call is one request on its way through an operation.
type call struct {
	ctx  context.Context
	base string // start of queue URLs
	now  time.Time
}

type operation func(s *Server, c *call, body []byte) (any, error)

// locked makes an operation of f: f runs under the lock, at one moment, and what
// it made visible is handed to waiting receives before the lock is released.
func locked[In any](f func(s *Server, c *call, in *In) (any, error)) operation {
	return func(s *Server, c *call, body []byte) (any, error) {
		in := new(In)
		if err := decode(body, in); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.now = s.opts.Now()
		out, err := f(s, c, in)
		s.settle(c.now)
		return out, err
	}
}

func refused(name string) operation {
	return func(*Server, *call, []byte) (any, error) { return nil, unsupported(name) }
}

var operations = map[string]operation{
	"CreateQueue":                  locked((*Server).createQueue),
	"GetQueueUrl":                  locked((*Server).getQueueURL),
	"ListQueues":                   locked((*Server).listQueues),
	"DeleteQueue":                  locked((*Server).deleteQueue),
	"PurgeQueue":                   locked((*Server).purgeQueue),
	"GetQueueAttributes":           locked((*Server).getQueueAttributes),
	"SetQueueAttributes":           locked((*Server).setQueueAttributes),
	"SendMessage":                  locked((*Server).sendMessage),
	"SendMessageBatch":             locked((*Server).sendMessageBatch),
	"ReceiveMessage":               (*Server).receiveMessage,
	"DeleteMessage":                locked((*Server).deleteMessage),
	"DeleteMessageBatch":           locked((*Server).deleteMessageBatch),
	"ChangeMessageVisibility":      locked((*Server).changeVisibility),
	"ChangeMessageVisibilityBatch": locked((*Server).changeVisibilityBatch),
	"StartMessageMoveTask":         locked((*Server).startMoveTask),
	"ListMessageMoveTasks":         locked((*Server).listMoveTasks),
	"ListDeadLetterSourceQueues":   locked((*Server).listSources),
	"CancelMessageMoveTask":        refused("CancelMessageMoveTask"),
	"AddPermission":                refused("AddPermission"),
	"RemovePermission":             refused("RemovePermission"),
	"TagQueue":                     refused("TagQueue"),
	"UntagQueue":                   refused("UntagQueue"),
	"ListQueueTags":                refused("ListQueueTags"),
}

// ServeHTTP answers one request of the AWS JSON protocol. A request whose
// context ends while it waits for messages gets no answer and takes none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-RequestId", fmt.Sprintf("00000000-0000-4000-8000-%012x", s.requests.Add(1)))

	out, err := s.serve(w, r)
	if r.Context().Err() != nil {
		return
	}
	if err != nil {
		writeError(w, err)
		return
	}
	if out == nil {
		out = struct{}{}
	}
	// A failed write means that the client has gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(out)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	op := operations[name]
	if !ok || r.Method != http.MethodPost || op == nil {
		return nil, newError("UnknownOperationException", "InvalidAction",
			"The action %s is not valid for this endpoint.", name)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		return nil, newError("SerializationException", "MalformedInput", "reading the request: %v", err)
	}
	base := s.opts.BaseURL
	if base == "" {
		base = "http://" + r.Host
	}
	return op(s, &call{ctx: r.Context(), base: strings.TrimSuffix(base, "/")}, body)
}

func decode(body []byte, in any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, in); err != nil {
		return newError("SerializationException", "MalformedInput", "decoding the request: %v", err)
	}
	return nil
}

func writeError(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = newError("InternalFailure", "InternalFailure", "%v", err)
		e.status = http.StatusInternalServerError
	}
	fault := "Sender"
	if e.status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	w.Header().Set("X-Amzn-Query-Error", e.code+";"+fault)
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + e.shape, "message": e.message})
}
