package secretsmanager

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	current  = "AWSCURRENT"
	previous = "AWSPREVIOUS"
)

// refused collects parameters that are accepted by AWS, would change the
// answer, and are not supported here.
type refused struct {
	AddReplicaRegions, Filters, RotationToken json.RawMessage
}

func (r refused) check() error {
	if r.AddReplicaRegions != nil || r.Filters != nil || r.RotationToken != nil {
		return fail("InvalidParameterException", "replicas, filters and rotation are not supported by the local Secrets Manager")
	}
	return nil
}

type value struct {
	SecretString *string
	SecretBinary []byte
}

func (v value) check() error {
	if v.SecretString != nil && v.SecretBinary != nil {
		return fail("InvalidParameterException", "You can't specify both a binary secret value and a string secret value in the same secret.")
	}
	size := len(v.SecretBinary)
	if v.SecretString != nil {
		size = len(*v.SecretString)
	}
	if size > maxValueBytes {
		return fail("ValidationException", "the secret value has %d bytes, at most %d are allowed", size, maxValueBytes)
	}
	return nil
}

func (v value) empty() bool { return v.SecretString == nil && v.SecretBinary == nil }

type createInput struct {
	refused
	value
	Name, ClientRequestToken, Description string
}

func (s *Server) create(in createInput) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.Name == "" || len(in.Name) > 512 {
		return nil, fail("ValidationException", "the name must have 1 to 512 characters")
	}
	now := s.opts.Now()
	if old := s.secrets[in.Name]; old != nil && !old.gone(now) {
		if v := old.version(in.ClientRequestToken); v != nil && v.equals(in.value) {
			return created(old, v.id), nil
		}
		if !old.deleteAfter.IsZero() {
			return nil, fail("InvalidRequestException", "You can't create this secret because a secret with this name is already scheduled for deletion.")
		}
		return nil, fail("ResourceExistsException", "The operation failed because the secret %s already exists.", in.Name)
	}
	sec := &secret{
		name: in.Name, arn: ARN(s.opts.Region, s.opts.Account, in.Name),
		description: in.Description, created: now, changed: now,
	}
	id := ""
	if !in.empty() {
		if err := checkToken(in.ClientRequestToken); err != nil {
			return nil, err
		}
		id = in.ClientRequestToken
		sec.add(id, in.value, []string{current}, now)
	}
	s.secrets[in.Name] = sec
	return created(sec, id), nil
}

func (in createInput) check() error {
	if err := in.refused.check(); err != nil {
		return err
	}
	return in.value.check()
}

func created(sec *secret, versionID string) map[string]any {
	out := map[string]any{"ARN": sec.arn, "Name": sec.name}
	if versionID != "" {
		out["VersionId"] = versionID
	}
	return out
}

// checkToken: the SDKs make one up, so a missing one is a hand-made request.
func checkToken(token string) error {
	if len(token) < 32 || len(token) > 64 {
		return fail("InvalidParameterException", "ClientRequestToken must have 32 to 64 characters")
	}
	return nil
}

// gone says that the recovery window has passed.
func (sec *secret) gone(now time.Time) bool {
	return !sec.deleteAfter.IsZero() && !sec.deleteAfter.After(now)
}

// find takes a name, an ARN, or an ARN without its last six characters.
func (s *Server) find(id string, deletedToo bool) (*secret, error) {
	sec := s.secrets[id]
	if sec == nil {
		for _, c := range s.secrets {
			if c.arn == id || strings.HasPrefix(id, "arn:") && strings.TrimSuffix(c.arn, c.arn[len(c.arn)-7:]) == id {
				sec = c
			}
		}
	}
	if sec == nil || sec.gone(s.opts.Now()) {
		return nil, fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
	}
	if !deletedToo && !sec.deleteAfter.IsZero() {
		return nil, fail("InvalidRequestException", "You can't perform this operation on the secret because it was marked for deletion.")
	}
	return sec, nil
}

type putInput struct {
	refused
	value
	SecretId, ClientRequestToken string
	VersionStages                []string
}

func (s *Server) put(in putInput) (any, error) {
	if err := in.refused.check(); err != nil {
		return nil, err
	}
	if err := in.value.check(); err != nil {
		return nil, err
	}
	if in.empty() {
		return nil, fail("InvalidRequestException", "You must provide either SecretString or SecretBinary.")
	}
	if err := checkToken(in.ClientRequestToken); err != nil {
		return nil, err
	}
	sec, err := s.find(in.SecretId, false)
	if err != nil {
		return nil, err
	}
	stages := in.VersionStages
	if len(stages) == 0 {
		stages = []string{current}
	}
	v := sec.version(in.ClientRequestToken)
	switch {
	case v == nil:
		v = sec.add(in.ClientRequestToken, in.value, stages, s.opts.Now())
	case !v.equals(in.value):
		return nil, fail("ResourceExistsException", "You can't use ClientRequestToken %s because it's already in use for a version with another value.", in.ClientRequestToken)
	}
	out := created(sec, v.id)
	out["VersionStages"] = v.stages
	return out, nil
}

// add appends a version and moves the stages to it.
func (sec *secret) add(id string, val value, stages []string, now time.Time) *version {
	v := &version{id: id, text: val.SecretString, binary: val.SecretBinary, created: now}
	if slices.Contains(stages, current) {
		if old := sec.staged(current); old != nil {
			sec.move(previous, old)
		}
	}
	sec.versions = append(sec.versions, v)
	for _, stage := range stages {
		sec.move(stage, v)
	}
	sec.changed = now
	return v
}

func (sec *secret) move(stage string, to *version) {
	for _, v := range sec.versions {
		v.stages = slices.DeleteFunc(v.stages, func(s string) bool { return s == stage })
	}
	to.stages = append(to.stages, stage)
}

func (sec *secret) staged(stage string) *version {
	for _, v := range sec.versions {
		if slices.Contains(v.stages, stage) {
			return v
		}
	}
	return nil
}

func (sec *secret) version(id string) *version {
	for _, v := range sec.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (v *version) equals(val value) bool {
	if (v.text == nil) != (val.SecretString == nil) || v.text != nil && *v.text != *val.SecretString {
		return false
	}
	return bytes.Equal(v.binary, val.SecretBinary)
}

type getInput struct{ SecretId, VersionId, VersionStage string }

func (s *Server) get(in getInput) (any, error) {
	sec, err := s.find(in.SecretId, false)
	if err != nil {
		return nil, err
	}
	var v *version
	if in.VersionId != "" {
		v = sec.version(in.VersionId)
		if v == nil {
			return nil, fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret value for VersionId: %s", in.VersionId)
		}
		if in.VersionStage != "" && !slices.Contains(v.stages, in.VersionStage) {
			return nil, fail("InvalidRequestException", "You provided a VersionStage that is not associated to the provided VersionId.")
		}
	} else {
		stage := in.VersionStage
		if stage == "" {
			stage = current
		}
		if v = sec.staged(stage); v == nil {
			return nil, fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret value for staging label: %s", stage)
		}
	}
	out := created(sec, v.id)
	out["VersionStages"] = v.stages
	out["CreatedDate"] = seconds(v.created)
	if v.text != nil {
		out["SecretString"] = *v.text
	} else {
		out["SecretBinary"] = v.binary
	}
	return out, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (s *Server) describe(in struct{ SecretId string }) (any, error) {
	sec, err := s.find(in.SecretId, true)
	if err != nil {
		return nil, err
	}
	out := sec.listed()
	delete(out, "SecretVersionsToStages")
	out["VersionIdsToStages"] = sec.stages()
	return out, nil
}

func (sec *secret) listed() map[string]any {
	out := map[string]any{
		"ARN": sec.arn, "Name": sec.name, "CreatedDate": seconds(sec.created),
		"LastChangedDate": seconds(sec.changed), "SecretVersionsToStages": sec.stages(),
	}
	if sec.description != "" {
		out["Description"] = sec.description
	}
	if !sec.deleteAfter.IsZero() {
		out["DeletedDate"] = seconds(sec.deleteAfter)
	}
	return out
}

func (sec *secret) stages() map[string][]string {
	m := map[string][]string{}
	for _, v := range sec.versions {
		if len(v.stages) > 0 {
			m[v.id] = v.stages
		}
	}
	return m
}

type listInput struct {
	refused
	MaxResults int
	NextToken  string
}

func (s *Server) list(in listInput) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.MaxResults == 0 {
		in.MaxResults = 100
	}
	names := []string{}
	for name, sec := range s.secrets {
		if sec.deleteAfter.IsZero() {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	from := 0
	if in.NextToken != "" {
		n, err := strconv.Atoi(in.NextToken)
		if err != nil || n < 0 {
			return nil, fail("InvalidNextTokenException", "the NextToken is not valid")
		}
		from = min(n, len(names))
	}
	to := min(from+max(in.MaxResults, 1), len(names))
	list := []map[string]any{}
	for _, name := range names[from:to] {
		list = append(list, s.secrets[name].listed())
	}
	out := map[string]any{"SecretList": list}
	if to < len(names) {
		out["NextToken"] = strconv.Itoa(to)
	}
	return out, nil
}

type removeInput struct {
	SecretId                   string
	RecoveryWindowInDays       *int
	ForceDeleteWithoutRecovery bool
}

func (s *Server) remove(in removeInput) (any, error) {
	sec, err := s.find(in.SecretId, in.ForceDeleteWithoutRecovery)
	if err != nil {
		return nil, err
	}
	days := 30
	if in.RecoveryWindowInDays != nil {
		days = *in.RecoveryWindowInDays
		if in.ForceDeleteWithoutRecovery {
			return nil, fail("InvalidParameterException", "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
		}
		if days < 7 || days > 30 {
			return nil, fail("InvalidParameterException", "The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).")
		}
	}
	at := s.opts.Now()
	if in.ForceDeleteWithoutRecovery {
		delete(s.secrets, sec.name)
	} else {
		at = at.Add(time.Duration(days) * 24 * time.Hour)
		sec.deleteAfter = at
	}
	return map[string]any{"ARN": sec.arn, "Name": sec.name, "DeletionDate": seconds(at)}, nil
}
