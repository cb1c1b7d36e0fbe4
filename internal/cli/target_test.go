package cli

import (
	"os"
	"os/exec"
	"testing"
)

func TestAKilledLocalStackIsNone(t *testing.T) {
	t.Chdir(t.TempDir())
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pid  int
		want bool
	}{
		"Gone":    {gone.Process.Pid, false},
		"Running": {os.Getpid(), true},
	} {
		if err := (devTarget{PID: c.pid, Endpoint: "http://127.0.0.1:1/"}).save(); err != nil {
			t.Fatal(err)
		}
		found, err := readDevTarget()
		if err != nil || (found != nil) != c.want {
			t.Errorf("%s: %+v %v, want found %v", name, found, err, c.want)
		}
	}
}
