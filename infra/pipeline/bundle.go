package pipeline

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// functionNames are the binaries a stack is made of.
var functionNames = []string{"receiver", "processor", "reconciler"}

// CheckBundles checks that folder holds <function>/bootstrap for every function, executable and built for Linux on
// arm64: what the stack declares. The error says what to run.
func CheckBundles(folder string) error {
	for _, name := range functionNames {
		if err := checkBundle(filepath.Join(folder, name, "bootstrap")); err != nil {
			return fmt.Errorf("function %s is not ready to deploy: %w; run `make build` first", name, err)
		}
	}
	return nil
}

func checkBundle(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not executable", path)
	}
	binary, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s as a Linux binary: %w", path, err)
	}
	defer binary.Close()
	if binary.Machine != elf.EM_AARCH64 {
		return fmt.Errorf("%s is built for %s, not for arm64", path, binary.Machine)
	}
	return nil
}
