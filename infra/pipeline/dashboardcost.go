package pipeline

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
)

// List prices in us-east-1 as published in 2025, in dollars, for the dashboard's estimate only (the pricing pages of
// Amazon DynamoDB, API Gateway, SQS, AWS Lambda and Amazon CloudWatch). `backstop cost` has the whole calculation.
const (
	writeUnit   = 0.625 / 1e6  // on demand, standard class
	readUnit    = 0.125 / 1e6  // on demand, standard class
	apiRequest  = 1.00 / 1e6   // HTTP API, per 512 KB
	sqsRequest  = 0.50 / 1e6   // FIFO, per 64 KB
	invocation  = 0.20 / 1e6   // Lambda
	gigabyteSec = 0.0000133334 // Lambda on arm64
	logGigabyte = 0.50         // CloudWatch Logs, standard class, taken in
)

const costNote = "What varies with traffic, estimated from list prices in us-east-1. Alarms, metrics and secrets come on top, each month the same."

func costRow(s Settings, p parts) []awscloudwatch.IWidget {
	const hour = time.Hour
	ledger, billing := p.tables.ledger.TableName(), p.tables.billing.TableName()
	tables := math(fmt.Sprintf("(FILL(lw, 0) + FILL(bw, 0)) * %s + (FILL(lr, 0) + FILL(br, 0)) * %s", decimal(writeUnit), decimal(readUnit)),
		hour, "DynamoDB", map[string]awscloudwatch.IMetric{
			"lw": p.table(ledger, "ConsumedWriteCapacityUnits", hour, unlabelled),
			"bw": p.table(billing, "ConsumedWriteCapacityUnits", hour, unlabelled),
			"lr": p.table(ledger, "ConsumedReadCapacityUnits", hour, unlabelled),
			"br": p.table(billing, "ConsumedReadCapacityUnits", hour, unlabelled),
		})
	requests := math("FILL(requests, 0) * "+decimal(apiRequest), hour, "API", map[string]awscloudwatch.IMetric{
		"requests": p.metrics.api(p.api, "Count", sum, hour, unlabelled),
	})
	main := p.queues.main.QueueName()
	messages := math("(FILL(sent, 0) + FILL(received, 0) + FILL(empty, 0) + FILL(deleted, 0)) * "+decimal(sqsRequest), hour,
		"SQS, at most", map[string]awscloudwatch.IMetric{
			"sent":     p.queue(main, "NumberOfMessagesSent", sum, hour, unlabelled),
			"received": p.queue(main, "NumberOfMessagesReceived", sum, hour, unlabelled),
			"empty":    p.queue(main, "NumberOfEmptyReceives", sum, hour, unlabelled),
			"deleted":  p.queue(main, "NumberOfMessagesDeleted", sum, hour, unlabelled),
		})
	lambda := func(label string, f function, size Function) awscloudwatch.IMetric {
		perMillisecond := gigabyteSec * float64(size.MemoryMB) / 1024 / 1000
		id := label // names in an expression are unique within a graph
		return math(fmt.Sprintf("FILL(%[1]srun, 0) * %[2]s + FILL(%[1]sms, 0) * %[3]s", id, decimal(invocation), decimal(perMillisecond)), hour, label,
			map[string]awscloudwatch.IMetric{
				id + "run": p.lambda(f, "Invocations", sum, hour, unlabelled),
				id + "ms":  p.lambda(f, "Duration", sum, hour, unlabelled),
			})
	}
	logBytes := func(label string, f function) awscloudwatch.IMetric {
		id := label + "bytes"
		return math(fmt.Sprintf("FILL(%s, 0) * %s", id, decimal(logGigabyte/(1<<30))), hour, label, map[string]awscloudwatch.IMetric{
			id: metric("AWS/Logs", "IncomingBytes", map[string]*string{"LogGroupName": f.log.LogGroupName()}, sum, hour, unlabelled),
		})
	}
	dollars := func(title string, left ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
			Title: text(title), Width: number(third), Height: number(graphHeight),
			Left:      &left,
			Stacked:   yes(),
			LeftYAxis: &awscloudwatch.YAxisProps{Label: text("US dollars"), Min: number(0), ShowUnits: no()},
			Period:    seconds(hour),
		})
	}
	f := p.functions
	return []awscloudwatch.IWidget{
		dollars("Tables, API and queue: dollars an hour", tables, requests, messages),
		dollars("Functions: dollars an hour",
			lambda("receiver", f.receiver, s.Receiver), lambda("processor", f.processor, s.Processor),
			lambda("reconciler", f.reconciler, s.Reconciler)),
		dollars("Log lines: dollars an hour",
			logBytes("receiver", f.receiver), logBytes("processor", f.processor), logBytes("reconciler", f.reconciler)),
	}
}

// decimal writes a price as CloudWatch's expressions read it: without an exponent.
func decimal(price float64) string { return strconv.FormatFloat(price, 'f', 15, 64) }
