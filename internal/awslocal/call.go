package awslocal

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"sort"
	"strings"
	"sync"

	"backstop/internal/awslocal/secretsmanager"
)

// Service names, as IAM actions are prefixed with them.
const (
	DynamoDB       = "dynamodb"
	SQS            = "sqs"
	SecretsManager = "secretsmanager"
	Lambda         = "lambda"
)

// Call is one request to the local AWS.
type Call struct {
	// Caller is the access key id the request was signed with, or the
	// Transport's Caller.
	Caller string
	// Service is one of this package's service names, Action the operation,
	// such as UpdateItem.
	Service, Action string
	// Header and Body are the request's own, not to be changed. Amz-Sdk-Request
	// says which attempt of the SDK this is.
	Header http.Header
	Body   []byte

	path            string
	region, account string
	once            sync.Once
	permissions     []Permission
}

// Permission is what an IAM policy must allow for a call to be made.
type Permission struct {
	Action   string // such as dynamodb:UpdateItem
	Resource string // an ARN, or * where the action has no resource
}

// Resource is the name of the first table, queue, secret or function the call
// is about, empty when there is none.
func (c *Call) Resource() string {
	perms := c.Permissions()
	if len(perms) == 0 || perms[0].Resource == "*" {
		return ""
	}
	arn := strings.SplitN(perms[0].Resource, ":", 6)
	name := arn[len(arn)-1]
	switch c.Service {
	case DynamoDB:
		name = strings.TrimPrefix(name, "table/")
		name, _, _ = strings.Cut(name, "/")
	case SecretsManager:
		name = strings.TrimPrefix(name, "secret:")
		name = name[:max(len(name)-7, 0)] // the dash and six characters AWS adds
	case Lambda:
		_, name, _ = strings.Cut(name, ":")
	}
	return name
}

// Permissions are all permissions the call needs, one for each item of a
// transaction: a transaction has no IAM action of its own ("IAM policy
// examples for DynamoDB transactions"). A query of an index needs the index.
func (c *Call) Permissions() []Permission {
	c.once.Do(func() {
		switch c.Service {
		case DynamoDB:
			c.permissions = c.dynamoDBPermissions()
		case SQS:
			c.permissions = c.sqsPermissions()
		case SecretsManager:
			c.permissions = c.secretPermissions()
		case Lambda:
			c.permissions = c.lambdaPermissions()
		}
	})
	return c.permissions
}

func (c *Call) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + c.region + ":" + c.account + ":" + resource
}

func (c *Call) tableARN(table, index string) string {
	arn := table
	if !strings.HasPrefix(table, "arn:") {
		arn = c.arn(DynamoDB, "table/"+table)
	}
	if index != "" {
		arn += "/index/" + index
	}
	return arn
}

func (c *Call) dynamoDBPermissions() []Permission {
	type target struct{ TableName string }
	var in struct {
		TableName, IndexName string
		RequestItems         map[string]json.RawMessage
		TransactItems        []struct{ Put, Update, Delete, ConditionCheck, Get *target }
	}
	if json.Unmarshal(c.Body, &in) != nil {
		return nil // the service refuses it
	}
	var perms []Permission
	add := func(action, table, index string) {
		perms = append(perms, Permission{DynamoDB + ":" + action, c.tableARN(table, index)})
	}
	switch c.Action {
	case "TransactWriteItems", "TransactGetItems":
		for _, item := range in.TransactItems {
			for _, part := range []struct {
				action string
				t      *target
			}{
				{"PutItem", item.Put}, {"UpdateItem", item.Update}, {"DeleteItem", item.Delete},
				{"ConditionCheckItem", item.ConditionCheck}, {"GetItem", item.Get},
			} {
				if part.t != nil {
					add(part.action, part.t.TableName, "")
				}
			}
		}
	case "BatchGetItem", "BatchWriteItem":
		tables := make([]string, 0, len(in.RequestItems))
		for table := range in.RequestItems {
			tables = append(tables, table)
		}
		sort.Strings(tables)
		for _, table := range tables {
			add(c.Action, table, "")
		}
	default:
		if in.TableName == "" {
			return []Permission{{DynamoDB + ":" + c.Action, "*"}}
		}
		add(c.Action, in.TableName, in.IndexName)
	}
	return perms
}

// sqsActions maps the batch operations to the IAM actions they need
// ("Actions, resources, and condition keys for Amazon SQS").
var sqsActions = map[string]string{
	"SendMessageBatch":             "SendMessage",
	"DeleteMessageBatch":           "DeleteMessage",
	"ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
}

func (c *Call) sqsPermissions() []Permission {
	var in struct{ QueueUrl, QueueName, SourceArn string }
	if json.Unmarshal(c.Body, &in) != nil {
		return nil // the service refuses it
	}
	action := c.Action
	if single := sqsActions[action]; single != "" {
		action = single
	}
	resource := "*"
	switch {
	case in.QueueUrl != "":
		resource = c.arn(SQS, path.Base(in.QueueUrl))
	case in.QueueName != "":
		resource = c.arn(SQS, in.QueueName)
	case in.SourceArn != "":
		resource = in.SourceArn
	}
	return []Permission{{SQS + ":" + action, resource}}
}

func (c *Call) secretPermissions() []Permission {
	var in struct{ SecretId, Name string }
	if json.Unmarshal(c.Body, &in) != nil {
		return nil // the service refuses it
	}
	id := in.SecretId
	if id == "" {
		id = in.Name
	}
	resource := "*"
	switch {
	case strings.HasPrefix(id, "arn:"):
		resource = id
	case id != "":
		resource = secretsmanager.ARN(c.region, c.account, id)
	}
	return []Permission{{SecretsManager + ":" + c.Action, resource}}
}

func (c *Call) lambdaPermissions() []Permission {
	resource := "*"
	_, rest, _ := strings.Cut(strings.TrimPrefix(c.path, "/"), "/")
	kind, rest, _ := strings.Cut(rest, "/")
	id, _, _ := strings.Cut(rest, "/")
	if u, err := url.PathUnescape(id); err == nil {
		id = u
	}
	switch {
	case id == "":
	case strings.HasPrefix(id, "arn:"):
		resource = id
	case kind == "functions":
		resource = c.arn(Lambda, "function:"+id)
	case kind == "event-source-mappings":
		resource = c.arn(Lambda, "event-source-mapping:"+id)
	}
	action := c.Action
	if action == "Invoke" {
		action = "InvokeFunction"
	}
	return []Permission{{Lambda + ":" + action, resource}}
}

// classify finds the service and the action of a request.
func classify(r *http.Request) (service, action string) {
	switch prefix, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); prefix {
	case "DynamoDB_20120810", "DynamoDBStreams_20120810":
		return DynamoDB, action
	case "AmazonSQS":
		return SQS, action
	case "secretsmanager":
		return SecretsManager, action
	}
	version, rest, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if version != "2015-03-31" {
		return "", ""
	}
	kind, rest, _ := strings.Cut(rest, "/")
	id, tail, _ := strings.Cut(rest, "/")
	switch {
	case kind == "event-source-mappings" && id == "" && r.Method == http.MethodGet:
		action = "ListEventSourceMappings"
	case kind == "event-source-mappings" && tail == "" && r.Method == http.MethodGet:
		action = "GetEventSourceMapping"
	case kind == "event-source-mappings" && tail == "" && r.Method == http.MethodPut:
		action = "UpdateEventSourceMapping"
	case kind == "functions" && tail == "configuration" && r.Method == http.MethodGet:
		action = "GetFunctionConfiguration"
	case kind == "functions" && tail == "invocations" && r.Method == http.MethodPost:
		action = "Invoke"
	}
	return Lambda, action
}

// accessKeyID reads the key from a Signature Version 4 Authorization header:
// AWS4-HMAC-SHA256 Credential=KEY/date/region/service/aws4_request, ...
func accessKeyID(authorization string) string {
	_, credential, ok := strings.Cut(authorization, "Credential=")
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(credential, "/")
	return key
}
