package proof

import (
	"slices"
	"testing"

	"backstop/infra/template"
)

// uncalled are the rights no run uses, with the reason why they are granted all the same.
var uncalled = map[string]map[template.Grant]string{
	template.Processor: {
		// What a handler of one's own is offered and those of billing do not use.
		{Action: "dynamodb:GetItem", Part: template.Billing}:              "handler.Table's Get: a row read before a Once effect is composed",
		{Action: "dynamodb:Query", Part: template.Billing, Index: "gsi1"}: "billing.Reader's questions across customers",
		{Action: "dynamodb:DeleteItem", Part: template.Billing}:           "a Once effect that removes a row",
		{Action: "dynamodb:ConditionCheckItem", Part: template.Billing}:   "a Once effect that only guards on a row",

		{Action: "sqs:GetQueueAttributes", Part: template.Queue}: "Lambda refuses to make an event source mapping without it",
	},
}

// everyCallIsGranted compares what the functions called, in this run and in the simulation, with what the template lets
// them, both ways.
func everyCallIsGranted(t *testing.T, d *deployment, simulated map[string][]template.Permission) {
	for _, name := range template.FunctionNames {
		function, err := d.stack.Function(name)
		if err != nil {
			t.Fatal(err)
		}
		var used []template.Permission
		for _, use := range d.recorder.Uses() {
			if callerIs(use.Caller, name) {
				used = append(used, template.Permission{Action: use.Action, Resource: use.Resource})
			}
		}
		if len(used) < 4 || len(simulated[name]) < 2 {
			t.Fatalf("the %s made only the calls %v, and simulated %v", name, used, simulated[name])
		}
		used = append(used, simulated[name]...)
		denied, unused := template.Compare(function.Permissions(d.arns), used)
		for _, p := range denied {
			t.Errorf("the %s calls %s on %s, which the template does not grant", name, p.Action, p.Resource)
		}
		var excused []template.Permission
		for grant := range uncalled[name] {
			excused = append(excused, template.Function{Grants: []template.Grant{grant}}.Permissions(d.arns)...)
		}
		for _, p := range unused {
			if !slices.Contains(excused, p) {
				t.Errorf("the %s may %s on %s and never does: take the right away, or say why it is there", name, p.Action, p.Resource)
			}
		}
		for _, p := range excused {
			if !slices.Contains(unused, p) {
				t.Errorf("the %s does call %s on %s, or has no right to: it needs no excuse", name, p.Action, p.Resource)
			}
		}
	}
}
