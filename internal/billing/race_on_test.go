//go:build race

package billing_test

// underRace leaves the moved seconds out of the permutation suite, which are most of its time: the race detector makes
// that several times as long. The orders of the stories as they are run all the same.
const underRace = true
