// Package proof proves, without an AWS account, that the stack in infra/ and the functions fit together. It has tests
// only; they read the committed templates and run the real binaries over the local AWS's sockets:
//
//   - environment: with exactly what the template gives each function, an event comes through, and every variable
//     given has an effect that is seen from outside;
//   - rights: every call the functions made is granted in the template, and what is granted but never called is on a
//     short list with reasons;
//   - settings: what the local Lambda was made with is what the template says (tables and queues are compared in
//     infra/template);
//   - bundles: what `make build` leaves is what the stack declares, the same every time, with no development code;
//   - units: what `backstop cost` assumes of an event is what the local AWS counted.
package proof
