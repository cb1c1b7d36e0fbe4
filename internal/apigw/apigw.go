// Package apigw translates between HTTP and the JSON that AWS puts around it when it calls a function: one Request
// and one Response for the four services that can stand in front of the receiver.
//
//   - HTTP API, payload format 2.0, and function URLs, which use the same format (Amazon API Gateway Developer Guide,
//     "Create AWS Lambda proxy integrations for HTTP APIs"; AWS Lambda Developer Guide, "Invoking Lambda function
//     URLs"). Header names come in lower case, repeated headers joined by commas.
//   - REST API, format 1.0 (Amazon API Gateway Developer Guide, "Input format of a Lambda function for proxy
//     integration"). Header names come as they were sent, all values in multiValueHeaders, of which headers has the last.
//   - Load balancers (Elastic Load Balancing User Guide, "Use Lambda functions as targets of an Application Load
//     Balancer"). Either headers or multiValueHeaders, and the answer has to use the same.
//
// The body is bytes. They are what the base64 flag says they are, on every service: the flag alone decides, not the
// content type. Without it the JSON string's own UTF-8 is the body; a string that no bytes stand for (half a surrogate
// pair) is refused, where encoding/json would put U+FFFD into a body that was signed without it.
package apigw

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"backstop/internal/jsonscan"
)

// Shape says which service asks.
type Shape string

// The shapes.
const (
	HTTPAPI      Shape = "http_api" // payload format 2.0, function URLs included
	REST         Shape = "rest_api" // payload format 1.0
	LoadBalancer Shape = "load_balancer"
)

// Reason says why what a function was called with is no HTTP request with a body. It is an error; errors.As finds it.
type Reason string

// The reasons.
const (
	BadEnvelope Reason = "bad_gateway_event" // not one of the shapes
	BadBase64   Reason = "body_not_base64"   // the flag says base64, the text is not
	BadText     Reason = "body_not_unicode"  // the text escapes half a surrogate pair
)

func (r Reason) Error() string { return "the call is not an HTTP request: " + string(r) }

// Request is one HTTP request.
type Request struct {
	Shape     Shape
	Method    string
	Path      string // without the stage an API may prefix, and without the query
	RequestID string // the gateway's; a load balancer's trace id
	Body      []byte // the exact bytes; they may share memory with what was decoded

	headers, multi []byte // the raw maps
}

// Response is the answer to one.
type Response struct {
	Status int
	Header map[string]string // besides Content-Type, which is application/json
	Body   []byte            // UTF-8
}

// call is what the shapes have in common and what tells them apart, as raw values.
type call struct {
	version, method, path, rawPath, body, encoded, headers, multi []byte
	contextMethod, requestID, stage                               []byte
	http, elb                                                     bool
}

// Decode reads what a function was called with. Its errors are a Reason; the Request beside one is complete as far as
// it could be read, so that the answer can be given in its shape.
func Decode(payload []byte) (Request, error) {
	var c call
	s := jsonscan.New(payload)
	if err := c.read(&s); err != nil || s.End() != nil {
		return Request{Shape: HTTPAPI}, BadEnvelope
	}
	r := Request{headers: c.headers, multi: c.multi, RequestID: text(c.requestID)}
	switch {
	case c.elb:
		r.Shape, r.Method, r.Path = LoadBalancer, text(c.method), text(c.path)
		r.RequestID = r.Get("X-Amzn-Trace-Id")
	case c.http || text(c.version) == "2.0":
		r.Shape, r.Method, r.Path = HTTPAPI, text(c.contextMethod), withoutStage(text(c.rawPath), text(c.stage))
	default:
		r.Shape, r.Method, r.Path = REST, text(c.method), text(c.path)
		if text(c.version) == "1.0" { // an HTTP API told to use the REST API's format
			r.Path = withoutStage(r.Path, text(c.stage))
		}
	}
	if r.Method == "" || r.Path == "" {
		return r, BadEnvelope
	}
	var err error
	r.Body, err = body(c.body, string(c.encoded) == "true")
	return r, err
}

func (c *call) read(s *jsonscan.Scanner) error {
	return s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "version":
			c.version, err = s.Value()
		case "httpMethod":
			c.method, err = s.Value()
		case "path":
			c.path, err = s.Value()
		case "rawPath":
			c.rawPath, err = s.Value()
		case "body":
			c.body, err = s.Value()
		case "isBase64Encoded":
			c.encoded, err = s.Value()
		case "headers":
			c.headers, err = s.Value()
		case "multiValueHeaders":
			c.multi, err = s.Value()
		case "requestContext":
			err = c.context(s)
		default:
			_, err = s.Value()
		}
		return err
	})
}

func (c *call) context(s *jsonscan.Scanner) error {
	if s.Next() != '{' {
		_, err := s.Value()
		return err
	}
	return s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "requestId":
			c.requestID, err = s.Value()
		case "stage":
			c.stage, err = s.Value()
		case "elb":
			c.elb = true
			_, err = s.Value()
		case "http":
			if s.Next() != '{' {
				_, err = s.Value()
				return err
			}
			c.http = true
			err = s.Object(func(key []byte) (err error) {
				value, err := s.Value()
				if string(key) == "method" {
					c.contextMethod = value
				}
				return err
			})
		default:
			_, err = s.Value()
		}
		return err
	})
}

// withoutStage takes off the stage, which an HTTP API leaves in the path unless it is $default.
func withoutStage(path, stage string) string {
	if stage == "" || stage == "$default" {
		return path
	}
	if rest, found := strings.CutPrefix(path, "/"+stage); found && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

func body(value []byte, encoded bool) ([]byte, error) {
	switch {
	case value == nil || jsonscan.IsNull(value):
		return nil, nil
	case !jsonscan.IsString(value):
		return nil, BadEnvelope
	}
	raw, err := jsonscan.Bytes(value)
	if err != nil {
		return nil, BadText
	}
	if !encoded {
		return raw, nil
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(decoded, raw)
	if err != nil {
		return nil, BadBase64
	}
	return decoded[:n], nil
}

// Get returns a header's value, its name compared without regard to case. Several values are joined by commas, as
// HTTP has it (RFC 9110, section 5.3).
func (r Request) Get(name string) string {
	if value := lookup(r.multi, name); value != "" {
		return value
	}
	return lookup(r.headers, name)
}

func lookup(headers []byte, name string) string {
	if len(headers) == 0 || headers[0] != '{' {
		return ""
	}
	var values []string
	s := jsonscan.New(headers)
	// The map was walked before without an error.
	_ = s.Object(func(key []byte) error {
		wanted := len(key) == len(name) && bytes.EqualFold(key, []byte(name))
		if wanted && s.Next() == '[' {
			return s.Array(func() error {
				value, err := s.Value()
				values = append(values, text(value))
				return err
			})
		}
		value, err := s.Value()
		if wanted {
			values = append(values, text(value))
		}
		return err
	})
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values, ",")
}

func text(value []byte) string {
	if !jsonscan.IsString(value) {
		return ""
	}
	b, err := jsonscan.Bytes(value)
	if err != nil {
		return ""
	}
	return string(b)
}

// answer is the shape of all answers: what a service does not know, it ignores or is left out.
type answer struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// Encode writes the answer as the service that sent r wants it.
func (r Request) Encode(response Response) ([]byte, error) {
	headers := map[string]string{"content-type": "application/json"}
	for name, value := range response.Header {
		headers[name] = value
	}
	a := answer{StatusCode: response.Status, Headers: headers, Body: string(response.Body)}
	if r.Shape == LoadBalancer {
		a.StatusDescription = fmt.Sprintf("%d %s", response.Status, http.StatusText(response.Status))
		if r.multi != nil {
			a.Headers, a.MultiValueHeaders = nil, make(map[string][]string, len(headers))
			for name, value := range headers {
				a.MultiValueHeaders[name] = []string{value}
			}
		}
	}
	encoded, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return encoded, nil
}
