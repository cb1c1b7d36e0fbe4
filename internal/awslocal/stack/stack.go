// Package stack creates, on any AWS endpoint, the tables and queues the functions use, from the same constants the
// CDK app uses. The development command and the tests call it; a real account gets them from CloudFormation.
package stack

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/config"
	"backstop/internal/schema"
)

// Names of what Create makes.
type Names struct {
	LedgerTable, ControlTable, BillingTable string
	QueueURL, QueueARN                      string
	DeadLetterURL, DeadLetterARN            string
}

// Environment returns the variables that name these resources to the functions.
func (n Names) Environment() map[string]string {
	return map[string]string{
		config.LedgerTable:   n.LedgerTable,
		config.ControlTable:  n.ControlTable,
		config.BillingTable:  n.BillingTable,
		config.QueueURL:      n.QueueURL,
		config.DeadLetterURL: n.DeadLetterURL,
	}
}

// Create makes the tables and queues, named backstop-<stage>-.... It fails where one exists already.
func Create(ctx context.Context, cfg aws.Config, stage string) (Names, error) {
	prefix := "backstop-" + stage + "-"
	names := Names{
		LedgerTable:  prefix + "ledger",
		ControlTable: prefix + "control",
		BillingTable: prefix + "billing",
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := createTables(ctx, db, names); err != nil {
		return Names{}, err
	}
	return names, createQueues(ctx, sqs.NewFromConfig(cfg), prefix, &names)
}

func createTables(ctx context.Context, db *dynamodb.Client, names Names) error {
	text, number := ddb.ScalarAttributeTypeS, ddb.ScalarAttributeTypeN
	ledger := &dynamodb.CreateTableInput{
		TableName:            &names.LedgerTable,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: attributes(schema.PK, text, schema.Open, text, schema.RecordedMS, number),
		KeySchema:            keys(schema.PK),
		GlobalSecondaryIndexes: []ddb.GlobalSecondaryIndex{{
			IndexName:  aws.String(schema.OpenIndex),
			KeySchema:  keys(schema.Open, schema.RecordedMS),
			Projection: &ddb.Projection{ProjectionType: ddb.ProjectionTypeKeysOnly},
		}},
	}
	control := &dynamodb.CreateTableInput{
		TableName:            &names.ControlTable,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: attributes(schema.PK, text),
		KeySchema:            keys(schema.PK),
	}
	billing := &dynamodb.CreateTableInput{
		TableName:   &names.BillingTable,
		BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: attributes(schema.PK, text, schema.SK, text,
			schema.BillingPK1, text, schema.BillingSK1, text),
		KeySchema: keys(schema.PK, schema.SK),
		GlobalSecondaryIndexes: []ddb.GlobalSecondaryIndex{{
			IndexName:  aws.String(schema.BillingIndex),
			KeySchema:  keys(schema.BillingPK1, schema.BillingSK1),
			Projection: &ddb.Projection{ProjectionType: ddb.ProjectionTypeKeysOnly},
		}},
	}
	for _, table := range []*dynamodb.CreateTableInput{ledger, control, billing} {
		if _, err := db.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("create table %s: %w", *table.TableName, err)
		}
	}
	_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &names.LedgerTable,
		TimeToLiveSpecification: &ddb.TimeToLiveSpecification{
			AttributeName: aws.String(schema.DeleteAfterS),
			Enabled:       aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("set the time to live of %s: %w", names.LedgerTable, err)
	}
	return nil
}

func attributes(namesAndTypes ...any) []ddb.AttributeDefinition {
	var list []ddb.AttributeDefinition
	for i := 0; i < len(namesAndTypes); i += 2 {
		list = append(list, ddb.AttributeDefinition{
			AttributeName: aws.String(namesAndTypes[i].(string)),
			AttributeType: namesAndTypes[i+1].(ddb.ScalarAttributeType),
		})
	}
	return list
}

func keys(names ...string) []ddb.KeySchemaElement {
	list := []ddb.KeySchemaElement{{AttributeName: &names[0], KeyType: ddb.KeyTypeHash}}
	if len(names) > 1 {
		list = append(list, ddb.KeySchemaElement{AttributeName: &names[1], KeyType: ddb.KeyTypeRange})
	}
	return list
}

func createQueues(ctx context.Context, q *sqs.Client, prefix string, names *Names) error {
	var err error
	fifo := map[string]string{
		"FifoQueue":                 "true",
		"ContentBasedDeduplication": "false",
		"DeduplicationScope":        "messageGroup",
		"FifoThroughputLimit":       "perMessageGroupId",
		"MessageRetentionPeriod":    strconv.Itoa(int(schema.MessageRetention.Seconds())),
		"VisibilityTimeout":         strconv.Itoa(int(schema.VisibilityTimeout.Seconds())),
	}
	names.DeadLetterURL, names.DeadLetterARN, err = createQueue(ctx, q, prefix+"dead-letter.fifo", fifo)
	if err != nil {
		return err
	}
	fifo["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`,
		names.DeadLetterARN, schema.MaxReceiveCount)
	names.QueueURL, names.QueueARN, err = createQueue(ctx, q, prefix+"events.fifo", fifo)
	return err
}

func createQueue(ctx context.Context, q *sqs.Client, name string, attributes map[string]string) (url, arn string, err error) {
	created, err := q.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return "", "", fmt.Errorf("create queue %s: %w", name, err)
	}
	described, err := q.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       created.QueueUrl,
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", "", fmt.Errorf("describe queue %s: %w", name, err)
	}
	arn = described.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	if arn == "" {
		return "", "", errors.New("describe queue " + name + ": no ARN in the answer")
	}
	return *created.QueueUrl, arn, nil
}
