package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/handler"
)

// The attributes a part's fact is kept in; of the row as a whole without suffix.
const (
	attrFact      = "fact"
	attrTies      = "ties"
	attrUnsure    = "order_unsure"
	attrRefetched = "refetched"
)

// maxRank is the highest rank two digits hold.
const maxRank = 99

// maxCreatedS is the latest second twelve digits hold: the year 33658.
const maxCreatedS = 999_999_999_999

func attribute(name, part string) string {
	if part == "" {
		return name
	}
	return name + "_" + part
}

// fact is the version of what a row holds, and the event it is of.
type fact struct {
	terminal bool
	createdS int64
	rank     int
	eventKey string
}

func factOf(eventKey string, p handler.Project) (fact, error) {
	v := p.Version
	if v.CreatedS < 0 || v.CreatedS > maxCreatedS || v.Rank < 0 || v.Rank > maxRank {
		return fact{}, fmt.Errorf("the version %d, rank %d is out of range", v.CreatedS, v.Rank)
	}
	return fact{p.Terminal, v.CreatedS, v.Rank, eventKey}, nil
}

// prefix sorts before every fact that is not older than f, and after every one that is.
func (f fact) prefix() string {
	terminal := 0
	if f.terminal {
		terminal = 1
	}
	return fmt.Sprintf("%d%012d%02d", terminal, f.createdS, f.rank)
}

func (f fact) text() string { return f.prefix() + "#" + f.eventKey }

func (f fact) eventID() string { return f.eventKey[strings.LastIndexByte(f.eventKey, '#')+1:] }

func (f fact) version() handler.Version {
	return handler.Version{CreatedS: f.createdS, Rank: f.rank, EventID: f.eventID()}
}

func parseFact(text string) (fact, error) {
	prefix, key, found := strings.Cut(text, "#")
	if !found || len(prefix) != 15 {
		return fact{}, fmt.Errorf("the row's fact %q is not one", text)
	}
	created, err1 := strconv.ParseInt(prefix[1:13], 10, 64)
	rank, err2 := strconv.Atoi(prefix[13:])
	if err1 != nil || err2 != nil {
		return fact{}, fmt.Errorf("the row's fact %q is not one", text)
	}
	return fact{prefix[0] == '1', created, rank, key}, nil
}

// tiesOf returns the event ids in a row's ties.
func tiesOf(row handler.Row, part string) []string {
	list, _ := row[attribute(attrTies, part)].([]any)
	var ids []string
	for _, v := range list {
		if id, ok := v.(string); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// without returns ties less the two events that meet: neither is a third.
func without(ties []string, a, b string) []string {
	return slices.DeleteFunc(slices.Clone(ties), func(id string) bool { return id == a || id == b })
}

// Unsure reports whether any part of the row is marked as of unsure order.
func Unsure(row handler.Row) bool {
	for name, v := range row {
		if unsure, _ := v.(bool); unsure && (name == attrUnsure || strings.HasPrefix(name, attrUnsure+"_")) {
			return true
		}
	}
	return false
}

// Standing is a fact that a row holds, and the others of its second.
type Standing struct {
	Part       string // of the row; empty: the row as a whole
	EventKey   string // the ledger's key of the event that wrote it
	CreatedS   int64
	Terminal   bool
	Unsure     bool     // its order against the ties could not be told
	Refetched  bool     // the row holds what Stripe said when asked
	TiedEvents []string // event ids
}

// Facts returns the facts of a row, newest first.
func Facts(row handler.Row) []Standing {
	var facts []Standing
	for name, value := range row {
		part, isPart := strings.CutPrefix(name, attrFact+"_")
		text, isText := value.(string)
		if !isText || !isPart && name != attrFact {
			continue
		}
		if name == attrFact {
			part = ""
		}
		f, err := parseFact(text)
		if err != nil {
			continue
		}
		unsure, _ := row[attribute(attrUnsure, part)].(bool)
		refetched, _ := row[attribute(attrRefetched, part)].(bool)
		facts = append(facts, Standing{
			Part: part, EventKey: f.eventKey, CreatedS: f.createdS, Terminal: f.terminal, Unsure: unsure,
			Refetched: refetched, TiedEvents: tiesOf(row, part),
		})
	}
	slices.SortFunc(facts, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.CreatedS, a.CreatedS), cmp.Compare(a.Part, b.Part))
	})
	return facts
}
