package pipeline

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
)

// How often the reconciler runs.
const (
	sweepEvery = time.Minute      // DESIGN: entries are swept from the age of two minutes
	auditEvery = 15 * time.Minute // younger events may still be on their way
)

// schedules start the reconciler.
type schedules struct {
	dead awssqs.IQueue // runs EventBridge Scheduler could not start
}

// newSchedules makes them, with a role that may start this one function and a standard queue for what could not be
// started (a FIFO queue cannot be the scheduler's dead-letter queue).
func newSchedules(scope constructs.Construct, s Settings, reconciler function) schedules {
	dead := awssqs.NewQueue(scope, text("UnstartedRuns"), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL: yes(),
		// A day: these tell of a broken schedule; nothing is done with them, and the alarm clears by itself.
		RetentionPeriod: awscdk.Duration_Days(number(1)),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	role := awsiam.NewRole(scope, text("SchedulerRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(text("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{
				"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Stack_Of(scope).Account()},
			},
		}),
		Description: text("Starts Backstop's reconciler in " + s.Stage),
	})
	may := func(sid, action string, resource *string) {
		role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Sid: text(sid), Actions: texts(action), Resources: &[]*string{resource},
		}))
	}
	may("StartReconciler", "lambda:InvokeFunction", reconciler.fn.FunctionArn())
	may("KeepUnstartedRuns", "sqs:SendMessage", dead.QueueArn())

	schedule := func(id, task, rate string) {
		made := awsscheduler.NewCfnSchedule(scope, text(id), &awsscheduler.CfnScheduleProps{
			Description:        text("Backstop " + s.Stage + ": " + task),
			ScheduleExpression: text(rate),
			FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: text("OFF")},
			Target: &awsscheduler.CfnSchedule_TargetProperty{
				Arn:              reconciler.fn.FunctionArn(),
				RoleArn:          role.RoleArn(),
				Input:            text(taskInput(task)),
				DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: dead.QueueArn()},
				// No second try: the next run does the same work. 60 s is the least the scheduler takes.
				RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
					MaximumRetryAttempts:     number(0),
					MaximumEventAgeInSeconds: number(60),
				},
			},
		})
		// A run that starts before the role has its policy would land in the dead-letter queue.
		made.Node().AddDependency(role)
	}
	schedule("SweepSchedule", "sweep", "rate(1 minute)")
	if s.Audit {
		schedule("AuditSchedule", "audit", "rate(15 minutes)")
	}
	return schedules{dead: dead}
}

// taskInput is the reconciler's event.
func taskInput(task string) string {
	input, err := json.Marshal(struct {
		Task string `json:"task"`
	}{task})
	if err != nil {
		panic(err) // a struct of one string always marshals
	}
	return string(input)
}
