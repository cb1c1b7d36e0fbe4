package pipeline

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"

	"backstop/internal/schema"
)

// tables holds what must survive: the ledger, the projections, and the cursors.
type tables struct {
	ledger, billing, control awsdynamodb.ITable
	key                      awskms.IKey // nil: AWS's own key
}

// newTables makes the three tables. They have no names of their own: CloudFormation's are unique, so that a retained
// table never stands in the way of a new stack.
func newTables(scope constructs.Construct, s Settings) tables {
	var t tables
	if s.CustomerKey {
		t.key = awskms.NewKey(scope, text("TableKey"), &awskms.KeyProps{
			Description:       text("Encrypts the tables of Backstop " + s.Stage),
			EnableKeyRotation: yes(),
			RemovalPolicy:     s.removal(),
		})
	}
	table := func(id string, props awsdynamodb.TablePropsV2) awsdynamodb.ITable {
		props.Billing = awsdynamodb.Billing_OnDemand(nil)
		props.Encryption = awsdynamodb.TableEncryptionV2_AwsManagedKey()
		// In every stage: it costs by the gigabyte, which a thrown-away stage has none of.
		props.PointInTimeRecoverySpecification = &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: yes()}
		props.DeletionProtection = &s.Retain
		props.RemovalPolicy = s.removal()
		made := awsdynamodb.NewTableV2(scope, text(id), &props)
		if t.key != nil {
			// By override: the construct's own way of naming a key wants to know the region when it synthesises.
			made.Node().DefaultChild().(awsdynamodb.CfnGlobalTable).AddPropertyOverride(
				text("Replicas.0.SSESpecification.KMSMasterKeyId"), t.key.KeyArn())
		}
		return made
	}
	t.ledger = table("Ledger", awsdynamodb.TablePropsV2{
		PartitionKey:        attribute(schema.PK, awsdynamodb.AttributeType_STRING),
		TimeToLiveAttribute: text(schema.DeleteAfterS),
		GlobalSecondaryIndexes: &[]*awsdynamodb.GlobalSecondaryIndexPropsV2{{
			IndexName:      text(schema.OpenIndex),
			PartitionKey:   attribute(schema.Open, awsdynamodb.AttributeType_STRING),
			SortKey:        attribute(schema.RecordedMS, awsdynamodb.AttributeType_NUMBER),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		}},
	})
	t.billing = table("Billing", awsdynamodb.TablePropsV2{
		PartitionKey: attribute(schema.PK, awsdynamodb.AttributeType_STRING),
		SortKey:      attribute(schema.SK, awsdynamodb.AttributeType_STRING),
		// Keys only: the index is written when a row is new, not each time it changes.
		GlobalSecondaryIndexes: &[]*awsdynamodb.GlobalSecondaryIndexPropsV2{{
			IndexName:      text(schema.BillingIndex),
			PartitionKey:   attribute(schema.BillingPK1, awsdynamodb.AttributeType_STRING),
			SortKey:        attribute(schema.BillingSK1, awsdynamodb.AttributeType_STRING),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		}},
	})
	t.control = table("Control", awsdynamodb.TablePropsV2{
		PartitionKey: attribute(schema.PK, awsdynamodb.AttributeType_STRING),
	})
	return t
}

func attribute(name string, kind awsdynamodb.AttributeType) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: text(name), Type: kind}
}
