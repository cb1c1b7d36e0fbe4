// Package eventsource finds and switches what feeds the processor: the event source mapping between the queue and the
// function. It is the operators' side of AWS Lambda; no function uses it.
package eventsource

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"backstop/internal/config"
)

// States of a mapping (AWS Lambda API Reference, "GetEventSourceMapping"): those ending in -ing pass by themselves.
const (
	Enabled  = "Enabled"
	Disabled = "Disabled"
)

// Mapping is the event source mapping as it is.
type Mapping struct {
	ID             string `json:"id"`
	State          string `json:"state"`
	Function       string `json:"function"` // ARN
	BatchSize      int    `json:"batch_size"`
	ReportsItems   bool   `json:"reports_items"` // ReportBatchItemFailures
	MaxConcurrency int    `json:"max_concurrency,omitempty"`
	LastResult     string `json:"last_result,omitempty"`
}

// Client is AWS Lambda.
type Client struct{ lambda *lambda.Client }

// New returns the client.
func New(client *lambda.Client) *Client { return &Client{client} }

// Find returns the one mapping that reads a queue, by the queue's ARN.
func (c *Client) Find(ctx context.Context, queueARN string) (Mapping, error) {
	out, err := c.lambda.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{EventSourceArn: &queueARN})
	if err != nil {
		return Mapping{}, fmt.Errorf("find the event source mapping: %w", err)
	}
	if n := len(out.EventSourceMappings); n != 1 {
		return Mapping{}, fmt.Errorf("find the event source mapping: %d mappings read %s, want one", n, queueARN)
	}
	m := out.EventSourceMappings[0]
	found := Mapping{
		ID: aws.ToString(m.UUID), State: aws.ToString(m.State), Function: aws.ToString(m.FunctionArn),
		BatchSize: int(aws.ToInt32(m.BatchSize)), LastResult: aws.ToString(m.LastProcessingResult),
	}
	for _, kind := range m.FunctionResponseTypes {
		found.ReportsItems = found.ReportsItems || kind == "ReportBatchItemFailures"
	}
	if m.ScalingConfig != nil {
		found.MaxConcurrency = int(aws.ToInt32(m.ScalingConfig.MaximumConcurrency))
	}
	return found, nil
}

// poll is how often a mapping that is on its way is looked at.
const poll = time.Second

// Switch enables or disables a mapping and waits until it is so, or ctx ends. Disabling lets batches under way finish.
func (c *Client) Switch(ctx context.Context, id string, on bool) error {
	want := Disabled
	if on {
		want = Enabled
	}
	out, err := c.lambda.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: &id, Enabled: &on})
	if err != nil {
		return fmt.Errorf("switch the event source mapping: %w", err)
	}
	state := aws.ToString(out.State)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for state != want {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the event source mapping is %s: it is still %s: %w", want, state, ctx.Err())
		case <-ticker.C:
		}
		got, err := c.lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &id})
		if err != nil {
			return fmt.Errorf("look at the event source mapping: %w", err)
		}
		state = aws.ToString(got.State)
	}
	return nil
}

// Environment gathers the variables of a stage's functions: together they name all the resources a command needs.
func (c *Client) Environment(ctx context.Context, stage string) (map[string]string, error) {
	variables := make(map[string]string)
	pages := lambda.NewListFunctionsPaginator(c.lambda, &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the functions: %w", err)
		}
		for _, f := range page.Functions {
			if f.Environment != nil && f.Environment.Variables[config.Stage] == stage && f.Environment.Variables[config.LedgerTable] != "" {
				maps.Copy(variables, f.Environment.Variables)
			}
		}
	}
	if len(variables) == 0 {
		return nil, fmt.Errorf("no function of a stage %q is in this account and region", stage)
	}
	return variables, nil
}
