package lambda

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// routes is the Runtime API, version 2018-06-01.
func (p *process) routes() http.Handler {
	mux := http.NewServeMux()
	const base = "/2018-06-01/runtime/"
	mux.HandleFunc("GET "+base+"invocation/next", p.next)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", p.response)
	mux.HandleFunc("POST "+base+"invocation/{id}/error", p.error)
	mux.HandleFunc("POST "+base+"init/error", p.initError)
	return mux
}

func (p *process) next(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if !p.polled && !p.dead {
		p.polled = true
		p.fn.healthy.Add(1)
		close(p.ready)
	}
	p.mu.Unlock()

	var inv *invocation
	select {
	case inv = <-p.fn.queue:
	case <-r.Context().Done():
		return
	case <-p.ctx.Done():
		// An answer without a request would be an error of the function's. The process is being killed: it gets none.
		<-r.Context().Done()
		return
	}
	deadline := p.fn.host.opts.Now().Add(p.fn.Timeout)
	if r.Context().Err() != nil || !p.assign(inv) {
		// The process died while it waited; who invoked it sees that.
		inv.done <- p.exitResponse(inv.id)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(inv.payload)))
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", p.fn.arn)
	h.Set("Lambda-Runtime-Trace-Id", traceID(deadline, inv.id))
	w.Write(inv.payload) // a failed write means a dying process, which run sees
}

// traceID is an X-Ray trace header that says "not sampled".
func traceID(t time.Time, requestID string) string {
	hex := requestID[:8] + requestID[9:13] + requestID[14:18] + requestID[19:23] + requestID[24:]
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", uint32(t.Unix()), hex[:24], hex[16:])
}

// assign makes inv the process's current invocation and starts its time-out.
func (p *process) assign(inv *invocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	p.inv = inv
	p.timer = time.AfterFunc(p.fn.Timeout, func() {
		p.mu.Lock()
		late := p.inv == inv
		p.timedOut = p.timedOut || late
		p.mu.Unlock()
		if late {
			p.kill() // run tells the caller once the process is really gone
		}
	})
	return true
}

// finish ends the current invocation if it is the one with this id.
func (p *process) finish(id string, resp Response) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inv == nil || p.inv.id != id || p.timedOut {
		return false
	}
	p.timer.Stop()
	p.inv.done <- resp
	p.inv, p.timer = nil, nil
	return true
}

func (p *process) response(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxResponseBytes+1))
	if err != nil {
		return // the process died while it answered; run settles the invocation
	}
	if len(body) > MaxResponseBytes {
		p.finish(id, responseTooLarge())
		answer(w, http.StatusRequestEntityTooLarge, `{"errorType":"RequestEntityTooLarge","errorMessage":"Exceeded maximum allowed payload size (6291556 bytes)."}`)
		return
	}
	resp := Response{Payload: body}
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		resp = failure(kind, "the function failed while it wrote its response")
	}
	p.accept(w, p.finish(id, resp))
}

func (p *process) error(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxResponseBytes))
	if err != nil {
		return
	}
	p.accept(w, p.finish(r.PathValue("id"), Response{Payload: body, FunctionError: Unhandled}))
}

func (p *process) initError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxResponseBytes))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.initErr = body
	p.mu.Unlock()
	p.accept(w, true)
}

func (p *process) accept(w http.ResponseWriter, known bool) {
	if !known {
		answer(w, http.StatusBadRequest, `{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}`)
		return
	}
	answer(w, http.StatusAccepted, `{"status":"OK"}`)
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body) // nothing is left to tell a client that went away
}
