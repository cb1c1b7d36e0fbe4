package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Visible is about how many messages wait in the queue (Amazon SQS API Reference, "GetQueueAttributes").
func (q *SQS) Visible(ctx context.Context) (int, error) {
	name := types.QueueAttributeNameApproximateNumberOfMessages
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{name},
	})
	if err != nil {
		return 0, fmt.Errorf("read the queue's depth: %w", err)
	}
	n, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return 0, fmt.Errorf("read the queue's depth: %w", err)
	}
	return n, nil
}
