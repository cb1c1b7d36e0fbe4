package pipeline

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
)

// The published paths.
const (
	webhookPath = "/webhooks/stripe"
	healthPath  = "/health"
)

// api is the HTTP API in front of the receiver.
type api struct {
	http   awsapigatewayv2.HttpApi
	routes []awsapigatewayv2.HttpRoute
	log    awslogs.LogGroup
	url    *string // of the webhook path
	target *string // what the custom domain's record points at; nil without one
}

// newAPI makes the API. It authorizes nobody: Stripe signs its deliveries and the receiver verifies them.
func newAPI(scope constructs.Construct, s Settings, receiver function) api {
	a := api{log: awslogs.NewLogGroup(scope, text("ApiLog"), &awslogs.LogGroupProps{
		Retention:     retention(s.LogDays),
		RemovalPolicy: s.removal(),
	})}
	own := s.Domain != ""
	a.http = awsapigatewayv2.NewHttpApi(scope, text("Api"), &awsapigatewayv2.HttpApiProps{
		ApiName:            text("backstop-" + s.Stage),
		Description:        text("Receives Stripe webhooks for Backstop " + s.Stage),
		CreateDefaultStage: no(),
		// One way in: with a host name of our own the generated one is closed.
		DisableExecuteApiEndpoint: &own,
	})
	props := &awsapigatewayv2.HttpStageProps{
		HttpApi:    a.http,
		StageName:  text("$default"),
		AutoDeploy: yes(),
		Throttle: &awsapigatewayv2.ThrottleSettings{
			RateLimit:  number(s.Rate),
			BurstLimit: number(s.Burst),
		},
	}
	if own {
		domain := awsapigatewayv2.NewDomainName(scope, text("Domain"), &awsapigatewayv2.DomainNameProps{
			DomainName:     text(s.Domain),
			Certificate:    awscertificatemanager.Certificate_FromCertificateArn(scope, text("Certificate"), text(s.Certificate)),
			SecurityPolicy: awsapigatewayv2.SecurityPolicy_TLS_1_2,
		})
		props.DomainMapping = &awsapigatewayv2.DomainMappingOptions{DomainName: domain}
		a.target = domain.RegionalDomainName()
	}
	stage := awsapigatewayv2.NewHttpStage(scope, text("ApiStage"), props)
	settings := stage.Node().DefaultChild().(awsapigatewayv2.CfnStage)
	settings.SetAccessLogSettings(&awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: a.log.LogGroupArn(),
		Format:         awsapigateway.AccessLogFormat_Custom(text(accessLogFormat())).ToString(),
	})

	integration := awsapigatewayv2integrations.NewHttpLambdaIntegration(text("Receiver"), receiver.fn, nil)
	route := func(path string, method awsapigatewayv2.HttpMethod) {
		a.routes = append(a.routes, *a.http.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
			Path:        text(path),
			Methods:     &[]awsapigatewayv2.HttpMethod{method},
			Integration: integration,
		})...)
	}
	route(webhookPath, awsapigatewayv2.HttpMethod_POST)
	route(healthPath, awsapigatewayv2.HttpMethod_GET)

	if own {
		a.url = text("https://" + s.Domain + webhookPath)
	} else {
		a.url = text(*a.http.ApiEndpoint() + webhookPath)
	}
	return a
}

// accessLogFormat is one JSON object a request: no path as sent, no query string, no address, no agent. What reaches
// the receiver has a line of its own; this one tells of what did not.
func accessLogFormat() string {
	format, err := json.Marshal(map[string]string{
		"requestId":          "$context.requestId",
		"requestTime":        "$context.requestTime",
		"routeKey":           "$context.routeKey",
		"status":             "$context.status",
		"responseLatency":    "$context.responseLatency",
		"integrationLatency": "$context.integrationLatency",
		"integrationStatus":  "$context.integrationStatus",
		"errorType":          "$context.error.responseType",
	})
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return string(format)
}
