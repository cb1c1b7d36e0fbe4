//go:build race

package billing_test

// underRace shortens the permutation suite: the race detector makes it ten times as long and sees nothing new.
const underRace = true
