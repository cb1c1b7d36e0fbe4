package pipeline

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"

	"backstop/internal/schema"
)

// queues are the FIFO queue of pointers and its dead-letter queue.
type queues struct {
	main, dead awssqs.IQueue
}

// newQueues makes both. Deduplication is explicit everywhere: the sender names the id, since the same pointer must be
// able to pass again within five minutes (a replay, a sweep).
//
// The main queue is the one stateful thing with a name, <stack>-events.fifo: the dead-letter queue's redrive allow
// policy has to name it, and a reference would close a circle (each queue names the other). The name holds the
// stack's, so stages do not meet.
func newQueues(scope constructs.Construct, s Settings) queues {
	stack := awscdk.Stack_Of(scope)
	name := *stack.StackName() + "-events.fifo"
	fifo := awssqs.QueueProps{
		Fifo:                      yes(),
		ContentBasedDeduplication: no(),
		DeduplicationScope:        awssqs.DeduplicationScope_MESSAGE_GROUP, // these two make it high throughput
		FifoThroughputLimit:       awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID,
		Encryption:                awssqs.QueueEncryption_SQS_MANAGED, // pointers hold no payload
		EnforceSSL:                yes(),
		RetentionPeriod:           seconds(schema.MessageRetention),
		VisibilityTimeout:         seconds(schema.VisibilityTimeout),
		// Messages are doorbells: the ledger has what they point at, and the sweep rings again.
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	}

	dead := fifo
	dead.RedriveAllowPolicy = &awssqs.RedriveAllowPolicy{
		RedrivePermission: awssqs.RedrivePermission_BY_QUEUE,
		SourceQueues: &[]awssqs.IQueue{awssqs.Queue_FromQueueAttributes(scope, text("QueueByName"), &awssqs.QueueAttributes{
			QueueArn: stack.FormatArn(&awscdk.ArnComponents{Service: text("sqs"), Resource: text(name)}),
			Fifo:     yes(),
		})},
	}
	var q queues
	q.dead = awssqs.NewQueue(scope, text("DeadLetterQueue"), &dead)

	main := fifo
	main.QueueName = text(name)
	main.DeadLetterQueue = &awssqs.DeadLetterQueue{
		Queue: q.dead,
		// 1000, the highest: receives are not attempts. A message handed back every 5 minutes through an outage of
		// 24 hours is received 288 times, one handed back behind a slow head every 2 s for half an hour 900 times; the
		// budget of 8 attempts is counted in the ledger, which parks long before.
		MaxReceiveCount: number(schema.MaxReceiveCount),
	}
	// Nothing may use the main queue as its dead-letter queue.
	main.RedriveAllowPolicy = &awssqs.RedriveAllowPolicy{RedrivePermission: awssqs.RedrivePermission_DENY_ALL}
	q.main = awssqs.NewQueue(scope, text("Queue"), &main)
	return q
}
