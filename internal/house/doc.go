// Package house holds the rules of the house, which are tests only: which package may import which, what may be
// linked into a function's binary, and which top-level folders there are.
package house
