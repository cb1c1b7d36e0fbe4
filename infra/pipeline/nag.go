package pipeline

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// Nag makes every synthesis of app check the AWS Solutions rules. The cdk command fails on a finding; a plain run of
// the app writes AwsSolutions-<stack>-NagReport.csv into its output folder, which the tests read.
func Nag(app awscdk.App) {
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: yes()}), nil)
}

// suppress names what was looked at and judged to be all right, each with its reason, on the one resource it is about.
func suppress(s Settings, p parts, k secrets) {
	accept := func(on constructs.IConstruct, rule, reason string) {
		cdknag.NagSuppressions_AddResourceSuppressions(on, &[]*cdknag.NagPackSuppression{{
			Id: text(rule), Reason: text(reason),
		}}, no())
	}
	for _, route := range p.api.routes {
		accept(route, "AwsSolutions-APIG4",
			"Stripe cannot present AWS credentials: it signs each delivery, and the receiver verifies the signature before anything else.")
	}
	for _, secret := range []constructs.IConstruct{k.signing, k.stripeKey} {
		accept(secret, "AwsSolutions-SMG4",
			"The values are Stripe's: a signing secret is rolled together with its endpoint (backstop endpoint roll), a key in Stripe's dashboard.")
	}
	if s.Tracing {
		for _, f := range []function{p.functions.receiver, p.functions.processor, p.functions.reconciler} {
			accept(f.role.Node().FindChild(text("DefaultPolicy")), "AwsSolutions-IAM5",
				"X-Ray's PutTraceSegments and PutTelemetryRecords know no resources; everything else in the policy names its own.")
		}
	}
	accept(p.schedules.dead, "AwsSolutions-SQS3",
		"It is itself a dead-letter queue, of the schedules.")
}
