package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// event is a request in payload format 2.0, fields in AWS's order.
type event struct {
	Version        string            `json:"version"`
	RouteKey       string            `json:"routeKey"`
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Cookies        []string          `json:"cookies,omitempty"`
	Headers        map[string]string `json:"headers"`
	Query          map[string]string `json:"queryStringParameters,omitempty"`
	RequestContext requestContext    `json:"requestContext"`
	Body           *string           `json:"body,omitempty"`
	IsBase64       bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string      `json:"accountId"`
	APIID        string      `json:"apiId"`
	DomainName   string      `json:"domainName"`
	DomainPrefix string      `json:"domainPrefix"`
	HTTP         httpContext `json:"http"`
	RequestID    string      `json:"requestId"`
	RouteKey     string      `json:"routeKey"`
	Stage        string      `json:"stage"`
	Time         string      `json:"time"`
	TimeEpoch    int64       `json:"timeEpoch"` // milliseconds
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// hopByHop headers belong to one connection and are not passed on (RFC 9110,
// section 7.6.1). Cookies travel in their own field.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Cookie": true,
}

func (g *Gateway) event(r *http.Request, routeKey, requestID string, body []byte) ([]byte, error) {
	now := g.opts.Now().UTC()
	sourceIP, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		sourceIP = "127.0.0.1" // called in-process, without a connection
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = r.Host, "80"
	}
	headers := make(map[string]string, len(r.Header)+5)
	for name, values := range r.Header {
		if !hopByHop[name] {
			headers[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	headers["host"] = r.Host
	headers["content-length"] = strconv.Itoa(len(body))
	headers["x-forwarded-proto"] = "http"
	headers["x-forwarded-port"] = port
	if forwarded := headers["x-forwarded-for"]; forwarded != "" {
		headers["x-forwarded-for"] = forwarded + ", " + sourceIP
	} else {
		headers["x-forwarded-for"] = sourceIP
	}
	e := event{
		Version: "2.0", RouteKey: routeKey, RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: headers, Query: query(r.URL.RawQuery),
		RequestContext: requestContext{
			AccountID: g.opts.Account, APIID: g.opts.APIID, DomainName: host, DomainPrefix: prefix(host),
			HTTP: httpContext{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: sourceIP, UserAgent: r.UserAgent(),
			},
			RequestID: requestID, RouteKey: routeKey, Stage: "$default",
			Time: now.Format("02/Jan/2006:15:04:05 +0000"), TimeEpoch: now.UnixMilli(),
		},
	}
	for _, line := range r.Header["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" {
				e.Cookies = append(e.Cookies, cookie)
			}
		}
	}
	if len(body) > 0 {
		text := string(body)
		if e.IsBase64 = !isText(r.Header.Get("Content-Type")); e.IsBase64 {
			text = base64.StdEncoding.EncodeToString(body)
		}
		e.Body = &text
	}
	// Without HTML escaping, which would make six bytes of each & and spend
	// the function's request limit on it.
	var payload bytes.Buffer
	encoder := json.NewEncoder(&payload)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("building the event of %s: %w", routeKey, err)
	}
	return bytes.TrimSuffix(payload.Bytes(), []byte("\n")), nil
}

func prefix(host string) string {
	p, _, _ := strings.Cut(host, ".")
	return p
}

// query decodes the parameters; one given several times has its values joined
// with commas, in the order they came. A pair that does not decode stays as
// it was sent.
func query(raw string) map[string]string {
	params := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		k, v = unescape(k), unescape(v)
		if old, ok := params[k]; ok {
			v = old + "," + v
		}
		params[k] = v
	}
	return params
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}
