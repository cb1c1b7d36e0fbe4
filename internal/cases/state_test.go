package cases

import "backstop/internal/reconcile"

// prepare makes what a case says was there beforehand.
func (w *world) prepare() error {
	if w.variant.State == nil {
		return nil
	}
	return errSkip("given.state is not made yet")
}

var _ reconcile.Swept

func (w *world) sweep() error { return nil }

func checkTemplate(file *caseFile, r *result) { r.skipped = "template" }
