package node

import (
	"os"
	"strings"
	"testing"
)

func TestMissingNodeIsSaidInOneLine(t *testing.T) {
	t.Setenv(binary, "no-such-node")
	err := Check()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), binary) {
		t.Errorf("got %v", err)
	}
}

func TestImportingSilencesTheAgeWarning(t *testing.T) {
	if os.Getenv(silence) == "" {
		t.Errorf("%s is not set", silence)
	}
}
