package template_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
)

// rights are what DESIGN says each function may do, action by action.
var rights = map[string][]template.Grant{
	template.Receiver: {
		{Action: "dynamodb:PutItem", Part: template.Ledger},
		{Action: "dynamodb:UpdateItem", Part: template.Ledger},
		{Action: "logs:CreateLogStream", Part: template.ReceiverLog},
		{Action: "logs:PutLogEvents", Part: template.ReceiverLog},
		{Action: "secretsmanager:GetSecretValue", Part: template.SigningSecret},
		{Action: "sqs:SendMessage", Part: template.Queue},
	},
	template.Processor: {
		{Action: "dynamodb:ConditionCheckItem", Part: template.Billing},
		{Action: "dynamodb:DeleteItem", Part: template.Billing},
		{Action: "dynamodb:GetItem", Part: template.Billing},
		{Action: "dynamodb:GetItem", Part: template.Ledger},
		{Action: "dynamodb:Query", Part: template.Billing},
		{Action: "dynamodb:Query", Part: template.Billing, Index: "gsi1"},
		{Action: "dynamodb:UpdateItem", Part: template.Billing},
		{Action: "dynamodb:UpdateItem", Part: template.Ledger},
		{Action: "logs:CreateLogStream", Part: template.ProcessorLog},
		{Action: "logs:PutLogEvents", Part: template.ProcessorLog},
		{Action: "secretsmanager:GetSecretValue", Part: template.StripeKey},
		{Action: "sqs:ChangeMessageVisibility", Part: template.Queue},
		{Action: "sqs:DeleteMessage", Part: template.Queue},
		{Action: "sqs:GetQueueAttributes", Part: template.Queue},
		{Action: "sqs:ReceiveMessage", Part: template.Queue},
		{Action: "sqs:SendMessage", Part: template.DeadLetterQueue},
	},
	template.Reconciler: {
		{Action: "dynamodb:BatchGetItem", Part: template.Ledger},
		{Action: "dynamodb:GetItem", Part: template.Control},
		{Action: "dynamodb:GetItem", Part: template.Ledger},
		{Action: "dynamodb:PutItem", Part: template.Control},
		{Action: "dynamodb:PutItem", Part: template.Ledger},
		{Action: "dynamodb:Query", Part: template.Ledger, Index: "open"},
		{Action: "dynamodb:UpdateItem", Part: template.Ledger},
		{Action: "logs:CreateLogStream", Part: template.ReconcilerLog},
		{Action: "logs:PutLogEvents", Part: template.ReconcilerLog},
		{Action: "secretsmanager:GetSecretValue", Part: template.StripeKey},
		{Action: "sqs:ChangeMessageVisibility", Part: template.DeadLetterQueue},
		{Action: "sqs:DeleteMessage", Part: template.DeadLetterQueue},
		{Action: "sqs:GetQueueAttributes", Part: template.Queue},
		{Action: "sqs:ReceiveMessage", Part: template.DeadLetterQueue},
		{Action: "sqs:SendMessage", Part: template.Queue},
	},
}

func TestEachFunctionMayDoWhatItsDesignSays(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		for _, name := range template.FunctionNames {
			grants := must(stack.Function(name))(t).Grants
			for i := range grants {
				grants[i].Sid = ""
			}
			if diff := cmp.Diff(rights[name], grants); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestNoFunctionReadsASecretItDoesNotNeed(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		var readers []string
		for _, name := range template.FunctionNames {
			for _, grant := range must(stack.Function(name))(t).Grants {
				if strings.HasPrefix(grant.Action, "secretsmanager:") {
					readers = append(readers, name+" "+grant.Action+" "+string(grant.Part))
				}
			}
		}
		want := []string{
			"receiver secretsmanager:GetSecretValue SigningSecret",
			"processor secretsmanager:GetSecretValue StripeKey",
			"reconciler secretsmanager:GetSecretValue StripeKey",
		}
		if diff := cmp.Diff(want, readers); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNoRightIsAWildcard(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		checked := 0
		for id, policy := range ofType(t, stack, "AWS::IAM::Policy") {
			for _, statement := range statements(policy) {
				checked++
				if rights := text(statement["Action"]) + text(statement["Resource"]); strings.Contains(rights, "*") {
					t.Errorf("%s allows %s", id, rights)
				}
			}
		}
		if checked < 15 {
			t.Fatalf("only %d statements checked", checked)
		}
		for id, role := range ofType(t, stack, "AWS::IAM::Role") {
			if role.Properties["ManagedPolicyArns"] != nil {
				t.Errorf("%s has a managed policy: %s", id, text(role.Properties["ManagedPolicyArns"]))
			}
		}
	})
}

func TestCallsAreComparedWithRights(t *testing.T) {
	t.Parallel()
	stack := must(template.Golden("prod"))(t)
	reconciler := must(stack.Function(template.Reconciler))(t)
	const ledger = "arn:aws:dynamodb:us-east-1:000000000000:table/backstop-dev-ledger"
	granted := reconciler.Permissions(map[template.Part]string{template.Ledger: ledger})
	sweep := template.Permission{Action: "dynamodb:Query", Resource: ledger + "/index/open"}
	if !slices.Contains(granted, sweep) || len(granted) != 5 {
		t.Fatalf("granted are %v", granted)
	}
	scan := template.Permission{Action: "dynamodb:Scan", Resource: ledger}
	denied, unused := template.Compare(granted, []template.Permission{sweep, scan, scan})
	if diff := cmp.Diff([]template.Permission{scan}, denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if len(unused) != 4 || slices.Contains(unused, sweep) {
		t.Errorf("unused are %v", unused)
	}
}
