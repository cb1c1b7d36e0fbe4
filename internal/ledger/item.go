package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/schema"
)

// The attributes of an entry. This file alone turns entries into items and back. What is empty, zero or false is not
// stored: every byte of an item is paid for at each of its writes. What is unknown is ignored and left alone, so that
// a later version can add attributes while this one still runs.
const (
	attrStatus        = "status"
	attrType          = "type"
	attrCreatedS      = "created_s"
	attrAccount       = "account"
	attrLivemode      = "livemode"
	attrAPIVersion    = "api_version"
	attrObjectID      = "object_id"
	attrGroup         = "group"
	attrOrigin        = "origin"
	attrBody          = "body"
	attrCodec         = "codec"
	attrRecordedMS    = schema.RecordedMS
	attrFirstRecorded = "first_recorded_ms"
	attrSettledMS     = "settled_ms"
	attrToken         = "token"
	attrGeneration    = "generation"
	attrLeaseUntilMS  = "lease_until_ms"
	attrAttempts      = "attempts"
	attrSteps         = "steps"    // the outcomes that stand, by handler
	attrFailures      = "failures" // the other steps' charged attempts and last errors, by handler
	attrSuspect       = "suspect"
	attrLastError     = "last_error"
	attrErrorClass    = "error_class"
	attrFirstWaitMS   = "first_wait_ms"
	attrWaitsOn       = "waits_on"
	attrOpen          = schema.Open
	attrSweeps        = "sweeps"
	attrSweptMS       = "swept_ms"
	attrReplay        = "replay"
	attrRun           = "run"
	attrReplays       = "replays"
	attrDeleteAfterS  = schema.DeleteAfterS
)

// withoutBody lists what a listing projects: everything but the body.
var withoutBody = []string{
	schema.PK, attrStatus, attrType, attrCreatedS, attrAccount, attrLivemode, attrAPIVersion, attrObjectID, attrGroup,
	attrOrigin, attrCodec, attrRecordedMS, attrFirstRecorded, attrSettledMS, attrToken, attrGeneration,
	attrLeaseUntilMS, attrAttempts, attrSteps, attrFailures, attrSuspect, attrLastError, attrErrorClass,
	attrFirstWaitMS, attrWaitsOn, attrOpen, attrSweeps, attrSweptMS, attrReplay, attrRun, attrReplays, attrDeleteAfterS,
}

// Bounds of text that comes from outside. An entry grows by them after it was recorded; headroom keeps that growth
// possible for the largest body.
const (
	maxError     = 1024 // bytes of last_error
	maxStepError = 256  // bytes of one step's error
	maxWho       = 256  // bytes of who and why of a replay
	keptReplays  = 5

	maxItem = 400 * 1024 // Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB"

	writeUnit = 1024 // Amazon DynamoDB Developer Guide, "DynamoDB read and write operations"

	// The names body and codec and the value of the latter, 11; generation, lease_until_ms, steps and a longer token
	// of a claim, 48. A done entry is smaller by its token and open.
	growth = 64

	// last_error 1 KB, ten steps of 400 bytes, five replays of 700, a token, numbers and names: under 10 KB.
	headroom = 16 * 1024
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// fields is an item that takes what is not empty.
type fields item

func (it fields) str(name, s string) {
	if s != "" {
		it[name] = str(s)
	}
}

func (it fields) number(name string, n int64) {
	if n != 0 {
		it[name] = number(n)
	}
}

func (it fields) flag(name string, b bool) {
	if b {
		it[name] = boolean(true)
	}
}

// recording is the item Record writes, without the body.
func recording(r Recording, nowMS int64) item {
	it := fields{
		schema.PK:      str(string(r.Key)),
		attrStatus:     str(string(Recorded)),
		attrRecordedMS: number(nowMS),
		attrOpen:       str(openPartition("todo", r.Key)),
	}
	it.str(attrType, r.Type)
	it.number(attrCreatedS, r.CreatedS)
	it.str(attrAccount, r.Account)
	it.flag(attrLivemode, r.Livemode)
	it.str(attrAPIVersion, r.APIVersion)
	it.str(attrObjectID, r.ObjectID)
	it.str(attrGroup, r.Group)
	it.str(attrOrigin, string(r.Origin))
	it.str(attrToken, short(r.Token))
	return item(it)
}

// entryOf reads an item, without its body. Attributes of another kind than expected read as absent.
func entryOf(it item) Entry {
	e := Entry{
		Key:             Key(getStr(it, schema.PK)),
		Status:          Status(getStr(it, attrStatus)),
		Type:            getStr(it, attrType),
		CreatedS:        getNumber(it, attrCreatedS),
		Account:         getStr(it, attrAccount),
		Livemode:        getFlag(it, attrLivemode),
		APIVersion:      getStr(it, attrAPIVersion),
		ObjectID:        getStr(it, attrObjectID),
		Group:           getStr(it, attrGroup),
		Origin:          Origin(getStr(it, attrOrigin)),
		Codec:           getStr(it, attrCodec),
		RecordedMS:      getNumber(it, attrRecordedMS),
		FirstRecordedMS: getNumber(it, attrFirstRecorded),
		SettledMS:       getNumber(it, attrSettledMS),
		Token:           getStr(it, attrToken),
		Generation:      getNumber(it, attrGeneration),
		LeaseUntilMS:    getNumber(it, attrLeaseUntilMS),
		Attempts:        int(getNumber(it, attrAttempts)),
		Steps:           stepsOf(it),
		Suspect:         getFlag(it, attrSuspect),
		LastError:       getStr(it, attrLastError),
		Class:           Class(getStr(it, attrErrorClass)),
		FirstWaitMS:     getNumber(it, attrFirstWaitMS),
		WaitsOn:         getStr(it, attrWaitsOn),
		Open:            getStr(it, attrOpen),
		Sweeps:          int(getNumber(it, attrSweeps)),
		SweptMS:         getNumber(it, attrSweptMS),
		Replay:          int(getNumber(it, attrReplay)),
		Run:             int(getNumber(it, attrRun)),
		Replays:         replaysOf(it),
		DeleteAfterS:    getNumber(it, attrDeleteAfterS),
	}
	e.EventID = e.Key.EventID()
	if e.FirstRecordedMS == 0 {
		e.FirstRecordedMS = e.RecordedMS
	}
	return e
}

func (s *Store) withBody(it item) (Entry, error) {
	e := entryOf(it)
	packed, _ := it[attrBody].(*types.AttributeValueMemberB)
	if packed == nil {
		return e, fmt.Errorf("%w: there is none", ErrCodec)
	}
	body, err := s.codec.Unpack(packed.Value, e.Codec)
	e.Body = body
	return e, err
}

func getStr(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func getNumber(it item, name string) int64 {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseInt(v.Value, 10, 64)
		return n
	}
	return 0
}

func getFlag(it item, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func getMap(it item, name string) item {
	if v, ok := it[name].(*types.AttributeValueMemberM); ok {
		return v.Value
	}
	return nil
}

// The attributes of a step and of a replay.
const (
	attrOutcome = "outcome"
	attrClass   = "class"
	attrError   = "error"
	attrBy      = "by"
	attrWhy     = "why"
	attrAtMS    = "at_ms"
	attrHandler = "handler"
)

func stepValue(s Step) types.AttributeValue {
	it := fields{}
	it.str(attrOutcome, string(s.Outcome))
	it.number(attrAttempts, int64(s.Attempts))
	it.str(attrClass, string(s.Class))
	it.str(attrError, cut(s.Error, maxStepError))
	return &types.AttributeValueMemberM{Value: item(it)}
}

func stepsOf(it item) map[string]Step {
	marks, failures := getMap(it, attrSteps), getMap(it, attrFailures)
	if len(marks)+len(failures) == 0 {
		return nil
	}
	steps := make(map[string]Step, len(marks)+len(failures))
	for _, m := range []item{failures, marks} { // an outcome that stands hides the failures before it
		for handler, v := range m {
			if s, ok := v.(*types.AttributeValueMemberM); ok {
				steps[handler] = Step{
					Outcome:  Status(getStr(s.Value, attrOutcome)),
					Attempts: int(getNumber(s.Value, attrAttempts)),
					Class:    Class(getStr(s.Value, attrClass)),
					Error:    getStr(s.Value, attrError),
				}
			}
		}
	}
	return steps
}

// stands reports whether a step's outcome outlives a replay of the parked entry.
func (s Step) stands() bool { return s.Outcome == Done || s.Outcome == Skipped }

func replayValue(r Replayed) types.AttributeValue {
	it := fields{}
	it.str(attrBy, cut(r.By, maxWho))
	it.str(attrWhy, cut(r.Why, maxWho))
	it.number(attrAtMS, r.AtMS)
	it.str(attrHandler, r.Handler)
	it.str(attrToken, short(r.Token))
	return &types.AttributeValueMemberM{Value: item(it)}
}

// replaysOf reads the last replays, oldest first. They are stored as a ring: replay n stands at (n-1) mod 5, so that
// one is added without reading the others.
func replaysOf(it item) []Replayed {
	list, _ := it[attrReplays].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	var replays []Replayed
	for _, v := range list.Value {
		if m, ok := v.(*types.AttributeValueMemberM); ok {
			replays = append(replays, Replayed{
				By:      getStr(m.Value, attrBy),
				Why:     getStr(m.Value, attrWhy),
				AtMS:    getNumber(m.Value, attrAtMS),
				Handler: getStr(m.Value, attrHandler),
				Token:   getStr(m.Value, attrToken),
			})
		}
	}
	if n := int(getNumber(it, attrReplay)); n > len(replays) && len(replays) == keptReplays {
		oldest := n % keptReplays
		replays = slices.Concat(replays[oldest:], replays[:oldest])
	}
	return replays
}

// sizeOf is the item's size as DynamoDB counts it (Amazon DynamoDB Developer Guide, "DynamoDB item sizes and
// formats"): names and text by their UTF-8 bytes, a number by half its digits and one more, a flag or null 1, a list
// or map 3 and 1 for each element.
func sizeOf(it item) int {
	size := 0
	for name, v := range it {
		size += len(name) + sizeOfValue(v)
	}
	return size
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberL:
		size := 3 + len(v.Value)
		for _, element := range v.Value {
			size += sizeOfValue(element)
		}
		return size
	default:
		return 1
	}
}

// short is a token as it is stored: a claim's, which is a message id and a count, is 38 bytes, and 96 bits of it tell
// it from any other as well.
func short(token string) string {
	if len(token) <= 16 {
		return token
	}
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// cut shortens s to at most max bytes, between two characters.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// sortedKeys makes expressions the same each time they are built.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
