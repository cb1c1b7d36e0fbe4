package proof

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/infra/template"
)

const root = "../.."

// TestBundlesAreWhatTheStackDeclares builds as `make build` does. The CDK zips each folder as it is.
func TestBundlesAreWhatTheStackDeclares(t *testing.T) {
	t.Parallel()
	folder := makeBuild(t, root)
	stack, err := template.Golden("prod")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range template.FunctionNames {
		t.Run(name, func(t *testing.T) {
			function, err := stack.Function(name)
			if err != nil {
				t.Fatal(err)
			}
			if function.Runtime != "provided.al2023" || function.Architecture != "arm64" {
				t.Fatalf("the template declares %s on %s", function.Runtime, function.Architecture)
			}
			files, err := os.ReadDir(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != 1 || files[0].Name() != "bootstrap" {
				t.Fatalf("the bundle holds %v, want bootstrap at its root and nothing else", files)
			}
			path := filepath.Join(folder, name, "bootstrap")
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 != 0o111 {
				t.Errorf("bootstrap has mode %v, %v: Lambda runs it as another user", info.Mode(), err)
			}
			isStaticForArm64(t, path)
			linksNothingOfDevelopment(t, path, name)
		})
	}
}

func isStaticForArm64(t *testing.T, path string) {
	t.Helper()
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if binary.Machine != elf.EM_AARCH64 || binary.Class != elf.ELFCLASS64 || binary.Type != elf.ET_EXEC {
		t.Errorf("it is %s, %s, %s", binary.Machine, binary.Class, binary.Type)
	}
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker, which provided.al2023 may have in another version")
		}
	}
}

// linksNothingOfDevelopment looks at what the linker left: the modules, and the packages that functions are named
// after, which stay in a stripped binary too.
func linksNothingOfDevelopment(t *testing.T, path, name string) {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Path != "backstop/functions/"+name {
		t.Errorf("it is built from %s", info.Path)
	}
	for _, module := range info.Deps {
		for _, development := range []string{"awscdk", "aws-cdk", "jsii", "cobra", "stripe-mock", "progressbar", "go-cmp", "rapid"} {
			if strings.Contains(module.Path, development) {
				t.Errorf("it links %s", module.Path)
			}
		}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	want := map[string]string{"GOOS": "linux", "GOARCH": "arm64", "CGO_ENABLED": "0", "-tags": "lambda.norpc", "-trimpath": "true"}
	for key, value := range want {
		if settings[key] != value {
			t.Errorf("it is built with %s=%s, want %s", key, settings[key], value)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("backstop/internal/ledger.")) {
		t.Fatal("it names no package, so this test sees nothing")
	}
	for _, development := range []string{"awslocal", "laptop", "sender", "stripefake", "sim", "cli", "tally"} {
		if bytes.Contains(text, []byte("backstop/internal/"+development+".")) || bytes.Contains(text, []byte("backstop/internal/"+development+"/")) {
			t.Errorf("it links internal/%s", development)
		}
	}
}

// TestUnchangedCodeKeepsItsHash builds the same source in two folders: whoever builds it, the CDK sees no change. Both
// are copies, so that nobody edits one of them meanwhile.
func TestUnchangedCodeKeepsItsHash(t *testing.T) {
	t.Parallel()
	source := copySource(t, root)
	here, elsewhere := makeBuild(t, source), makeBuild(t, copySource(t, source))
	for _, name := range template.FunctionNames {
		if diff := cmp.Diff(hash(t, here, name), hash(t, elsewhere, name)); diff != "" {
			t.Errorf("%s differs by where it is built (-here +elsewhere):\n%s", name, diff)
		}
	}
}

func hash(t *testing.T, folder, name string) [sha256.Size]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name, "bootstrap"))
	if err != nil || len(text) < 1<<20 {
		t.Fatalf("%s has %d bytes: %v", name, len(text), err)
	}
	return sha256.Sum256(text)
}

// makeBuild runs the recipe of `make build`, into a folder of the test's own.
func makeBuild(t *testing.T, source string) string {
	t.Helper()
	dry := exec.Command("make", "--dry-run", "--no-print-directory", "build")
	dry.Dir = source
	recipe, err := dry.CombinedOutput()
	if err != nil {
		t.Skipf("the build is the Makefile's, and make does not run here: %v %s", err, recipe)
	}
	folder := t.TempDir()
	own := strings.ReplaceAll(string(recipe), "dist/", folder+"/")
	if strings.Count(own, folder) < 2 {
		t.Fatalf("the recipe builds somewhere else than dist/:\n%s", recipe)
	}
	build := exec.CommandContext(t.Context(), "sh", "-ec", own)
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", own, err, out)
	}
	return folder
}

// copySource copies what the functions are built from to another folder.
func copySource(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if top := filepath.Dir(relative) == "."; top && relative != "." && !slices.Contains([]string{"functions", "internal", "events"}, relative) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
