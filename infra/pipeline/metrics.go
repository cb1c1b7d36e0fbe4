package pipeline

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"backstop/internal/telemetry"
)

// Statistics as CloudWatch names them.
const (
	sum     = "Sum"
	maximum = "Maximum"
	p50     = "p50"
	p99     = "p99"
)

// unlabelled is the label of a metric nobody sees by itself: one an alarm reads, or a part of an expression.
const unlabelled = ""

// metrics makes the metrics that alarms and the dashboard read.
type metrics struct{ stage string }

// own is a metric of the functions.
func (m metrics) own(name, statistic string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric(telemetry.Namespace, name, map[string]*string{"stage": text(m.stage)}, statistic, period, label)
}

func (metrics) lambda(f function, name, statistic string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/Lambda", name, map[string]*string{"FunctionName": f.fn.FunctionName()}, statistic, period, label)
}

func (metrics) queue(queueName *string, name, statistic string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/SQS", name, map[string]*string{"QueueName": queueName}, statistic, period, label)
}

func (metrics) api(a api, name, statistic string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/ApiGateway", name, map[string]*string{"ApiId": a.http.ApiId()}, statistic, period, label)
}

func (metrics) table(tableName *string, name string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/DynamoDB", name, map[string]*string{"TableName": tableName}, sum, period, label)
}

func (metrics) index(tableName *string, index, name string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/DynamoDB", name,
		map[string]*string{"TableName": tableName, "GlobalSecondaryIndexName": text(index)}, sum, period, label)
}

func (metrics) operation(tableName *string, operation, name string, period time.Duration, label string) awscloudwatch.IMetric {
	return metric("AWS/DynamoDB", name,
		map[string]*string{"TableName": tableName, "Operation": text(operation)}, sum, period, label)
}

func metric(namespace, name string, dimensions map[string]*string, statistic string, period time.Duration, label string) awscloudwatch.IMetric {
	props := &awscloudwatch.MetricProps{
		Namespace:     text(namespace),
		MetricName:    text(name),
		DimensionsMap: &dimensions,
		Statistic:     text(statistic),
		Period:        seconds(period),
	}
	if label != unlabelled {
		props.Label = text(label)
	}
	return awscloudwatch.NewMetric(props)
}

// math combines metrics: names in the expression are the keys of using. Each belongs into FILL(name, 0): metrics of rare
// things have no values most of the time, and an expression over a missing value is missing itself, so that an alarm
// on it would never ring.
func math(expression string, period time.Duration, label string, using map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   text(expression),
		Period:       seconds(period),
		Label:        text(label),
		UsingMetrics: &using,
	})
}
