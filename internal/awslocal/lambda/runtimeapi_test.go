package lambda

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An answer without the headers of an invocation makes a function complain of a deadline it cannot parse.
func TestWaitingFunctionGetsNoAnswerWhenTheHostCloses(t *testing.T) {
	t.Parallel()
	host, err := NewHost(HostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{fn: &function{host: host, queue: make(chan *invocation)}, ready: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(host.ctx)
	server := httptest.NewServer(p.routes())
	t.Cleanup(server.Close)
	answered := make(chan string, 1)
	go func() {
		response, err := http.Get(server.URL + "/2018-06-01/runtime/invocation/next")
		if err != nil {
			answered <- "error"
			return
		}
		body, _ := io.ReadAll(response.Body) // only that there is an answer matters
		_ = response.Body.Close()
		answered <- response.Status + string(body)
	}()
	<-p.ready
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-answered:
		t.Fatalf("it got %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	server.CloseClientConnections() // as the end of the process does
	if got := <-answered; got != "error" {
		t.Errorf("it got %q", got)
	}
}
