package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"backstop/internal/ledger"
)

// Dir is the environment variable that names another folder of cases.
const Dir = "BACKSTOP_CASES_DIR"

// result is what became of a variant.
type result struct {
	file, variant string
	problems      []string
	skipped       string
	notes         []string
	outcome       map[string]string // what another variant may be compared with
	reason        string            // of the refusal
}

func (r result) name() string {
	if r.variant == "" {
		return r.file
	}
	return r.file + "/" + r.variant
}

func TestCases(t *testing.T) {
	dir := os.Getenv(Dir)
	if dir == "" {
		dir = "testdata"
	}
	if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir) // as seen from where make was called
	}
	files, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no cases", dir)
	}
	results := runAll(t, files)
	passed, failed, skipped := report(results)
	for _, r := range results {
		for _, note := range r.notes {
			fmt.Println("not applicable in " + r.name() + ": " + note)
		}
	}
	for _, line := range append(failed, skipped...) {
		fmt.Println(line)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, len(failed), len(skipped))
	if len(failed) > 0 {
		t.Errorf("%d variants failed:\n%s", len(failed), strings.Join(failed, "\n"))
	}
}

// runAll plays all variants, in parallel, and compares them with each other where a case says so.
func runAll(t *testing.T, files []*caseFile) []result {
	t.Helper()
	codec()
	var mu sync.Mutex
	var results []result
	t.Run("variants", func(t *testing.T) {
		for _, file := range files {
			for _, v := range file.variants() {
				t.Run(result{file: file.ID, variant: v.name}.name(), func(t *testing.T) {
					t.Parallel()
					r := run(t, v)
					mu.Lock()
					defer mu.Unlock()
					results = append(results, r)
				})
			}
		}
	})
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.name(), b.name()) })
	for _, file := range files {
		compareVariants(file, results)
	}
	return results
}

// report counts results, and names those that did not pass.
func report(results []result) (passed int, failed, skipped []string) {
	for _, r := range results {
		switch {
		case len(r.problems) > 0:
			failed = append(failed, "failed  "+r.name()+": "+strings.Join(r.problems, "; "))
		case r.skipped != "":
			skipped = append(skipped, "skipped "+r.name()+": "+r.skipped)
		default:
			passed++
		}
	}
	return passed, failed, skipped
}

// run plays one variant in a bubble of its own.
func run(t *testing.T, v variant) result {
	r := result{file: v.file.ID, variant: v.name}
	if v.file.Kind == "template" || v.file.Kind == "artifact" {
		checkTemplate(t, v.file, &r)
		return r
	}
	if v.Config != nil && v.Config.ToleranceSeconds != 0 && v.Config.ToleranceSeconds != 300 {
		r.skipped = "the tolerance is 300 s and no setting"
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(t.Context(), v)
		if err != nil {
			r.problems = append(r.problems, fmt.Sprintf("make the world: %v", err))
			return
		}
		defer w.close()
		w.play(&r)
	})
	return r
}

// play does the steps and looks at what has come of them.
func (w *world) play(r *result) {
	failed := func(err error) bool {
		var skip errSkip
		switch {
		case errors.As(err, &skip):
			r.skipped = string(skip)
		case err != nil:
			r.problems = append(r.problems, err.Error())
		}
		return err != nil
	}
	list, err := w.variant.file.expectations(w.variant.name)
	if failed(err) || failed(w.prepare()) {
		return
	}
	done := map[string]int{}
	for i, s := range w.variant.Steps {
		if failed(w.do(s)) {
			if r.skipped == "" {
				r.problems[len(r.problems)-1] = fmt.Sprintf("step %d (%s): %s", i+1, s.Op, r.problems[len(r.problems)-1])
			}
			return
		}
		done[s.Op]++
		names := []string{fmt.Sprintf("after_%s_%s", ordinal(done[s.Op]), s.Op), fmt.Sprintf("after_step_%d", i+1), "after_" + s.As}
		failed(w.checkpoint(list, names, r))
	}
	for _, e := range list {
		v := w.check(e)
		r.problems, r.notes = append(r.problems, v.problems...), append(r.notes, v.notes...)
	}
	failed(w.seen(list))
	r.outcome, err = w.outcome()
	failed(err)
	for _, d := range w.deliveries {
		if d.status/100 == 4 {
			r.reason = d.reason
		}
	}
	slices.Sort(w.foreign)
	for _, name := range slices.Compact(w.foreign) {
		r.notes = append(r.notes, name+" is not kept")
	}
	problems, err := w.invariants()
	failed(err)
	r.problems = append(r.problems, problems...)
	for _, f := range w.reached {
		if f.hits == 0 && len(r.problems) == 0 && f.Times < 1<<30 {
			r.skipped = fmt.Sprintf("the fault %s at %s was never reached: this design has no such point here", f.Kind, f.Point)
		}
	}
}

func ordinal(n int) string {
	names := []string{"zeroth", "first", "second", "third", "fourth", "fifth"}
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprint(n)
}

// checkpoint looks at what a case expects in the middle.
func (w *world) checkpoint(list []expectation, names []string, r *result) error {
	for _, e := range list {
		if e["checkpoints"] == nil {
			continue
		}
		var checkpoints map[string]expectation
		if err := json.Unmarshal(e["checkpoints"], &checkpoints); err != nil {
			return err
		}
		for _, name := range names {
			if checkpoints[name] == nil {
				continue
			}
			w.batches["checkpoint "+name] = &batchResult{}
			for _, problem := range w.check(checkpoints[name]).problems {
				r.problems = append(r.problems, name+": "+problem)
			}
		}
	}
	return nil
}

// seen complains about checkpoints that never came.
func (w *world) seen(list []expectation) error {
	for _, e := range list {
		var checkpoints map[string]json.RawMessage
		if e["checkpoints"] == nil {
			continue
		}
		if err := json.Unmarshal(e["checkpoints"], &checkpoints); err != nil {
			return err
		}
		for name := range checkpoints {
			if w.batches["checkpoint "+name] == nil {
				return fmt.Errorf("the checkpoint %s never came", name)
			}
		}
	}
	return nil
}

// outcome is what is left of a variant: entries, effects, dead letters and rows.
func (w *world) outcome() (map[string]string, error) {
	out, err := w.projected()
	if err != nil {
		return nil, err
	}
	for key := range w.known() {
		status, err := w.status(key)
		if err != nil {
			return nil, err
		}
		n, err := w.applied(key)
		if err != nil {
			return nil, err
		}
		if status[0] != "absent" {
			out[string(key)] = fmt.Sprint(status, n)
		}
	}
	dead, err := w.deadLetters()
	if err != nil {
		return nil, err
	}
	slices.Sort(dead)
	out["dead letters"] = fmt.Sprint(dead)
	return out, nil
}

func (w *world) known() map[ledger.Key]bool {
	keys := map[ledger.Key]bool{}
	for _, of := range w.accounts {
		for key := range of {
			keys[ledger.Key(key)] = true
		}
	}
	return keys
}

// invariants looks at what must hold for every variant. I1 is looked at after a sweep and a drain: what was
// acknowledged is done without another delivery. I4 is looked at all the time.
func (w *world) invariants() ([]string, error) {
	problems := slices.Clone(w.violations)
	if err := errors.Join(w.sweep(), w.drain(nil)); err != nil {
		return problems, err
	}
	verified, refused := map[ledger.Key]bool{}, map[ledger.Key]bool{}
	for _, d := range w.deliveries {
		switch {
		case d.key == "":
		case d.status/100 == 2:
			verified[d.key] = true
		case d.status/100 == 4:
			refused[d.key] = true
		default:
			verified[d.key] = verified[d.key] || false
			delete(refused, d.key)
		}
	}
	for key := range w.known() {
		entry, found, err := w.entry(key)
		if err != nil {
			return problems, err
		}
		n, err := w.applied(key)
		if err != nil {
			return problems, err
		}
		_, delivered := verified[key]
		if verified[key] && found && !entry.Status.Settled() {
			problems = append(problems, fmt.Sprintf("I1: %s was acknowledged and is %s", key.EventID(), entry.Status))
		}
		if n > 1 {
			problems = append(problems, fmt.Sprintf("I2: %s took effect %d times", key.EventID(), n))
		}
		if refused[key] && !delivered && !w.elsewhere(key) && (found || n > 0) {
			problems = append(problems, fmt.Sprintf("I3: %s was refused and left something behind", key.EventID()))
		}
	}
	return problems, nil
}

// elsewhere reports whether an event also came by another way than a delivery.
func (w *world) elsewhere(key ledger.Key) bool {
	for _, s := range w.variant.Steps {
		for _, record := range s.Records {
			if strings.Contains(string(record["event"]), key.EventID()) {
				return true
			}
		}
		for _, page := range s.Pages {
			if strings.Contains(string(page), key.EventID()) {
				return true
			}
		}
	}
	return strings.Contains(string(w.variant.State), key.EventID())
}

// compareVariants looks at what a case says about its variants among each other.
func compareVariants(file *caseFile, results []result) {
	byName := map[string]*result{}
	for i := range results {
		if results[i].file == file.ID {
			byName[results[i].variant] = &results[i]
		}
	}
	ours, theirs := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r := byName[name]
		if r.outcome == nil {
			continue
		}
		list, err := file.expectations(name)
		if err != nil {
			continue // run has said so
		}
		for _, e := range list {
			var other string
			if json.Unmarshal(e["same_outcome_as"], &other) == nil && other != name {
				switch o := byName[other]; {
				case o == nil:
					r.problems = append(r.problems, "there is no variant "+other+" to compare with")
				case o.outcome != nil && !maps.Equal(o.outcome, r.outcome):
					r.problems = append(r.problems, fmt.Sprintf("it ends otherwise than %s: %v, want %v", other, r.outcome, o.outcome))
				}
			}
			var logs struct{ Reason string }
			if json.Unmarshal(e["logs"], &logs) != nil || logs.Reason == "" {
				continue
			}
			if r.reason == "" {
				r.problems = append(r.problems, "no reason was logged")
			} else if mine, known := ours[logs.Reason]; known && mine != r.reason {
				r.problems = append(r.problems, fmt.Sprintf("%s is logged as %q and as %q", logs.Reason, mine, r.reason))
			} else if word, known := theirs[r.reason]; known && word != logs.Reason {
				r.problems = append(r.problems, fmt.Sprintf("%q is logged for %s and for %s", r.reason, word, logs.Reason))
			}
			ours[logs.Reason], theirs[r.reason] = r.reason, logs.Reason
		}
	}
}
