package cases

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"

	"backstop/internal/receive"
)

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var placeholder = regexp.MustCompile(`\{([^{}]+)\}`)

// render fills in a signature header's template, for a body, a clock and the secrets by name.
func render(template string, body []byte, now, offset int64, secrets map[string]string) (string, error) {
	var problem error
	mac := func(name string, t int64) string {
		text, known := secrets[name]
		if !known {
			problem = fmt.Errorf("the signature needs the secret %q, which the case does not have", name)
		}
		h := hmac.New(sha256.New, []byte(text))
		h.Write([]byte(strconv.FormatInt(t, 10) + "."))
		h.Write(body)
		return hex.EncodeToString(h.Sum(nil))
	}
	header := placeholder.ReplaceAllStringFunc(template, func(token string) string {
		what, argument, _ := strings.Cut(strings.Trim(token, "{}"), ":")
		switch what {
		case "t":
			n, err := strconv.ParseInt(argument, 10, 64)
			if argument == "" {
				n, err = offset, nil
			}
			if err != nil {
				problem = fmt.Errorf("%s is no time", token)
			}
			return strconv.FormatInt(now+n, 10)
		case "v1":
			name, at, given := strings.Cut(argument, "@")
			t := now + offset
			if given {
				n, err := strconv.ParseInt(at, 10, 64)
				if err != nil {
					problem = fmt.Errorf("%s is no signature", token)
				}
				t = now + n
			}
			return mac(name, t)
		case "v0":
			return hexSum([]byte("v0" + mac(argument, now)))
		case "zeros":
			return strings.Repeat("0", 64)
		}
		problem = fmt.Errorf("%s is nothing this runner can fill in", token)
		return token
	})
	return header, problem
}

// signed are the values of the request's signature header at this clock, none if it has none.
func (w *world) signed(r *request, sent []byte) ([]string, error) {
	var headers []string
	for name, values := range r.Headers {
		if !strings.EqualFold(name, "Stripe-Signature") {
			continue
		}
		for _, template := range values {
			header, err := w.header(r, template, sent)
			if err != nil {
				return nil, err
			}
			headers = append(headers, header)
		}
	}
	if r.Sign.Rendered != nil && len(headers) > 1 && w.comparable(r) && strings.Join(headers, ",") != *r.Sign.Rendered {
		return nil, fmt.Errorf("the signer makes %q, the case says %q", headers, *r.Sign.Rendered)
	}
	return headers, nil
}

// comparable reports whether the finished header of the case is for this clock.
func (w *world) comparable(r *request) bool {
	at := r.Sign.At
	if at == 0 {
		at = w.variant.Now
	}
	return at == w.clock()
}

func (w *world) header(r *request, template string, sent []byte) (string, error) {
	now := w.clock()
	several := strings.Count(text(r.Headers), "{v1") > strings.Count(template, "{v1")
	over := sent
	if r.Sign.OverSHA256 != "" {
		if over = w.signedOver[r.Sign.OverSHA256]; over == nil {
			if r.Sign.Rendered != nil && w.comparable(r) {
				return *r.Sign.Rendered, nil
			}
			return "", fmt.Errorf("the bytes the signature is over are nowhere in the case")
		}
	}
	header, err := render(template, over, now, r.Sign.TOffset, w.secrets())
	if err != nil {
		return "", err
	}
	if r.Sign.Rendered != nil && !several && w.comparable(r) && !strings.Contains(template, "{v0:") && header != *r.Sign.Rendered {
		return "", fmt.Errorf("the signer makes %q, the case says %q", header, *r.Sign.Rendered)
	}
	return header, nil
}

// published puts the endpoint's path into a text of the case.
func published(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "/{endpoint}", receive.WebhookPath), "{endpoint}", receive.WebhookPath)
}

// httpRequest is the delivery as Stripe would post it.
func (w *world) httpRequest(r *request) (*http.Request, []byte, error) {
	sent, err := r.Body.bytes(w.variant.file.Given.Bodies)
	if err != nil {
		return nil, nil, err
	}
	headers, err := w.signed(r, sent)
	if err != nil {
		return nil, nil, err
	}
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	path := r.Path
	if path == "" {
		path = "{endpoint}"
	}
	out := httptest.NewRequest(method, "https://hooks.example.test"+published(path), bytes.NewReader(sent))
	for name, values := range r.Headers {
		if !strings.EqualFold(name, "Stripe-Signature") {
			out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if len(headers) > 0 {
		out.Header["Stripe-Signature"] = headers
	}
	return out, sent, nil
}

// gatewayEvent is what a gateway would invoke the function with.
func (w *world) gatewayEvent(r *request) (payload, signedBytes []byte, err error) {
	signedBytes, err = r.SignedBytes.bytes(w.variant.file.Given.Bodies)
	if err != nil || r.SignedBytes == nil || (r.SignedBytes.UTF8 == nil && r.SignedBytes.Base64 == nil && r.SignedBytes.Ref == "" && r.SignedBytes.Template == nil) {
		signedBytes, err = w.bytesWith(r)
		if err != nil {
			return nil, nil, err
		}
	}
	headers, err := w.signed(r, signedBytes)
	if err != nil {
		return nil, nil, err
	}
	var event any
	decoder := json.NewDecoder(bytes.NewReader(r.GatewayEvent))
	decoder.UseNumber()
	if err := decoder.Decode(&event); err != nil {
		return nil, nil, fmt.Errorf("read the gateway event: %w", err)
	}
	payload, err = json.Marshal(replaced(event, func(s string) string {
		if s == "{signature}" {
			return strings.Join(headers, ",")
		}
		if len(s) < 200 {
			return published(s)
		}
		return s
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("write the gateway event: %w", err)
	}
	return payload, signedBytes, nil
}

// bytesWith finds the signed bytes that the case gives by checksum only: they are the gateway event's body, as it
// stands or decoded.
func (w *world) bytesWith(r *request) ([]byte, error) {
	if r.SignedBytes == nil {
		return nil, nil
	}
	var wrapped struct{ Body string }
	_ = json.Unmarshal(r.GatewayEvent, &wrapped) // what it is not, the checksum tells
	for _, candidate := range []body{{UTF8: &wrapped.Body}, {Base64: &wrapped.Body}} {
		candidate.SHA256 = r.SignedBytes.SHA256
		if raw, err := candidate.bytes(nil); err == nil {
			return raw, nil
		}
	}
	if raw := w.signedOver[r.SignedBytes.SHA256]; raw != nil {
		return raw, nil
	}
	return nil, fmt.Errorf("the signed bytes are nowhere in the case")
}

func replaced(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = replaced(v[i], f)
		}
	case map[string]any:
		for name := range v {
			v[name] = replaced(v[name], f)
		}
	}
	return v
}
