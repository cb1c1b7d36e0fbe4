package cases

// reconciled is what a reconcile step reported.
type reconciled struct {
	missing int
	notes   []string
	clean   bool
}

func (w *world) reconcile(step, bool) error { return errSkip("the audit is not there yet") }

func (w *world) tidy() error { return nil }
