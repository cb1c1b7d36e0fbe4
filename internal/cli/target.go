package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go/logging"

	"backstop/internal/config"
	"backstop/internal/eventsource"
)

// devFile is where a running `backstop dev` says how to reach it, below the folder it was started in. Commands
// started there, or below it in the same module, find it, unless the environment names other resources.
const devFile = ".backstop/dev.json"

// devTarget is the content of devFile.
type devTarget struct {
	PID            int               `json:"pid"`
	Endpoint       string            `json:"endpoint"` // of the webhook
	AWSEndpoint    string            `json:"aws_endpoint"`
	Region         string            `json:"region"`
	StripeEndpoint string            `json:"stripe_endpoint,omitempty"` // of the fake Stripe; empty: the real one
	Environment    map[string]string `json:"environment"`
}

func (d devTarget) save() error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(devFile), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", devFile, err)
	}
	// A Stripe API key may be in it, which is nobody else's business.
	if err := os.WriteFile(devFile, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", devFile, err)
	}
	return nil
}

// forget removes what save wrote, unless another local stack has written there since.
func (d devTarget) forget() error {
	found, err := readDevFile(devFile)
	if err != nil || found == nil || found.PID != d.PID {
		return err
	}
	if err := os.Remove(devFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the local stack: %w", err)
	}
	return nil
}

// readDevTarget looks for a local stack that runs, in this folder and upwards to the module's own; nil: none does.
func readDevTarget() (*devTarget, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	for {
		d, err := readDevFile(filepath.Join(folder, devFile))
		if err != nil {
			return nil, err
		}
		if d != nil && running(d.PID) { // else it was killed before it could forget itself
			return d, nil
		}
		_, err = os.Stat(filepath.Join(folder, "go.mod"))
		if parent := filepath.Dir(folder); err != nil && parent != folder {
			folder = parent
			continue
		}
		return nil, nil
	}
}

// readDevFile returns nil when there is no such file.
func readDevFile(file string) (*devTarget, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var d devTarget
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read %s: %w (remove it and start `backstop dev` again)", file, err)
	}
	return &d, nil
}

// running reports whether a process with this id is alive: signal 0 only asks.
func running(pid int) bool {
	process, err := os.FindProcess(pid)
	return err == nil && !errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// target is the deployment a command talks to.
type target struct {
	config.Settings
	AWS   aws.Config
	Local *devTarget // nil: AWS
}

// target finds the deployment: the one the environment names, else the local stack running in this folder. required
// are the variables the command cannot do without.
func (e *env) target(ctx context.Context, required ...string) (*target, error) {
	if e.stage != "" {
		return e.deployed(ctx, required)
	}
	vars := e.vars
	var local *devTarget
	if _, named := vars(config.LedgerTable); !named {
		d, err := readDevTarget()
		if err != nil {
			return nil, err
		}
		if d == nil {
			return nil, fmt.Errorf("no deployment: start one with `backstop dev` in this folder, name a deployed one with --stage, or set %s and the other names of one", config.LedgerTable)
		}
		local = d
		vars = func(name string) (string, bool) {
			if value, ok := e.vars(name); ok {
				return value, ok
			}
			value, ok := d.Environment[name]
			return value, ok
		}
	}
	settings, err := config.Read(vars, required...)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	var cfg aws.Config
	if local != nil {
		cfg = localAWS(local.AWSEndpoint, local.Region)
	} else if cfg, err = account(ctx); err != nil {
		return nil, err
	}
	return &target{Settings: settings, AWS: cfg, Local: local}, nil
}

// deployed finds a stage in the account and region of the AWS environment, by what its functions are told. Of the
// command's own environment only the Stripe key counts, which may have more rights than the deployment's: a table or
// queue left over from another stage must not be mixed in.
func (e *env) deployed(ctx context.Context, required []string) (*target, error) {
	cfg, err := account(ctx)
	if err != nil {
		return nil, err
	}
	variables, err := eventsource.New(lambda.NewFromConfig(cfg)).Environment(ctx, e.stage)
	if err != nil {
		return nil, fmt.Errorf("find stage %s: %w", e.stage, err)
	}
	settings, err := config.Read(func(name string) (string, bool) {
		if value, ok := e.vars(name); ok && (name == config.StripeKey || name == config.StripeURL) {
			return value, ok
		}
		value, ok := variables[name]
		return value, ok
	}, required...)
	if err != nil {
		return nil, fmt.Errorf("read the settings of stage %s: %w", e.stage, err)
	}
	return &target{Settings: settings, AWS: cfg}, nil
}

// account is the AWS account and region that the environment and the AWS files name. The SDK's own log stays silent:
// what goes wrong comes back as an error.
func account(ctx context.Context) (aws.Config, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
	if err != nil {
		return cfg, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return cfg, errors.New("no AWS region is set: give one in AWS_REGION, or with `aws configure`")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return cfg, ctx.Err()
		}
		return cfg, errors.New("there are no AWS credentials that work: sign in (`aws sso login`, `aws configure`), or name a profile in AWS_PROFILE")
	}
	return cfg, nil
}

// localAWS reaches a local AWS over its socket. Its credentials are for show: nothing there checks them.
func localAWS(endpoint, region string) aws.Config {
	return aws.Config{
		Region:       region,
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("operator", "local", ""),
	}
}
