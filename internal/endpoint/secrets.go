package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/internal/secret"
)

// Named are signing secrets by the id of their endpoint, the newest first. Their text form is the JSON object that
// package secret reads.
type Named []struct{ Name, Value string }

// plainName is the name of a secret that was stored without one.
const plainName = "unnamed-"

func unnamed(name string) bool { return strings.HasPrefix(name, plainName) }

func (n Named) has(name string) bool { return n.value(name) != "" }

func (n Named) value(name string) string {
	for _, s := range n {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// Names returns the names, without the secrets.
func (n Named) Names() []string {
	var names []string
	for _, s := range n {
		names = append(names, s.Name)
	}
	return names
}

// with returns the secrets with one more, in front.
func (n Named) with(name, value string) Named {
	return append(Named{{name, value}}, n.without(func(other string) bool { return other == name })...)
}

func (n Named) without(drop func(name string) bool) Named {
	return slices.DeleteFunc(slices.Clone(n), func(s struct{ Name, Value string }) bool { return drop(s.Name) })
}

// parse reads what a store holds, in any form package secret knows.
func parse(text string) (Named, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var named Named
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		for i, value := range secret.Parse(text) {
			named = append(named, struct{ Name, Value string }{fmt.Sprintf("%s%d", plainName, i+1), value})
		}
		if named == nil {
			return nil, errors.New("the stored signing secrets cannot be read")
		}
		return named, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("the stored signing secrets cannot be read")
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	_, err := decoder.Token() // the brace
	for err == nil && decoder.More() {
		var name json.Token
		var value any
		if name, err = decoder.Token(); err != nil {
			break
		}
		if err = decoder.Decode(&value); err != nil {
			break
		}
		if text, ok := value.(string); ok && strings.TrimSpace(text) != "" {
			named = append(named, struct{ Name, Value string }{name.(string), text})
		}
	}
	if err != nil {
		return nil, errors.New("the stored signing secrets cannot be read") // the error may quote them
	}
	return named, nil
}

func (n Named) text() string {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, s := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(s.Name) // strings always marshal
		value, _ := json.Marshal(s.Value)
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String()
}

// Secrets is the stage's secret in AWS Secrets Manager.
type Secrets struct {
	client *secretsmanager.Client
	id     string
}

// NewSecrets returns the secret with this name or ARN.
func NewSecrets(client *secretsmanager.Client, id string) *Secrets { return &Secrets{client, id} }

// Load reads the secrets; a secret without a value yet has none.
func (s *Secrets) Load(ctx context.Context) (Named, error) {
	text, err := secret.NewManager(s.client, s.id).Read(ctx)
	if errors.Is(err, secret.ErrEmpty) {
		// The secret itself must exist, or what is stored later would be nowhere.
		if _, err := s.client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &s.id}); err != nil {
			return nil, fmt.Errorf("find the secret %s: %w", s.id, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", s.id, err)
	}
	return parse(text)
}

// Save writes the secrets as the secret's next version.
func (s *Secrets) Save(ctx context.Context, secrets Named) error {
	_, err := s.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &s.id, SecretString: aws.String(secrets.text()),
	})
	if err != nil {
		return fmt.Errorf("write the secret %s: %w", s.id, err)
	}
	return nil
}
