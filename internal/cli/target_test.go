package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		saveDevTarget(t, c.pid)
		found, err := readDevTarget()
		if err != nil || (found != nil) != c.want {
			t.Errorf("%s: %+v %v, want found %v", name, found, err, c.want)
		}
	}
}

func saveDevTarget(t *testing.T, pid int) {
	t.Helper()
	if err := (devTarget{PID: pid, Endpoint: "http://127.0.0.1:1/"}).save(); err != nil {
		t.Fatal(err)
	}
}

func TestLocalStackIsFoundFromBelowInItsModuleOnly(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"events/stories", "other/deep"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "other/go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	saveDevTarget(t, os.Getpid())
	for folder, want := range map[string]bool{"events/stories": true, "other": false, "other/deep": false} {
		t.Chdir(filepath.Join(root, folder))
		if found, err := readDevTarget(); err != nil || (found != nil) != want {
			t.Errorf("from %s: %+v %v, want found %v", folder, found, err, want)
		}
	}
}

func TestSecondLocalStackOfAFolderIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	saveDevTarget(t, os.Getpid())
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"dev"}, Streams{Out: &out, Err: &errs}, func(string) (string, bool) { return "", false })
	if code != 1 || !strings.Contains(errs.String(), "already runs") || !strings.Contains(errs.String(), "http://127.0.0.1:1/") || out.Len() > 0 {
		t.Errorf("%d %s%s", code, out.String(), errs.String())
	}
	if found, err := readDevTarget(); err != nil || found == nil {
		t.Errorf("the running one was forgotten: %v", err)
	}
}

func TestOnlyTheOwnLocalStackIsForgotten(t *testing.T) {
	t.Chdir(t.TempDir())
	mine := devTarget{PID: os.Getpid()}
	if err := mine.forget(); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
	saveDevTarget(t, os.Getpid())
	if err := (devTarget{PID: os.Getpid() + 1}).forget(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(devFile); err != nil {
		t.Errorf("another's was removed: %v", err)
	}
	if err := mine.forget(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(devFile); err == nil {
		t.Error("the own one is left")
	}
}

func TestDevRefusesFiguresBeforeItBuilds(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"dev", "--port", "70000", "--mode", "prod"}, Streams{Out: &out, Err: &errs}, func(string) (string, bool) { return "", false })
	if code != 2 || !strings.Contains(errs.String(), "--port") || !strings.Contains(errs.String(), "--mode") || out.Len() > 0 {
		t.Errorf("%d %s%s", code, out.String(), errs.String())
	}
}
