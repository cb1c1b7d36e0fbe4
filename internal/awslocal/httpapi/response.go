package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// response is a function's answer as it goes to the client.
type response struct {
	status  int
	headers map[string]string
	cookies []string
	body    []byte
}

// decode reads an answer by the rules of payload format 2.0: JSON without a
// statusCode is a 200 with that JSON as its body; with one, it is the form
// {statusCode, headers, body, isBase64Encoded, cookies}. Anything else is an
// error, which the gateway answers with 500.
func decode(payload []byte) (response, error) {
	if !json.Valid(payload) {
		return response{}, errors.New("the function's answer is not JSON")
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil || fields["statusCode"] == nil {
		// A bare JSON string is the body itself, without its quotes.
		body := payload
		if s := ""; payload[0] == '"' && json.Unmarshal(payload, &s) == nil {
			body = []byte(s)
		}
		return response{status: http.StatusOK, headers: map[string]string{"content-type": "application/json"}, body: body}, nil
	}
	var form struct {
		StatusCode int            `json:"statusCode"`
		Headers    map[string]any `json:"headers"`
		Body       *string        `json:"body"`
		IsBase64   bool           `json:"isBase64Encoded"`
		Cookies    []string       `json:"cookies"`
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber() // a header may be a number and must not change its spelling
	if err := decoder.Decode(&form); err != nil {
		return response{}, fmt.Errorf("reading the function's answer: %w", err)
	}
	if form.StatusCode < 200 || form.StatusCode > 599 {
		return response{}, fmt.Errorf("the function's answer has status %d", form.StatusCode)
	}
	out := response{status: form.StatusCode, headers: map[string]string{"content-type": "text/plain; charset=utf-8"}, cookies: form.Cookies}
	for name, v := range form.Headers {
		switch v := v.(type) {
		case string, json.Number, bool:
			name = http.CanonicalHeaderKey(name)
			if name == "Content-Type" {
				delete(out.headers, "content-type")
			}
			out.headers[name] = fmt.Sprint(v)
		default:
			return response{}, errors.New("the function's answer has a header that is no string")
		}
	}
	if form.Body != nil {
		out.body = []byte(*form.Body)
		if form.IsBase64 {
			decoded, err := base64.StdEncoding.DecodeString(*form.Body)
			if err != nil {
				return response{}, fmt.Errorf("decoding the function's base64 body: %w", err)
			}
			out.body = decoded
		}
	}
	return out, nil
}

func (a response) write(w http.ResponseWriter) {
	for name, v := range a.headers {
		if canonical := http.CanonicalHeaderKey(name); !hopByHop[canonical] && canonical != "Content-Length" {
			w.Header().Set(canonical, v)
		}
	}
	for _, cookie := range a.cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(a.status)
	w.Write(a.body) // nothing is left to tell a client that went away
}
