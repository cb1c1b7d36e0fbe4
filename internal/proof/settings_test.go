package proof

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"backstop/infra/template"
	"backstop/internal/schema"
)

// localLambdaIsMadeAsTheTemplateSays asks the laptop's Lambda through AWS's own client.
func localLambdaIsMadeAsTheTemplateSays(t *testing.T, d *deployment) {
	client := lambda.NewFromConfig(d.AWS)
	for _, name := range template.FunctionNames {
		want, err := d.stack.Function(name)
		if err != nil {
			t.Fatal(err)
		}
		made, err := client.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(*made.Timeout) * time.Second; got == 0 || got != want.Timeout {
			t.Errorf("the %s may run for %s on a laptop, for %s in the template", name, got, want.Timeout)
		}
	}
	want, err := d.stack.Mapping()
	if err != nil {
		t.Fatal(err)
	}
	mappings, err := client.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{})
	if err != nil || len(mappings.EventSourceMappings) != 1 {
		t.Fatalf("the laptop has the mappings %+v, %v", mappings, err)
	}
	got := mappings.EventSourceMappings[0]
	if int(*got.BatchSize) != want.BatchSize || want.BatchSize != schema.BatchSize {
		t.Errorf("a batch has %d on a laptop, %d in the template", *got.BatchSize, want.BatchSize)
	}
	if answers := len(got.FunctionResponseTypes) == 1 && got.FunctionResponseTypes[0] == "ReportBatchItemFailures"; answers != want.ReportBatchItemFailures {
		t.Errorf("the laptop's mapping takes answers %v", got.FunctionResponseTypes)
	}
	if *got.EventSourceArn != d.arns[template.Queue] || want.Source != template.Queue {
		t.Errorf("the mapping reads %s on a laptop, %s in the template", *got.EventSourceArn, want.Source)
	}
	if !strings.HasSuffix(*got.FunctionArn, ":"+template.Processor) || want.Target != template.ProcessorFunction {
		t.Errorf("the mapping starts %s on a laptop, %s in the template", *got.FunctionArn, want.Target)
	}
}
