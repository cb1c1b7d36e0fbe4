package dynamodb

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// maxExpiredAge: items that expired longer ago stay, a guard against times in a wrong unit ("Using time to live
// (TTL) in DynamoDB").
const maxExpiredAge = 5 * 365 * 24 * time.Hour

type ttlSpec struct {
	AttributeName string
	Enabled       bool
}

func (s *Server) updateTimeToLive(in struct {
	TableName               string
	TimeToLiveSpecification ttlSpec
}) (map[string]ttlSpec, error) {
	spec := in.TimeToLiveSpecification
	if spec.AttributeName == "" || len(spec.AttributeName) > 255 {
		return nil, validationf("1 validation error detected: Value '%s' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length between 1 and 255", spec.AttributeName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(tableRequest{in.TableName})
	switch {
	case err != nil:
		return nil, err
	case spec.Enabled && t.ttl == spec.AttributeName:
		return nil, validationf("TimeToLive is already enabled")
	case spec.Enabled && t.ttl != "":
		return nil, validationf("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case !spec.Enabled && t.ttl == "":
		return nil, validationf("TimeToLive is already disabled")
	case !spec.Enabled && t.ttl != spec.AttributeName:
		return nil, validationf("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	}
	if t.ttl = ""; spec.Enabled {
		t.ttl = spec.AttributeName
	}
	return map[string]ttlSpec{"TimeToLiveSpecification": spec}, nil
}

type ttlDescription struct {
	TimeToLiveStatus string
	AttributeName    string `json:",omitempty"`
}

func (s *Server) describeTimeToLive(in tableRequest) (map[string]ttlDescription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.named(in)
	if err != nil {
		return nil, err
	}
	status := "DISABLED"
	if t.ttl != "" {
		status = "ENABLED"
	}
	return map[string]ttlDescription{"TimeToLiveDescription": {status, t.ttl}}, nil
}

// SweepExpired deletes what time to live has run out for, in all tables, and returns how many items that were.
// DynamoDB does this in the background, within days; here the owner of the server says when. Until then expired
// items are there to read and write, as they are in DynamoDB. Only Numbers count as times, in seconds, and only
// those of the last five years.
func (s *Server) SweepExpired() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	deleted := 0
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		t := s.tables[name]
		if t.ttl == "" {
			continue
		}
		var expired []*record
		oldest, newest := secondsOf(now.Add(-maxExpiredAge)), secondsOf(now)
		t.rows.walk("", "", true, func(e entry) bool {
			if v, ok := e.rec.item[t.ttl]; ok && v.kind == "N" && v.num.compare(newest) < 0 && v.num.compare(oldest) >= 0 {
				expired = append(expired, e.rec)
			}
			return true
		})
		for _, rec := range expired {
			s.notice(t, rec, nil, timeToLive)
			t.replace(rec, nil)
		}
		deleted += len(expired)
	}
	return deleted
}

func secondsOf(t time.Time) number {
	n, _ := parseNumber(strconv.FormatInt(t.Unix(), 10))
	return n
}
