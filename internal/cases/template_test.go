package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/process"
	"backstop/internal/schema"
)

const (
	aQueue    = "AWS::SQS::Queue"
	aFunction = "AWS::Lambda::Function"
	aMapping  = "AWS::Lambda::EventSourceMapping"
	anAlarm   = "AWS::CloudWatch::Alarm"
	aTable    = "AWS::DynamoDB::GlobalTable"
)

// templateChecks are the checks this runner knows, by "resource: assert".
var templateChecks = map[string]func(stackTemplate) error{
	"main queue: FifoQueue is true": func(s stackTemplate) error {
		name, q := s.main()
		return check(q.Properties["FifoQueue"] == true, "%q is no FIFO queue", name)
	},
	"dead-letter queue: FifoQueue is true": func(s stackTemplate) error {
		name, q := s.dead()
		return check(q.Properties["FifoQueue"] == true, "%q is no FIFO queue", name)
	},
	"any queue with FifoQueue: QueueName absent, or ends with .fifo": func(s stackTemplate) error {
		return s.each(aQueue, func(q resource) bool {
			name := q.Properties["QueueName"]
			return q.Properties["FifoQueue"] == nil || none(name) || strings.HasSuffix(fmt.Sprint(name), ".fifo")
		})
	},
	"any queue: FifoQueue is never false": func(s stackTemplate) error {
		return s.each(aQueue, func(q resource) bool { return q.Properties["FifoQueue"] != false })
	},
	"main queue: RedrivePolicy names the dead-letter queue; maxReceiveCount between 2 and 1000; above 20 only where attempts are budgeted apart from receives": func(s stackTemplate) error {
		dead, _ := s.dead()
		_, q := s.main()
		n := number(at(q.Properties, "RedrivePolicy", "maxReceiveCount"))
		return errors.Join(check(dead != "", "the main queue has no dead-letter queue"),
			check(n >= 2 && n <= 1000, "maxReceiveCount is %v", n),
			check(n <= 20 || process.Budget > 0 && process.Budget <= 20, "attempts are not budgeted apart")) // package process budgets them
	},
	"dead-letter queue: MessageRetentionPeriod is 1209600 and not below the main queue's": func(s stackTemplate) error {
		_, dead := s.dead()
		_, q := s.main()
		n := number(dead.Properties["MessageRetentionPeriod"])
		return check(n == 1209600 && n >= number(q.Properties["MessageRetentionPeriod"]), "it keeps messages for %v s", n)
	},
	"any function EventInvokeConfig / DestinationConfig: no FIFO queue as OnFailure": func(s stackTemplate) error {
		fifo := []string{}
		for name, q := range s.of(aQueue) {
			if q.Properties["FifoQueue"] == true {
				fifo = append(fifo, strconv.Quote(name))
			}
		}
		for name, r := range s.Resources {
			target := text(at(r.Properties, "DestinationConfig", "OnFailure"))
			for _, q := range fifo {
				if strings.Contains(target, q) {
					return fmt.Errorf("%s sends its failures to a FIFO queue", name)
				}
			}
		}
		return nil
	},
	"main queue: ContentBasedDeduplication is not relied on: an explicit deduplication id is sent (see B35)": func(s stackTemplate) error {
		_, q := s.main()
		return check(q.Properties["ContentBasedDeduplication"] != true, "it deduplicates by content")
	},
	"main queue + processor: VisibilityTimeout >= 6 x processor Timeout": func(s stackTemplate) error {
		_, q := s.main()
		visible, timeout := number(q.Properties["VisibilityTimeout"]), number(s.function("Processor").Properties["Timeout"])
		return check(timeout > 0 && visible >= 6*timeout, "%v s for a time-out of %v s", visible, timeout)
	},
	"receiver: Timeout <= 29": func(s stackTemplate) error {
		timeout := number(s.function("Receiver").Properties["Timeout"])
		return check(timeout > 0 && timeout <= 29, "it is %v s", timeout)
	},
	"processor: claim lease (configuration value) is longer than Timeout and shorter than VisibilityTimeout x maxReceiveCount": func(s stackTemplate) error {
		_, q := s.main()
		timeout := number(s.function("Processor").Properties["Timeout"])
		lease := (schema.ProcessorTimeout + process.DefaultTiming().Lease).Seconds()
		most := number(q.Properties["VisibilityTimeout"]) * number(at(q.Properties, "RedrivePolicy", "maxReceiveCount"))
		return check(timeout > 0 && lease > timeout && lease < most, "the lease is %v s, the time-out %v s, all visibility %v s", lease, timeout, most)
	},
	"event source mapping: ScalingConfig.MaximumConcurrency absent or 2..1000": func(s stackTemplate) error {
		return s.each(aMapping, func(m resource) bool {
			most := at(m.Properties, "ScalingConfig", "MaximumConcurrency")
			return none(most) || number(most) >= 2 && number(most) <= 1000
		})
	},
	"processor: ReservedConcurrentExecutions absent, or >= MaximumConcurrency and >= 2": func(s stackTemplate) error {
		reserved := s.function("Processor").Properties["ReservedConcurrentExecutions"]
		most := at(s.mapping().Properties, "ScalingConfig", "MaximumConcurrency")
		return check(none(reserved) || number(reserved) >= max(2, number(most)), "%v are reserved for %v", reserved, most)
	},
	"receiver: ReservedConcurrentExecutions absent or >= 2": func(s stackTemplate) error {
		reserved := s.function("Receiver").Properties["ReservedConcurrentExecutions"]
		return check(none(reserved) || number(reserved) >= 2, "%v are reserved", reserved)
	},
	"event source mapping: FunctionResponseTypes contains ReportBatchItemFailures": func(s stackTemplate) error {
		return s.each(aMapping, func(m resource) bool {
			return strings.Contains(text(m.Properties["FunctionResponseTypes"]), `"ReportBatchItemFailures"`)
		})
	},
	"event source mapping: BatchSize <= 10": func(s stackTemplate) error {
		return s.each(aMapping, func(m resource) bool { return number(m.Properties["BatchSize"]) <= 10 })
	},
	"event source mapping: MaximumBatchingWindowInSeconds absent or 0": func(s stackTemplate) error {
		return s.each(aMapping, func(m resource) bool { return number(m.Properties["MaximumBatchingWindowInSeconds"]) == 0 })
	},
	"an alarm: MetricName ApproximateNumberOfMessagesVisible on the dead-letter queue, Statistic Maximum, Threshold 1 (>=) or 0 (>), EvaluationPeriods 1": func(s stackTemplate) error {
		dead, _ := s.dead()
		for _, a := range s.alarmsOn(`"ApproximateNumberOfMessagesVisible"`, strconv.Quote(dead), `"Maximum"`) {
			p := a.Properties
			first := p["ComparisonOperator"] == "GreaterThanOrEqualToThreshold" && number(p["Threshold"]) == 1 ||
				p["ComparisonOperator"] == "GreaterThanThreshold" && p["Threshold"] != nil && number(p["Threshold"]) == 0
			if first && number(p["EvaluationPeriods"]) == 1 {
				return nil
			}
		}
		return errors.New("no alarm rings at the first dead letter")
	},
	"every queue alarm: TreatMissingData is notBreaching": func(s stackTemplate) error {
		alarms := s.alarmsOn(`"AWS/SQS"`)
		problems := []error{check(len(alarms) > 0, "no alarm is about a queue")}
		for _, a := range alarms {
			problems = append(problems, check(a.Properties["TreatMissingData"] == "notBreaching", "%v", a.Properties["AlarmName"]))
		}
		return errors.Join(problems...)
	},
	"every alarm: AlarmActions not empty when a topic is configured": func(s stackTemplate) error {
		return s.each(anAlarm, func(a resource) bool {
			actions, _ := a.Properties["AlarmActions"].([]any)
			return len(actions) > 0 || len(s.of("AWS::SNS::Topic")) == 0
		})
	},
	"no alarm: MetricName NumberOfMessagesSent on the dead-letter queue": func(s stackTemplate) error {
		dead, _ := s.dead()
		return check(len(s.alarmsOn(`"NumberOfMessagesSent"`, strconv.Quote(dead))) == 0, "there is one")
	},
	"an alarm: ApproximateAgeOfOldestMessage on the main queue": func(s stackTemplate) error {
		// A queue with a name of its own may be referred to by it.
		name, q := s.main()
		named, _ := q.Properties["QueueName"].(string)
		found := len(s.alarmsOn(`"ApproximateAgeOfOldestMessage"`, strconv.Quote(name))) > 0 ||
			named != "" && len(s.alarmsOn(`"ApproximateAgeOfOldestMessage"`, named)) > 0
		return check(found, "there is none")
	},
	"an alarm: receiver errors (5xx)": func(s stackTemplate) error {
		return check(len(s.alarmsOn(`"Failed"`))+len(s.alarmsOn(`"5xx"`)) > 0, "there is none")
	},
	"an alarm: signature failures": func(s stackTemplate) error {
		return check(len(s.alarmsOn(`"RefusedSignature"`)) > 0, "there is none")
	},
	"an alarm or documented check: no event received for a long time (see B63)": func(s stackTemplate) error {
		if s.stage != "prod" {
			return nil // a stage without steady traffic has the documented switch -c silence=HOURS
		}
		for _, a := range s.alarmsOn(`"Received"`) {
			if strings.HasPrefix(fmt.Sprint(a.Properties["ComparisonOperator"]), "LessThan") {
				return nil
			}
		}
		return errors.New("there is none")
	},
	"tables and payload store, production: DeletionPolicy and UpdateReplacePolicy Retain; point-in-time recovery on": func(s stackTemplate) error {
		if s.stage != "prod" {
			return nil
		}
		return s.each(aTable, func(r resource) bool {
			recovery := strings.Contains(text(r.Properties["Replicas"]), `"PointInTimeRecoveryEnabled":true`)
			return r.DeletionPolicy == "Retain" && r.UpdateReplacePolicy == "Retain" && recovery
		})
	},
	"throw-away stage: may be Delete by an explicit option": func(stackTemplate) error { return nil }, // an allowance
	"tables: no hard-coded physical name (or one that includes the stage)": func(s stackTemplate) error {
		return s.each(aTable, func(r resource) bool {
			name := r.Properties["TableName"]
			return none(name) || strings.Contains(text(name), s.stage)
		})
	},
	"idempotency table: TimeToLiveSpecification.Enabled and AttributeName equals the attribute in the stored record": func(s stackTemplate) error {
		name, ledger := s.one(aTable, "Ledger")
		ttl := at(ledger.Properties, "TimeToLiveSpecification")
		return check(at(ttl, "Enabled") == true && at(ttl, "AttributeName") == schema.DeleteAfterS, "%q has %s", name, text(ttl))
	},
}

// synthesised are the checks that need the CDK, and the tests that make them where it can run.
var synthesised = map[string]string{
	"each layout: synthesis exits 0": "infra/pipeline's TestTwoStagesFitInOneApp, TestWhatIsKeptMayStandInAStackOfItsOwn and TestAnExistingQueueMayBeUsed",
	"twice: identical templates":     "infra/pipeline's TestSameSettingsGiveTheSameTemplate",
}

// recordCheck is the one check that is about a stored record.
const recordCheck = "that attribute: Number, seconds since 1970, between now+3 days and now+400 days"

// checkTemplate runs a case's checks on the committed template of every stage. What it does not know it says.
func checkTemplate(t *testing.T, file *caseFile, r *result) {
	var checks []struct{ Resource, Record, Run, Assert string }
	if err := json.Unmarshal(file.Expect["checks"], &checks); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("read the checks: %v", err))
		return
	}
	stacks, err := readTemplates()
	if err != nil {
		r.problems = append(r.problems, err.Error())
		return
	}
	var unknown, others []string
	for _, c := range checks {
		name := c.Resource + c.Record + c.Run + ": " + c.Assert
		if name == recordCheck {
			if err := storedExpiry(t, file); err != nil {
				r.problems = append(r.problems, name+": "+err.Error())
			}
			continue
		}
		f := templateChecks[name]
		if test := synthesised[name]; test != "" {
			others = append(others, test)
			continue
		}
		if f == nil {
			unknown = append(unknown, name)
			continue
		}
		for _, s := range stacks {
			if err := f(s); err != nil {
				r.problems = append(r.problems, fmt.Sprintf("%s, stage %s: %v", name, s.stage, err))
			}
		}
	}
	if len(others) > 0 {
		r.skipped = "it needs the CDK: " + strings.Join(others, "; ") + " look at it"
	}
	if len(unknown) > 0 {
		r.skipped = "no check here for " + strings.Join(unknown, "; ")
	}
}

// storedExpiry runs an event and looks at the attribute that lets its entry expire, as DynamoDB has it.
func storedExpiry(t *testing.T, file *caseFile) (problem error) {
	synctest.Test(t, func(t *testing.T) {
		v := variant{file: file}
		v.Now = 1790000000
		w, err := newWorld(t.Context(), v)
		if err != nil {
			problem = err
			return
		}
		defer w.close()
		raw := json.RawMessage(`{"id":"evt_1","object":"event","type":"customer.updated","created":1790000000,"livemode":false,` +
			`"data":{"object":{"id":"cus_1","object":"customer"}}}`)
		if problem = w.processBatch("b", []map[string]json.RawMessage{{"messageId": json.RawMessage(`"m1"`),
			"attributes": json.RawMessage(`{"MessageGroupId":"cus_1"}`), "event": raw}}, step{}); problem != nil {
			return
		}
		out, err := w.db.GetItem(w.ctx, &dynamodb.GetItemInput{TableName: &w.names.LedgerTable,
			Key: map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: "stripe#-#evt_1"}}})
		if err != nil {
			problem = err
			return
		}
		n, ok := out.Item[schema.DeleteAfterS].(*types.AttributeValueMemberN)
		if !ok {
			problem = fmt.Errorf("it is a %T", out.Item[schema.DeleteAfterS])
			return
		}
		seconds, err := strconv.ParseInt(n.Value, 10, 64)
		if left := time.Until(time.Unix(seconds, 0)); err != nil || left < 3*24*time.Hour || left > 400*24*time.Hour {
			problem = fmt.Errorf("it is %s, in %v", n.Value, left)
		}
	})
	return problem
}
