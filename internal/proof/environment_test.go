package proof

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"backstop/infra/template"
	"backstop/internal/config"
)

// witness says how one sees from outside that a variable was read and heeded.
type witness func(d *deployment, function string) bool

// called: the function made a call on the part the variable names. What the event source mapping does, it does in the
// processor's name.
func called(part template.Part) witness {
	return func(d *deployment, function string) bool {
		for _, use := range d.recorder.Uses() {
			if callerIs(use.Caller, function) && strings.HasPrefix(use.Resource, d.arns[part]) {
				return true
			}
		}
		return false
	}
}

func callerIs(caller, function string) bool {
	return caller == function || caller == "lambda" && function == template.Processor
}

// logged: the function wrote a line with these fields.
func logged(fields map[string]any) witness {
	return func(d *deployment, function string) bool { return d.logged(function, fields) }
}

// witnesses has every variable the template may give.
var witnesses = map[string]witness{
	config.Stage: func(d *deployment, function string) bool {
		return d.logged(function, map[string]any{"function": function, "stage": d.stage}) // the metrics' dimension
	},
	config.LedgerTable:     called(template.Ledger),
	config.BillingTable:    called(template.Billing),
	config.ControlTable:    called(template.Control),
	config.QueueURL:        called(template.Queue),
	config.DeadLetterURL:   called(template.DeadLetterQueue),
	config.SigningSecretID: called(template.SigningSecret),
	// The secret was read, and its value is the key that Stripe saw.
	config.StripeKeyID: func(d *deployment, function string) bool {
		return called(template.StripeKey)(d, function) && d.stripe.onlyKey(stripeKey)
	},
	config.APIVersion: logged(map[string]any{"outcome": "received", "VersionMismatch": 1.0}),
	config.Mode: func(d *deployment, function string) bool {
		if function == template.Reconciler {
			mode := map[bool]string{true: "(live)", false: "(test)"}[d.live]
			return d.logged(function, map[string]any{"msg": "audit", "notes": "1 events of the other mode: the API key does not belong to this deployment's mode " + mode})
		}
		return d.logged(function, map[string]any{"outcome": "skipped", "WrongMode": 1.0})
	},
	// Read by Go's runtime, not by us; see package runtime, "Environment Variables".
	"GOMEMLIMIT": func(*deployment, string) bool { return true },
}

// everyVariableIsUsed checks that nothing is given in vain. That nothing is missing, the scenario has shown: it came to
// its end on the template's environment alone.
func everyVariableIsUsed(t *testing.T, d *deployment) {
	checked := 0
	for _, function := range template.FunctionNames {
		for variable := range d.given[function] {
			checked++
			if seen, known := witnesses[variable]; !known {
				t.Errorf("the %s is given %s, of which this test does not know how its use is seen", function, variable)
			} else if !seen(d, function) {
				t.Errorf("the %s is given %s and shows no sign of using it", function, variable)
			}
		}
	}
	if checked < 15 {
		t.Fatalf("only %d variables checked", checked)
	}
	names := configNames(t)
	for _, variable := range names {
		given := slices.ContainsFunc(template.FunctionNames, func(function string) bool {
			_, given := d.given[function][variable]
			return given
		})
		if _, absent := notGiven[variable]; given == absent {
			t.Errorf("package config knows %s; given is %t, and the list of those not given says %t", variable, given, absent)
		}
	}
	if len(names) < 15 {
		t.Fatalf("package config knows only %v", names)
	}
}

// notGiven are variables a function reads and a deployment does without, with the reason.
var notGiven = map[string]string{
	config.SigningSecrets: "laptops only: the cloud has them in Secrets Manager",
	config.StripeKey:      "laptops only: the cloud has it in Secrets Manager",
	config.StripeURL:      "tests only",
	config.Journal:        "laptops only: it counts effects to prove exactly-once",
	config.EventTypes:     "given by -c eventTypes=, else the catalog",
	config.Accounts:       "given by -c accounts=",
}

// configNames are the values of the constants of package config that name variables.
func configNames(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../config/config.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, `"BACKSTOP_`) {
			names = append(names, strings.Trim(literal.Value, `"`))
		}
		return true
	})
	return names
}
