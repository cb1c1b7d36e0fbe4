package replay_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sections reads the runbook: by heading, its text.
func sections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		found[heading] = body
	}
	return found
}

// The alarms name their sections; the committed templates hold every alarm there is.
func TestEveryAlarmHasItsSection(t *testing.T) {
	t.Parallel()
	known := sections(t)
	var named []string
	for _, stage := range []string{"dev", "prod"} {
		template, err := os.ReadFile("../../infra/template/testdata/" + stage + ".template.json")
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`internal/replay/RUNBOOK\.md#([a-z0-9-]+)`).FindAllSubmatch(template, -1) {
			named = append(named, string(match[1]))
		}
	}
	if len(named) < 40 {
		t.Fatalf("only %d alarms were found", len(named))
	}
	for _, name := range named {
		if _, ok := known[name]; !ok {
			t.Errorf("the alarm %s has no section", name)
		}
	}
	for heading := range known {
		if !slices.Contains(named, heading) {
			t.Errorf("the section %s is of no alarm", heading)
		}
	}
}

func TestEverySectionSaysWhatItMeansWhatToLookAtAndWhatToType(t *testing.T) {
	t.Parallel()
	for heading, body := range sections(t) {
		for _, want := range []string{"**Means.**", "**Look at.**", "**Type.**"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %s", heading, want)
			}
		}
		for _, link := range regexp.MustCompile(`\(#([a-z0-9-]+)\)`).FindAllStringSubmatch(body, -1) {
			if _, ok := sections(t)[link[1]]; !ok {
				t.Errorf("%s points to %s, which is not there", heading, link[1])
			}
		}
	}
}
