package awslocal

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Transport is an http.RoundTripper that calls a Server on the caller's
// goroutine. A call whose context ends returns the context's error; services
// see the context and stop waiting.
type Transport struct {
	Server *Server
	// Caller names who calls, for faults and records. When empty it is the
	// access key id the request is signed with.
	Caller string
	// Intercept, when set, takes the place of the Server's.
	Intercept func(*Call) Fault
}

// RoundTrip applies one request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		read, err := io.ReadAll(r.Body)
		if err := closeBoth(err, r.Body); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		body = read
	}
	intercept := t.Intercept
	if intercept == nil {
		intercept = t.Server.opts.Intercept
	}
	answer, err := t.Server.do(r, body, t.Caller, intercept)
	if err == errReset {
		// As the net package reports it, which is what the SDK's retryer reads.
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: errReset}
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:     strconv.Itoa(answer.status) + " " + http.StatusText(answer.status),
		StatusCode: answer.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        answer.header,
		Body:          io.NopCloser(bytes.NewReader(answer.body.Bytes())),
		ContentLength: int64(answer.body.Len()),
		Request:       r,
	}, nil
}

func closeBoth(err error, c io.Closer) error {
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// Config is an aws.Config for SDK clients that call t's server in-process,
// with dummy credentials whose access key id is t's Caller. Retries, time-outs
// and everything else are the SDK's defaults for the caller to change.
func Config(t *Transport) aws.Config {
	key := t.Caller
	if key == "" {
		key = "local"
	}
	return aws.Config{
		Region:       t.Server.opts.Region,
		BaseEndpoint: aws.String(t.Server.opts.BaseURL),
		Credentials:  credentials.NewStaticCredentialsProvider(key, "local", ""),
		HTTPClient:   &http.Client{Transport: t},
	}
}
