package cases

// prepare makes what a case says was there beforehand.
func (w *world) prepare() error {
	if w.variant.State == nil {
		return nil
	}
	return errSkip("given.state is not made yet")
}
