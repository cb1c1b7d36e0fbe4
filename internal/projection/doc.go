// Package projection keeps rows that say how Stripe's objects stand, right in whatever order their events arrive.
//
// # Facts
//
// A handler's Project effect is a fact: the state of an object, or of one part of a row, as of a version. The row
// remembers the last fact of each part in one attribute, `fact` (or `fact_<part>`), as text that sorts by what
// counts:
//
//	<terminal 0|1><created, 12 digits><rank, 2 digits>#<ledger key of the event>
//
// so that "what is stored is older" is one comparison inside one conditional write, and the next write's condition
// can name exactly the fact it was decided from. Terminal comes first: nothing but a terminal fact is newer than a
// terminal one, whatever its time, so that all orders of arrival end the same way.
//
// # One write
//
// The usual case, no row or an older fact, is one conditional update and nothing else. When its condition fails
// DynamoDB returns the row it saw, and that row decides:
//
//	the stored fact is of the same event         applied again (a replay, or a retry of our own)
//	it is newer or terminal                      dropped as stale
//	same second, same rank, another event        a tie: the effect's Decide says newer, older or unsure
//	meanwhile older                              written again
//
// Each write that follows is conditional on the fact it was decided from, and the loop begins anew when that has
// moved. A crash leaves the row as it was or as it should be; nothing needs a fence, since a stalled worker's fact is
// stale by its version.
//
// # Ties
//
// Stripe's `created` has one-second resolution. The ids of the other events of the stored fact's second and rank stand in
// `ties` (or `ties_<part>`), whether they were applied or not, so that a third event of that second is seen as one.
// While nobody can say which is newer the effect's Refetch reads the object itself, inside the group's turn, and
// `refetched` (or `refetched_<part>`) says that the row holds what Stripe said rather than the event's snapshot. Where
// that cannot be read either the later arrival is kept and `order_unsure` (or `order_unsure_<part>`) is true. An event
// that was met already changes neither. The next newer fact clears all.
//
// # Values
//
// Row values are string, bool, int64, []any and map[string]any. nil removes an attribute: a row reads the same
// either way, and an index key must not be NULL.
package projection
