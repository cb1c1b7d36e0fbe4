package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Bounds of a Commit (Amazon DynamoDB Developer Guide, "Amazon DynamoDB Transactions: How it works": 100 actions and
// 4 MB). One action is the entry's own.
const (
	MaxWrites   = 99
	maxTransact = 4 * 1024 * 1024
)

// Commit applies a step's effects and marks the step, all or nothing, under the claim's generation. A step found
// marked under it is success: the claim's caller does not run a step that was marked when it claimed, so the mark is
// this Commit's own, its reply having been lost.
//
// Errors: ErrLeaseLost; *StaleError when guarded rows have moved on; ErrUncommitted when the transaction met a
// conflict or was throttled, or its fate is unknown (compose again under the next composition number: if it was
// applied after all, that one meets the mark); ErrTooLarge; ErrInvalid.
func (s *Store) Commit(ctx context.Context, c Claim, commit Commit) error {
	err := s.commit(ctx, c, commit)
	if err != nil {
		return fmt.Errorf("committing %s of %s: %w", commit.Handler, c.Entry.Key, err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, c Claim, commit Commit) error {
	if !commit.Step.stands() {
		return fmt.Errorf("%q is no outcome to mark", commit.Step.Outcome)
	}
	if c.Entry.Steps[commit.Handler].stands() {
		return errors.New("the step was marked before the claim")
	}
	if len(commit.Writes) > MaxWrites {
		return fmt.Errorf("%w: %d effects", ErrTooLarge, len(commit.Writes))
	}
	x := newExpression()
	x.when(x.live(s.now().Unix()), x.mine(c.Generation),
		"attribute_not_exists("+x.name(attrSteps, commit.Handler)+")")
	x.set(stepValue(commit.Step), attrSteps, commit.Handler)
	actions := []types.TransactWriteItem{{Update: &types.Update{
		TableName:                           &s.table,
		Key:                                 primary(c.Entry.Key),
		ConditionExpression:                 x.condition(),
		UpdateExpression:                    x.update(),
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	size := 0
	rows := map[string]bool{}
	for i, w := range commit.Writes {
		action, bytes, err := w.action()
		if err != nil {
			return fmt.Errorf("effect %d: %w", i, err)
		}
		row := fmt.Sprintf("%q %q", w.Table, w.Key)
		if rows[row] {
			return fmt.Errorf("effect %d: a transaction writes a row once, and an effect before writes it, too", i)
		}
		rows[row] = true
		size += bytes
		actions = append(actions, action)
	}
	if size > maxTransact {
		return fmt.Errorf("%w: effects of %d bytes", ErrTooLarge, size)
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: requestToken(c, commit),
		TransactItems:      actions,
	})
	return committed(c, commit, err)
}

// committed reads a transaction's fate. What the ledger's condition met comes first, then the guards; a conflict or a
// throttle only counts where those held.
func committed(c Claim, commit Commit, err error) error {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return uncommitted(err)
	}
	reasons := canceled.CancellationReasons
	if len(reasons) != 1+len(commit.Writes) {
		return fmt.Errorf("%d reasons for %d actions: %w", len(reasons), 1+len(commit.Writes), err)
	}
	if code(reasons[0]) == conditionalCheckFailed {
		e := entryOf(reasons[0].Item)
		if e.Status == Processing && e.Generation == c.Generation && e.Steps[commit.Handler].stands() {
			return nil
		}
		return ErrLeaseLost
	}
	var stale StaleError
	busy := false
	for i, reason := range reasons {
		switch code(reason) {
		case "", "None":
		case conditionalCheckFailed:
			stale.Writes = append(stale.Writes, i-1)
			stale.Newer = append(stale.Newer, commit.Writes[i-1].newerFailed(reason.Item))
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			busy = true
		case "ItemCollectionSizeLimitExceeded":
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		default:
			switch message := stringOf(reason.Message); {
			case outgrown(message):
				return fmt.Errorf("%w: %w", ErrTooLarge, err)
			case code(reason) == "ValidationError":
				// Without err: as a whole it has the code of a conflict, which is nobody's fault.
				return fmt.Errorf("%w: action %d: %s", ErrInvalid, i, cut(message, maxStepError))
			}
			return err
		}
	}
	switch {
	case len(stale.Writes) > 0:
		return &stale
	case busy:
		return fmt.Errorf("%w: %w", ErrUncommitted, err)
	default:
		return err
	}
}

const conditionalCheckFailed = "ConditionalCheckFailed"

func code(r types.CancellationReason) string { return stringOf(r.Code) }

func stringOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// uncommitted marks the errors after which the same effects may simply be sent again, and the one after which never. A parameter mismatch means that
// the token was used with other effects, whose fate is unknown here: the next composition finds out.
func uncommitted(err error) error {
	var (
		conflict   *types.TransactionConflictException
		inProgress *types.TransactionInProgressException
		mismatch   *types.IdempotentParameterMismatchException
		provision  *types.ProvisionedThroughputExceededException
		throttled  *types.ThrottlingException
		limit      *types.RequestLimitExceeded
	)
	if errors.As(err, &conflict) || errors.As(err, &inProgress) || errors.As(err, &mismatch) ||
		errors.As(err, &provision) || errors.As(err, &throttled) || errors.As(err, &limit) {
		return fmt.Errorf("%w: %w", ErrUncommitted, err)
	}
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "ValidationException" && outgrown(refused.ErrorMessage()) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}

// outgrown reports whether a message says that a row would be over 400 KB: there is no code for it (Amazon DynamoDB
// API Reference, "TransactionCanceledException": "Item size has exceeded", "Item size to update has exceeded").
func outgrown(message string) bool {
	return strings.Contains(message, "exceeded the maximum allowed size")
}

// requestToken makes a transaction's retry within ten minutes meet itself (Amazon DynamoDB API Reference,
// "TransactWriteItems": at most 36 characters).
func requestToken(c Claim, commit Commit) *string {
	parts := strings.Join([]string{string(c.Entry.Key), strconv.FormatInt(c.Generation, 10),
		strconv.Itoa(c.Entry.Replay), commit.Handler, strconv.Itoa(commit.Composition)}, "\x00")
	sum := sha256.Sum256([]byte(parts))
	token := hex.EncodeToString(sum[:18])
	return &token
}

// action is the write as one action of a transaction, and the bytes it carries.
func (w Write) action() (types.TransactWriteItem, int, error) {
	if w.Table == "" || len(w.Key) == 0 {
		return types.TransactWriteItem{}, 0, errors.New("it names no row")
	}
	x := newExpression()
	key := item{}
	for name, v := range w.Key {
		key[name] = str(v)
	}
	size := sizeOf(key)
	if err := w.guards(x); err != nil {
		return types.TransactWriteItem{}, 0, err
	}
	if !w.Delete {
		if err := w.assignments(x); err != nil {
			return types.TransactWriteItem{}, 0, err
		}
	}
	size += sizeOf(x.values)
	for _, name := range x.names {
		size += len(name)
	}
	returned := types.ReturnValuesOnConditionCheckFailureNone
	if w.Newer != nil && len(w.Expect) > 0 {
		returned = types.ReturnValuesOnConditionCheckFailureAllOld // to tell which guard failed
	}
	var action types.TransactWriteItem
	switch {
	case w.Delete:
		action.Delete = &types.Delete{TableName: &w.Table, Key: key, ConditionExpression: x.condition(),
			ExpressionAttributeNames: orNil(x.names), ExpressionAttributeValues: orNil(x.values),
			ReturnValuesOnConditionCheckFailure: returned}
	case x.update() != nil:
		action.Update = &types.Update{TableName: &w.Table, Key: key, ConditionExpression: x.condition(),
			UpdateExpression:         x.update(),
			ExpressionAttributeNames: orNil(x.names), ExpressionAttributeValues: orNil(x.values),
			ReturnValuesOnConditionCheckFailure: returned}
	case x.condition() != nil:
		action.ConditionCheck = &types.ConditionCheck{TableName: &w.Table, Key: key, ConditionExpression: x.condition(),
			ExpressionAttributeNames: orNil(x.names), ExpressionAttributeValues: orNil(x.values),
			ReturnValuesOnConditionCheckFailure: returned}
	default:
		return types.TransactWriteItem{}, 0, errors.New("it neither writes nor checks anything")
	}
	return action, size, nil
}

func (w Write) guards(x *expression) error {
	for _, name := range sortedKeys(w.Expect) {
		if w.Expect[name] == nil {
			x.when("attribute_not_exists(" + x.name(name) + ")")
			continue
		}
		v, err := valueOf(w.Expect[name])
		if err != nil {
			return fmt.Errorf("expecting %s: %w", name, err)
		}
		x.when(x.name(name) + " = " + x.value(v))
	}
	if n := w.Newer; n != nil {
		x.when("(attribute_not_exists(" + x.name(n.Attribute) + ") OR " + x.name(n.Attribute) + " < " +
			x.value(str(n.Value)) + ")")
	}
	return nil
}

func (w Write) assignments(x *expression) error {
	for _, name := range sortedKeys(w.Set) {
		v, err := valueOf(w.Set[name])
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
		x.set(v, name)
	}
	for _, name := range sortedKeys(w.Add) {
		x.add(w.Add[name], name)
	}
	return nil
}

// newerFailed tells from the row met whether it was the Newer guard that failed: such an effect is dropped, whatever
// the other guards say. Without the row there was one kind of guard only.
func (w Write) newerFailed(met item) bool {
	if w.Newer == nil {
		return false
	}
	if len(w.Expect) == 0 {
		return true
	}
	v, ok := met[w.Newer.Attribute].(*types.AttributeValueMemberS)
	return ok && v.Value >= w.Newer.Value
}

// valueOf turns a plain value into DynamoDB's.
func valueOf(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case string:
		return str(v), nil
	case bool:
		return boolean(v), nil
	case int:
		return number(int64(v)), nil
	case int64:
		return number(v), nil
	case []byte:
		return &types.AttributeValueMemberB{Value: v}, nil
	case []any:
		list := make([]types.AttributeValue, 0, len(v))
		for i, element := range v {
			value, err := valueOf(element)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list = append(list, value)
		}
		return &types.AttributeValueMemberL{Value: slices.Clip(list)}, nil
	case map[string]any:
		it := make(item, len(v))
		for name, field := range v {
			value, err := valueOf(field)
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", name, err)
			}
			it[name] = value
		}
		return &types.AttributeValueMemberM{Value: it}, nil
	default:
		return nil, fmt.Errorf("a value of type %T cannot be stored", v)
	}
}

// orNil leaves out an empty map: DynamoDB refuses one.
func orNil[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}
