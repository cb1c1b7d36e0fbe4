package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal/httpapi"
	"backstop/internal/awslocal/lambda"
)

// bundle is a gateway before one function that keeps what it was given.
type bundle struct {
	gateway *httpapi.Gateway
	events  [][]byte
	names   []string
	answer  string
	err     error // of the function
}

func (b *bundle) Invoke(ctx context.Context, function string, payload []byte) (lambda.Response, error) {
	b.events = append(b.events, payload)
	b.names = append(b.names, function)
	return lambda.Func(func(context.Context, []byte) ([]byte, error) { return []byte(b.answer), b.err }).Invoke(ctx, function, payload)
}

func setup() *bundle {
	b := &bundle{answer: `{"statusCode":200,"body":"ok"}`}
	b.gateway = httpapi.New(httpapi.Options{
		Invoker: b, Routes: map[string]string{"POST /webhooks/stripe": "receiver", "GET /health": "receiver"},
		NewRequestID: func() string { return "req-1" },
		Now:          func() time.Time { return time.Date(2026, 3, 12, 19, 3, 58, 390e6, time.UTC) },
	})
	return b
}

func (b *bundle) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.gateway.ServeHTTP(w, r)
	return w
}

func post(body io.Reader, contentType string) *http.Request {
	r := httptest.NewRequest("POST", "http://api.example.test:8080/webhooks/stripe", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func TestRequestBecomesAPayload2Event(t *testing.T) {
	t.Parallel()
	b := setup()
	r := httptest.NewRequest("POST", "http://api.example.test:8080/webhooks/stripe?a=1&a=2&b=x%20y&empty=", strings.NewReader(`{"id":"evt_1","x":"<&>"}`))
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header = http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Stripe-Signature": {"t=1,v1=ab"},
		"X-Multi": {"one", "two"}, "Cookie": {"c1=v1; c2=v2"}, "User-Agent": {"Stripe/1.0"}, "Connection": {"keep-alive"},
	}
	b.send(r)
	if len(b.events) != 1 || b.names[0] != "receiver" {
		t.Fatalf("%d events for %v", len(b.events), b.names)
	}
	const want = `{"version":"2.0","routeKey":"POST /webhooks/stripe","rawPath":"/webhooks/stripe","rawQueryString":"a=1&a=2&b=x%20y&empty=",` +
		`"cookies":["c1=v1","c2=v2"],` +
		`"headers":{"content-length":"24","content-type":"application/json; charset=utf-8","host":"api.example.test:8080","stripe-signature":"t=1,v1=ab","user-agent":"Stripe/1.0","x-forwarded-for":"192.0.2.7","x-forwarded-port":"8080","x-forwarded-proto":"http","x-multi":"one,two"},` +
		`"queryStringParameters":{"a":"1,2","b":"x y","empty":""},` +
		`"requestContext":{"accountId":"000000000000","apiId":"local","domainName":"api.example.test","domainPrefix":"api","http":{"method":"POST","path":"/webhooks/stripe","protocol":"HTTP/1.1","sourceIp":"192.0.2.7","userAgent":"Stripe/1.0"},"requestId":"req-1","routeKey":"POST /webhooks/stripe","stage":"$default","time":"12/Mar/2026:19:03:58 +0000","timeEpoch":1773342238390},` +
		`"body":"{\"id\":\"evt_1\",\"x\":\"<&>\"}","isBase64Encoded":false}`
	if diff := cmp.Diff(want, string(b.events[0])); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestContentTypeDecidesWhetherTheBodyIsBase64(t *testing.T) {
	t.Parallel()
	for contentType, isText := range map[string]bool{
		"application/json":                  true,
		"application/json; charset=utf-8":   true,
		`Application/JSON; Charset="UTF-8"`: true,
		"application/xml":                   true,
		"application/javascript":            true,
		"text/plain":                        true,
		"text/csv":                          true,
		"text/plain; charset=iso-8859-1":    false,
		"application/vnd.api+json":          false,
		"application/x-www-form-urlencoded": false,
		"application/octet-stream":          false,
		"multipart/form-data; boundary=x":   false,
		"":                                  false,
	} {
		b := setup()
		b.send(post(strings.NewReader(`{"id":1}`), contentType))
		var e struct {
			Body            string
			IsBase64Encoded bool
		}
		if err := json.Unmarshal(b.events[0], &e); err != nil {
			t.Fatal(err)
		}
		want, encoded := `{"id":1}`, false
		if !isText {
			want, encoded = "eyJpZCI6MX0=", true
		}
		if e.Body != want || e.IsBase64Encoded != encoded {
			t.Errorf("%q: body %q, base64 %v; want %q, %v", contentType, e.Body, e.IsBase64Encoded, want, encoded)
		}
	}
}

func TestBinaryBodyArrivesByteForByteAndBrokenTextDoesNot(t *testing.T) {
	t.Parallel()
	b := setup()
	raw := []byte{0xff, 0xfe, 0, 'a'}
	b.send(post(bytes.NewReader(raw), "application/octet-stream"))
	b.send(post(bytes.NewReader(raw), "application/json"))
	var binary, text struct{ Body string }
	if err := errors.Join(json.Unmarshal(b.events[0], &binary), json.Unmarshal(b.events[1], &text)); err != nil {
		t.Fatal(err)
	}
	if got, err := base64.StdEncoding.DecodeString(binary.Body); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("binary body = %x, %v", got, err)
	}
	if text.Body != "\ufffd\ufffd\x00a" {
		t.Errorf("text body = %q", text.Body)
	}
}

func TestEmptyBodyIsLeftOut(t *testing.T) {
	t.Parallel()
	b := setup()
	b.send(httptest.NewRequest("GET", "/health", nil))
	if e := string(b.events[0]); strings.Contains(e, `"body"`) || !strings.HasSuffix(e, `"isBase64Encoded":false}`) {
		t.Errorf("event = %s", e)
	}
}

func TestWhatIsTooLargeNeverReachesTheFunction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size        int
		contentType string
		status      int
	}{
		"FiveMegabytesOfText":            {5 << 20, "application/json", 200},
		"SixMegabytesOfText":             {6 << 20, "application/json", 413},
		"FourMegabytesBinary":            {4 << 20, "application/octet-stream", 200},
		"FourAndAHalfPlusASixthBinary":   {4_900_000, "application/octet-stream", 413},
		"TenMegabytesAreUnderTheFirst":   {10 << 20, "application/json", 413},
		"MoreThanTenMegabytesAreRefused": {10<<20 + 1, "application/json", 413},
	} {
		b := setup()
		w := b.send(post(strings.NewReader(strings.Repeat("a", c.size)), c.contentType))
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
		if reached := len(b.events) == 1; reached != (c.status == 200) {
			t.Errorf("%s: reached the function: %v", name, reached)
		}
		if c.status == 413 && w.Body.String() != `{"message":"Request Entity Too Large"}` {
			t.Errorf("%s: body %s", name, w.Body)
		}
	}
}

// endless is a body that counts how much of it is read.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	e.read += len(b)
	return len(b), nil
}

func TestEndlessBodyIsReadOnlyToTheLimit(t *testing.T) {
	t.Parallel()
	b, body := setup(), &endless{}
	w := b.send(post(body, "application/json"))
	if w.Code != 413 || body.read < 10<<20 || body.read > 12<<20 {
		t.Errorf("status %d after %d bytes, want 413 just after 10 MB", w.Code, body.read)
	}
}

func TestNoRouteIs404WithoutRedirects(t *testing.T) {
	t.Parallel()
	b := setup()
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/", nil), httptest.NewRequest("GET", "/webhooks/stripe", nil),
		httptest.NewRequest("POST", "/webhooks/stripe/", nil), httptest.NewRequest("POST", "/webhooks//stripe", nil),
		httptest.NewRequest("HEAD", "/health", nil), httptest.NewRequest("POST", "/webhooks/../webhooks/stripe", nil),
	} {
		if w := b.send(r); w.Code != 404 || w.Body.String() != `{"message":"Not Found"}` || w.Header().Get("Apigw-Requestid") != "req-1" {
			t.Errorf("%s %s: %d %s", r.Method, r.URL.Path, w.Code, w.Body)
		}
	}
	if len(b.events) != 0 {
		t.Errorf("the function was called %d times", len(b.events))
	}
}

func TestAnswerBecomesAResponse(t *testing.T) {
	t.Parallel()
	const internal = `{"message":"Internal Server Error"}`
	for name, c := range map[string]struct {
		answer, body, contentType string
		status                    int
	}{
		"Form":              {`{"statusCode":202,"headers":{"Content-Type":"application/json"},"body":"{}"}`, `{}`, "application/json", 202},
		"NoContentType":     {`{"statusCode":200,"body":"ok"}`, "ok", "text/plain; charset=utf-8", 200},
		"NullsAreAbsent":    {`{"statusCode":204,"headers":null,"multiValueHeaders":null,"body":"","cookies":null}`, "", "text/plain; charset=utf-8", 204},
		"Base64":            {`{"statusCode":200,"headers":{"content-type":"image/png"},"isBase64Encoded":true,"body":"aGk="}`, "hi", "image/png", 200},
		"InferredObject":    {`{"received":true}`, `{"received":true}`, "application/json", 200},
		"InferredString":    {`"plain"`, "plain", "application/json", 200},
		"InferredNull":      {`null`, "null", "application/json", 200},
		"BrokenBase64":      {`{"statusCode":200,"isBase64Encoded":true,"body":"*"}`, internal, "application/json", 500},
		"StatusIsText":      {`{"statusCode":"teapot","body":""}`, internal, "application/json", 500},
		"StatusOutOfRange":  {`{"statusCode":1000,"body":""}`, internal, "application/json", 500},
		"StatusInformal":    {`{"statusCode":100,"body":""}`, internal, "application/json", 500},
		"BodyIsAnObject":    {`{"statusCode":200,"body":{"a":1}}`, internal, "application/json", 500},
		"HeaderIsAList":     {`{"statusCode":200,"headers":{"a":["b"]}}`, internal, "application/json", 500},
		"NotJSON":           {`<html>`, internal, "application/json", 500},
		"NothingAtAll":      {``, internal, "application/json", 500},
		"LengthIsCorrected": {`{"statusCode":200,"headers":{"content-length":"999","x-n":12},"body":"ok"}`, "ok", "text/plain; charset=utf-8", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup()
			b.answer = c.answer
			server := httptest.NewServer(b.gateway)
			defer server.Close()
			resp, err := http.Post(server.URL+"/webhooks/stripe", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || string(body) != c.body || resp.Header.Get("Content-Type") != c.contentType {
				t.Errorf("got %d %q %q, want %d %q %q", resp.StatusCode, body, resp.Header.Get("Content-Type"), c.status, c.body, c.contentType)
			}
		})
	}
}

func TestCookiesAndHeadersGoOut(t *testing.T) {
	t.Parallel()
	b := setup()
	b.answer = `{"statusCode":200,"headers":{"x-n":12,"x-b":true},"cookies":["a=1; Secure","b=2"],"body":"ok"}`
	w := b.send(post(strings.NewReader("{}"), "application/json"))
	if diff := cmp.Diff([]string{"a=1; Secure", "b=2"}, w.Header()["Set-Cookie"]); diff != "" {
		t.Errorf("cookies (-want +got):\n%s", diff)
	}
	if w.Header().Get("X-N") != "12" || w.Header().Get("X-B") != "true" {
		t.Errorf("headers = %v", w.Header())
	}
}

func TestFunctionErrorIs500AndTellsNothing(t *testing.T) {
	t.Parallel()
	b := setup()
	b.err = errors.New("table ledger is missing")
	if w := b.send(post(strings.NewReader("{}"), "application/json")); w.Code != 500 || w.Body.String() != `{"message":"Internal Server Error"}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestSlowIntegrationIs503AndGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes  time.Duration
		status int
	}{"JustInTime": {30*time.Second - time.Millisecond, 200}, "JustTooLate": {30*time.Second + time.Millisecond, 503}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				finished := false
				g := httpapi.New(httpapi.Options{
					Routes: map[string]string{"POST /webhooks/stripe": "receiver"},
					Invoker: lambda.Func(func(ctx context.Context, _ []byte) ([]byte, error) {
						select {
						case <-time.After(c.takes):
							finished = true
						case <-ctx.Done():
						}
						return []byte(`{"statusCode":200}`), nil
					}),
				})
				w := httptest.NewRecorder()
				g.ServeHTTP(w, post(strings.NewReader("{}"), "application/json"))
				if w.Code != c.status {
					t.Errorf("status = %d, want %d", w.Code, c.status)
				}
				if c.status == 503 && w.Body.String() != `{"message":"Service Unavailable"}` {
					t.Errorf("body = %s", w.Body)
				}
				g.Wait()
				if !finished {
					t.Error("the invocation was broken off")
				}
			})
		})
	}
}

func TestClientThatGoesAwayDoesNotStopTheFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finished := false
		g := httpapi.New(httpapi.Options{
			Routes: map[string]string{"POST /webhooks/stripe": "receiver"},
			Invoker: lambda.Func(func(ctx context.Context, _ []byte) ([]byte, error) {
				select {
				case <-time.After(5 * time.Second):
					finished = true
				case <-ctx.Done():
				}
				return nil, nil
			}),
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		g.ServeHTTP(httptest.NewRecorder(), post(strings.NewReader("{}"), "application/json").WithContext(ctx))
		if took := time.Since(start); took != time.Second {
			t.Errorf("the handler stayed %s, want 1 s", took)
		}
		g.Wait()
		if !finished {
			t.Error("the invocation was broken off")
		}
	})
}
