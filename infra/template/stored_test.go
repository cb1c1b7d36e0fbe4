package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
)

func TestSchemaMatchesWhatTheCodeUses(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		ledger := must(stack.Table(template.Ledger))(t)
		if diff := cmp.Diff([]template.Key{{Name: "pk", Role: "HASH", Type: "S"}}, ledger.Keys); diff != "" {
			t.Errorf("ledger keys (-want +got):\n%s", diff)
		}
		wantOpen := []template.Index{{
			Name:       "open",
			Keys:       []template.Key{{Name: "open", Role: "HASH", Type: "S"}, {Name: "recorded_ms", Role: "RANGE", Type: "N"}},
			Projection: "KEYS_ONLY",
		}}
		if diff := cmp.Diff(wantOpen, ledger.Indexes); diff != "" {
			t.Errorf("ledger indexes (-want +got):\n%s", diff)
		}
		if ledger.TTL != "delete_after_s" {
			t.Errorf("the ledger forgets by %q", ledger.TTL)
		}
		billing := must(stack.Table(template.Billing))(t)
		wantKeys := []template.Key{{Name: "pk", Role: "HASH", Type: "S"}, {Name: "sk", Role: "RANGE", Type: "S"}}
		if diff := cmp.Diff(wantKeys, billing.Keys); diff != "" {
			t.Errorf("billing keys (-want +got):\n%s", diff)
		}
		wantByCustomer := []template.Index{{
			Name:       "gsi1",
			Keys:       []template.Key{{Name: "gsi1pk", Role: "HASH", Type: "S"}, {Name: "gsi1sk", Role: "RANGE", Type: "S"}},
			Projection: "KEYS_ONLY",
		}}
		if diff := cmp.Diff(wantByCustomer, billing.Indexes); diff != "" {
			t.Errorf("billing indexes (-want +got):\n%s", diff)
		}
		if billing.TTL != "" {
			t.Errorf("projections are forgotten by %q", billing.TTL)
		}
	})
}

func TestLedgerSurvivesStackDeletion(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		for _, part := range []template.Part{template.Ledger, template.Billing, template.Control} {
			table := must(stack.Table(part))(t)
			keep := map[string]string{"prod": "Retain", "dev": "Delete"}[stage]
			if table.DeletionPolicy != keep || table.ReplacePolicy != keep {
				t.Errorf("%s: deletion %s, replacement %s, want %s", part, table.DeletionPolicy, table.ReplacePolicy, keep)
			}
			if table.DeletionProtection != (stage == "prod") {
				t.Errorf("%s: deletion protection is %t", part, table.DeletionProtection)
			}
		}
		for id, secret := range ofType(t, stack, "AWS::SecretsManager::Secret") {
			if keep := map[string]string{"prod": "Retain", "dev": "Delete"}[stage]; secret.DeletionPolicy != keep {
				t.Errorf("%s: deletion %s, want %s", id, secret.DeletionPolicy, keep)
			}
		}
	})
}

func TestTablesAreOnDemandEncryptedRecoverableAndUnnamed(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		if tables := ofType(t, stack, "AWS::DynamoDB::GlobalTable"); len(tables) != 3 {
			t.Fatalf("%d tables", len(tables))
		}
		for _, part := range []template.Part{template.Ledger, template.Billing, template.Control} {
			table := must(stack.Table(part))(t)
			if !table.OnDemand || !table.PointInTimeRecovery || table.Encryption != "KMS" || table.Named {
				t.Errorf("%s: %+v", part, table)
			}
		}
	})
}

func TestDeadLetterQueueIsFIFO(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		main := must(stack.Queue(template.Queue))(t)
		if main.DeadLetterQueue != template.DeadLetterQueue {
			t.Fatalf("the queue's dead letters go to %q", main.DeadLetterQueue)
		}
		dead := must(stack.Queue(template.DeadLetterQueue))(t)
		if dead.Attributes["FifoQueue"] != "true" {
			t.Error("a FIFO queue's dead-letter queue has to be FIFO as well")
		}
		if dead.MayRedriveFrom != "byQueue" || main.MayRedriveFrom != "denyAll" {
			t.Errorf("redrive is allowed %s to the dead-letter queue, %s to the main one", dead.MayRedriveFrom, main.MayRedriveFrom)
		}
	})
}

func TestQueuesAreFIFOOfHighThroughputWithExplicitDeduplication(t *testing.T) {
	eachStage(t, func(t *testing.T, stage string, stack template.Template) {
		for _, part := range []template.Part{template.Queue, template.DeadLetterQueue} {
			want := map[string]string{
				"FifoQueue":                 "true",
				"ContentBasedDeduplication": "false",
				"DeduplicationScope":        "messageGroup",
				"FifoThroughputLimit":       "perMessageGroupId",
				"MessageRetentionPeriod":    "1209600",
				"SqsManagedSseEnabled":      "true",
				"VisibilityTimeout":         "180",
			}
			if diff := cmp.Diff(want, must(stack.Queue(part))(t).Attributes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", part, diff)
			}
		}
		main := must(stack.Queue(template.Queue))(t)
		if main.MaxReceiveCount != 1000 {
			t.Errorf("a message is received at most %d times: receives are not attempts", main.MaxReceiveCount)
		}
		if want := "Backstop-" + stage + "-events.fifo"; main.Name != want {
			t.Errorf("the queue is named %q, want %q", main.Name, want)
		}
	})
}

func TestNoQueueIsStandardButThatOfTheSchedules(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		for id, queue := range ofType(t, stack, "AWS::SQS::Queue") {
			_, said := queue.Properties["FifoQueue"]
			if standard := template.PartOf(id) == template.UnstartedRuns; standard == said {
				t.Errorf("%s: FifoQueue said is %t; CloudFormation takes true or nothing", id, said)
			}
			if name, ok := queue.Properties["QueueName"].(string); ok && !strings.HasSuffix(name, ".fifo") {
				t.Errorf("%s: a FIFO queue's name ends with .fifo, not %s", id, name)
			}
		}
	})
}

func TestEveryQueueAndTopicRefusesPlainHTTP(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		for kind, policies := range map[string]string{
			"AWS::SQS::Queue": "AWS::SQS::QueuePolicy",
			"AWS::SNS::Topic": "AWS::SNS::TopicPolicy",
		} {
			denying := 0
			for _, policy := range ofType(t, stack, policies) {
				for _, statement := range statements(policy) {
					if statement["Effect"] == "Deny" && strings.Contains(text(statement["Condition"]), `"aws:SecureTransport":"false"`) {
						denying++
					}
				}
			}
			if want := len(ofType(t, stack, kind)); denying != want {
				t.Errorf("%d of %d %s refuse plain HTTP", denying, want, kind)
			}
		}
	})
}

func TestSecretsAreCreatedEmpty(t *testing.T) {
	eachStage(t, func(t *testing.T, _ string, stack template.Template) {
		secrets := ofType(t, stack, "AWS::SecretsManager::Secret")
		if len(secrets) != 2 {
			t.Errorf("%d secrets", len(secrets))
		}
		for id, secret := range secrets {
			for _, property := range []string{"SecretString", "GenerateSecretString", "Name"} {
				if secret.Properties[property] != nil {
					t.Errorf("%s has a %s", id, property)
				}
			}
		}
		for _, output := range []string{"PutSigningSecret", "PutStripeKey"} {
			if !strings.Contains(text(stack.Outputs[output].Value), "aws secretsmanager put-secret-value") {
				t.Errorf("output %s does not say how to put the value: %v", output, stack.Outputs[output].Value)
			}
		}
	})
}
