package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list runs go list in the module's root.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, stderr.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatalf("go list %v found nothing to check", args)
	}
	return packages
}

func under(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

func TestFunctionsLinkNothingOfDevelopment(t *testing.T) {
	t.Parallel()
	forbidden := []string{
		"backstop/internal/awslocal", "backstop/internal/cli", "backstop/internal/cmd", "backstop/internal/sender",
		"backstop/internal/sim", "backstop/infra", "github.com/aws/aws-cdk-go", "github.com/aws/jsii-runtime-go",
		"github.com/spf13/cobra", "github.com/stripe/stripe-mock", "testing",
	}
	for _, p := range list(t, "./functions/...") {
		for _, dep := range p.Deps {
			if under(dep, forbidden...) {
				t.Errorf("%s links %s", p.ImportPath, dep)
			}
		}
	}
}

func TestReceiverLinksNoStripeObjects(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./functions/receiver") {
		for _, dep := range p.Deps {
			if under(dep, "github.com/stripe", "github.com/aws/aws-sdk-go-v2/config") {
				t.Errorf("the receiver links %s: it costs start time and is not needed", dep)
			}
		}
	}
}

func TestUseCasesImportNoAWSSDK(t *testing.T) {
	t.Parallel()
	pure := []string{
		"backstop/internal/event", "backstop/internal/signature", "backstop/internal/apigw", "backstop/internal/sqsbatch",
		"backstop/internal/receive", "backstop/internal/process", "backstop/internal/handler", "backstop/internal/journal",
		"backstop/internal/billing", "backstop/internal/reconcile", "backstop/internal/replay", "backstop/internal/telemetry",
		"backstop/internal/config", "backstop/internal/schema", "backstop/internal/jsonscan", "backstop/internal/stripeapi",
		"backstop/internal/subscribed", "backstop/internal/endpoint", "backstop/internal/doctor", "backstop/internal/cost",
	}
	adapters := []string{"backstop/internal/endpoint/secretstore"} // below what they serve
	found := 0
	for _, p := range list(t, "./internal/...") {
		if !under(p.ImportPath, pure...) || under(p.ImportPath, adapters...) {
			continue
		}
		found++
		for _, imported := range p.Imports {
			if under(imported, "github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/aws/aws-lambda-go") {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
	if found < 5 {
		t.Fatalf("only %d packages checked", found)
	}
}

func TestArrowsPointDown(t *testing.T) {
	t.Parallel()
	// Who may import the package besides what lies below it.
	importers := map[string][]string{
		"backstop/functions":         {},
		"backstop/internal/cmd":      {},
		"backstop/infra":             {"backstop/infra"},
		"backstop/internal/cli":      {"backstop/internal/cmd"},
		"backstop/internal/awslocal": {"backstop/internal/cli", "backstop/internal/laptop", "backstop/internal/sim", "backstop/internal/cases", "backstop/internal/crash"},
	}
	for _, p := range list(t, "./...") {
		for _, imported := range p.Imports {
			for restricted, allowed := range importers {
				if under(imported, restricted) && !under(p.ImportPath, append(allowed, restricted)...) {
					t.Errorf("%s imports %s", p.ImportPath, imported)
				}
			}
		}
		if under(p.ImportPath, "backstop/infra") {
			for _, imported := range p.Imports {
				if under(imported, "backstop/internal") && !under(imported, "backstop/internal/schema", "backstop/internal/config", "backstop/internal/telemetry") {
					t.Errorf("%s imports %s: infra takes names and numbers only", p.ImportPath, imported)
				}
			}
		}
	}
}

func TestTopLevelHoldsTheFourFolders(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("git", "ls-tree", "-d", "--name-only", "HEAD")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	var folders []string
	if err == nil {
		folders = strings.Fields(string(out))
	} else {
		// Not a git checkout: an archive holds the tracked files only.
		entries, err := os.ReadDir("../..")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.IsDir() && entry.Name() != "dist" && entry.Name() != "cdk.out" {
				folders = append(folders, entry.Name())
			}
		}
	}
	if !slices.Contains(folders, "internal") {
		t.Fatalf("found %v, which is not the module's root", folders)
	}
	for _, folder := range folders {
		if !slices.Contains([]string{"functions", "infra", "internal", "events"}, folder) && !strings.HasPrefix(folder, ".") {
			t.Errorf("top-level folder %s is not one of the four", folder)
		}
	}
}
