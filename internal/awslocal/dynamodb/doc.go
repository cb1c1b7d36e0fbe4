// Package dynamodb is an in-memory DynamoDB: the part of Amazon DynamoDB the pipeline, its operators and its tests
// use, served as an http.Handler that the AWS SDKs and the aws command talk to.
//
// It is held to what the Amazon DynamoDB Developer Guide and API Reference say, errors included, and where those
// are silent to what AWS's own DynamoDB Local does. What it does not know is refused with an error, an unknown
// operation as much as an unknown parameter: nothing looks as if it had worked. Not there on purpose: provisioned
// capacity, local secondary indexes, UpdateTable, PartiQL, backups, and the legacy conditional parameters that
// expressions replaced. Requests are not authenticated.
//
// # How it is built
//
// Items and values never change once stored: a write replaces a record, an update builds new values around the
// parts that stay. So one mutex guards all tables and is held only to find, test and replace; JSON is decoded,
// expressions are parsed and replies are encoded without it.
//
// A table and each of its indexes is one list of records sorted by an encoded key: a hash of the partition key, the
// partition key, the sort key and, in an index, the key of the table behind it. The encoding has the byte order of
// the values, numbers included, so a Query is a range of strings, a page ends at a string and the next begins after
// it, also among equal index keys, and a parallel Scan is a range of hashes. An index holds only the items that have
// its key, and is kept with every write: a Query of a sparse index never sees the rest of the table. The order of a
// Scan is arbitrary but always the same.
//
// # Time
//
// The clock is an option. There is no background work: expired items stay until the owner calls SweepExpired, and
// tokens of transactions are forgotten when the next transaction comes.
package dynamodb
