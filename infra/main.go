// Command infra is the CDK app: it synthesises the stack of one stage into a CloudFormation template. cdk.json names
// it, the cdk command runs it, and `CDK_OUTDIR=cdk.out go run ./infra` does without that command. Its context values
// (-c name=value) are those of pipeline.Read.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"backstop/infra/node"
	"backstop/infra/pipeline"
)

// bundles is where `make build` puts the functions.
const bundles = "dist"

func main() {
	err := run()
	jsii.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	if err := node.Check(); err != nil {
		return err
	}
	if err := pipeline.CheckBundles(bundles); err != nil {
		return err
	}
	// The CDK's Go side knows no errors: what fails in JavaScript panics here.
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("synthesise: %v", failure)
		}
	}()
	app := awscdk.NewApp(nil)
	if all, ok := app.Node().GetAllContext(nil).(map[string]any); ok {
		if err := pipeline.CheckNames(slices.Collect(maps.Keys(all))); err != nil {
			return fmt.Errorf("read the context: %w", err)
		}
	}
	settings, err := pipeline.Read(func(name string) string {
		if value := app.Node().TryGetContext(jsii.String(name)); value != nil {
			return fmt.Sprint(value)
		}
		return ""
	})
	if err != nil {
		return fmt.Errorf("read the context: %w", err)
	}
	if _, err := pipeline.New(app, pipeline.Props{Settings: settings, Bundles: bundles}); err != nil {
		return err
	}
	pipeline.Nag(app)
	app.Synth(nil)
	return nil
}
