package cases

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// caseFile is one file.
type caseFile struct {
	ID, Title, Kind string
	Given           struct {
		setup
		Variants map[string]setup
		Bodies   map[string]body
	}
	Expect map[string]json.RawMessage
}

// setup is what a case and a variant of it may both say.
type setup struct {
	Now    int64
	Config *struct {
		AcceptedSecrets  []string `json:"accepted_secrets"`
		Secrets          map[string]string
		ToleranceSeconds int `json:"tolerance_seconds"`
		Mode             string
		StoredSecretText *string `json:"stored_secret_text"`
	}
	StoredSecretText *string `json:"stored_secret_text"`
	State            json.RawMessage
	Queue            struct {
		MaxReceiveCount int `json:"max_receive_count"`
	}
	StripeAPI map[string]json.RawMessage `json:"stripe_api"`
	Steps     []step
}

// step is one thing that happens. Op says which of the fields count.
type step struct {
	Op, As   string
	Request  *request
	Requests []struct {
		As       string
		Request  request
		StartMS  int64 `json:"start_ms"`
		Instance int
		Faults   []*fault
	}
	Count    int
	Instance int
	Faults   []*fault

	Records     []map[string]json.RawMessage
	RemainingMS int64 `json:"remaining_ms"`
	HandlerMS   int64 `json:"handler_ms"`

	Worker string
	Event  string

	Seconds float64
	Names   []string

	From   string
	Events []string

	Since int64
	Pages []json.RawMessage `json:"stripe_events_pages"`

	raw json.RawMessage
}

// UnmarshalJSON keeps the step as it was written: what one refers to may stand under any name.
func (s *step) UnmarshalJSON(raw []byte) error {
	type plain step
	if err := json.Unmarshal(raw, (*plain)(s)); err != nil {
		return err
	}
	s.raw = bytes.Clone(raw)
	return nil
}

// texts are the texts of a step's own fields.
func (s *step) texts() []string {
	var fields map[string]any
	_ = json.Unmarshal(s.raw, &fields) // it was read before
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := fields[name].(string); ok && name != "op" && name != "as" {
			list = append(list, text)
		}
	}
	return list
}

// headerValue is a header's values: one, or several in a list.
type headerValue []string

func (h *headerValue) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*[]string)(h)) == nil {
		return nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*h = headerValue{one}
	return nil
}

type request struct {
	Method, Path, Transport string
	Headers                 map[string]headerValue
	Body                    *body
	GatewayEvent            json.RawMessage `json:"gateway_event"`
	SignedBytes             *body           `json:"signed_bytes"`
	Sign                    struct {
		TOffset    int64 `json:"t_offset"`
		At         int64
		Rendered   *string
		Over       string
		OverSHA256 string `json:"over_sha256"`
	}
}

// body is exact bytes, in one of several ways to write them.
type body struct {
	Ref      string
	UTF8     *string
	Base64   *string
	Template *string
	Pad      struct {
		Replace, With string
		Times         int
	}
	SHA256 string
	Bytes  int
}

func (b *body) bytes(shared map[string]body) ([]byte, error) {
	var raw []byte
	switch {
	case b == nil:
		return nil, nil
	case b.Ref != "":
		named, known := shared[b.Ref]
		if !known || named.Ref != "" {
			return nil, fmt.Errorf("no body is named %q", b.Ref)
		}
		return named.bytes(nil)
	case b.UTF8 != nil:
		raw = []byte(*b.UTF8)
	case b.Base64 != nil:
		decoded, err := base64.StdEncoding.DecodeString(*b.Base64)
		if err != nil {
			return nil, fmt.Errorf("decode a body: %w", err)
		}
		raw = decoded
	case b.Template != nil:
		raw = []byte(strings.ReplaceAll(*b.Template, b.Pad.Replace, strings.Repeat(b.Pad.With, b.Pad.Times)))
	default:
		return nil, fmt.Errorf("a body is given in no form that is known")
	}
	if b.SHA256 != "" && b.SHA256 != hexSum(raw) {
		return nil, fmt.Errorf("a body has another checksum than its case says")
	}
	return raw, nil
}

// fault is something that goes wrong at a point.
type fault struct {
	Point, Kind string
	Times       int
	Event       string
	Seconds     float64
	Until       json.RawMessage
	Reasons     []string // of transaction_cancelled

	hits int // guarded by the world's lock
}

var points = []string{"record", "between_record_and_forward", "forward", "after_forward_before_response",
	"after_claim_before_effect", "before_effect", "after_effect_before_done", "done", "projection_read",
	"projection_write", "stripe_api"}

var kinds = []string{"error", "throttle", "crash", "panic", "hang", "hang_then_error", "stall_until",
	"timeout_after_commit", "transaction_conflict", "transaction_cancelled", "idempotent_parameter_mismatch"}

// copied returns faults with counters of their own: variants may share what a case says once.
func copied(faults []*fault) []*fault {
	out := make([]*fault, len(faults))
	for i, f := range faults {
		c := *f
		c.hits = 0
		if c.Times == 0 {
			c.Times = 1
		}
		out[i] = &c
	}
	return out
}

// variant is one run of a case.
type variant struct {
	name string
	setup
	file *caseFile
}

// variants returns a case's runs by name; a case without variants is one, without a name.
func (c *caseFile) variants() []variant {
	if c.Given.Variants == nil {
		return []variant{{setup: c.Given.setup, file: c}}
	}
	var list []variant
	for _, name := range slices.Sorted(maps.Keys(c.Given.Variants)) {
		v := variant{name: name, setup: c.Given.Variants[name], file: c}
		given := c.Given.setup
		if v.Now == 0 {
			v.Now = given.Now
		}
		if v.Config == nil {
			v.Config = given.Config
		} else if given.Config != nil && v.Config.Secrets == nil {
			config := *v.Config
			config.Secrets = given.Config.Secrets
			v.Config = &config
		}
		if v.StoredSecretText == nil {
			v.StoredSecretText = given.StoredSecretText
		}
		if v.State == nil {
			v.State = given.State
		}
		if v.Queue.MaxReceiveCount == 0 {
			v.Queue = given.Queue
		}
		if v.StripeAPI == nil {
			v.StripeAPI = given.StripeAPI
		}
		if v.Steps == nil {
			v.Steps = given.Steps
		}
		list = append(list, v)
	}
	return list
}

// expectations are the objects that all must hold for a variant.
func (c *caseFile) expectations(name string) ([]expectation, error) {
	own := maps.Clone(c.Expect)
	delete(own, "common")
	delete(own, "variants")
	list := []expectation{own}
	if raw := c.Expect["common"]; raw != nil {
		var common expectation
		if err := json.Unmarshal(raw, &common); err != nil {
			return nil, fmt.Errorf("read expect.common: %w", err)
		}
		list = append(list, common)
	}
	if raw := c.Expect["variants"]; raw != nil && name != "" {
		var byName map[string]expectation
		if err := json.Unmarshal(raw, &byName); err != nil {
			return nil, fmt.Errorf("read expect.variants: %w", err)
		}
		if one := byName[name]; one != nil {
			list = append(list, one)
		}
	}
	return list, nil
}

type expectation map[string]json.RawMessage

// load reads the case files of a folder, in the order of their names.
func load(dir string) ([]*caseFile, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("find the cases: %w", err)
	}
	var list []*caseFile
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a case: %w", err)
		}
		c, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		list = append(list, c)
	}
	return list, nil
}

func parse(raw []byte) (*caseFile, error) {
	c := &caseFile{}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(c); err != nil {
		return nil, fmt.Errorf("decode the case: %w", err)
	}
	return c, nil
}
