package template_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"backstop/infra/template"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
)

// The laptop runs what the cloud runs: the local AWS is made by its own code and asked through AWS's client, and its
// answers are compared with the template.

func local(t *testing.T) (aws.Config, stack.Names) {
	t.Helper()
	cfg := awslocal.Config(&awslocal.Transport{Server: awslocal.New(awslocal.Options{})})
	names, err := stack.Create(context.Background(), cfg, "dev")
	if err != nil {
		t.Fatal(err)
	}
	return cfg, names
}

func TestTablesInTheTemplateAreThoseOfTheLocalAWS(t *testing.T) {
	cfg, names := local(t)
	db := dynamodb.NewFromConfig(cfg)
	eachStage(t, func(t *testing.T, _ string, made template.Template) {
		for part, name := range map[template.Part]string{
			template.Ledger: names.LedgerTable, template.Billing: names.BillingTable, template.Control: names.ControlTable,
		} {
			want := describeTable(t, db, name)
			got := must(made.Table(part))(t)
			// What the cloud has beyond the laptop.
			ignored := cmpopts.IgnoreFields(template.Table{}, "PointInTimeRecovery", "DeletionProtection", "Encryption", "Key",
				"Named", "DeletionPolicy", "ReplacePolicy")
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("%s (-local +template):\n%s", part, diff)
			}
		}
	})
}

func describeTable(t *testing.T, db *dynamodb.Client, name string) template.Table {
	t.Helper()
	described, err := db.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	attributeTypes := map[string]string{}
	for _, definition := range described.Table.AttributeDefinitions {
		attributeTypes[*definition.AttributeName] = string(definition.AttributeType)
	}
	keys := func(schema []types.KeySchemaElement) []template.Key {
		var keys []template.Key
		for _, key := range schema {
			keys = append(keys, template.Key{
				Name: *key.AttributeName, Role: string(key.KeyType), Type: attributeTypes[*key.AttributeName],
			})
		}
		return keys
	}
	table := template.Table{
		Keys: keys(described.Table.KeySchema),
		OnDemand: described.Table.BillingModeSummary != nil &&
			described.Table.BillingModeSummary.BillingMode == types.BillingModePayPerRequest,
	}
	for _, index := range described.Table.GlobalSecondaryIndexes {
		table.Indexes = append(table.Indexes, template.Index{
			Name: *index.IndexName, Keys: keys(index.KeySchema), Projection: string(index.Projection.ProjectionType),
		})
	}
	ttl, err := db.DescribeTimeToLive(context.Background(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	if ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		table.TTL = *ttl.TimeToLiveDescription.AttributeName
	}
	return table
}

func TestQueuesInTheTemplateAreThoseOfTheLocalAWS(t *testing.T) {
	cfg, names := local(t)
	client := sqs.NewFromConfig(cfg)
	eachStage(t, func(t *testing.T, _ string, made template.Template) {
		for part, url := range map[template.Part]string{
			template.Queue: names.QueueURL, template.DeadLetterQueue: names.DeadLetterURL,
		} {
			described, err := client.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
				QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
			})
			if err != nil {
				t.Fatal(err)
			}
			queue := must(made.Queue(part))(t)
			if len(queue.Attributes) < 6 {
				t.Fatalf("%s says only %v", part, queue.Attributes)
			}
			for name, want := range queue.Attributes {
				if name == "SqsManagedSseEnabled" {
					continue // encryption at rest is nothing the functions could notice
				}
				if got := described.Attributes[name]; got != want {
					t.Errorf("%s: %s is %q on a laptop, %q in the template", part, name, got, want)
				}
			}
			wantRedrive := ""
			if queue.DeadLetterQueue == template.DeadLetterQueue {
				wantRedrive = `{"deadLetterTargetArn":"` + names.DeadLetterARN + `","maxReceiveCount":"` +
					strconv.Itoa(queue.MaxReceiveCount) + `"}`
			}
			if got := described.Attributes["RedrivePolicy"]; got != wantRedrive {
				t.Errorf("%s: redrive policy is %q on a laptop, %q in the template", part, got, wantRedrive)
			}
		}
	})
}
