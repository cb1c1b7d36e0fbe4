package pipeline

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// The CDK takes pointers; these keep the constructs readable.

func text(s string) *string { return jsii.String(s) }

func number[N int | int64 | float64](n N) *float64 { return jsii.Number(float64(n)) }

func yes() *bool { return jsii.Bool(true) }

func no() *bool { return jsii.Bool(false) }

func texts(list ...string) *[]*string { return jsii.Strings(list...) }

func seconds(d time.Duration) awscdk.Duration { return awscdk.Duration_Seconds(number(d.Seconds())) }

// removal says what becomes of something stateful when the stack is deleted.
func (s Settings) removal() awscdk.RemovalPolicy {
	if s.Retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

// retention returns CloudWatch Logs' name of a number of days, or nothing for one it does not take.
func retention(days int) awslogs.RetentionDays {
	return map[int]awslogs.RetentionDays{
		7:   awslogs.RetentionDays_ONE_WEEK,
		14:  awslogs.RetentionDays_TWO_WEEKS,
		30:  awslogs.RetentionDays_ONE_MONTH,
		60:  awslogs.RetentionDays_TWO_MONTHS,
		90:  awslogs.RetentionDays_THREE_MONTHS,
		180: awslogs.RetentionDays_SIX_MONTHS,
		365: awslogs.RetentionDays_ONE_YEAR,
	}[days]
}
