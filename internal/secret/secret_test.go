package secret

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// store is a store whose text and error the test sets; it counts its reads.
type store struct {
	text  string
	err   error
	reads int
}

func (s *store) Name() string { return "backstop/signing" }

func (s *store) Read(context.Context) (string, error) {
	s.reads++
	return s.text, s.err
}

// bundle is a provider over a store, on a clock the test moves.
type bundle struct {
	*Provider
	store *store
	clock time.Time
}

func setup(t *testing.T, text string, err error) *bundle {
	t.Helper()
	b := &bundle{store: &store{text: text, err: err}, clock: time.Unix(1790000000, 0)}
	b.Provider = New(b.store, func() time.Time { return b.clock })
	return b
}

func (b *bundle) want(t *testing.T, values ...string) {
	t.Helper()
	if got, err := b.Values(t.Context()); err != nil || !slices.Equal(got, values) {
		t.Errorf("got %q, %v, want %q", got, err, values)
	}
}

func (b *bundle) wantReads(t *testing.T, reads int) {
	t.Helper()
	if b.store.reads != reads {
		t.Errorf("%d reads, want %d", b.store.reads, reads)
	}
}

func TestEveryFormOfTextIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"whsec_1":                          {"whsec_1"},
		" whsec_1\n":                       {"whsec_1"},
		"whsec_1,whsec_2":                  {"whsec_1", "whsec_2"},
		"whsec_1, whsec_2\r\nwhsec_3\n,, ": {"whsec_1", "whsec_2", "whsec_3"},
		`["whsec_1","","whsec_2",null,7]`:  {"whsec_1", "whsec_2"},
		`{"current":"whsec_1","previous":"whsec_0","note":null}`:        {"whsec_1", "whsec_0"},
		`{"endpoint":"https://a.test/","secret":" whsec_1","by":"ada"}`: {"whsec_1"},
		`{"name":"billing","key":"rk_test_1"}`:                          {"rk_test_1"},
		`{"current":"own_1","previous":"own_0"}`:                        {"own_1", "own_0"},
		`{"z":"whsec_1","a":"whsec_0"}`:                                 {"whsec_1", "whsec_0"},
		`"whsec_\u0031"`:                                                {"whsec_1"},
		"":                                                              nil,
		" \n":                                                           nil,
		",,":                                                            nil,
		`[]`:                                                            nil,
		`{}`:                                                            nil,
		`[" "]`:                                                         nil,
		`["whsec_1"`:                                                    nil,
		`{"a":{"b":"whsec_1"}}`:                                         nil,
	} {
		if got := Parse(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSecretIsReadOnceWithinItsTTL(t *testing.T) {
	t.Parallel()
	b := setup(t, "whsec_1", nil)
	b.wantReads(t, 0)
	b.want(t, "whsec_1")
	b.store.text = "whsec_2"
	b.clock = b.clock.Add(5*time.Minute - 1)
	b.want(t, "whsec_1")
	b.wantReads(t, 1)
	b.clock = b.clock.Add(1)
	b.want(t, "whsec_2")
	b.wantReads(t, 2)
}

func TestRolledSecretIsFoundAtTheFirstMismatch(t *testing.T) {
	t.Parallel()
	b := setup(t, "whsec_1", nil)
	b.want(t, "whsec_1")
	b.clock = b.clock.Add(time.Minute)
	b.store.text = "whsec_2"
	if got, changed := b.Refresh(t.Context()); !changed || !slices.Equal(got, []string{"whsec_2"}) {
		t.Errorf("got %q, %v", got, changed)
	}
	b.want(t, "whsec_2")
}

func TestForgedRequestsCannotForceReads(t *testing.T) {
	t.Parallel()
	b := setup(t, "whsec_1", nil)
	b.want(t, "whsec_1")
	b.clock = b.clock.Add(time.Minute)
	for range 200 {
		if _, changed := b.Refresh(t.Context()); changed {
			t.Error("nothing changed")
		}
	}
	b.wantReads(t, 2)
	b.clock = b.clock.Add(10*time.Second - 1)
	b.Refresh(t.Context())
	b.wantReads(t, 2)
	b.clock = b.clock.Add(1)
	b.Refresh(t.Context())
	b.wantReads(t, 3)
}

func TestFailedReadKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*store){
		"StoreDown": func(s *store) { s.err = errors.New("down") },
		"Garbled":   func(s *store) { s.text = `{"current":` },
	} {
		b := setup(t, "whsec_1", nil)
		b.want(t, "whsec_1")
		b.clock = b.clock.Add(time.Hour)
		fail(b.store)
		b.want(t, "whsec_1")
		b.want(t, "whsec_1")
		b.wantReads(t, 2)
		if _, changed := b.Refresh(t.Context()); changed {
			t.Errorf("%s: changed", name)
		}
		b.clock = b.clock.Add(10*time.Second - 1)
		b.want(t, "whsec_1")
		b.wantReads(t, 2)
		b.clock = b.clock.Add(1)
		b.store.text, b.store.err = "whsec_2", nil
		b.want(t, "whsec_2")
		b.wantReads(t, 3)
	}
}

func TestEmptiedSecretIsWithdrawn(t *testing.T) {
	t.Parallel()
	b := setup(t, "whsec_1", nil)
	b.want(t, "whsec_1")
	b.clock = b.clock.Add(time.Minute)
	b.store.text = " "
	if got, changed := b.Refresh(t.Context()); !changed || len(got) != 0 {
		t.Errorf("got %q, %v", got, changed)
	}
	if _, err := b.Values(t.Context()); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSecretSaysWhatToDoAndIsReadAgainSoon(t *testing.T) {
	t.Parallel()
	b := setup(t, "", nil)
	for range 3 {
		_, err := b.Values(t.Context())
		if !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), "aws secretsmanager put-secret-value --secret-id backstop/signing") {
			t.Errorf("got %v", err)
		}
	}
	b.wantReads(t, 1)
	b.clock = b.clock.Add(time.Second)
	b.store.err = errors.New("access denied")
	if _, err := b.Values(t.Context()); err == nil || err.Error() != "read the secret backstop/signing: access denied" {
		t.Errorf("got %v", err)
	}
	b.clock = b.clock.Add(time.Second)
	b.store.text, b.store.err = "sk_1", nil
	if got, err := b.Value(t.Context()); err != nil || got != "sk_1" {
		t.Errorf("got %q, %v", got, err)
	}
	b.wantReads(t, 3)
}

func TestFixedValuesHoldNoBlank(t *testing.T) {
	t.Parallel()
	p := Fixed([]string{"", " whsec_1 ", "\n"})
	if got, err := p.Values(t.Context()); err != nil || !slices.Equal(got, []string{"whsec_1"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, changed := p.Refresh(t.Context()); changed {
		t.Error("changed")
	}
	if _, err := Fixed([]string{"", " "}).Values(t.Context()); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

type getter func(*secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error)

func (g getter) GetSecretValue(_ context.Context, input *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	return g(input)
}

func TestManagerReadsTheCurrentVersion(t *testing.T) {
	t.Parallel()
	m := NewManager(getter(func(input *secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error) {
		if *input.SecretId != "name" || *input.VersionStage != "AWSCURRENT" {
			t.Errorf("asked for %s, %s", *input.SecretId, *input.VersionStage)
		}
		return &secretsmanager.GetSecretValueOutput{SecretString: aws.String("whsec_1")}, nil
	}), "name")
	if got, err := m.Read(t.Context()); err != nil || got != "whsec_1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSecretWithoutAVersionIsEmpty(t *testing.T) {
	t.Parallel()
	m := NewManager(getter(func(*secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error) {
		return nil, &types.ResourceNotFoundException{}
	}), "name")
	if _, err := m.Read(t.Context()); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

func TestEnvironmentComesBeforeTheStore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []string
		id     string
		fixed  bool
	}{
		{[]string{"whsec_1"}, "name", true}, {nil, "", true}, {nil, "name", false}, {[]string{" "}, "name", false},
	} {
		if got := From(aws.Config{}, test.values, test.id, time.Now).store == nil; got != test.fixed {
			t.Errorf("%q, %q: fixed %v, want %v", test.values, test.id, got, test.fixed)
		}
	}
}
