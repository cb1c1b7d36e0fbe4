package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"
)

// watch turns the functions' log lines into lines for a person: one for each delivery and each attempt. What it does
// not know it prints as it is.
type watch struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	raw    bool // --json: the lines as the functions wrote them
}

func newWatch(out io.Writer, colour, raw bool) *watch {
	return &watch{out: out, colour: colour, raw: raw}
}

// logLine holds the fixed keys of the functions' lines that a person wants to see.
type logLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`
	Event   string    `json:"event"`    // the processor's: the ledger's key
	EventID string    `json:"event_id"` // the receiver's
	Type    string    `json:"type"`
	Group   string    `json:"group"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	Class   string    `json:"class"`
	Error   string    `json:"error"`
	Stack   string    `json:"stack"` // of a handler's panic
	Status  int       `json:"status"`
	Attempt int       `json:"attempt"`
	Millis  float64   `json:"ms"`

	// The reconciler's.
	Enqueued int `json:"enqueued"`
	Missing  int `json:"missing"`
	Healed   int `json:"healed"`
	Ghosts   int `json:"ghosts_deleted"`
}

// ran says what a run of the reconciler did; empty: nothing.
func (l logLine) ran() string {
	var did []string
	for _, part := range []struct {
		n    int
		what string
	}{{l.Enqueued, "enqueued again"}, {l.Missing, "missing"}, {l.Healed, "healed"}, {l.Ghosts, "ghosts deleted"}} {
		if part.n > 0 {
			did = append(did, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if l.Error != "" {
		did = append(did, l.Error)
	}
	return strings.Join(did, ", ")
}

// ready writes a line between those of the functions.
func (w *watch) ready(r ready) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = json.NewEncoder(w.out).Encode(r) // to a terminal or a pipe: who has gone away needs no line
}

func (w *watch) line(function, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.raw {
		fmt.Fprintln(w.out, text)
		return
	}
	var l logLine
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Message == "" {
		fmt.Fprintf(w.out, "%-10s  %s\n", function, text)
		return
	}
	if l.Message == "sweep" || l.Message == "audit" {
		if did := l.ran(); did != "" {
			fmt.Fprintf(w.out, "%s  %-10s  %s  %s\n", l.Time.Local().Format("15:04:05.000"), function, w.paint(l.Message), did)
		}
		return
	}
	event := l.EventID
	if event == "" {
		event = l.Event[strings.LastIndexByte(l.Event, '#')+1:]
	}
	if event == "" && l.Outcome == "" && l.Level == "INFO" {
		return // a run that found nothing to do
	}
	parts := []string{l.Time.Local().Format("15:04:05.000"), fmt.Sprintf("%-10s", function), w.paint(l.Outcome)}
	if l.Type != "" || event != "" || l.Group != "" { // a refused delivery has none of them
		parts = append(parts, fmt.Sprintf("%-*s", widestType, l.Type), event, l.Group)
	}
	fmt.Fprintln(w.out, strings.TrimRight(strings.Join(append(parts, l.why()), "  "), " "))
}

// widestType is the longest name of a type that a handler of ours listens to.
const widestType = 47

// why says what is behind an outcome: reason, class: error at the handler's line.
func (l logLine) why() string {
	why := l.Reason
	if l.Class != "" && l.Class != l.Reason {
		why = join(why, ", ", l.Class)
	}
	if l.Error != "" && l.Error != l.Reason {
		why = join(why, ": ", l.Error)
	}
	if at := panickedAt(l.Stack); at != "" {
		why = join(why, " ", "at "+at)
	}
	return why
}

func join(a, between, b string) string {
	if a == "" {
		return b
	}
	return a + between + b
}

// panickedAt finds where in a stack a handler panicked: the first frame after the panic that is neither the runtime's
// nor of what runs handlers.
func panickedAt(stack string) string {
	_, frames, found := strings.Cut("\n"+stack, "\npanic(")
	if !found {
		return ""
	}
	lines := strings.Split(frames, "\n")
	for i, function := range lines {
		if i == 0 || strings.HasPrefix(function, "\t") || i+1 == len(lines) {
			continue
		}
		slash := strings.LastIndexByte(function, '/') + 1
		name, _, _ := strings.Cut(function[slash:], ".")
		pkg := function[:slash] + name
		if pkg == "panic" || strings.HasPrefix(function, "panic(") || pkg == "runtime" || strings.HasPrefix(pkg, "runtime/") ||
			pkg == "backstop/internal/handler" || pkg == "backstop/internal/process" {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return pkg + "/" + path.Base(file)
	}
	return ""
}

// Colours of a terminal's basic palette, by what an outcome means for the person looking on.
var colours = map[string]string{
	"received": "36", "reenqueued": "36", "replayed": "36", "duplicate": "90", "done": "32", "skipped": "90", "dropped": "90",
	"retry": "33", "handed_back": "33", "lease_lost": "33", "parked": "31", "misunderstood": "31", "refused": "31", "failed": "31",
}

func (w *watch) paint(outcome string) string {
	padded := fmt.Sprintf("%-11s", outcome)
	if code := colours[outcome]; w.colour && code != "" {
		return "\x1b[" + code + "m" + padded + "\x1b[0m"
	}
	return padded
}
