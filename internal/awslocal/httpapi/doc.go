// Package httpapi is an API Gateway HTTP API with Lambda proxy integrations
// of payload format 2.0: it turns HTTP requests into the events a function
// gets in AWS, and the function's answers into HTTP responses.
//
// What it takes over from AWS because a webhook receiver notices it:
//
//   - The body reaches the function as text only for a few content types
//     (text/*, application/json, application/xml, application/javascript, with
//     no charset or utf-8) and base64-encoded for all others, a missing
//     content type included. AWS documents only that "binary" bodies are
//     encoded; the list is what others measured against AWS. Bytes of a text
//     body that are not UTF-8 become U+FFFD, because the event is JSON: such a
//     body no longer verifies.
//   - A body over 10 MB is refused, and so is one whose whole event, base64
//     and headers included, is larger than a function can be invoked with.
//     AWS documents the two limits, not the answer to the second; it is 413
//     here for both.
//   - An integration that takes longer than 30 s is answered with 503; the
//     invocation goes on, as it does when the client goes away.
//   - A route either matches exactly or the answer is 404: no redirects, no
//     trailing slashes, no 405.
//
// Sources: "Create AWS Lambda proxy integrations for HTTP APIs in API
// Gateway", "Quotas for configuring and running an HTTP API in API Gateway".
package httpapi
