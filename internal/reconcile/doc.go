// Package reconcile heals what no delivery and no message will: it sweeps what was recorded and never finished.
//
// # Sweep
//
// Every minute it walks the index of entries to do, oldest first, and enqueues again what was recorded and has waited
// for 2, 4, 8 ... 60 minutes, and what is processing with its lease passed, at the same ages. The age counts from when
// the entry became to do, and the number of sweeps it has had says which age is next, so that an entry whose message
// was lost waits two minutes, and one whose customer has a long backlog is not enqueued every minute anew.
//
// A run enqueues at most the larger of 100 and one in a hundred of the messages the queue shows, so that a backlog is
// not multiplied, and nothing while the pipeline is paused. The sweep is counted in the entry before its message is
// sent: a crash between the two costs the time until the next age, never a second message under one number.
//
// Each partition of the index is walked by pages; where a run stops, for its budget or its deadline, the next one goes
// on. The cursors are in the control table, and losing them costs nothing but a walk from the start.
package reconcile
