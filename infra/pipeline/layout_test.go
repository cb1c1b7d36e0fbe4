package pipeline

import (
	"bytes"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
)

// The constructs serve other layouts than the one stack: the CDK refuses what refers in a circle.

func TestTwoStagesFitInOneApp(t *testing.T) {
	result := synthesise(t, func(app awscdk.App) error {
		for _, s := range stages() {
			if _, err := New(app, Props{Settings: s, Bundles: bundles(t)}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, s := range stages() {
		if template := result.template(t, StackName(s.Stage)); !bytes.Contains(template, []byte("AWS::DynamoDB::GlobalTable")) {
			t.Errorf("stage %s has no tables", s.Stage)
		}
	}
}

func TestWhatIsKeptMayStandInAStackOfItsOwn(t *testing.T) {
	s := everything()
	result := synthesise(t, func(app awscdk.App) error {
		kept := awscdk.NewStack(app, text("Kept"), nil)
		runs := awscdk.NewStack(app, text("Runs"), nil)
		f := newFunctions(runs, s, bundles(t), newTables(kept, s), newQueues(kept, s), newSecrets(kept, s))
		newAPI(runs, s, f.receiver)
		newSchedules(runs, s, f.reconciler)
		return nil
	})
	if template := result.template(t, "Kept"); bytes.Contains(template, []byte("AWS::Lambda::Function")) {
		t.Error("the kept stack holds functions")
	}
	if template := result.template(t, "Runs"); !bytes.Contains(template, []byte("Fn::ImportValue")) {
		t.Error("the running stack imports nothing from the kept one")
	}
}

func TestAnExistingQueueMayBeUsed(t *testing.T) {
	s := Prod()
	const existing = "arn:aws:sqs:us-east-1:123456789012:existing.fifo"
	result := synthesise(t, func(app awscdk.App) error {
		stack := awscdk.NewStack(app, text("Runs"), nil)
		q := queues{
			main: awssqs.Queue_FromQueueArn(stack, text("Queue"), text(existing)),
			dead: awssqs.Queue_FromQueueArn(stack, text("DeadLetterQueue"), text("arn:aws:sqs:us-east-1:123456789012:existing-dead.fifo")),
		}
		newFunctions(stack, s, bundles(t), newTables(stack, s), q, newSecrets(stack, s))
		return nil
	})
	template := result.template(t, "Runs")
	if bytes.Contains(template, []byte("AWS::SQS::Queue\"")) {
		t.Error("a queue is made although one exists")
	}
	if !bytes.Contains(template, []byte(existing)) {
		t.Error("the mapping does not name the existing queue")
	}
}
