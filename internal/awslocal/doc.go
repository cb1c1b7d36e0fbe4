// Package awslocal is the AWS the pipeline runs against without an account:
// DynamoDB, SQS FIFO, Secrets Manager and Lambda's control plane behind one
// http.Handler, which tells the services apart by their protocol.
//
// # Two ways in
//
//   - Over a socket: serve a [Server] on 127.0.0.1 and set AWS_ENDPOINT_URL.
//     The function binaries and the AWS command line work unchanged.
//   - In-process: [Transport] is an http.RoundTripper that calls the Server on
//     the caller's goroutine, with no socket and no goroutine of its own, so
//     that everything also runs in a testing/synctest bubble. [Config] makes
//     an aws.Config of one.
//
// Both pass through the same code, so faults and records are the same too.
//
// # Faults
//
// [Options.Intercept] is asked about every call and may answer with a
// [Fault]: a refusal, a throttle, a server error or a broken connection before
// the call is applied, a broken connection after it was, and delays on either
// side. That is where lost replies and the SDK's own retries happen.
//
// # Records
//
// A [Recorder] counts which caller used which IAM action on which resource,
// in the terms an IAM policy is written in. The caller is the access key id
// of the request: a [Transport] signs with its Caller as the key, and the
// Lambda host gives every function its name as the key.
package awslocal
