package template

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Function is a Lambda function: how it runs, what it is told, what it may do.
type Function struct {
	Name         string // receiver, processor, reconciler
	Runtime      string
	Architecture string
	MemoryMB     int
	Timeout      time.Duration
	Reserved     int // 0: nothing reserved
	Tracing      bool
	Environment  map[string]Value
	Grants       []Grant
}

// Grant allows one action on one part.
type Grant struct {
	Sid    string
	Action string // such as dynamodb:UpdateItem
	Part   Part
	Index  string // of the table; empty for the table itself, or another kind of part
}

// Names of the functions.
const (
	Receiver   = "receiver"
	Processor  = "processor"
	Reconciler = "reconciler"
)

// FunctionNames are all of them.
var FunctionNames = []string{Receiver, Processor, Reconciler}

// Function reads the named function with the policies of its role. It fails on anything it cannot read whole: a grant
// that was overlooked would prove nothing.
func (t Template) Function(name string) (Function, error) {
	prefix := strings.ToUpper(name[:1]) + name[1:]
	resource, err := t.find(Part(prefix + "Function"))
	if err != nil {
		return Function{}, err
	}
	p := resource.Properties
	f := Function{
		Name:        name,
		Runtime:     str(p, "Runtime"),
		MemoryMB:    integer(p, "MemorySize"),
		Timeout:     time.Duration(integer(p, "Timeout")) * time.Second,
		Reserved:    integer(p, "ReservedConcurrentExecutions"),
		Tracing:     str(p, "TracingConfig", "Mode") == "Active",
		Environment: map[string]Value{},
	}
	if architectures := list(p["Architectures"]); len(architectures) == 1 {
		f.Architecture, _ = architectures[0].(string)
	}
	variables, _ := at(p, "Environment", "Variables").(map[string]any)
	for variable, value := range variables {
		if f.Environment[variable], err = valueOf(value); err != nil {
			return Function{}, fmt.Errorf("variable %s of the %s: %w", variable, name, err)
		}
	}
	role, err := valueOf(p["Role"])
	if err != nil {
		return Function{}, fmt.Errorf("role of the %s: %w", name, err)
	}
	if f.Grants, err = t.grantsOf(role.Part); err != nil {
		return Function{}, fmt.Errorf("rights of the %s: %w", name, err)
	}
	return f, nil
}

// grantsOf collects what the policies attached to a role allow.
func (t Template) grantsOf(role Part) ([]Grant, error) {
	resource, err := t.find(role)
	if err != nil {
		return nil, err
	}
	if resource.Properties["ManagedPolicyArns"] != nil || resource.Properties["Policies"] != nil {
		return nil, errors.New("the role has managed or inline policies, which are not read here")
	}
	var grants []Grant
	for _, id := range t.OfType("AWS::IAM::Policy") {
		policy := t.Resources[id].Properties
		attached := slices.ContainsFunc(list(policy["Roles"]), func(v any) bool {
			value, err := valueOf(v)
			return err == nil && value.Part == role
		})
		if !attached {
			continue
		}
		for _, statement := range list(at(policy, "PolicyDocument", "Statement")) {
			of, err := grantsIn(statement)
			if err != nil {
				return nil, err
			}
			grants = append(grants, of...)
		}
	}
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Index, b.Index))
	})
	return grants, nil
}

func grantsIn(statement any) ([]Grant, error) {
	sid := str(statement, "Sid")
	if effect := str(statement, "Effect"); effect != "Allow" {
		return nil, fmt.Errorf("statement %q has effect %q", sid, effect)
	}
	var grants []Grant
	for _, action := range list(at(statement, "Action")) {
		for _, resource := range list(at(statement, "Resource")) {
			name, _ := action.(string)
			value, err := valueOf(resource)
			if err != nil {
				return nil, fmt.Errorf("statement %q: %w", sid, err)
			}
			grant := Grant{Sid: sid, Action: name, Part: value.Part}
			if value.Part == "" {
				grant.Part = Part(value.Literal) // a * stays visible as what it is
			} else if value.Literal != "" {
				var isIndex bool
				if grant.Index, isIndex = strings.CutPrefix(value.Literal, "/index/"); !isIndex {
					return nil, fmt.Errorf("statement %q: resource %s%s", sid, value.Part, value.Literal)
				}
			}
			grants = append(grants, grant)
		}
	}
	return grants, nil
}

// Variables returns the function's environment with each reference replaced by the part's local name: a table's name,
// a queue's URL, a secret's ARN or name. A part without one is an error.
func (f Function) Variables(local map[Part]string) (map[string]string, error) {
	resolved := make(map[string]string, len(f.Environment))
	for _, variable := range slices.Sorted(maps.Keys(f.Environment)) {
		value := f.Environment[variable]
		if value.Part == "" {
			resolved[variable] = value.Literal
			continue
		}
		name, ok := local[value.Part]
		if !ok {
			return nil, fmt.Errorf("%s refers to %s, which has no local name", variable, value.Part)
		}
		resolved[variable] = name
	}
	return resolved, nil
}

// Permission is an action on a resource by its ARN, as the local AWS records calls.
type Permission struct{ Action, Resource string }

// Permissions returns what the function may do with each part replaced by its local ARN; an index is the table's ARN
// with /index/NAME behind it. Parts without an ARN, such as logs, are left out.
func (f Function) Permissions(arns map[Part]string) []Permission {
	var permissions []Permission
	for _, grant := range f.Grants {
		arn, ok := arns[grant.Part]
		if !ok {
			continue
		}
		if grant.Index != "" {
			arn += "/index/" + grant.Index
		}
		permissions = append(permissions, Permission{grant.Action, arn})
	}
	return permissions
}

// Compare says which calls the template does not grant, and which of its grants no call used.
func Compare(granted, used []Permission) (denied, unused []Permission) {
	for _, p := range used {
		if !slices.Contains(granted, p) && !slices.Contains(denied, p) {
			denied = append(denied, p)
		}
	}
	for _, p := range granted {
		if !slices.Contains(used, p) {
			unused = append(unused, p)
		}
	}
	return denied, unused
}
