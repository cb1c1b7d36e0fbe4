package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/schema"
)

// API is what the store calls of DynamoDB; *dynamodb.Client is one.
type API interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Store is the ledger in one DynamoDB table. It is safe for concurrent use. It never waits by itself: retries are
// those of the client it was given, and the time is what now says.
type Store struct {
	client    API
	table     string
	now       func() time.Time
	retention time.Duration
	codec     *Codec
}

// DefaultRetention is how long a settled entry is kept: Stripe retries for 3 days and lets people list and resend
// events for 30 (Stripe documentation, "Process undelivered webhook events"); 5 more for a clock or a weekend.
const DefaultRetention = 35 * 24 * time.Hour

// Option changes a Store.
type Option func(*Store)

// WithRetention sets how long after it was settled an entry is kept.
func WithRetention(d time.Duration) Option { return func(s *Store) { s.retention = d } }

// WithCodec gives the store a codec to share, or one that is not warm: who only reads needs no encoder. Without it
// New makes one and warms it, which takes milliseconds.
func WithCodec(c *Codec) Option { return func(s *Store) { s.codec = c } }

// New returns the ledger in the table, over the client. now is the clock.
func New(client API, table string, now func() time.Time, options ...Option) *Store {
	s := &Store{client: client, table: table, now: now, retention: DefaultRetention}
	for _, option := range options {
		option(s)
	}
	if s.codec == nil {
		s.codec = NewCodec()
		s.codec.Warm()
	}
	return s
}

// Record writes a new entry, or finds the one there is. Meeting an entry of the recording's own token is success: the
// reply of its write had been lost. An entry past its time to live is written over.
//
// Errors: ErrTooLarge when the packed body does not fit an item.
func (s *Store) Record(ctx context.Context, r Recording) (RecordResult, error) {
	now := s.now()
	it := recording(r, now.UnixMilli())
	body, codec := s.codec.Pack(r.Body, writeUnit-sizeOf(it)-growth)
	it[attrBody], it[attrCodec] = &types.AttributeValueMemberB{Value: body}, str(codec)
	if size := sizeOf(it); size > maxItem-headroom {
		return RecordResult{}, fmt.Errorf("recording %s: %w: %d bytes packed", r.Key, ErrTooLarge, size)
	}
	x := newExpression()
	x.when(x.absent(now.Unix()))
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &s.table,
		Item:                                it,
		ConditionExpression:                 x.condition(),
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		e := entryOf(old)
		return RecordResult{New: e.Token == short(r.Token) && e.Status == Recorded, Entry: e}, nil
	}
	if err != nil {
		return RecordResult{}, fmt.Errorf("recording %s: %w", r.Key, transient(err))
	}
	return RecordResult{New: true, Entry: entryOf(it)}, nil
}

// Claim takes an entry for work under a new generation, and returns it with its body. An entry that is recorded and
// no suspect is taken at once. A suspect, which is one whose last attempt ended by its lease running out, is only
// taken as the caller saw it, in Claiming.Suspect; a lease found run out is charged then.
//
// Errors: *HeldError, *SuspectError, *SettledError, ErrNotFound, ErrStatus; with ErrCodec the Claim is good but for its body.
func (s *Store) Claim(ctx context.Context, c Claiming) (Claim, error) {
	now := s.now()
	x := newExpression()
	x.when(x.live(now.Unix()))
	if seen := c.Suspect; seen == nil {
		x.when(x.is(Recorded), "attribute_not_exists("+x.name(attrSuspect)+")")
	} else {
		x.when(x.is(seen.Status), x.equals(attrGeneration, seen.Generation), x.equals(attrReplay, int64(seen.Replay)))
		switch seen.Status {
		case Recorded:
		case Processing:
			x.when(x.lapsed(now.UnixMilli()))
			x.add(1, attrAttempts)
			x.set(boolean(true), attrSuspect)
			x.set(str("the lease ran out"), attrLastError)
			x.set(str(string(ClassLease)), attrErrorClass)
		default:
			return Claim{}, fmt.Errorf("claiming %s: %w", c.Key, &SettledError{*seen})
		}
	}
	x.set(str(string(Processing)), attrStatus)
	x.set(number(c.Until.UnixMilli()), attrLeaseUntilMS)
	x.set(str(short(c.Token)), attrToken)
	x.setIfAbsent(emptyMap(), attrSteps) // so that a step can be marked by its path
	x.add(1, attrGeneration)
	taken, err := s.update(ctx, c.Key, x, types.ReturnValueAllNew)
	if old, failed := conditionFailed(err); failed {
		if taken, err = claimed(old, c.Token, now); err != nil {
			return Claim{}, fmt.Errorf("claiming %s: %w", c.Key, err)
		}
	} else if err != nil {
		return Claim{}, fmt.Errorf("claiming %s: %w", c.Key, err)
	}
	e, err := s.withBody(taken)
	claim := Claim{Entry: e, Generation: e.Generation, Until: time.UnixMilli(e.LeaseUntilMS), Token: c.Token}
	if err != nil {
		return claim, fmt.Errorf("claiming %s: %w", c.Key, err)
	}
	return claim, nil
}

// claimed decides a claim whose condition failed, from the item it met: it is this claim's own, or why there is none.
func claimed(old item, token string, now time.Time) (item, error) {
	e := entryOf(old)
	switch {
	case absent(e, now):
		return nil, ErrNotFound
	case e.Status == Processing && e.Token == short(token):
		return old, nil
	case e.Status == Processing && e.LeaseUntilMS > now.UnixMilli():
		return nil, &HeldError{time.UnixMilli(e.LeaseUntilMS)}
	case e.Status.Settled():
		return nil, &SettledError{e}
	case !e.Status.Known():
		return nil, fmt.Errorf("%w: %q", ErrStatus, cut(string(e.Status), maxStepError))
	default: // a lease run out; or recorded, with the mark or moved on from the suspect the caller saw
		return nil, &SuspectError{e}
	}
}

// Unclaim gives back a claim whose outcome the caller does not know, because Claim ended in an error: if it was
// applied, the entry is recorded again, uncharged, and a suspect still one. If it was not, nothing happens. A claim
// that is applied after Unclaim is healed like a dead process: its lease runs out.
func (s *Store) Unclaim(ctx context.Context, key Key, token string) error {
	x := newExpression()
	x.when(x.live(s.now().Unix()), x.is(Processing), x.name(attrToken)+" = "+x.value(str(short(token))))
	x.set(str(string(Recorded)), attrStatus)
	x.remove(attrLeaseUntilMS)
	_, err := s.update(ctx, key, x, types.ReturnValueNone)
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	if err != nil {
		return fmt.Errorf("giving back %s: %w", key, err)
	}
	return nil
}

// update sends one conditional update and returns the attributes asked for.
func (s *Store) update(ctx context.Context, key Key, x *expression, returned types.ReturnValue) (item, error) {
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 primary(key),
		ConditionExpression:                 x.condition(),
		UpdateExpression:                    x.update(),
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValues:                        returned,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, transient(err)
	}
	return out.Attributes, nil
}

// conditionFailed reports whether a condition failed, and the item it met; without one there is none.
func conditionFailed(err error) (item, bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

// transient marks the error of a plain write that met a transaction on its item. The SDK does not retry it.
func transient(err error) error {
	var conflict *types.TransactionConflictException
	if errors.As(err, &conflict) {
		return fmt.Errorf("%w: %w", ErrUncommitted, err)
	}
	return err
}

// absent reports whether what a condition met counts as no entry.
func absent(e Entry, now time.Time) bool {
	return e.Key == "" || e.DeleteAfterS != 0 && e.DeleteAfterS < now.Unix()
}

func primary(key Key) item { return item{schema.PK: str(string(key))} }

func emptyMap() types.AttributeValue { return &types.AttributeValueMemberM{Value: item{}} }

// Partitions names the partitions of the open index: of what is to do, and of what is parked.
func Partitions() (todo, parked []string) {
	for n := range schema.OpenPartitions {
		todo = append(todo, "todo#"+strconv.Itoa(n))
		parked = append(parked, "parked#"+strconv.Itoa(n))
	}
	return todo, parked
}

func openPartition(kind string, key Key) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return kind + "#" + strconv.Itoa(int(h.Sum32()%schema.OpenPartitions))
}
