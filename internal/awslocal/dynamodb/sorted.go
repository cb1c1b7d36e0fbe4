package dynamodb

import (
	"slices"
	"strings"
)

// maxChunk bounds the work of one insertion into a sorted list.
const maxChunk = 512

// entry is a record under a key of the table or of an index.
type entry struct {
	key string
	rec *record
}

// sorted is a list of entries in the order of their keys, cut into chunks, so that finding, adding and removing
// stay cheap in large tables.
type sorted struct {
	chunks [][]entry
	count  int
}

// cursor is a place in a sorted list.
type cursor struct{ chunk, at int }

func byKey(e entry, key string) int { return strings.Compare(e.key, key) }

// seek finds the first entry whose key is not below the given one.
func (s *sorted) seek(key string) cursor {
	c, _ := slices.BinarySearchFunc(s.chunks, key, func(chunk []entry, key string) int {
		return byKey(chunk[len(chunk)-1], key)
	})
	if c == len(s.chunks) {
		return cursor{c, 0}
	}
	at, _ := slices.BinarySearchFunc(s.chunks[c], key, byKey)
	return cursor{c, at}
}

func (s *sorted) get(key string) *record {
	if c := s.seek(key); c.chunk < len(s.chunks) && s.chunks[c.chunk][c.at].key == key {
		return s.chunks[c.chunk][c.at].rec
	}
	return nil
}

func (s *sorted) set(key string, rec *record) {
	c := s.seek(key)
	if c.chunk == len(s.chunks) {
		if c.chunk == 0 {
			s.chunks = append(s.chunks, nil)
		} else {
			c.chunk--
		}
		c.at = len(s.chunks[c.chunk])
	}
	chunk := s.chunks[c.chunk]
	if c.at < len(chunk) && chunk[c.at].key == key {
		chunk[c.at].rec = rec
		return
	}
	s.count++
	chunk = slices.Insert(chunk, c.at, entry{key, rec})
	s.chunks[c.chunk] = chunk
	if len(chunk) > maxChunk {
		half := len(chunk) / 2
		s.chunks[c.chunk] = slices.Clip(chunk[:half])
		s.chunks = slices.Insert(s.chunks, c.chunk+1, slices.Clone(chunk[half:]))
	}
}

func (s *sorted) delete(key string) {
	c := s.seek(key)
	if c.chunk == len(s.chunks) || s.chunks[c.chunk][c.at].key != key {
		return
	}
	s.count--
	s.chunks[c.chunk] = slices.Delete(s.chunks[c.chunk], c.at, c.at+1)
	if len(s.chunks[c.chunk]) == 0 {
		s.chunks = slices.Delete(s.chunks, c.chunk, c.chunk+1)
	}
}

// walk visits the entries with low <= key < high, forward or backward, until visit returns false. An empty high
// has no upper end.
func (s *sorted) walk(low, high string, forward bool, visit func(entry) bool) {
	if forward {
		for c := s.seek(low); c.chunk < len(s.chunks); c.chunk, c.at = c.chunk+1, 0 {
			for _, e := range s.chunks[c.chunk][c.at:] {
				if high != "" && e.key >= high || !visit(e) {
					return
				}
			}
		}
		return
	}
	c := cursor{len(s.chunks), 0}
	if high != "" {
		c = s.seek(high)
	}
	for {
		for c.at--; c.at >= 0; c.at-- {
			if e := s.chunks[c.chunk][c.at]; e.key < low || !visit(e) {
				return
			}
		}
		if c.chunk--; c.chunk < 0 {
			return
		}
		c.at = len(s.chunks[c.chunk])
	}
}
