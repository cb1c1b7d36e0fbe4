package template_test

import (
	"os/exec"
	"testing"

	"backstop/infra/template"
)

func TestCfnLintFindsNothing(t *testing.T) {
	t.Parallel()
	// Asked for its version, since a shim may stand in the path of a tool that is not installed.
	if out, err := exec.Command("cfn-lint", "--version").CombinedOutput(); err != nil {
		t.Skipf("cfn-lint is not on this machine, so the templates are not linted: %v %s", err, out)
	}
	for _, stage := range template.Stages {
		// W3005: the CDK writes dependencies down that CloudFormation would find by itself.
		out, err := exec.Command("cfn-lint", "--ignore-checks", "W3005", "--", "testdata/"+stage+".template.json").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", stage, err, out)
		}
	}
}
