// Package ledger keeps one entry for each event: the truth about what was received and what became of it.
//
// # One write
//
// Every transition is one conditional write to the entry's item (a step's is part of one transaction with its effects),
// never a read and then a write. A condition that fails returns the item it met (ReturnValuesOnConditionCheckFailure),
// and what to answer is decided from that item, without a second read. The store keeps nothing between calls, waits for
// nothing and has no clock of its own.
//
// # The state machine
//
// States as the store tells them apart. "expired" is an entry past its time to live that DynamoDB has not deleted yet;
// every condition takes it for absent. "suspect" is a recorded entry with the suspect mark. "mine" is processing under
// the generation and token of the caller; "held" is processing under another's, its lease live; "lapsed" is processing
// under the caller's generation with its lease passed, which nobody has noticed yet; processing without any lease, which
// nothing here writes, counts as that. "foreign" is a status that is none of these: of a later version, or written by a
// person. Nothing is done to it, and nobody is told that it is settled.
//
// The operations: claim takes an entry; alone is the claim of a suspect in its turn, as it was seen; unclaim gives back
// a claim whose reply was lost; step is a Commit; sweep is Swept. "other" is every state that an operation does not
// name. "=" is the same state, answers name the error or say ok. Writes are the attributes that change: "-name" is
// removed, "name+" goes up by one; "all" is the whole item, written anew.
//
//	state      operation  becomes     answer        writes
//	absent     record     recorded    new           all
//	expired    record     recorded    new           all
//	other      record     =           found
//
//	recorded   claim      processing  ok            status generation+ lease_until_ms token steps
//	suspect    claim      =           SuspectError
//	lapsed     claim      =           SuspectError
//	held       claim      =           HeldError
//	mine       claim      =           ok
//	done       claim      =           SettledError
//	skipped    claim      =           SettledError
//	parked     claim      =           SettledError
//	foreign    claim      =           ErrStatus
//	other      claim      =           ErrNotFound
//
//	suspect    alone      processing  ok            status generation+ lease_until_ms token steps
//	lapsed     alone      processing  ok            generation+ lease_until_ms token attempts+ suspect last_error error_class
//	mine       alone      =           ok
//	held       alone      =           HeldError
//	recorded   alone      =           SuspectError
//	done       alone      =           SettledError
//	skipped    alone      =           SettledError
//	parked     alone      =           SettledError
//	foreign    alone      =           ErrStatus
//	other      alone      =           ErrNotFound
//
//	mine       unclaim    recorded    ok            status -lease_until_ms
//	other      unclaim    =           ok
//
//	mine       step       =           ok            steps
//	lapsed     step       =           ok            steps
//	other      step       =           ErrLeaseLost
//
//	mine       done       done        ok            status settled_ms delete_after_s -token -open -lease_until_ms -suspect -last_error -error_class -first_wait_ms -waits_on -failures
//	lapsed     done       done        ok            status settled_ms delete_after_s -token -open -lease_until_ms -suspect -last_error -error_class -first_wait_ms -waits_on -failures
//	other      done       =           ErrLeaseLost
//
//	mine       skip       skipped     ok            status settled_ms delete_after_s last_error -token -open -lease_until_ms -suspect -error_class -first_wait_ms -waits_on -failures
//	lapsed     skip       skipped     ok            status settled_ms delete_after_s last_error -token -open -lease_until_ms -suspect -error_class -first_wait_ms -waits_on -failures
//	other      skip       =           ErrLeaseLost
//
//	mine       park       parked      ok            status settled_ms open attempts+ failures last_error error_class -lease_until_ms -suspect -first_wait_ms -waits_on
//	lapsed     park       parked      ok            status settled_ms open attempts+ failures last_error error_class -lease_until_ms -suspect -first_wait_ms -waits_on
//	other      park       =           ErrLeaseLost
//
//	mine       release    recorded    ok            status attempts+ failures last_error error_class -lease_until_ms -suspect -first_wait_ms -waits_on
//	lapsed     release    recorded    ok            status attempts+ failures last_error error_class -lease_until_ms -suspect -first_wait_ms -waits_on
//	other      release    =           ErrLeaseLost
//
//	mine       wait       recorded    ok            status first_wait_ms waits_on last_error error_class -lease_until_ms -suspect
//	lapsed     wait       recorded    ok            status first_wait_ms waits_on last_error error_class -lease_until_ms -suspect
//	other      wait       =           ErrLeaseLost
//
//	parked     replay     recorded    ok            status open recorded_ms first_recorded_ms replay+ replays token -settled_ms -attempts -sweeps -swept_ms -failures -first_wait_ms -waits_on
//	absent     replay     =           ErrNotFound
//	expired    replay     =           ErrNotFound
//	other      replay     =           ErrConflict
//
//	done       again      recorded    ok            status open recorded_ms first_recorded_ms replay+ run replays token steps -settled_ms -delete_after_s -attempts -sweeps -swept_ms -failures -first_wait_ms -waits_on
//	absent     again      =           ErrNotFound
//	expired    again      =           ErrNotFound
//	other      again      =           ErrConflict
//
//	parked     discard    skipped     ok            status settled_ms delete_after_s last_error error_class -open -suspect -failures
//	absent     discard    =           ErrNotFound
//	expired    discard    =           ErrNotFound
//	other      discard    =           ErrConflict
//
//	recorded   shelve     parked      ok            status settled_ms open steps failures last_error error_class -first_wait_ms -waits_on
//	suspect    shelve     parked      ok            status settled_ms open steps failures last_error error_class -first_wait_ms -waits_on
//	parked     shelve     =           ok
//	mine       shelve     =           HeldError
//	held       shelve     =           HeldError
//	lapsed     shelve     =           HeldError
//	done       shelve     =           SettledError
//	skipped    shelve     =           SettledError
//	foreign    shelve     =           ErrStatus
//	other      shelve     =           ErrNotFound
//
//	recorded   sweep      =           ok            sweeps+ swept_ms
//	suspect    sweep      =           ok            sweeps+ swept_ms
//	lapsed     sweep      =           ok            sweeps+ swept_ms
//	absent     sweep      =           ErrNotFound
//	expired    sweep      =           ErrNotFound
//	other      sweep      =           ErrConflict
//
// Done, skip and park are Settle; release and wait are Release, charged and uncharged; again is the Replay of an entry
// that is done or skipped; shelve is Park. A test reads this table and tries every state with every operation, applied,
// applied with the reply lost, and not applied; what is not as written here fails it.
//
// # Own token: the SDK retries
//
// A write can have been applied though its reply was lost; the SDK's retry then meets its own write. That is success
// for each operation, told by what it left: Record and Claim by their token; Settle and Release by the claim's
// generation, which no other claim has had, in the state they lead to; a step by its mark under the claim's generation,
// and before that by the transaction's request token; Replay by its token among the last five replays, whatever became
// of the entry since; Swept by its millisecond; Discard by its words; Park and Unclaim by there being nothing left to
// do. Tokens must therefore be new for each delivery, receive and replay.
//
// # What a crash leaves behind, and who heals it
//
//	after record, before the enqueue       recorded, and no message: Stripe's next delivery enqueues it, else the sweep
//	after the enqueue, before the 200      recorded: Stripe comes again and finds a duplicate
//	after the claim                        processing: when the lease has passed, the next receive of the message finds
//	                                       it lapsed, and claims it alone; the attempt is charged
//	after a step                           the same; the mark keeps the step from running again
//	after release, before the message      recorded: the message comes back by its visibility time-out
//	is handed back
//	after settle, before the message       done, skipped or parked: the next receive meets SettledError and lets it go
//	is let go
//	after the dead-letter message, before  processing, and a ghost in the dead-letter queue: tidied, since the entry is
//	settle parked                          not parked at its generation
//	after replay or discard, before the    recorded: the sweep enqueues it; what is left in the dead-letter queue is
//	enqueue or the tidying                 tidied
//	after a sweep is counted, before its   recorded or lapsed: the next sweep, at twice the age
//	message is sent
//
// # Lease
//
// A claim raises the generation, and every later write names it: once another has claimed the entry, all of those fail
// with ErrLeaseLost. A lease ends with the millisecond it names. That it has passed is noticed by the next claim only,
// so a worker that is late but not replaced may still write; it is the worker that stops believing in its lease before.
// The entry of a lapsed claim is a suspect: it may have killed its process, and is only claimed by a caller that says
// it runs it alone. The mark stays while claims are handed back unrun or unclaimed, through parking when what parked it
// is the lease, and through a replay: it goes when an attempt ends by itself.
//
// Generations start afresh when an expired entry is recorded anew. Nothing of the first life is left by then: it was
// settled the whole retention before, and queue messages live 14 days.
//
// # Attempts
//
// The entry's attempts are charged by Settle and Release when asked, and by the claim that finds a lease run out. With
// several handlers each step has its own attempts, which the caller counts; a lease that ran out is the entry's. After
// a replay the entry starts at 0, and so does every step that is open again.
//
// # Steps
//
// Two maps, by handler: `steps` are the outcomes that stand (done, skipped), each written by its path, so that a Commit
// needs to know nothing of the others; `failures` is what is known of the rest, written whole at the end of an attempt.
// Replaying a parked entry is thereby the removal of `failures`, and needs no read. Entry.Steps shows both as one.
//
// # Time to live
//
// delete_after_s is set while an entry is done or skipped and never else: what is open or parked does not expire.
// DynamoDB deletes within days of it; past it, a delivery of the event is recorded as a new one.
//
// # Size
//
// DynamoDB bills a write by the whole item in units of 1 KB, and an event's life is three writes of it, so an ordinary
// event is to fit one: what is empty is not stored, long tokens are stored short, a done entry keeps none, and the body
// is packed with a dictionary of whole events (see Codec). A test measures it over all samples, with what is private in
// them replaced.
//
// The largest body is one that packs to 384 KB: the rest of the 400 an item can have is for what an entry gains.
package ledger
