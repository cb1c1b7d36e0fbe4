package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"backstop/internal/awslocal/lambda"
)

// MaxBodyBytes is the largest request body an HTTP API takes, 10 MB.
const MaxBodyBytes = 10 << 20

// Options configure a [Gateway]. Invoker and Routes are required.
type Options struct {
	Invoker lambda.Invoker
	// Routes are route keys such as "POST /webhooks/stripe" with the name of
	// the function each integrates. Paths are literal.
	Routes map[string]string
	// Timeout of an integration. Default, and AWS's maximum, 30 s.
	Timeout time.Duration
	Account string // default 000000000000
	APIID   string // default "local"
	// NewRequestID makes request ids. Default: random.
	NewRequestID func() string
	Now          func() time.Time // default time.Now
	// OnError hears why a request was answered with a 5xx that the function
	// did not give. Default: nothing.
	OnError func(routeKey string, err error)
}

// Gateway is the HTTP API as an http.Handler.
type Gateway struct {
	opts        Options
	invocations sync.WaitGroup
}

// New returns the API.
func New(opts Options) *Gateway {
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	if opts.APIID == "" {
		opts.APIID = "local"
	}
	if opts.NewRequestID == nil {
		opts.NewRequestID = rand.Text
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.OnError == nil {
		opts.OnError = func(string, error) {}
	}
	return &Gateway{opts: opts}
}

// Wait returns when no invocation is under way any more. Call it after the
// HTTP server has stopped.
func (g *Gateway) Wait() { g.invocations.Wait() }

// ServeHTTP routes one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := g.opts.NewRequestID()
	w.Header().Set("Apigw-Requestid", requestID)
	routeKey := r.Method + " " + r.URL.Path
	function, ok := g.opts.Routes[routeKey]
	if !ok {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		}
		return // otherwise the client broke off
	}
	payload, err := g.event(r, routeKey, requestID, body)
	if err != nil {
		g.opts.OnError(routeKey, err)
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	if len(payload) > lambda.MaxRequestBytes {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	g.integrate(w, r, routeKey, function, payload)
}

// integrate invokes the function and relays its answer. The invocation has a
// life of its own: neither the time-out nor a client that goes away ends it.
func (g *Gateway) integrate(w http.ResponseWriter, r *http.Request, routeKey, function string, payload []byte) {
	type outcome struct {
		resp lambda.Response
		err  error
	}
	result := make(chan outcome, 1)
	ctx := context.WithoutCancel(r.Context())
	g.invocations.Go(func() {
		resp, err := g.opts.Invoker.Invoke(ctx, function, payload)
		result <- outcome{resp, err}
	})
	timer := time.NewTimer(g.opts.Timeout)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return
	case <-timer.C:
		g.opts.OnError(routeKey, errors.New("the integration timed out"))
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
		return
	case out := <-result:
		if out.err == nil && out.resp.FunctionError != "" {
			out.err = errors.New("the function failed")
		}
		var answer response
		if out.err == nil {
			answer, out.err = decode(out.resp.Payload)
		}
		if out.err != nil {
			g.opts.OnError(routeKey, out.err)
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
		answer.write(w)
	}
}

// refuse answers in the gateway's own form.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, `{"message":"`+message+`"}`) // nothing is left to tell a client that went away
}

// isText says whether a body of this content type travels as text.
func isText(contentType string) bool {
	mediaType, params, _ := strings.Cut(strings.ToLower(contentType), ";")
	mediaType = strings.TrimSpace(mediaType)
	switch {
	case strings.HasPrefix(mediaType, "text/"):
	case mediaType == "application/json", mediaType == "application/xml", mediaType == "application/javascript":
	default:
		return false
	}
	for param := range strings.SplitSeq(params, ";") {
		if name, charset, ok := strings.Cut(strings.TrimSpace(param), "="); ok && strings.TrimSpace(name) == "charset" {
			return strings.Trim(strings.TrimSpace(charset), `"`) == "utf-8"
		}
	}
	return true
}
