package cases

import (
	"maps"
	"slices"
	"testing"
)

// set changes a property of every resource of a type, or takes it away.
func set(kind, property string, value any) func(stackTemplate) {
	return func(s stackTemplate) {
		for name, r := range s.of(kind) {
			if value == nil {
				delete(r.Properties, property)
			} else {
				r.Properties[property] = value
			}
			s.Resources[name] = r
		}
	}
}

func TestTemplateChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	keep := func(policy string) func(stackTemplate) {
		return func(s stackTemplate) {
			for name, r := range s.of(aTable) {
				r.DeletionPolicy = policy
				s.Resources[name] = r
			}
		}
	}
	faults := map[string]func(stackTemplate){
		"main queue: FifoQueue is true":                                                                                                                            set(aQueue, "FifoQueue", nil),
		"dead-letter queue: FifoQueue is true":                                                                                                                     set(aQueue, "FifoQueue", nil),
		"any queue with FifoQueue: QueueName absent, or ends with .fifo":                                                                                           set(aQueue, "QueueName", "events"),
		"any queue: FifoQueue is never false":                                                                                                                      set(aQueue, "FifoQueue", false),
		"main queue + processor: VisibilityTimeout >= 6 x processor Timeout":                                                                                       set(aQueue, "VisibilityTimeout", 179.0),
		"receiver: Timeout <= 29":                                                                                                                                  set(aFunction, "Timeout", 30.0),
		"event source mapping: ScalingConfig.MaximumConcurrency absent or 2..1000":                                                                                 set(aMapping, "ScalingConfig", map[string]any{"MaximumConcurrency": 1.0}),
		"processor: ReservedConcurrentExecutions absent, or >= MaximumConcurrency and >= 2":                                                                        set(aFunction, "ReservedConcurrentExecutions", 1.0),
		"receiver: ReservedConcurrentExecutions absent or >= 2":                                                                                                    set(aFunction, "ReservedConcurrentExecutions", 1.0),
		"event source mapping: FunctionResponseTypes contains ReportBatchItemFailures":                                                                             set(aMapping, "FunctionResponseTypes", nil),
		"event source mapping: BatchSize <= 10":                                                                                                                    set(aMapping, "BatchSize", 11.0),
		"event source mapping: MaximumBatchingWindowInSeconds absent or 0":                                                                                         set(aMapping, "MaximumBatchingWindowInSeconds", 1.0),
		"every queue alarm: TreatMissingData is notBreaching":                                                                                                      set(anAlarm, "TreatMissingData", "missing"),
		"every alarm: AlarmActions not empty when a topic is configured":                                                                                           set(anAlarm, "AlarmActions", []any{}),
		"an alarm: ApproximateAgeOfOldestMessage on the main queue":                                                                                                set(anAlarm, "MetricName", "Other"),
		"tables: no hard-coded physical name (or one that includes the stage)":                                                                                     set(aTable, "TableName", "events"),
		"dead-letter queue: MessageRetentionPeriod is 1209600 and not below the main queue's":                                                                      set(aQueue, "MessageRetentionPeriod", 345600.0),
		"main queue: ContentBasedDeduplication is not relied on: an explicit deduplication id is sent (see B35)":                                                   set(aQueue, "ContentBasedDeduplication", true),
		"idempotency table: TimeToLiveSpecification.Enabled and AttributeName equals the attribute in the stored record":                                           set(aTable, "TimeToLiveSpecification", nil),
		"tables and payload store, production: DeletionPolicy and UpdateReplacePolicy Retain; point-in-time recovery on":                                           keep("Delete"),
		"an alarm: MetricName ApproximateNumberOfMessagesVisible on the dead-letter queue, Statistic Maximum, Threshold 1 (>=) or 0 (>), EvaluationPeriods 1":      set(anAlarm, "EvaluationPeriods", 2.0),
		"main queue: RedrivePolicy names the dead-letter queue; maxReceiveCount between 2 and 1000; above 20 only where attempts are budgeted apart from receives": set(aQueue, "RedrivePolicy", nil),
		"processor: claim lease (configuration value) is longer than Timeout and shorter than VisibilityTimeout x maxReceiveCount":                                 set(aFunction, "Timeout", 36.0),
		"an alarm: receiver errors (5xx)": func(s stackTemplate) {
			maps.DeleteFunc(s.Resources, func(_ string, r resource) bool { return r.Type == anAlarm })
		},
		"an alarm: signature failures":                                              set(anAlarm, "Metrics", nil),
		"an alarm or documented check: no event received for a long time (see B63)": set(anAlarm, "ComparisonOperator", "GreaterThanThreshold"),
		"no alarm: MetricName NumberOfMessagesSent on the dead-letter queue": func(s stackTemplate) {
			dead, _ := s.dead()
			s.Resources["Wrong"] = resource{Type: anAlarm, Properties: map[string]any{"MetricName": "NumberOfMessagesSent", "Dimensions": dead}}
		},
		"any function EventInvokeConfig / DestinationConfig: no FIFO queue as OnFailure": func(s stackTemplate) {
			dead, _ := s.dead()
			s.Resources["Wrong"] = resource{Type: "AWS::Lambda::EventInvokeConfig", Properties: map[string]any{
				"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": dead}}}}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(templateChecks)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stacks, err := readTemplates()
			if err != nil {
				t.Fatal(err)
			}
			harm := faults[name]
			if harm == nil {
				if name != "throw-away stage: may be Delete by an explicit option" {
					t.Fatal("nothing here breaks it")
				}
				return
			}
			for _, s := range stacks {
				if s.stage != "prod" {
					continue
				}
				if err := templateChecks[name](s); err != nil {
					t.Fatalf("before the harm: %v", err)
				}
				harm(s)
				if templateChecks[name](s) == nil {
					t.Error("the check does not see it")
				}
			}
		})
	}
}
