package cost

// PricesOf is the day these list prices were compared with AWS's pages. They are the first tier of US East
// (N. Virginia), in dollars, before free tiers, discounts, taxes and support.
const PricesOf = "2026-11-29"

// Source is the page of a price, by its title.
type Source string

// The pages.
const (
	DynamoDB       Source = "Amazon DynamoDB pricing, on-demand capacity"
	Lambda         Source = "AWS Lambda pricing, Arm"
	SQS            Source = "Amazon SQS pricing, FIFO queues"
	APIGateway     Source = "Amazon API Gateway pricing, HTTP APIs"
	CloudWatch     Source = "Amazon CloudWatch pricing"
	SecretsManager Source = "AWS Secrets Manager pricing"
	Scheduler      Source = "Amazon EventBridge pricing, Scheduler"
	KMS            Source = "AWS Key Management Service pricing"
)

const million = 1e6

// gibibyte is what AWS means by GB where it meters.
const gibibyte = 1 << 30

// The prices.
const (
	writeUnit    = 0.625 / million // standard table class, since November 2024
	readUnit     = 0.125 / million
	tableStorage = 0.25 // GB-month, standard table class
	recovery     = 0.20 // GB-month, point-in-time recovery

	invocation   = 0.20 / million
	gigabyteTime = 0.0000133334 // GB-second

	queueRequest = 0.50 / million // per 64 KB
	apiRequest   = 1.00 / million // per 512 KB

	logIngested = 0.50 // GB, standard class
	logStored   = 0.03 // GB-month, of what compression leaves
	metric      = 0.30 // month
	alarm       = 0.10 // month, for each metric it reads
	composite   = 0.50 // month
	dashboard   = 3.00 // month

	secret     = 0.40 // month
	secretRead = 0.05 / 10_000

	scheduled = 1.00 / million

	keyRequest = 0.03 / 10_000
)
