package laptop

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// PortTakenError says that something else listens on a port.
type PortTakenError struct {
	Port int
	What string
	Flag string
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d for the %s is taken: end what listens there, or choose another with %s", e.Port, e.What, e.Flag)
}

// Check says what is wrong with the options before anything is started: all figures that make no sense, or else all
// ports that are taken.
func (o Options) Check() error {
	var problems []error
	ports := o.ports()
	for _, p := range ports {
		if p.number < 0 || p.number > 65535 {
			problems = append(problems, fmt.Errorf("%s: %d is not a port", p.flag, p.number))
		}
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"--receivers", o.Receivers}, {"--processors", o.Processors}} {
		if n.value != 0 && n.value < 2 {
			problems = append(problems, fmt.Errorf("%s: %d are too few: give 2 or more", n.flag, n.value))
		}
	}
	if o.Mode != "" && o.Mode != "live" && o.Mode != "test" {
		problems = append(problems, fmt.Errorf("--mode: %q is neither live nor test", o.Mode))
	}
	if o.SweepEvery < 0 || o.AuditEvery < 0 {
		problems = append(problems, errors.New("--sweep-every and --audit-every: give a positive duration, such as 30s"))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for _, p := range ports {
		listener, err := listen(p.number, p.what, p.flag)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		defer listener.Close()
	}
	return errors.Join(problems...)
}

type port struct {
	number     int
	what, flag string
}

func (o Options) ports() []port {
	ports := []port{{o.Port, "webhook", "--port"}, {o.AWSPort, "local AWS", "--aws-port"}}
	if o.fakesStripe() {
		ports = append(ports, port{o.StripePort, "fake Stripe", "--stripe-port"})
	}
	return ports
}

func (o Options) fakesStripe() bool { return o.FakeStripe && o.StripeKey == "" && o.StripeURL == "" }

func listen(port int, what, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &PortTakenError{Port: port, What: what, Flag: flag}
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the %s: %w", what, err)
	}
	return listener, nil
}
