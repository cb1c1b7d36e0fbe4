package lambda

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ControlOptions configure a [Control].
type ControlOptions struct {
	Region  string // default us-east-1
	Account string // default 000000000000
	// Invoker runs Functions; Functions describes them.
	Invoker   Invoker
	Functions []Function
	Pollers   []*Poller
	Now       func() time.Time // default time.Now
}

// Control is the part of the Lambda API that operates the pipeline: list,
// read, pause and resume event source mappings, read a function's
// configuration, invoke it. Anything else is refused.
type Control struct {
	opts ControlOptions
	mux  *http.ServeMux
	born time.Time
}

// NewControl returns the API as an http.Handler.
func NewControl(opts ControlOptions) *Control {
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Control{opts: opts, mux: http.NewServeMux(), born: opts.Now()}
	c.mux.HandleFunc("GET /2015-03-31/event-source-mappings", c.list)
	c.mux.HandleFunc("GET /2015-03-31/event-source-mappings/{uuid}", c.get)
	c.mux.HandleFunc("PUT /2015-03-31/event-source-mappings/{uuid}", c.update)
	c.mux.HandleFunc("GET /2015-03-31/functions/{name}/configuration", c.configuration)
	c.mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", c.invoke)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{404, "UnknownOperationException", "this operation is not part of the local Lambda"})
	})
	return c
}

// ServeHTTP answers one call of the Lambda REST API.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The SDK writes the list call with a slash at the end, the reference
	// without; a redirect would lose the signature.
	if p := strings.TrimSuffix(r.URL.Path, "/"); p != r.URL.Path && p != "" {
		r = r.Clone(r.Context())
		r.URL = &url.URL{Path: p, RawQuery: r.URL.RawQuery}
	}
	c.mux.ServeHTTP(w, r)
}

type mapping struct {
	UUID                           string
	FunctionArn                    string
	EventSourceArn                 string
	EventSourceMappingArn          string
	State                          string
	StateTransitionReason          string
	LastModified                   float64 // seconds since 1970
	BatchSize                      int
	MaximumBatchingWindowInSeconds int
	FunctionResponseTypes          []string
	ScalingConfig                  struct{ MaximumConcurrency int }
}

func (c *Control) mapping(p *Poller) mapping {
	p.mu.Lock()
	modified := p.modified
	p.mu.Unlock()
	m := mapping{
		UUID: p.uuid, FunctionArn: functionARN(c.opts.Region, c.opts.Account, p.opts.Function),
		EventSourceArn:        p.opts.QueueARN,
		EventSourceMappingArn: "arn:aws:lambda:" + c.opts.Region + ":" + c.opts.Account + ":event-source-mapping:" + p.uuid,
		State:                 p.State(), StateTransitionReason: "USER_INITIATED",
		LastModified:          float64(modified.UnixMilli()) / 1000,
		BatchSize:             p.opts.BatchSize,
		FunctionResponseTypes: []string{"ReportBatchItemFailures"},
	}
	m.ScalingConfig.MaximumConcurrency = p.opts.MaximumConcurrency
	return m
}

func (c *Control) list(w http.ResponseWriter, r *http.Request) {
	function, source := nameOf(r.FormValue("FunctionName")), r.FormValue("EventSourceArn")
	found := []mapping{}
	for _, p := range c.opts.Pollers {
		if (function == "" || p.opts.Function == function) && (source == "" || p.opts.QueueARN == source) {
			found = append(found, c.mapping(p))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"EventSourceMappings": found})
}

func (c *Control) poller(w http.ResponseWriter, r *http.Request) *Poller {
	id := r.PathValue("uuid")
	i := slices.IndexFunc(c.opts.Pollers, func(p *Poller) bool { return p.uuid == id })
	if i < 0 {
		writeError(w, &Error{404, "ResourceNotFoundException", "The resource you requested does not exist."})
		return nil
	}
	return c.opts.Pollers[i]
}

func (c *Control) get(w http.ResponseWriter, r *http.Request) {
	if p := c.poller(w, r); p != nil {
		writeJSON(w, http.StatusOK, c.mapping(p))
	}
}

func (c *Control) update(w http.ResponseWriter, r *http.Request) {
	p := c.poller(w, r)
	if p == nil {
		return
	}
	// Only Enabled can be changed here: refusing the rest is better than an
	// answer that looks as if it had been.
	var change struct {
		Enabled      *bool
		FunctionName *string
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&change); err != nil && !errors.Is(err, io.EOF) {
		writeError(w, &Error{400, "InvalidParameterValueException", "only Enabled can be changed on the local Lambda"})
		return
	}
	if change.FunctionName != nil && nameOf(*change.FunctionName) != p.opts.Function {
		writeError(w, &Error{400, "InvalidParameterValueException", "the function of a mapping cannot be changed on the local Lambda"})
		return
	}
	if change.Enabled != nil {
		p.SetEnabled(*change.Enabled)
	}
	writeJSON(w, http.StatusAccepted, c.mapping(p))
}

// nameOf cuts a function's ARN, whole or partial, down to its name.
func nameOf(function string) string {
	if _, name, ok := strings.Cut(function, ":function:"); ok {
		name, _, _ = strings.Cut(name, ":")
		return name
	}
	return function
}

func (c *Control) configuration(w http.ResponseWriter, r *http.Request) {
	name := nameOf(r.PathValue("name"))
	arn := functionARN(c.opts.Region, c.opts.Account, name)
	i := slices.IndexFunc(c.opts.Functions, func(f Function) bool { return f.Name == name })
	if i < 0 {
		writeError(w, errNoFunction(arn))
		return
	}
	f := c.opts.Functions[i]
	writeJSON(w, http.StatusOK, map[string]any{
		"FunctionName": name, "FunctionArn": arn, "Runtime": "provided.al2023", "Handler": "bootstrap",
		"Version": "$LATEST", "State": "Active", "LastUpdateStatus": "Successful", "PackageType": "Zip",
		"LastModified": c.born.UTC().Format("2006-01-02T15:04:05.000-0700"),
		"Timeout":      int(f.Timeout.Seconds()), "MemorySize": f.MemoryMB,
		"Environment": map[string]any{"Variables": f.Env},
	})
}

func (c *Control) invoke(w http.ResponseWriter, r *http.Request) {
	name := nameOf(r.PathValue("name"))
	if t := r.Header.Get("X-Amz-Invocation-Type"); t != "" && t != "RequestResponse" {
		writeError(w, &Error{400, "InvalidParameterValueException", "only RequestResponse invocations are supported on the local Lambda"})
		return
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxRequestBytes+1))
	if err != nil {
		writeError(w, &Error{400, "InvalidRequestContentException", "Could not read the request body"})
		return
	}
	if len(payload) > 0 && len(payload) <= MaxRequestBytes && !json.Valid(payload) {
		writeError(w, &Error{400, "InvalidRequestContentException", "Could not parse request body into json"})
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	resp, err := c.opts.Invoker.Invoke(r.Context(), name, payload)
	if err != nil {
		var refused *Error
		if !errors.As(err, &refused) {
			refused = &Error{500, "ServiceException", "the invocation ended without an answer"}
		}
		writeError(w, refused)
		return
	}
	if resp.FunctionError != "" {
		w.Header().Set("X-Amz-Function-Error", resp.FunctionError)
	}
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	w.Header().Set("Content-Type", "application/json")
	w.Write(resp.Payload) // nothing is left to tell a client that went away
}

func writeError(w http.ResponseWriter, e *Error) {
	w.Header().Set("X-Amzn-ErrorType", e.Code)
	kind := "User"
	if e.Status >= 500 {
		kind = "Service"
	}
	writeJSON(w, e.Status, map[string]string{"Type": kind, "Message": e.Message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"Type":"Service","Message":"the answer cannot be written"}`)
	}
	answer(w, status, string(body))
}
