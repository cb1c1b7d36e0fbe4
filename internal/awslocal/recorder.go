package awslocal

import (
	"cmp"
	"slices"
	"sync"
)

// Recorder counts the permissions callers used. It is safe for concurrent
// use; its zero value is ready, and a nil one records nothing.
type Recorder struct {
	mu   sync.Mutex
	uses map[use]int
}

type use struct {
	caller string
	Permission
}

// Use is how often one caller needed one permission.
type Use struct {
	Caller string
	Permission
	Count int
}

func (r *Recorder) record(c *Call) {
	if r == nil {
		return
	}
	perms := c.Permissions()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uses == nil {
		r.uses = map[use]int{}
	}
	for _, p := range perms {
		r.uses[use{c.Caller, p}]++
	}
}

// Uses returns what was recorded so far, in the order of caller, action and
// resource. A call counts when it is made, also when a fault stops it: IAM
// would have been asked.
func (r *Recorder) Uses() []Use {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Use, 0, len(r.uses))
	for u, n := range r.uses {
		list = append(list, Use{Caller: u.caller, Permission: u.Permission, Count: n})
	}
	slices.SortFunc(list, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}
