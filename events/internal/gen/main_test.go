package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// root is the events directory, seen from here.
const root = "../.."

func TestCommittedFilesAreWhatTheGeneratorWrites(t *testing.T) {
	t.Parallel()
	want := files()
	for name, body := range want {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Errorf("%v: run go generate in events", err)
		} else if !bytes.Equal(got, body) {
			t.Errorf("%s differs from what the generator writes: run go generate in events", name)
		}
	}
	for _, folder := range []string{"", "lambda", "stories"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if want[filepath.ToSlash(name)] == nil {
				t.Errorf("%s is written by nothing", name)
			}
		}
	}
}

func TestSecondRunWritesTheSame(t *testing.T) {
	t.Parallel()
	first, second := files(), files()
	if len(first) < 60 || len(first) != len(second) {
		t.Fatalf("%d and %d files", len(first), len(second))
	}
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
}
