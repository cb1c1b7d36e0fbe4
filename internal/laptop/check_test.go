package laptop_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"backstop/internal/laptop"
)

func TestAllTakenPortsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	var ports [2]int
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	err := laptop.Options{Port: ports[0], StripePort: ports[1], FakeStripe: true}.Check()
	if !errors.As(err, new(*laptop.PortTakenError)) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{fmt.Sprint(ports[0]), fmt.Sprint(ports[1]), "--port", "--stripe-port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if err := (laptop.Options{}).Check(); err != nil {
		t.Errorf("free ports: %v", err)
	}
}

func TestFiguresWithoutSenseAreRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]laptop.Options{
		"--port":        {Port: 70000},
		"--aws-port":    {AWSPort: -1},
		"--receivers":   {Receivers: 1},
		"--processors":  {Processors: -2},
		"--mode":        {Mode: "prod"},
		"--sweep-every": {SweepEvery: -time.Second},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", o, err, want)
		}
	}
}
