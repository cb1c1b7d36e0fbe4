package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"backstop/internal/awslocal"
)

// traceLine is one thing that happened. about is an event's key, or empty.
type traceLine struct {
	at         time.Duration
	who, about string
	text       string
}

func (w *world) note(who, about, text string) {
	if !w.Trace {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traceLocked(who, about, text)
}

func (w *world) traceLocked(who, about, text string) {
	if w.Trace {
		w.trace = append(w.trace, traceLine{time.Since(w.start), who, about, accidental.ReplaceAllString(text, "")})
	}
}

// accidental is what of a log line differs between two runs of one history, or is of no use in it: ids AWS gives its
// answers, stacks, and how a line becomes metrics.
var accidental = regexp.MustCompile(`RequestID: \w*,? ?|,"stack":"(\\.|[^"\\])*"|,"stage":"sim".*`)

// call notes a call of a process and what goes wrong with it.
func (w *world) call(p *proc, c *awslocal.Call, subject, fault string) {
	if fault != "" && fault != faultDeath && fault != faultDeath2 {
		w.fault(fault)
	}
	if !w.Trace {
		return
	}
	text := c.Action + " " + subject
	if fault != "" {
		text += " [" + fault + "]"
	}
	about := ""
	if strings.HasPrefix(subject, "stripe#") {
		about = subject
	}
	w.note(p.name, about, text)
}

func (w *world) fault(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Faults[name]++
}

// history is what happened to one event and around it, for a person to read; empty: everything.
func (w *world) history(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := slices.Clone(w.trace)
	slices.SortStableFunc(lines, func(a, b traceLine) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.who, b.who)
	})
	var text strings.Builder
	for _, l := range lines {
		own := id != "" && (strings.HasSuffix(l.about, "#"+id) || strings.Contains(l.text+" ", id+" ") || strings.Contains(l.text, id+"#") || strings.Contains(l.text, id+`"`))
		general := l.about == "" && (strings.HasPrefix(l.text, "dies") || strings.HasPrefix(l.text, "freezes") || l.who == "people" || strings.HasPrefix(l.text, "VIOLATION"))
		if id == "" || own || general {
			fmt.Fprintf(&text, "%14s  %-16s %s\n", l.at.Round(time.Microsecond), l.who, l.text)
		}
	}
	return text.String()
}
