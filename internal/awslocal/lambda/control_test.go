package lambda_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"backstop/internal/awslocal/lambda"
)

// control serves one mapping and one function and returns a real client of it.
func control(t *testing.T) (*awslambda.Client, *lambda.Poller) {
	t.Helper()
	f := lambda.Functions{"processor": func(_ context.Context, payload []byte) ([]byte, error) {
		if string(payload) == `"fail"` {
			return nil, errors.New("it broke")
		}
		return payload, nil
	}}
	poller, err := lambda.NewPoller(lambda.PollerOptions{
		SQS: &fakeSQS{}, Invoker: f, Function: "processor", QueueURL: "http://q/000000000000/events.fifo",
		QueueARN: "arn:aws:sqs:us-east-1:000000000000:events.fifo", MaximumConcurrency: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(lambda.NewControl(lambda.ControlOptions{
		Invoker: f, Pollers: []*lambda.Poller{poller},
		Functions: []lambda.Function{{Name: "processor", MemoryMB: 512, Timeout: 30e9, Env: map[string]string{"TABLE": "ledger"}}},
	}))
	t.Cleanup(server.Close)
	return awslambda.New(awslambda.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}), poller
}

func TestMappingIsFoundPausedAndResumed(t *testing.T) {
	t.Parallel()
	client, poller := control(t)
	list, err := client.ListEventSourceMappings(t.Context(), &awslambda.ListEventSourceMappingsInput{
		FunctionName: aws.String("processor"), EventSourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:events.fifo"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.EventSourceMappings) != 1 {
		t.Fatalf("%d mappings", len(list.EventSourceMappings))
	}
	m := list.EventSourceMappings[0]
	if aws.ToString(m.UUID) != poller.UUID() || aws.ToString(m.State) != "Enabled" || aws.ToInt32(m.BatchSize) != 10 ||
		aws.ToInt32(m.ScalingConfig.MaximumConcurrency) != 50 || m.FunctionResponseTypes[0] != types.FunctionResponseTypeReportBatchItemFailures ||
		aws.ToString(m.FunctionArn) != "arn:aws:lambda:us-east-1:000000000000:function:processor" || m.LastModified == nil {
		t.Errorf("mapping = %+v", m)
	}
	for _, c := range []struct {
		enabled bool
		state   string
	}{{false, "Disabled"}, {true, "Enabled"}} {
		out, err := client.UpdateEventSourceMapping(t.Context(), &awslambda.UpdateEventSourceMappingInput{UUID: m.UUID, Enabled: &c.enabled})
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.GetEventSourceMapping(t.Context(), &awslambda.GetEventSourceMappingInput{UUID: m.UUID})
		if err != nil {
			t.Fatal(err)
		}
		if aws.ToString(out.State) != c.state || aws.ToString(got.State) != c.state || poller.State() != c.state {
			t.Errorf("after Enabled=%v: %s, %s, %s", c.enabled, *out.State, *got.State, poller.State())
		}
	}
	empty, err := client.ListEventSourceMappings(t.Context(), &awslambda.ListEventSourceMappingsInput{FunctionName: aws.String("other")})
	if err != nil || len(empty.EventSourceMappings) != 0 {
		t.Errorf("mappings of another function = %v, %v", empty.EventSourceMappings, err)
	}
}

func TestControlRefusesAsLambdaDoes(t *testing.T) {
	t.Parallel()
	client, poller := control(t)
	code := func(_ any, err error) string {
		var e smithy.APIError
		if errors.As(err, &e) {
			return e.ErrorCode()
		}
		return "none"
	}
	for name, c := range map[string]struct{ got, want string }{
		"UnknownMapping": {code(client.GetEventSourceMapping(t.Context(), &awslambda.GetEventSourceMappingInput{UUID: aws.String("no")})), "ResourceNotFoundException"},
		"OtherChange":    {code(client.UpdateEventSourceMapping(t.Context(), &awslambda.UpdateEventSourceMappingInput{UUID: aws.String(poller.UUID()), BatchSize: aws.Int32(5)})), "InvalidParameterValueException"},
		"OtherFunction":  {code(client.UpdateEventSourceMapping(t.Context(), &awslambda.UpdateEventSourceMappingInput{UUID: aws.String(poller.UUID()), FunctionName: aws.String("x")})), "InvalidParameterValueException"},
		"UnknownName":    {code(client.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("no")})), "ResourceNotFoundException"},
		"Asynchronous":   {code(client.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("processor"), InvocationType: types.InvocationTypeEvent})), "InvalidParameterValueException"},
		"NotJSON":        {code(client.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("processor"), Payload: []byte("{")})), "InvalidRequestContentException"},
		"TooLarge":       {code(client.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("processor"), Payload: make([]byte, 6291457)})), "RequestEntityTooLargeException"},
		"NotImplemented": {code(client.DeleteFunction(t.Context(), &awslambda.DeleteFunctionInput{FunctionName: aws.String("processor")})), "UnknownOperationException"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

func TestInvokeReturnsTheAnswerOrTheFunctionError(t *testing.T) {
	t.Parallel()
	client, _ := control(t)
	out, err := client.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("processor"), Payload: []byte(`{"a":1}`)})
	if err != nil || string(out.Payload) != `{"a":1}` || out.FunctionError != nil || out.StatusCode != http.StatusOK {
		t.Errorf("success = %+v, %v", out, err)
	}
	out, err = client.Invoke(t.Context(), &awslambda.InvokeInput{
		FunctionName: aws.String("arn:aws:lambda:us-east-1:000000000000:function:processor"), Payload: []byte(`"fail"`),
	})
	if err != nil || aws.ToString(out.FunctionError) != "Unhandled" || string(out.Payload) != `{"errorType":"errorString","errorMessage":"it broke"}` {
		t.Errorf("function error = %+v, %v", out, err)
	}
	config, err := client.GetFunctionConfiguration(t.Context(), &awslambda.GetFunctionConfigurationInput{FunctionName: aws.String("processor")})
	if err != nil || aws.ToInt32(config.Timeout) != 30 || aws.ToInt32(config.MemorySize) != 512 || config.Environment.Variables["TABLE"] != "ledger" {
		t.Errorf("configuration = %+v, %v", config, err)
	}
}
