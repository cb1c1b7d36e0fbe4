// Package node prepares what the CDK needs from Node, which runs its JavaScript side.
//
// Importing the package silences the CDK's warning about the age of Node 20, unless the environment says something
// else. It has to happen during initialisation: the packages of the CDK fix the environment of the Node process in
// their own, which comes later, since packages that depend on nothing are initialised in the order of their paths
// (The Go Programming Language Specification, "Package initialization").
package node

import (
	"fmt"
	"os"
	"os/exec"
)

const (
	silence = "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"
	binary  = "JSII_NODE" // which Node the CDK runs, where it is not the one on the path
)

func init() {
	if _, set := os.LookupEnv(silence); !set {
		// Cannot fail for a constant name.
		_ = os.Setenv(silence, "20")
	}
}

// Check returns an error that says in one line what to do when there is no Node for the CDK to run.
func Check() error {
	name := os.Getenv(binary)
	if name == "" {
		name = "node"
	}
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("the CDK needs Node 20 or later, and there is none (%w): install it, or point %s at its binary", err, binary)
	}
	return nil
}
