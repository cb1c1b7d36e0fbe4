package sim

import (
	"strconv"
	"time"
)

// dice decides. It holds no state: a decision is a hash of the seed and of what it is about, so that it is the same
// whoever decides first.
type dice uint64

// about returns the dice for something.
func (d dice) about(what ...string) dice {
	h := uint64(d) ^ 0xcbf29ce484222325
	for _, text := range what {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 0x100000001b3
		}
		h = (h ^ 0xff) * 0x100000001b3
	}
	return dice(mix(h))
}

// at returns the dice for a moment.
func (d dice) at(t time.Time) dice { return dice(mix(uint64(d) ^ mix(uint64(t.UnixNano())))) }

// number returns the dice for the n-th of something.
func (d dice) number(n int) dice { return d.about(strconv.Itoa(n)) }

// below is a number from 0 to n-1.
func (d dice) below(n int) int { return int(uint64(d) % uint64(n)) }

// share is a number in [0, 1).
func (d dice) share() float64 { return float64(uint64(d)>>11) / (1 << 53) }

// chance is true with probability p.
func (d dice) chance(p float64) bool { return d.share() < p }

// between is a time from low to high.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.share()*float64(high-low))
}

// mix is the finalizer of SplitMix64: each bit of the result depends on all of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
