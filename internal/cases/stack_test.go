package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// templates are the committed ones, which a test of infra/pipeline proves to be what the stack synthesises.
const templates = "../../infra/template/testdata"

// stack is a synthesised template.
type stackTemplate struct {
	stage     string
	Resources map[string]resource
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

func readTemplates() ([]stackTemplate, error) {
	paths, err := filepath.Glob(filepath.Join(templates, "*.template.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no templates in %s: %w", templates, err)
	}
	var list []stackTemplate
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		stage, _, _ := strings.Cut(filepath.Base(path), ".")
		t := stackTemplate{stage: stage}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// of are the resources of a type, by name.
func (s stackTemplate) of(kind string) map[string]resource {
	found := map[string]resource{}
	for name, r := range s.Resources {
		if r.Type == kind {
			found[name] = r
		}
	}
	return found
}

// at walks into properties.
func at(v any, path ...string) any {
	for _, name := range path {
		fields, _ := v.(map[string]any)
		v = fields[name]
	}
	return v
}

// text is a value as JSON: enough to see what it names.
func text(v any) string {
	raw, _ := json.Marshal(v) // it was JSON before
	return string(raw)
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func (s stackTemplate) one(kind, named string) (string, resource) {
	for _, name := range slices.Sorted(maps.Keys(s.of(kind))) {
		if strings.HasPrefix(name, named) {
			return name, s.Resources[name]
		}
	}
	return "", resource{}
}

func (s stackTemplate) mapping() resource {
	_, m := s.one(aMapping, "")
	return m
}

// main is the queue the mapping reads, dead the one it drives messages to.
func (s stackTemplate) main() (string, resource) {
	source := text(s.mapping().Properties["EventSourceArn"])
	for name, q := range s.of(aQueue) {
		if strings.Contains(source, strconv.Quote(name)) {
			return name, q
		}
	}
	return "", resource{}
}

func (s stackTemplate) dead() (string, resource) {
	_, q := s.main()
	target := text(at(q.Properties, "RedrivePolicy", "deadLetterTargetArn"))
	for name, q := range s.of(aQueue) {
		if strings.Contains(target, strconv.Quote(name)) {
			return name, q
		}
	}
	return "", resource{}
}

func (s stackTemplate) function(named string) resource {
	_, f := s.one(aFunction, named)
	return f
}

// alarmsOn are the alarms whose properties hold all of these texts.
func (s stackTemplate) alarmsOn(texts ...string) []resource {
	var found []resource
	for _, a := range s.of(anAlarm) {
		all := text(a.Properties)
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(all, t) }) {
			found = append(found, a)
		}
	}
	return found
}

func check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// each checks every resource of a type.
func (s stackTemplate) each(kind string, ok func(resource) bool) error {
	var problems []error
	found := s.of(kind)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		problems = append(problems, check(ok(found[name]), "%s of stage %s: %s", name, s.stage, text(found[name].Properties)))
	}
	return errors.Join(append(problems, check(len(found) > 0, "stage %s has no %s", s.stage, kind))...)
}

func none(v any) bool { return v == nil }
