//go:build !race

package billing_test

const underRace = false
