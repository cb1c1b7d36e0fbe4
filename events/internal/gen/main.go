// Command gen writes the sample events, the sample invocations and the stories
// of package events. All of them come from one set of object shapes (shapes/)
// and one model of what Stripe does to them (world.go, billing.go,
// payments.go), so that they cannot disagree with each other. What it writes
// depends on nothing but its source: a second run writes the same bytes.
//
// Run it from the events directory with go generate.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "the events directory")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes all files below dir.
func run(dir string) error {
	for name, body := range files() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// files is everything there is to write, by slash-separated path.
func files() map[string][]byte {
	out := map[string][]byte{}
	for typ, e := range samples() {
		out[typ+".json"] = body(e)
	}
	for name, invocation := range invocations() {
		out["lambda/"+name] = text(invocation)
	}
	for _, s := range stories() {
		out["stories/"+s.name+".json"] = text(told(s))
	}
	return out
}
