// Command gendict makes the dictionary the ledger's body codec packs with. It is made of whole event bodies: the
// samples in events/, and events made of the object shapes in stripe-mock's fixtures.
//
// A dictionary is never changed once entries were packed with it: a better one is a new version beside it.
//
//	go run ./gendict -id 1 -out dictionary.z1
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	id := flag.Uint("id", 1, "number of the dictionary, 1 to 255")
	out := flag.String("out", "dictionary.z1", "file to write")
	flag.Parse()
	if err := run(uint32(*id), *out); err != nil {
		fmt.Fprintln(os.Stderr, "gendict:", err)
		os.Exit(1)
	}
}

func run(id uint32, out string) error {
	root, err := dirOf("backstop")
	if err != nil {
		return err
	}
	frequent, err := samples(filepath.Join(root, "events"))
	if err != nil {
		return err
	}
	mock, err := dirOf("github.com/stripe/stripe-mock")
	if err != nil {
		return err
	}
	rare, err := fixtures(filepath.Join(mock, "embedded", "openapi", "fixtures3.json"))
	if err != nil {
		return err
	}
	dict, err := build(id, frequent, rare)
	if err != nil {
		return fmt.Errorf("building the dictionary: %w", err)
	}
	return os.WriteFile(out, dict, 0o644)
}

// dirOf is where a module's files are.
func dirOf(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("locating %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("locating %s: it is not downloaded; run go mod download", module)
	}
	return dir, nil
}

// samples reads the event bodies in a folder.
func samples(dir string) ([]sample, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing samples: %w", err)
	}
	var list []sample
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		list = append(list, sample{strings.TrimSuffix(filepath.Base(file), ".json"), body})
	}
	return list, nil
}

// unsent are families of objects a billing backend gets no events of.
var unsent = []string{"climate", "financial_connections", "issuing", "terminal", "treasury", "identity", "reserve",
	"deleted_", "country_spec", "ephemeral_key", "confirmation_token", "customer_session", "account_session", "token",
	"forwarding", "sigma", "payment_method_configuration", "billing_portal.configuration"}

// fixtures makes an event of each object in stripe-mock's fixtures that has an id.
func fixtures(file string) ([]sample, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading fixtures: %w", err)
	}
	var all struct {
		Resources map[string]map[string]any `json:"resources"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("reading fixtures: %w", err)
	}
	var list []sample
	for kind, object := range all.Resources {
		if object["id"] == nil || slices.ContainsFunc(unsent, func(p string) bool { return strings.HasPrefix(kind, p) }) {
			continue
		}
		s, err := eventOf(kind, object)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
