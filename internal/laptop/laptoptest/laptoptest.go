// Package laptoptest builds the functions once for the tests of a package that run the real binaries.
package laptoptest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"backstop/internal/laptop"
)

// Main is the body of a TestMain: it builds the functions, puts their folder into binaries, runs the tests, removes
// the folder, and exits.
func Main(m *testing.M, binaries *string) {
	code, err := run(m, binaries)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, binaries *string) (code int, err error) {
	dir, err := os.MkdirTemp("", "backstop-functions-")
	if err != nil {
		return 0, err
	}
	defer func() {
		if removal := os.RemoveAll(dir); err == nil {
			err = removal
		}
	}()
	if err := laptop.Build(context.Background(), dir, nil); err != nil {
		return 0, err
	}
	*binaries = dir
	return m.Run(), nil
}
