package laptop

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/events"
	"backstop/internal/stripefake"
)

const (
	// signingSecret is the secret the receiver reads its signing secrets from, as it does when it is deployed.
	signingSecret = "backstop-dev-signing-secret"

	// fakeKey is the API key of the fake Stripe, which takes any that looks like one.
	fakeKey = "rk_test_local"
)

// startStripe starts the fake and returns the options that name it.
func (l *Laptop) startStripe(opts Options) (Options, error) {
	listener, err := listen(opts.StripePort, "fake Stripe", "--stripe-port")
	if err != nil {
		return opts, err
	}
	l.StripeEndpoint = "http://" + listener.Addr().String()
	l.Stripe = stripefake.New(stripefake.Options{Now: opts.Now})
	l.serve(listener, l.Stripe)
	opts.StripeURL, opts.StripeKey = l.StripeEndpoint, fakeKey
	return opts, nil
}

// storeSecrets puts the signing secrets where the receiver reads them.
func (l *Laptop) storeSecrets(ctx context.Context) error {
	_, err := secretsmanager.NewFromConfig(l.AWS).CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: aws.String(signingSecret), SecretString: aws.String(strings.Join(l.Secrets, ",")),
	})
	if err != nil {
		return fmt.Errorf("store the signing secrets: %w", err)
	}
	return nil
}

func eventTypes() []string {
	var names []string
	for _, t := range events.Types() {
		names = append(names, t.Name)
	}
	return names
}
