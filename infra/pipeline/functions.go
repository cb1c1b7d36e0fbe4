package pipeline

import (
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"

	"backstop/internal/config"
	"backstop/internal/schema"
)

// function is one deployed binary with its role and its log.
type function struct {
	fn   awslambda.Function
	role awsiam.Role
	log  awslogs.LogGroup
}

// functions are the three.
type functions struct {
	receiver, processor, reconciler function
	mapping                         awslambda.EventSourceMapping // queue to processor
}

// newFunctions makes the functions, gives each its environment and its rights, and connects the processor to the
// queue. bundles is the folder that holds <name>/bootstrap for each.
func newFunctions(scope constructs.Construct, s Settings, bundles string, t tables, q queues, k secrets) functions {
	ledger := t.ledger.TableName()
	queue, dead := q.main.QueueUrl(), q.dead.QueueUrl()
	f := functions{
		receiver: newFunction(scope, s, bundles, "receiver", s.Receiver, map[string]*string{
			config.LedgerTable:     ledger,
			config.QueueURL:        queue,
			config.SigningSecretID: k.signing.Ref(),
		}),
		processor: newFunction(scope, s, bundles, "processor", s.Processor, map[string]*string{
			config.LedgerTable:   ledger,
			config.BillingTable:  t.billing.TableName(),
			config.QueueURL:      queue,
			config.DeadLetterURL: dead,
			config.StripeKeyID:   k.stripeKey.Ref(),
		}),
		reconciler: newFunction(scope, s, bundles, "reconciler", s.Reconciler, map[string]*string{
			config.LedgerTable:   ledger,
			config.ControlTable:  t.control.TableName(),
			config.QueueURL:      queue,
			config.DeadLetterURL: dead,
			config.StripeKeyID:   k.stripeKey.Ref(),
		}),
	}
	f.allow(t, q, k)

	// Lambda calls the reconciler from its own queue of asynchronous invocations. A run repeats anyway, so one that
	// failed or waited is not worth a second try: by then the next one is there.
	f.reconciler.fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: number(0),
		MaxEventAge:   seconds(sweepEvery),
	})

	// Enabled is left out on purpose: `backstop pause` disables the mapping, and a deployment that said "enabled"
	// would resume it behind the operator's back.
	f.mapping = awslambda.NewEventSourceMapping(scope, text("Mapping"), &awslambda.EventSourceMappingProps{
		Target:                  f.processor.fn,
		EventSourceArn:          q.main.QueueArn(),
		BatchSize:               number(schema.BatchSize),
		ReportBatchItemFailures: yes(),
		MaxConcurrency:          number(s.MaxConcurrency),
	})
	return f
}

func newFunction(scope constructs.Construct, s Settings, bundles, name string, size Function, resources map[string]*string) function {
	scope = constructs.NewConstruct(scope, text(title(name)))
	log := awslogs.NewLogGroup(scope, text("Log"), &awslogs.LogGroupProps{
		Retention:     retention(s.LogDays),
		RemovalPolicy: s.removal(),
	})
	// The CDK would give the role AWS's managed policy, which may write to every log group of the account.
	role := awsiam.NewRole(scope, text("Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(text("lambda.amazonaws.com"), nil),
		Description: text("What Backstop's " + name + " may do in " + s.Stage),
	})
	log.GrantWrite(role)

	variables := resources
	for variable, value := range s.environment(name) {
		variables[variable] = text(value)
	}
	tracing := awslambda.Tracing_DISABLED
	if s.Tracing {
		tracing = awslambda.Tracing_ACTIVE
	}
	props := &awslambda.FunctionProps{
		Description:   text("Backstop " + s.Stage + ": " + purposes[name]),
		Runtime:       awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:  awslambda.Architecture_ARM_64(),
		Handler:       text("bootstrap"),
		Code:          awslambda.Code_FromAsset(text(filepath.Join(bundles, name)), nil),
		MemorySize:    number(size.MemoryMB),
		Timeout:       seconds(size.Timeout),
		Role:          role,
		LogGroup:      log,
		LoggingFormat: awslambda.LoggingFormat_JSON,
		// START, END and REPORT of every invocation cost more to keep than the function's own line.
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
		ApplicationLogLevelV2: awslambda.ApplicationLogLevel_INFO,
		Tracing:               tracing,
		Environment:           &variables,
	}
	if size.Reserved > 0 {
		props.ReservedConcurrentExecutions = number(size.Reserved)
	}
	return function{fn: awslambda.NewFunction(scope, text("Function"), props), role: role, log: log}
}

var purposes = map[string]string{
	"receiver":   "verifies deliveries, records them, rings the queue",
	"processor":  "claims entries, runs the handlers, settles",
	"reconciler": "sweeps, audits against Stripe's list, publishes the counts",
}

func title(name string) string { return string(name[0]-'a'+'A') + name[1:] }
