package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Settle ends the entry's work: done or skipped, to be deleted after the retention, or parked, to wait for a person.
// Meeting the entry settled so under its own generation is success.
//
// Errors: ErrLeaseLost.
func (s *Store) Settle(ctx context.Context, c Claim, t Settlement) error {
	if !t.Status.Settled() {
		return fmt.Errorf("settling %s: %q is no status to settle in", c.Entry.Key, t.Status)
	}
	now := s.now()
	x := newExpression()
	x.when(x.live(now.Unix()), x.mine(c.Generation))
	x.set(str(string(t.Status)), attrStatus)
	x.set(number(now.UnixMilli()), attrSettledMS)
	x.remove(attrLeaseUntilMS)
	if t.Charge {
		x.add(1, attrAttempts)
	}
	x.marks(t.Steps)
	x.reason(t.Class, t.Error)
	x.remove(attrFirstWaitMS, attrWaitsOn)
	if t.Status == Parked {
		x.set(str(openPartition("parked", c.Entry.Key)), attrOpen)
		x.set(failures(c.Entry.Steps, t.Steps), attrFailures)
		if t.Class != ClassLease { // what kills its process is still a suspect when it is replayed
			x.remove(attrSuspect)
		}
	} else {
		x.remove(attrOpen, attrFailures, attrSuspect, attrToken)
		x.set(number(s.deleteAfter(now)), attrDeleteAfterS)
	}
	return s.finish(ctx, c, x, t.Status, "settling")
}

// Release hands the entry back, to be claimed again later. Meeting it so under its own generation is success.
//
// Errors: ErrLeaseLost.
func (s *Store) Release(ctx context.Context, c Claim, r Releasing) error {
	now := s.now()
	x := newExpression()
	x.when(x.live(now.Unix()), x.mine(c.Generation))
	x.set(str(string(Recorded)), attrStatus)
	x.remove(attrLeaseUntilMS)
	if r.Charge {
		x.add(1, attrAttempts)
	}
	if len(r.Steps) > 0 {
		x.marks(r.Steps)
		x.set(failures(c.Entry.Steps, r.Steps), attrFailures)
	}
	unrun := r.Suspect && r.Class == "" && r.Error == ""
	if !unrun { // handed back unrun, nothing was learnt: what is known of the last attempt stays
		x.reason(r.Class, r.Error)
	}
	if !r.Suspect {
		x.remove(attrSuspect)
	}
	switch {
	case r.WaitsOn == "":
		if !unrun {
			x.remove(attrFirstWaitMS, attrWaitsOn)
		}
	case r.WaitsOn != c.Entry.WaitsOn || c.Entry.FirstWaitMS == 0:
		x.set(number(now.UnixMilli()), attrFirstWaitMS)
		x.set(str(r.WaitsOn), attrWaitsOn)
	}
	return s.finish(ctx, c, x, Recorded, "releasing")
}

// finish sends the last write of a claim, which leads to status.
func (s *Store) finish(ctx context.Context, c Claim, x *expression, status Status, doing string) error {
	_, err := s.update(ctx, c.Entry.Key, x, types.ReturnValueNone)
	if old, failed := conditionFailed(err); failed {
		if e := entryOf(old); e.Status == status && e.Generation == c.Generation {
			return nil
		}
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, c.Entry.Key, err)
	}
	return nil
}

// marks writes the outcomes that stand, each by its path, beside those a Commit wrote before.
func (x *expression) marks(steps map[string]Step) {
	for _, handler := range sortedKeys(steps) {
		if step := steps[handler]; step.stands() {
			x.set(stepValue(step), attrSteps, handler)
		}
	}
}

// failures is what is known of the steps that do not stand: as claimed, and after this attempt.
func failures(claimed, now map[string]Step) types.AttributeValue {
	it := item{}
	for _, steps := range []map[string]Step{claimed, now} {
		for handler, step := range steps {
			if delete(it, handler); !step.stands() {
				it[handler] = stepValue(step)
			}
		}
	}
	return &types.AttributeValueMemberM{Value: it}
}

// reason writes why the attempt ended so, or forgets the last one's reason.
func (x *expression) reason(class Class, text string) {
	if class != "" {
		x.set(str(string(class)), attrErrorClass)
	} else {
		x.remove(attrErrorClass)
	}
	if text != "" {
		x.set(str(cut(text, maxError)), attrLastError)
	} else {
		x.remove(attrLastError)
	}
}

func (s *Store) deleteAfter(now time.Time) int64 { return now.Add(s.retention).Unix() }
