// Package crash kills the functions under load and counts what is left: how many events were sent, acknowledged, done
// once, lost, doubled and done out of order.
//
// # Load
//
// The laptop runs the built binaries. Customers, each with a chain of events, are played by package sender as Stripe
// would: what is not answered 2xx comes again, one delivery in twenty comes twice. Of a chain the next event is sent
// when the one before was acknowledged, so that the order of acceptance is known without asking the system.
//
// # Kills
//
// Every few seconds one process of a function gets SIGKILL, by its pid; twice all processes of all functions do. The host
// starts new ones, as Lambda does. What a killed processor had claimed comes back when its lease has run out, about 36 s
// later; killed between the receive and its first call, three minutes later (in the small run as much as the first).
//
// # Count
//
// When everything acknowledged is settled, or patience is over, effects are counted from the rows of the journal, whose
// count is added to and so shows a second time. Acknowledged and without one: lost. More than one: doubled. The order
// is that in which the local DynamoDB applied the journal's transactions; an event behind a later one of its chain is
// out of order. An event that was never acknowledged may be done or not, but never twice.
package crash
