package sqs_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awslocal/sqs"
)

func TestBadSendsAreRefused(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		attribute := func(name, dataType, value string) func(*awssqs.SendMessageInput) {
			return func(in *awssqs.SendMessageInput) {
				in.MessageAttributes = map[string]types.MessageAttributeValue{name: {DataType: &dataType, StringValue: &value}}
			}
		}
		for name, c := range map[string]struct {
			change func(in *awssqs.SendMessageInput)
			code   string
		}{
			"no body":             {func(in *awssqs.SendMessageInput) { in.MessageBody = aws.String("") }, "MissingParameter"},
			"no group":            {func(in *awssqs.SendMessageInput) { in.MessageGroupId = nil }, "MissingParameter"},
			"no deduplication id": {func(in *awssqs.SendMessageInput) { in.MessageDeduplicationId = nil }, "InvalidParameterValue"},
			"space in group":      {func(in *awssqs.SendMessageInput) { in.MessageGroupId = aws.String("a b") }, "InvalidParameterValue"},
			"umlaut in group":     {func(in *awssqs.SendMessageInput) { in.MessageGroupId = aws.String("ä") }, "InvalidParameterValue"},
			"empty group":         {func(in *awssqs.SendMessageInput) { in.MessageGroupId = aws.String("") }, "InvalidParameterValue"},
			"long group":          {func(in *awssqs.SendMessageInput) { in.MessageGroupId = aws.String(strings.Repeat("g", 129)) }, "InvalidParameterValue"},
			"long dedup id":       {func(in *awssqs.SendMessageInput) { in.MessageDeduplicationId = aws.String(strings.Repeat("d", 129)) }, "InvalidParameterValue"},
			"delay":               {func(in *awssqs.SendMessageInput) { in.DelaySeconds = 5 }, "InvalidParameterValue"},
			"NUL":                 {func(in *awssqs.SendMessageInput) { in.MessageBody = aws.String("a\x00b") }, "InvalidMessageContents"},
			"U+FFFE":              {func(in *awssqs.SendMessageInput) { in.MessageBody = aws.String("a\ufffeb") }, "InvalidMessageContents"},
			"over 1 MiB":          {func(in *awssqs.SendMessageInput) { in.MessageBody = aws.String(strings.Repeat("x", 1<<20+1)) }, "InvalidParameterValue"},
			"attribute name":      {attribute("AWS.x", "String", "v"), "InvalidParameterValue"},
			"attribute type":      {attribute("x", "Text", "v"), "InvalidParameterValue"},
			"attribute value":     {attribute("x", "String", ""), "InvalidParameterValue"},
			"attribute number":    {attribute("x", "Number", "five"), "InvalidParameterValue"},
			"eleven attributes": {func(in *awssqs.SendMessageInput) {
				in.MessageAttributes = map[string]types.MessageAttributeValue{}
				for i := range 11 {
					in.MessageAttributes[fmt.Sprint(i)] = types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String("1")}
				}
			}, "InvalidParameterValue"},
			"system attribute": {func(in *awssqs.SendMessageInput) {
				in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{"X": {DataType: aws.String("String"), StringValue: aws.String("1")}}
			}, "InvalidParameterValue"},
			"no queue": {func(in *awssqs.SendMessageInput) { in.QueueUrl = aws.String(q + "x") }, "AWS.SimpleQueueService.NonExistentQueue"},
		} {
			in := &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x"), MessageGroupId: aws.String("A"), MessageDeduplicationId: aws.String("d")}
			c.change(in)
			_, err := b.client.SendMessage(b.ctx, in)
			t.Log(name)
			expectError(t, err, c.code)
		}
		// What is just allowed, and nothing of the above.
		edge := "\t\n\r\u0020\ud7ff\ue000\ufffd\U00010000\U0010ffff" + strings.Repeat("x", 1<<20-25)
		id := strings.Repeat("!~", 64)
		b.sendAs(q, id, id, edge)
		b.expect(q, edge)
	})
}

func TestMaximumMessageSizeCountsAttributes(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "MaximumMessageSize", "1024")
		send := func(bytes int) error {
			_, err := b.client.SendMessage(b.ctx, &awssqs.SendMessageInput{
				QueueUrl: &q, MessageBody: aws.String(strings.Repeat("x", bytes)), MessageGroupId: aws.String("A"), MessageDeduplicationId: aws.String(fmt.Sprint(bytes)),
				MessageAttributes: map[string]types.MessageAttributeValue{"name": {DataType: aws.String("String"), StringValue: aws.String("value")}}})
			return err
		}
		if err := send(1024 - 15); err != nil { // name, String, value
			t.Error(err)
		}
		expectError(t, send(1024-14), "InvalidParameterValue")
	})
}

func TestBadReceivesAreRefused(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		for _, in := range []*awssqs.ReceiveMessageInput{
			{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1}, {WaitTimeSeconds: 21}, {WaitTimeSeconds: -1},
			{VisibilityTimeout: 43_201}, {ReceiveRequestAttemptId: aws.String("a b")},
		} {
			in.QueueUrl = &q
			_, err := b.client.ReceiveMessage(b.ctx, in)
			expectError(t, err, "InvalidParameterValue")
		}
	})
}

func TestBatchEntryFailsAlone(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		entry := func(id, dedup, body string) types.SendMessageBatchRequestEntry {
			return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, MessageGroupId: aws.String("A"), MessageDeduplicationId: &dedup}
		}
		delayed, bare := entry("c", "3", "m3"), entry("e", "", "m5")
		delayed.DelaySeconds = 5
		bare.MessageDeduplicationId = nil
		sent, err := b.client.SendMessageBatch(b.ctx, &awssqs.SendMessageBatchInput{QueueUrl: &q, Entries: []types.SendMessageBatchRequestEntry{
			entry("a", "1", "m1"), entry("dup", "1", "other"), delayed, entry("d", "4", "m4"), bare, entry("f", "6", "bad\x01")}})
		if err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, f := range sent.Failed {
			failed = append(failed, *f.Id+" "+*f.Code)
		}
		if got, want := strings.Join(failed, ", "), "c InvalidParameterValue, e InvalidParameterValue, f InvalidMessageContents"; got != want {
			t.Errorf("failed: %s, want %s", got, want)
		}
		if len(sent.Successful) != 3 || *sent.Successful[1].MessageId != *sent.Successful[0].MessageId {
			t.Errorf("%d entries succeeded, want 3, the second a duplicate", len(sent.Successful))
		}
		got := b.expect(q, "m1,m4")

		changed, err := b.client.ChangeMessageVisibilityBatch(b.ctx, &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: got[1].ReceiptHandle, VisibilityTimeout: 0}, {Id: aws.String("b"), ReceiptHandle: aws.String("junk")}}})
		if err != nil || len(changed.Successful) != 1 || len(changed.Failed) != 1 || *changed.Failed[0].Id != "b" {
			t.Errorf("changing visibility: %v, %+v", err, changed)
		}
		deleted, err := b.client.DeleteMessageBatch(b.ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle}, {Id: aws.String("b"), ReceiptHandle: got[1].ReceiptHandle}}})
		if err != nil || len(deleted.Successful) != 1 || len(deleted.Failed) != 1 || *deleted.Failed[0].Id != "b" {
			t.Errorf("deleting: %v, %+v", err, deleted)
		}
		b.expect(q, "m4")
	})
}

func TestBadBatchFailsAsAWhole(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		batch := func(body string, ids ...string) error {
			var entries []types.SendMessageBatchRequestEntry
			for i, id := range ids {
				entries = append(entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, MessageGroupId: aws.String("A"), MessageDeduplicationId: aws.String(fmt.Sprint(i))})
			}
			_, err := b.client.SendMessageBatch(b.ctx, &awssqs.SendMessageBatchInput{QueueUrl: &q, Entries: entries})
			return err
		}
		expectError(t, batch("m", "a", "a"), "AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
		expectError(t, batch("m", "a b"), "AWS.SimpleQueueService.InvalidBatchEntryId")
		expectError(t, batch("m", strings.Repeat("a", 81)), "AWS.SimpleQueueService.InvalidBatchEntryId")
		expectError(t, batch("m", strings.Split("a b c d e f g h i j k", " ")...), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
		expectError(t, batch(strings.Repeat("x", 1<<19+1), "a", "b"), "AWS.SimpleQueueService.BatchRequestTooLong")
		_, err := b.client.DeleteMessageBatch(b.ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{}})
		expectError(t, err, "AWS.SimpleQueueService.EmptyBatchRequest")
		b.expectCounts(q, "0/0/0")
		if err := batch(strings.Repeat("x", 1<<19), "a", "b"); err != nil {
			t.Errorf("a batch of exactly 1 MiB: %v", err)
		}
	})
}

func TestQueueIsCreatedOncePerNameAndSettings(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "VisibilityTimeout", "60")
		if q != "http://local.test/000000000000/q.fifo" {
			t.Errorf("the queue's URL is %s", q)
		}
		if again := b.queue("q.fifo", "VisibilityTimeout", "60"); again != q {
			t.Errorf("created again it is %s", again)
		}
		_, err := b.create("q.fifo", "FifoQueue", "true", "VisibilityTimeout", "61")
		expectError(t, err, "QueueAlreadyExists")
		found, err := b.client.GetQueueUrl(b.ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String("q.fifo")})
		if err != nil || *found.QueueUrl != q {
			t.Errorf("found %v, %v", found, err)
		}
		_, err = b.client.GetQueueUrl(b.ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String("none.fifo")})
		expectError(t, err, "AWS.SimpleQueueService.NonExistentQueue")
	})
}

func TestBadQueueSettingsAreRefused(t *testing.T) {
	inBubble(t, func(b *bundle) {
		b.queue("dead.fifo")
		for _, c := range []struct {
			name, attribute, value, code string
		}{
			{"q", "", "", "AWS.SimpleQueueService.UnsupportedOperation"},
			{"q", "FifoQueue", "false", "AWS.SimpleQueueService.UnsupportedOperation"},
			{"q.fifo", "FifoQueue", "false", "InvalidParameterValue"},
			{"q", "FifoQueue", "true", "InvalidParameterValue"},
			{"a b.fifo", "FifoQueue", "true", "InvalidParameterValue"},
			{strings.Repeat("q", 76) + ".fifo", "FifoQueue", "true", "InvalidParameterValue"},
			{"q.fifo", "VisibilityTimeout", "43201", "InvalidAttributeValue"},
			{"q.fifo", "DelaySeconds", "901", "InvalidAttributeValue"},
			{"q.fifo", "MessageRetentionPeriod", "59", "InvalidAttributeValue"},
			{"q.fifo", "MaximumMessageSize", "1048577", "InvalidAttributeValue"},
			{"q.fifo", "ReceiveMessageWaitTimeSeconds", "x", "InvalidAttributeValue"},
			{"q.fifo", "DeduplicationScope", "group", "InvalidAttributeValue"},
			{"q.fifo", "FifoThroughputLimit", "perMessageGroupId", "InvalidParameterValue"},
			{"q.fifo", "Policy", "{}", "AWS.SimpleQueueService.UnsupportedOperation"},
			{"q.fifo", "Nope", "1", "InvalidAttributeName"},
			{"q.fifo", "RedrivePolicy", "x", "InvalidParameterValue"},
			{"q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"` + deadARN + `"}`, "InvalidParameterValue"},
			{"q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"` + deadARN + `x","maxReceiveCount":1}`, "InvalidParameterValue"},
			{"q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1001}`, "InvalidParameterValue"},
			{"q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1.5}`, "InvalidParameterValue"},
		} {
			in := map[string]string{"FifoQueue": "true", c.attribute: c.value}
			if c.attribute == "" {
				in = nil
			}
			_, err := b.client.CreateQueue(b.ctx, &awssqs.CreateQueueInput{QueueName: &c.name, Attributes: in})
			t.Log(c)
			expectError(t, err, c.code)
		}
	})
}

func TestAttributesAreReturnedAsSet(t *testing.T) {
	inBubble(t, func(b *bundle) {
		b.queue("dead.fifo")
		policy := `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":"1000"}`
		q := b.queue("work.fifo", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId",
			"MessageRetentionPeriod", "1209600", "KmsMasterKeyId", "alias/aws/sqs", "RedrivePolicy", policy)
		want := map[string]string{
			"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId", "ContentBasedDeduplication": "false",
			"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "30", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
			"MaximumMessageSize": "1048576", "KmsMasterKeyId": "alias/aws/sqs", "RedrivePolicy": policy, "QueueArn": workARN,
			"CreatedTimestamp": "946684800", "LastModifiedTimestamp": "946684800", "ApproximateNumberOfMessages": "0",
			"ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
		}
		if got := b.attributes(q); !maps.Equal(got, want) {
			t.Errorf("attributes are %v, want %v", got, want)
		}
		b.set(q, "RedrivePolicy", "")
		some, err := b.client.GetQueueAttributes(b.ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"RedrivePolicy", "QueueArn"}})
		if err != nil || !maps.Equal(some.Attributes, map[string]string{"QueueArn": workARN}) {
			t.Errorf("got %v, %v, want the ARN alone", some, err)
		}
		_, err = b.client.GetQueueAttributes(b.ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"Nope"}})
		expectError(t, err, "InvalidAttributeName")
	})
}

func TestQueuesAreListedInPages(t *testing.T) {
	inBubble(t, func(b *bundle) {
		for _, name := range []string{"c.fifo", "a.fifo", "b.fifo", "x.fifo"} {
			b.queue(name)
		}
		var pages []string
		in := &awssqs.ListQueuesInput{MaxResults: aws.Int32(3)}
		for range 2 {
			out, err := b.client.ListQueues(b.ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, strings.ReplaceAll(strings.Join(out.QueueUrls, ","), "http://local.test/000000000000/", ""))
			in.NextToken = out.NextToken
		}
		if got := strings.Join(pages, " | "); got != "a.fifo,b.fifo,c.fifo | x.fifo" || in.NextToken != nil {
			t.Errorf("pages are %s", got)
		}
		out, err := b.client.ListQueues(b.ctx, &awssqs.ListQueuesInput{QueueNamePrefix: aws.String("b")})
		if err != nil || len(out.QueueUrls) != 1 {
			t.Errorf("with prefix b: %v, %v", out, err)
		}
	})
}

func TestStatsCountMessages(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1", "a2")
		b.receive(q, 1, 0)
		got, ok := b.server.Stats("q.fifo")
		if !ok || got.Visible != 1 || got.InFlight != 1 || got.Delayed != 0 || got.Oldest.Unix() != 946684800 {
			t.Errorf("stats are %+v, %v", got, ok)
		}
		if _, ok := b.server.Stats("none.fifo"); ok {
			t.Error("there are stats of a queue that does not exist")
		}
	})
}

func TestUnknownRequestsGetAWSErrors(t *testing.T) {
	t.Parallel()
	server := sqs.New(sqs.Options{})
	for _, c := range []struct{ target, body, want, header string }{
		{"AmazonSQS.Nope", "{}", "UnknownOperationException", "InvalidAction;Sender"},
		{"", "{}", "UnknownOperationException", "InvalidAction;Sender"},
		{"AmazonSQS.TagQueue", "{}", "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation;Sender"},
		{"AmazonSQS.SendMessage", "{", "SerializationException", "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", "{}", "MissingParameter", "MissingParameter;Sender"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		r.Header.Set("X-Amz-Target", c.target)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || w.Header().Get("X-Amzn-Query-Error") != c.header ||
			!strings.Contains(w.Body.String(), `"__type":"com.amazonaws.sqs#`+c.want+`"`) {
			t.Errorf("%s %s: %d %s %s", c.target, c.body, w.Code, w.Header(), w.Body)
		}
	}
}
