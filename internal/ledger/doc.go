// Package ledger keeps one entry for each event: the truth about what was received and what became of it.
//
// The store's operations, which other packages name in small interfaces of their own:
//
//	Record(ctx, Recording) (RecordResult, error)
//	Claim(ctx, Claiming) (Claim, error)        *HeldError, *SuspectError, *SettledError, ErrNotFound
//	Commit(ctx, Claim, Commit) error           ErrLeaseLost, *StaleError, ErrUncommitted, ErrTooLarge
//	Settle(ctx, Claim, Settlement) error       ErrLeaseLost
//	Release(ctx, Claim, Releasing) error       ErrLeaseLost
//	Unclaim(ctx, Key, token string) error      after a Claim that ended in an error
//	Replay(ctx, Replaying) (Entry, error)      ErrConflict, ErrNotFound
//	Discard(ctx, Key, replay int, by, why string) error
//	Get(ctx, Key) (Entry, error)               with its body
//	Park(ctx, Key, Class, string) error        a recorded entry whose message cannot be understood
//	Swept(ctx, Entry) (Entry, error)           counts one sweep: compare-and-set on sweeps
//	Open(ctx, partition string, after Cursor, limit int) ([]Open, Cursor, error)   the sparse index, oldest first
package ledger
