package secret

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// Getter is the part of the Secrets Manager client in use.
type Getter interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Manager is a secret in AWS Secrets Manager.
type Manager struct {
	client Getter
	id     string
}

// NewManager returns the secret with this name or ARN.
func NewManager(client Getter, id string) Manager { return Manager{client, id} }

// From returns the provider a function's settings ask for: the values its environment gives, which is for laptops, or
// the secret in Secrets Manager. With neither, it has no values and says so at every use.
func From(cfg aws.Config, values []string, id string, now func() time.Time) *Provider {
	if len(clean(values)) > 0 || id == "" {
		return Fixed(values)
	}
	return New(NewManager(secretsmanager.NewFromConfig(cfg), id), now)
}

// Name implements Store.
func (m Manager) Name() string { return m.id }

// Read returns the text of the current version. A secret without a version yet, which GetSecretValue reports like one
// that does not exist (AWS Secrets Manager API Reference, "GetSecretValue": ResourceNotFoundException), is ErrEmpty,
// and so is one that was stored as bytes.
func (m Manager) Read(ctx context.Context) (string, error) {
	output, err := m.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{
		SecretId:     aws.String(m.id),
		VersionStage: aws.String("AWSCURRENT"),
	})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return "", errors.Join(ErrEmpty, err)
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(output.SecretString), nil
}
