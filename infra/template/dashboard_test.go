package template_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
)

type widget struct {
	Type                string
	Width, Height, X, Y int
	Properties          struct {
		Title, Markdown, Query string
		Period                 int
		YAxis                  map[string]struct{ Label string }
	}
}

// widgets reads the dashboard's body: a text with references in it, which read as X here.
func widgets(t *testing.T, stack template.Template) []widget {
	t.Helper()
	var body strings.Builder
	for _, dashboard := range ofType(t, stack, "AWS::CloudWatch::Dashboard") {
		join, _ := dashboard.Properties["DashboardBody"].(map[string]any)["Fn::Join"].([]any)
		if len(join) != 2 {
			t.Fatal("the dashboard's body is no join")
		}
		pieces, _ := join[1].([]any)
		for _, piece := range pieces {
			if literal, ok := piece.(string); ok {
				body.WriteString(literal)
			} else {
				body.WriteString("X")
			}
		}
	}
	var parsed struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(body.String()), &parsed); err != nil {
		t.Fatalf("the dashboard is no JSON: %v", err)
	}
	if len(parsed.Widgets) < 15 {
		t.Fatalf("only %d widgets", len(parsed.Widgets))
	}
	return parsed.Widgets
}

func TestDashboardAnswersFromTheTop(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		var questions []string
		heading := regexp.MustCompile(`^## (.+)`)
		for _, w := range widgets(t, stack) {
			if match := heading.FindStringSubmatch(w.Properties.Markdown); match != nil {
				questions = append(questions, match[1])
			}
		}
		want := []string{"Is it working?", "Are we behind?", "What fails, and why?", "How fast?", "What does it cost?"}
		if diff := cmp.Diff(want, questions); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestGraphsStandInLineAndSayTheirUnit(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		graphs, queries := 0, 0
		titles := map[string]bool{}
		for _, w := range widgets(t, stack) {
			p := w.Properties
			if w.Type != "text" && (p.Title == "" || titles[p.Title]) {
				t.Errorf("a widget is titled %q, which is empty or there already", p.Title)
			}
			titles[p.Title] = true
			switch {
			case w.Type == "log":
				queries++
			case w.Type == "metric" && len(p.YAxis) > 0:
				graphs++
				if w.Width != 8 || w.X%8 != 0 || p.YAxis["left"].Label == "" {
					t.Errorf("%s: width %d at column %d, unit %q", p.Title, w.Width, w.X, p.YAxis["left"].Label)
				}
				if _, right := p.YAxis["right"]; right {
					t.Errorf("%s has a second axis, which moves its time axis out of line", p.Title)
				}
			}
		}
		if graphs < 12 || queries != 3 {
			t.Errorf("%d graphs and %d queries", graphs, queries)
		}
	})
}

// The queries find nothing, silently, when a function's word for an outcome changes; so the words are looked up in its
// source.
func TestQueriesAskForOutcomesTheFunctionsLog(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"receive", "process", "ledger"} {
		files, err := filepath.Glob("../../internal/" + pattern + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no source of %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				source.Write(text)
			}
		}
	}
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		asked := 0
		for _, w := range widgets(t, stack) {
			filter := regexp.MustCompile(`filter [^|]*`).FindString(w.Properties.Query)
			for _, word := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(filter, -1) {
				asked++
				if !strings.Contains(source.String(), `"`+word[1]+`"`) {
					t.Errorf("%s: no function logs the outcome %q", w.Properties.Title, word[1])
				}
			}
		}
		if asked != 8 {
			t.Errorf("%d outcomes are asked for", asked)
		}
	})
}
