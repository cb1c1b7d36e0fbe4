module backstop

go 1.26.0

require (
	github.com/aws/aws-cdk-go/awscdk/v2 v2.276.0 // the infrastructure
	github.com/aws/aws-lambda-go v1.55.1 // the functions' runtime
	github.com/aws/aws-sdk-go-v2 v1.48.0 // every call to AWS
	github.com/aws/aws-sdk-go-v2/config v1.33.18 // credentials of the person at the command line; never linked into a function
	github.com/aws/aws-sdk-go-v2/credentials v1.21.0 // fixed credentials for the local AWS
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.74.0 // ledger, projections, control
	github.com/aws/aws-sdk-go-v2/service/lambda v1.115.0 // pause and resume from the command line
	github.com/aws/aws-sdk-go-v2/service/secretsmanager v1.51.0 // signing secrets and the Stripe key
	github.com/aws/aws-sdk-go-v2/service/sqs v1.53.0 // the queue
	github.com/aws/constructs-go/constructs/v10 v10.8.1 // comes with the CDK
	github.com/aws/jsii-runtime-go v1.142.0 // comes with the CDK
	github.com/aws/smithy-go v1.28.9 // error types of the AWS SDK
	github.com/cdklabs/cdk-nag-go/cdknag/v2 v2.38.2 // checks the infrastructure in its tests
	github.com/google/go-cmp v0.7.0 // readable differences in tests
	github.com/klauspost/compress v1.20.4 // zstd with a dictionary, which the standard library lacks
	github.com/schollz/progressbar/v3 v3.19.1 // progress on a terminal
	github.com/sony/gobreaker/v2 v2.4.0 // the breaker per dependency
	github.com/spf13/cobra v1.10.2 // the command line
	github.com/stripe/stripe-go/v82 v82.5.1 // the types of Stripe's objects, and its API
	golang.org/x/sync v0.25.0 // errgroup
	golang.org/x/term v0.48.0 // is it a terminal
	golang.org/x/time v0.16.0 // rate limits of what is sent
	pgregory.net/rapid v1.3.0 // property tests
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/Masterminds/semver/v3 v3.5.0 // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.27 // indirect
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.25 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery v1.13.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.13.1 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.5 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.44.5 // indirect
	github.com/aws/aws-sdk-go-v2/service/sts v1.52.0 // indirect
	github.com/bitfield/gotestdox v0.2.2 // indirect
	github.com/cdklabs/awscdk-asset-awscli-go/awscliv1/v2 v2.2.292 // indirect
	github.com/cdklabs/awscdk-asset-node-proxy-agent-go/nodeproxyagentv6/v2 v2.1.3 // indirect
	github.com/cdklabs/cloud-assembly-schema-go/awscdkcloudassemblyschema/v55 v55.3.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dnephin/pflag v1.0.7 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/google/shlex v0.0.0-20191202100458-e7afc7fbc510 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/lestrrat-go/jspointer v0.0.0-20181205001929-82fadba7561c // indirect
	github.com/lestrrat-go/jsref v0.0.0-20181205001954-1b590508f37d // indirect
	github.com/lestrrat-go/jsschema v0.0.0-20181205002244-5c81c58ffcc3 // indirect
	github.com/lestrrat-go/jsval v0.0.0-20181205002323-20277e9befc0 // indirect
	github.com/lestrrat-go/pdebug v0.0.0-20180220043849-39f9a71bcabe // indirect
	github.com/lestrrat-go/structinfo v0.0.0-20190212233437-acd51874663b // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/pkg/errors v0.8.1-0.20170505043639-c605e284fe17 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/stripe/stripe-mock v0.203.0 // indirect
	github.com/xeipuuv/gojsonschema v1.2.0 // indirect
	github.com/yuin/goldmark v1.7.16 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/lint v0.0.0-20241112194109-818c5a804067 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/telemetry v0.0.0-20261009151841-97e8ea77aa2a // indirect
	golang.org/x/text v0.17.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/tools/cmd/godoc v0.1.0-deprecated // indirect
	golang.org/x/tools/godoc v0.1.0-deprecated // indirect
	gotest.tools/gotestsum v1.13.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)

tool (
	github.com/stripe/stripe-mock
	gotest.tools/gotestsum
	honnef.co/go/tools/cmd/staticcheck
)
