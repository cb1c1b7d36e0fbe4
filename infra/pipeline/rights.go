package pipeline

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"backstop/internal/schema"
)

// allow gives each function what DESIGN says it may do, action by action: the CDK's grants bundle more (reading a table
// brings Scan and its streams, writing it BatchWriteItem and DeleteItem, each with all indexes).
//
// TransactWriteItems has no action of its own: it needs those of its parts (Amazon DynamoDB Developer Guide,
// "Using IAM with DynamoDB transactions").
func (f functions) allow(t tables, q queues, k secrets) {
	ledger, billing, control := t.ledger.TableArn(), t.billing.TableArn(), t.control.TableArn()
	openIndex := index(ledger, schema.OpenIndex)
	billingIndex := index(billing, schema.BillingIndex)

	f.receiver.may("Record", []*string{ledger}, "dynamodb:PutItem", "dynamodb:UpdateItem")
	f.receiver.may("Enqueue", []*string{q.main.QueueArn()}, "sqs:SendMessage")
	f.receiver.may("VerifySignatures", []*string{k.signing.Ref()}, "secretsmanager:GetSecretValue")

	f.processor.may("Settle", []*string{ledger}, "dynamodb:GetItem", "dynamodb:UpdateItem")
	// DeleteItem and ConditionCheckItem: a handler's Once effect may remove a row or only guard on one. Nothing puts whole
	// rows.
	f.processor.may("Project", []*string{billing},
		"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem")
	f.processor.may("ReadProjections", []*string{billing, billingIndex}, "dynamodb:Query")
	// Receive, delete and attributes are what the event source mapping does in the function's name.
	f.processor.may("Consume", []*string{q.main.QueueArn()},
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility")
	f.processor.may("Park", []*string{q.dead.QueueArn()}, "sqs:SendMessage")
	f.processor.may("Refetch", []*string{k.stripeKey.Ref()}, "secretsmanager:GetSecretValue")

	f.reconciler.may("Sweep", []*string{openIndex}, "dynamodb:Query")
	f.reconciler.may("Heal", []*string{ledger},
		"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
	f.reconciler.may("KeepCursors", []*string{control}, "dynamodb:GetItem", "dynamodb:PutItem")
	f.reconciler.may("Enqueue", []*string{q.main.QueueArn()}, "sqs:SendMessage", "sqs:GetQueueAttributes")
	f.reconciler.may("TidyDeadLetters", []*string{q.dead.QueueArn()},
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
	f.reconciler.may("ListStripeEvents", []*string{k.stripeKey.Ref()}, "secretsmanager:GetSecretValue")

	if t.key != nil {
		for _, each := range []function{f.receiver, f.processor, f.reconciler} {
			each.mayUseKey(t)
		}
	}
}

// may adds one statement, named so that a reader of the role sees what it is for.
func (f function) may(sid string, resources []*string, actions ...string) {
	f.role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:       text(sid),
		Actions:   texts(actions...),
		Resources: &resources,
	}))
}

// mayUseKey lets the function use the tables' key through DynamoDB only.
func (f function) mayUseKey(t tables) {
	region := awscdk.Stack_Of(f.role).Region()
	f.role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:       text("UseTableKey"),
		Actions:   texts("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"),
		Resources: &[]*string{t.key.KeyArn()},
		Conditions: &map[string]any{
			"StringEquals": map[string]any{
				"kms:ViaService": awscdk.Fn_Join(text("."), &[]*string{text("dynamodb"), region, text("amazonaws.com")}),
			},
		},
	}))
}

func index(tableARN *string, name string) *string {
	return jsii.String(*tableARN + "/index/" + name)
}
