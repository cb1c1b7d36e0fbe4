// Package secretstore keeps a stage's signing secrets in AWS Secrets Manager, where the receiver reads them.
package secretstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/internal/endpoint"
	"backstop/internal/secret"
)

// Store is the stage's secret in AWS Secrets Manager.
type Store struct {
	client *secretsmanager.Client
	id     string
}

// New returns the secret with this name or ARN.
func New(client *secretsmanager.Client, id string) *Store { return &Store{client, id} }

// Load reads the secrets; a secret without a value yet has none.
func (s *Store) Load(ctx context.Context) (endpoint.Named, error) {
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
	return endpoint.Parse(text)
}

// Save writes the secrets as the secret's next version.
func (s *Store) Save(ctx context.Context, secrets endpoint.Named) error {
	_, err := s.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &s.id, SecretString: aws.String(secrets.Text()),
	})
	if err != nil {
		return fmt.Errorf("write the secret %s: %w", s.id, err)
	}
	return nil
}
