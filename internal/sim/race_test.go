//go:build race

package sim

// raced says that the race detector is on, which makes everything several times slower.
const raced = true
