package events

import "path"

// Invocation is one of the sample invocations in lambda/, by its file name
// without ending: for the receiver httpapi-v2, httpapi-v2-base64, rest-v1,
// rest-v1-multivalue, function-url, alb and alb-multivalue, each signed with
// SampleSecret at SampleTime; for the processor sqs-batch and sqs-malformed. An
// unknown name is an error that matches fs.ErrNotExist.
func Invocation(name string) ([]byte, error) {
	return read(path.Join("lambda", name+".json"))
}
