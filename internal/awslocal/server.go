package awslocal

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// maxRequestBytes is above every service's own limit (DynamoDB's is 16 MB), so
// that each can refuse in its own words.
const maxRequestBytes = 20 << 20

// errReset is what a caller sees of a broken connection.
var errReset = syscall.ECONNRESET

// reply is a service's buffered answer. It implements http.ResponseWriter.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *reply) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// ServeHTTP answers one request that came over a socket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeReply(w, errorReply(Fault{Code: "RequestEntityTooLargeException", Status: 413, Message: "the request is too large"}))
		return
	case err != nil:
		return // the caller is gone
	}
	answer, err := s.do(r, body, "", s.opts.Intercept)
	if err != nil {
		// Closes the connection without an answer, for a reset as for a
		// caller that has gone.
		panic(http.ErrAbortHandler)
	}
	writeReply(w, answer)
}

func writeReply(w http.ResponseWriter, answer *reply) {
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(answer.body.Len()))
	w.WriteHeader(answer.status)
	w.Write(answer.body.Bytes()) // nothing is left to tell a caller that went away
}

// do is the one way to a service: record, inject, apply, observe. The error is
// errReset or the context's.
func (s *Server) do(r *http.Request, body []byte, caller string, intercept func(*Call) Fault) (*reply, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	service, action := classify(r)
	handler := s.handler(service)
	if handler == nil || action == "" {
		return errorReply(Fault{Code: "UnknownOperationException", Status: 404, Message: "the local AWS has no such service or operation"}), nil
	}
	if caller == "" {
		caller = accessKeyID(r.Header.Get("Authorization"))
	}
	call := &Call{
		Caller: caller, Service: service, Action: action, Header: r.Header, Body: body,
		path: r.URL.EscapedPath(), region: s.opts.Region, account: s.opts.Account,
	}
	s.opts.Recorder.record(call)
	var fault Fault
	if intercept != nil {
		fault = intercept(call)
	}
	if err := sleep(ctx, fault.Delay); err != nil {
		return nil, err
	}
	if refusal, ok := fault.refusal(service); ok {
		return errorReply(refusal), nil
	}
	if fault.Kind == Reset {
		return nil, errReset
	}

	request := r.WithContext(ctx) // a copy: the caller's request is not ours to change
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.ContentLength = int64(len(body))
	answer := &reply{header: http.Header{}}
	handler.ServeHTTP(answer, request)
	answer.WriteHeader(http.StatusOK)
	if s.opts.Observe != nil {
		s.opts.Observe(call, answer.status, answer.body.Bytes())
	}
	if err := sleep(ctx, fault.ReplyDelay); err != nil {
		return nil, err
	}
	if fault.Kind == ReplyLost {
		return nil, errReset
	}
	return answer, ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errorReply is an error in the form that the SDKs read for every service:
// the code in the body for the JSON protocols, in the header for REST.
func errorReply(f Fault) *reply {
	answer := &reply{header: http.Header{}, status: f.Status}
	answer.header.Set("Content-Type", "application/x-amz-json-1.0")
	answer.header.Set("X-Amzn-Errortype", f.Code)
	answer.header.Set("X-Amzn-Requestid", rand.Text())
	body, err := json.Marshal(map[string]string{"__type": f.Code, "message": f.Message})
	if err != nil {
		body = []byte(`{"__type":"InternalFailure"}`) // a map of strings always encodes
	}
	answer.body.Write(body)
	return answer
}
