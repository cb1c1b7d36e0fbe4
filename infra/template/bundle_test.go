package template_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"backstop/infra/template"
)

// eachStage runs check for the committed template of every stage.
func eachStage(t *testing.T, check func(t *testing.T, stage string, stack template.Template)) {
	t.Helper()
	t.Parallel()
	if len(template.Stages) != 2 {
		t.Fatalf("stages are %v", template.Stages)
	}
	for _, stage := range template.Stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			stack, err := template.Golden(stage)
			if err != nil {
				t.Fatal(err)
			}
			check(t, stage, stack)
		})
	}
}

// ofType returns the resources of a type, of which there must be some.
func ofType(t *testing.T, stack template.Template, kind string) map[string]template.Resource {
	t.Helper()
	found := map[string]template.Resource{}
	for _, id := range stack.OfType(kind) {
		found[id] = stack.Resources[id]
	}
	if len(found) == 0 {
		t.Fatalf("the template has no %s to check", kind)
	}
	return found
}

// must takes the two results of a reader of the template.
func must[V any](value V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// statements returns the statements of a policy resource.
func statements(policy template.Resource) []map[string]any {
	document, _ := policy.Properties["PolicyDocument"].(map[string]any)
	list, _ := document["Statement"].([]any)
	var statements []map[string]any
	for _, each := range list {
		if statement, ok := each.(map[string]any); ok {
			statements = append(statements, statement)
		}
	}
	return statements
}

// text is a value as compact JSON.
func text(v any) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err.Error()
	}
	return buffer.String()
}
