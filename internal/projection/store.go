package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/handler"
)

// Result is what became of a fact.
type Result int

// The results.
const (
	Applied       Result = iota + 1
	Stale                // a newer one was stored: dropped
	AppliedUnsure        // applied as the later arrival, and the row marked
)

// maxTries bounds how often a fact is decided anew because the row moved meanwhile. Events of one object are in one
// group, so another writer is rare and two are an accident.
const maxTries = 10

// ErrContended says that the row moved at every try. It is uncharged: the other writers are at fault.
var ErrContended = &contended{}

type contended struct{}

func (*contended) Error() string     { return "the row moved at every try" }
func (*contended) ErrorCode() string { return "RowConflict" }

// Store applies facts to rows of DynamoDB tables, and reads rows. It is safe for concurrent use.
type Store struct{ client *dynamodb.Client }

// New returns a store on client.
func New(client *dynamodb.Client) *Store { return &Store{client} }

// Get implements handler.Table: a consistent read of one row, nil where there is none.
func (s *Store) Get(ctx context.Context, table string, key map[string]string) (handler.Row, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: encodeKey(key), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, fmt.Errorf("read a row of %s: %w", table, err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return decodeRow(out.Item), nil
}

// Apply applies p, a fact of the event with this ledger key, unless a newer one is stored.
func (s *Store) Apply(ctx context.Context, eventKey string, p handler.Project) (Result, error) {
	incoming, err := factOf(eventKey, p)
	if err != nil {
		return 0, fmt.Errorf("apply a fact to %s: %w", p.Table, err)
	}
	// First without reading: most facts are newer than what is stored.
	w := newWrite(p, incoming)
	for range maxTries {
		row, err := s.update(ctx, w)
		if err != nil {
			return 0, fmt.Errorf("apply a fact to %s: %w", p.Table, err)
		}
		if row == nil {
			return w.result(), s.follow(ctx, eventKey, w)
		}
		w, err = decide(ctx, p, incoming, row)
		if err != nil {
			return 0, fmt.Errorf("decide which fact of %s is newer: %w", p.Table, err)
		}
		if w.nothing {
			return Stale, nil
		}
	}
	return 0, fmt.Errorf("apply a fact to %s: %w", p.Table, ErrContended)
}

// follow applies the facts that follow from one that was applied. A crash before leaves it to the retry, which finds
// its own fact stored, applies it again and gets here.
func (s *Store) follow(ctx context.Context, eventKey string, w write) error {
	if w.p.Then == nil || w.tieOnly {
		return nil
	}
	facts, err := w.p.Then(ctx, w.set)
	if err != nil {
		return fmt.Errorf("find what follows from a fact of %s: %w", w.p.Table, err)
	}
	for _, p := range facts {
		if _, err := s.Apply(ctx, eventKey, p); err != nil {
			return err
		}
	}
	return nil
}

// write is one conditional update of a row.
type write struct {
	p    handler.Project
	fact fact
	set  handler.Row

	seen    string   // the fact text it was decided from; empty: whatever is older
	ties    []string // to store
	unsure  bool     // to mark
	fresh   bool     // set is what Stripe says now
	tieOnly bool     // the fact is older: only remember that it was met
	nothing bool     // not even that
}

func newWrite(p handler.Project, incoming fact) write {
	return write{p: p, fact: incoming, set: p.Set}
}

// refetch replaces what is written by the object as it stands now. It reports false when that cannot be read.
func (w *write) refetch(ctx context.Context) (bool, error) {
	if w.p.Refetch == nil {
		return false, nil
	}
	fresh, err := w.p.Refetch(ctx)
	if errors.Is(err, handler.ErrNoRefetch) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("refetch: %w", err)
	}
	w.set, w.fact.terminal, w.fresh = fresh.Set, fresh.Terminal, true
	return true, nil
}

func (w write) result() Result {
	switch {
	case w.tieOnly:
		return Stale
	case w.unsure:
		return AppliedUnsure
	}
	return Applied
}

// decide chooses the next write from the row that the last one's condition met.
func decide(ctx context.Context, p handler.Project, incoming fact, row handler.Row) (write, error) {
	seen, _ := row[attribute(attrFact, p.Part)].(string)
	if seen == "" {
		return newWrite(p, incoming), nil
	}
	stored, err := parseFact(seen)
	if err != nil {
		return write{}, err
	}
	ties := tiesOf(row, p.Part)
	wasUnsure, _ := row[attribute(attrUnsure, p.Part)].(bool)
	w := newWrite(p, incoming)
	w.seen = seen
	switch {
	case stored.eventKey == incoming.eventKey:
		// Again: what was known about its second still holds. Where that was the object as Stripe had it, the event's
		// own snapshot may be older.
		w.ties, w.unsure = ties, wasUnsure
		if wasFresh, _ := row[attribute(attrRefetched, p.Part)].(bool); wasFresh {
			again, err := w.refetch(ctx)
			w.nothing = !again
			return w, err
		}
		return w, nil
	case stored.prefix() < incoming.prefix():
		return w, nil
	case stored.prefix() > incoming.prefix():
		w.nothing = true
		return w, nil
	}
	others := without(ties, incoming.eventID(), stored.eventID())
	decision := handler.Unsure
	if p.Decide != nil {
		decision, err = p.Decide(ctx, handler.Stored{
			Version:  stored.version(),
			EventKey: stored.eventKey,
			Terminal: stored.terminal,
			Ties:     slices.Clone(others),
			Row:      row,
		})
		if err != nil {
			return write{}, err
		}
	}
	switch decision {
	case handler.Newer:
		w.ties = append(others, stored.eventID())
	case handler.Older:
		w.tieOnly = true
		w.ties = append(others, incoming.eventID())
		w.nothing = slices.Contains(ties, incoming.eventID()) && !wasUnsure
	case handler.Unsure:
		if slices.Contains(ties, incoming.eventID()) {
			w.nothing = true // met before: what was decided then knew of both
			return w, nil
		}
		w.ties = append(others, stored.eventID())
		known, err := w.refetch(ctx)
		w.unsure = !known
		return w, err
	default:
		return write{}, fmt.Errorf("decision %d is none", decision)
	}
	return w, nil
}

// update writes w. A row that comes back without an error is the one its condition failed on.
func (s *Store) update(ctx context.Context, w write) (handler.Row, error) {
	in, err := w.input()
	if err != nil {
		return nil, err
	}
	_, err = s.client.UpdateItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return decodeRow(failed.Item), nil
	}
	return nil, err
}

func (w write) input() (*dynamodb.UpdateItemInput, error) {
	names := map[string]string{"#fact": attribute(attrFact, w.p.Part)}
	values := make(map[string]types.AttributeValue)
	condition := "attribute_not_exists(#fact) OR #fact < :older"
	if w.seen != "" {
		condition = "#fact = :seen"
		values[":seen"] = &types.AttributeValueMemberS{Value: w.seen}
	} else {
		values[":older"] = &types.AttributeValueMemberS{Value: w.fact.prefix()}
	}
	var sets, removes []string
	put := func(name string, value any) error {
		alias := "#a" + strconv.Itoa(len(names))
		names[alias] = name
		if value == nil {
			removes = append(removes, alias)
			return nil
		}
		encoded, err := encode(value)
		if err != nil {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
		values[":v"+alias[2:]] = encoded
		sets = append(sets, alias+" = :v"+alias[2:])
		return nil
	}
	if !w.tieOnly {
		values[":fact"] = &types.AttributeValueMemberS{Value: w.fact.text()}
		sets = append(sets, "#fact = :fact")
		for _, name := range slices.Sorted(maps.Keys(w.set)) {
			if err := put(name, w.set[name]); err != nil {
				return nil, err
			}
		}
	}
	// All are always written, so that what an older second left does not stay.
	if err := put(attribute(attrTies, w.p.Part), listOrNil(w.ties)); err != nil {
		return nil, err
	}
	marks := map[string]bool{attrUnsure: w.unsure}
	if !w.tieOnly {
		marks[attrRefetched] = w.fresh
	}
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		var mark any
		if marks[name] {
			mark = true
		}
		if err := put(attribute(name, w.p.Part), mark); err != nil {
			return nil, err
		}
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           &w.p.Table,
		Key:                                 encodeKey(w.p.Key),
		UpdateExpression:                    aws.String(expression(sets, removes)),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

func expression(sets, removes []string) string {
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return strings.Join(parts, " ")
}

func listOrNil(ids []string) any {
	if len(ids) == 0 {
		return nil
	}
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

func encodeKey(key map[string]string) map[string]types.AttributeValue {
	encoded := make(map[string]types.AttributeValue, len(key))
	for name, value := range key {
		encoded[name] = &types.AttributeValueMemberS{Value: value}
	}
	return encoded
}
