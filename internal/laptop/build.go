package laptop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Names of the functions, which are also the names of their folders below functions/.
const (
	Receiver   = "receiver"
	Processor  = "processor"
	Reconciler = "reconciler"
)

var functions = []string{Receiver, Processor, Reconciler}

// Build compiles the functions for this machine into dir/<name>/bootstrap, from the module the working directory is
// in. It differs from the deployed build in operating system and architecture, and keeps the flags that decide what the
// build cache can share with the command itself: a first start compiles the AWS SDK once, not twice.
func Build(ctx context.Context, dir string, built func(name string)) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, name := range functions {
		cmd := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-buildvcs=false",
			"-ldflags", "-s -w", "-o", filepath.Join(dir, name, "bootstrap"), "./functions/"+name)
		cmd.Dir = root
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build functions/%s: %w\n%s", name, err, output)
		}
		if built != nil {
			built(name)
		}
	}
	return nil
}

// moduleRoot finds Backstop's own source.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module with go list: %w (is Go installed, and is this folder in a clone of Backstop?)", err)
	}
	path, dir, _ := strings.Cut(string(bytes.TrimSpace(out)), " ")
	if path != "backstop" || dir == "" {
		return "", errors.New("this folder is not in a clone of Backstop: change into one, or build the functions elsewhere")
	}
	return dir, nil
}
