// Package template reads the synthesised CloudFormation template back, in words of Backstop instead of CloudFormation:
// functions with their environment and rights, tables, queues, the event source mapping, alarms.
//
// The template of each stage is committed in testdata, with the hashes of the binaries scrubbed (`make snapshot`
// renews it; a test of infra/pipeline proves that it is what the stack synthesises). So everything that can be proved
// from the template is proved here, without Node, without the CDK, in milliseconds: invariants, and that the template
// agrees with what the functions read and the local AWS was made with.
package template

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Stages are the stages that have a committed template.
var Stages = []string{"dev", "prod"}

//go:embed testdata/dev.template.json testdata/prod.template.json
var golden embed.FS

// Template is a CloudFormation template.
type Template struct {
	Description string
	Resources   map[string]Resource
	Outputs     map[string]Output
}

// Resource is one resource; properties are as in JSON.
type Resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	Metadata            map[string]any
}

// Output is one output of the stack.
type Output struct {
	Description string
	Value       any
}

// Golden returns the committed template of a stage.
func Golden(stage string) (Template, error) {
	data, err := golden.ReadFile("testdata/" + stage + ".template.json")
	if err != nil {
		return Template{}, fmt.Errorf("read the committed template: %w", err)
	}
	return Parse(data)
}

// Parse reads a template.
func Parse(data []byte) (Template, error) {
	var t Template
	if err := json.Unmarshal(data, &t); err != nil {
		return Template{}, fmt.Errorf("parse the template: %w", err)
	}
	if len(t.Resources) == 0 {
		return Template{}, fmt.Errorf("parse the template: it has no resources")
	}
	return t, nil
}

// OfType returns the logical ids of all resources of a type, sorted.
func (t Template) OfType(kind string) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if t.Resources[id].Type == kind {
			ids = append(ids, id)
		}
	}
	return ids
}

// asset is the key of an uploaded binary: its hash, which changes with every build of the functions.
var asset = regexp.MustCompile(`[0-9a-f]{64}\.zip`)

// Scrub replaces what changes with the binaries, so that a template can be compared.
func Scrub(data []byte) []byte { return asset.ReplaceAll(data, []byte("ASSET.zip")) }

// Part is one of the named things of a stack that functions use.
type Part string

// The parts. Their names are those of the constructs, which CloudFormation's logical ids begin with.
const (
	Ledger          Part = "Ledger"
	Billing         Part = "Billing"
	Control         Part = "Control"
	Queue           Part = "Queue"
	DeadLetterQueue Part = "DeadLetterQueue"
	UnstartedRuns   Part = "UnstartedRuns"
	SigningSecret   Part = "SigningSecret"
	StripeKey       Part = "StripeKey"
	TableKey        Part = "TableKey"

	ReceiverLog   Part = "ReceiverLog"
	ProcessorLog  Part = "ProcessorLog"
	ReconcilerLog Part = "ReconcilerLog"

	ReceiverFunction   Part = "ReceiverFunction"
	ProcessorFunction  Part = "ProcessorFunction"
	ReconcilerFunction Part = "ReconcilerFunction"
)

// logical ids end with eight digits of a hash, but for resources that are no construct of a higher level.
var logicalID = regexp.MustCompile(`^(.+?)([0-9A-F]{8})?$`)

// PartOf returns the part a logical id belongs to.
func PartOf(id string) Part { return Part(logicalID.FindStringSubmatch(id)[1]) }

// find returns the resource of a part.
func (t Template) find(part Part) (Resource, error) {
	var found []string
	for id := range t.Resources {
		if PartOf(id) == part {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return Resource{}, fmt.Errorf("the template has %d resources %s", len(found), part)
	}
	return t.Resources[found[0]], nil
}

// Value is a string in a template: a literal, or something about a part.
type Value struct {
	Literal   string
	Part      Part   // for a reference; Literal is then what follows it, such as /index/open
	Attribute string // Arn and the like; empty for a plain reference, which gives a name, a URL or a secret's ARN
}

// valueOf reads a literal, a Ref, a Fn::GetAtt, or a join of one of them with a text behind it.
func valueOf(v any) (Value, error) {
	switch v := v.(type) {
	case string:
		return Value{Literal: v}, nil
	case map[string]any:
		if id, ok := v["Ref"].(string); ok {
			return Value{Part: PartOf(id)}, nil
		}
		if get, ok := v["Fn::GetAtt"].([]any); ok && len(get) == 2 {
			id, _ := get[0].(string)
			attribute, _ := get[1].(string)
			return Value{Part: PartOf(id), Attribute: attribute}, nil
		}
		if join, ok := v["Fn::Join"].([]any); ok && len(join) == 2 {
			if list, ok := join[1].([]any); ok && len(list) == 2 {
				value, err := valueOf(list[0])
				suffix, isText := list[1].(string)
				if err == nil && isText && value.Part != "" {
					value.Literal = suffix
					return value, nil
				}
			}
		}
	}
	return Value{}, fmt.Errorf("value %v is neither a text nor a reference", v)
}

// list returns a property that may be one thing or a list of them.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// at walks into nested objects; nil where there is nothing.
func at(v any, path ...string) any {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

// str and integer read a property, zero where it is absent or of another type.
func str(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

func integer(v any, path ...string) int {
	n, _ := at(v, path...).(float64)
	return int(n)
}
