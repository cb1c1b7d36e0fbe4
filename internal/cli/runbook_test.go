package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What a person is told to type at 3 a.m. must be there: every command line of the runbook, and of the doctor's fixes
// in its tests, is parsed by the command itself.
func TestRunbookTypesOnlyWhatExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../replay/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ {4}backstop ([^\n#]+)`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 30 {
		t.Fatalf("only %d command lines were found", len(lines))
	}
	quoted := regexp.MustCompile(`'[^']*'`)
	for _, line := range lines {
		args := strings.Fields(quoted.ReplaceAllString(line[1], "TEXT"))
		cmd, rest, err := newRoot(&env{}).Find(args)
		if err != nil || !cmd.HasParent() {
			t.Errorf("backstop %s: no such command: %v", line[1], err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("backstop %s: %v", line[1], err)
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("backstop %s: %v", line[1], err)
		}
	}
}
