// Package secretsmanager is the part of AWS Secrets Manager the pipeline and
// its operators use: secrets with versions, the stages AWSCURRENT and
// AWSPREVIOUS, and Secrets Manager's own errors. Everything is in memory.
//
// A version is immutable. Putting a new one gives it AWSCURRENT, moves
// AWSPREVIOUS to the version that had AWSCURRENT, and leaves older ones
// without a stage. The ClientRequestToken is the version's id, which is what
// makes a repeated put harmless. Parameters that would change the answer and
// are not supported are refused.
//
// Source: "AWS Secrets Manager API Reference".
package secretsmanager

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxValueBytes is the largest secret value ("AWS Secrets Manager quotas").
const maxValueBytes = 65536

// Options configure a [Server].
type Options struct {
	Now     func() time.Time // default time.Now
	Region  string           // default us-east-1
	Account string           // default 000000000000
}

// Server is an http.Handler for Secrets Manager's JSON protocol.
type Server struct {
	opts Options

	mu      sync.Mutex
	secrets map[string]*secret // by name
}

type secret struct {
	name, arn, description string
	created, changed       time.Time
	deleteAfter            time.Time // zero: not marked for deletion
	versions               []*version
}

type version struct {
	id      string
	text    *string
	binary  []byte
	created time.Time
	stages  []string
}

// New returns a Secrets Manager without secrets.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	return &Server{opts: opts, secrets: map[string]*secret{}}
}

// ARN returns the ARN a secret of that name has. AWS ends it in six random
// characters; here they follow from the name, so that a policy and a record
// of calls can be compared without asking.
func ARN(region, account, name string) string {
	h := fnv.New32a()
	io.WriteString(h, name)
	sum := h.Sum32()
	suffix := make([]byte, 6)
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
	for i := range suffix {
		suffix[i] = letters[sum>>(5*i)&31]
	}
	return "arn:aws:secretsmanager:" + region + ":" + account + ":secret:" + name + "-" + string(suffix)
}

type apiError struct{ code, message string }

func (e *apiError) Error() string { return e.code + ": " + e.message }

func fail(code, format string, args ...any) error {
	return &apiError{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	// A value at its limit, escaped, is well under a megabyte.
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the caller is gone
	}
	var out any
	switch action {
	case "CreateSecret":
		out, err = call(s, body, s.create)
	case "GetSecretValue":
		out, err = call(s, body, s.get)
	case "PutSecretValue":
		out, err = call(s, body, s.put)
	case "DescribeSecret":
		out, err = call(s, body, s.describe)
	case "ListSecrets":
		out, err = call(s, body, s.list)
	case "DeleteSecret":
		out, err = call(s, body, s.remove)
	default:
		err = fail("UnknownOperationException", "the local Secrets Manager has no %q", action)
	}
	write(w, out, err)
}

// call decodes the input and runs the action under the lock.
func call[In any](s *Server, body []byte, action func(In) (any, error)) (any, error) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fail("SerializationException", "the request body is not valid")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return action(in)
}

func write(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		e, ok := err.(*apiError)
		if !ok {
			e, status = &apiError{"InternalServiceError", "internal error"}, http.StatusInternalServerError
		}
		out = map[string]string{"__type": e.code, "Message": e.message}
	}
	body, err := json.Marshal(out)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"__type":"InternalServiceError"}`)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", rand.Text())
	w.WriteHeader(status)
	w.Write(body) // nothing is left to tell a client that went away
}
