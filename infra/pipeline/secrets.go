package pipeline

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
)

// secrets are the two values only a person, or `backstop endpoint apply`, puts in.
type secrets struct {
	signing, stripeKey awssecretsmanager.CfnSecret
}

// newSecrets makes both without any value: no SecretString, and no generated one either, which would be a signing
// secret that somebody could mistake for real. Until a value is put, GetSecretValue answers ResourceNotFoundException
// and the receiver refuses every delivery: closed, and loud.
func newSecrets(scope constructs.Construct, s Settings) secrets {
	secret := func(id, description string) awssecretsmanager.CfnSecret {
		made := awssecretsmanager.NewCfnSecret(scope, text(id), &awssecretsmanager.CfnSecretProps{
			Description: text(description),
		})
		made.ApplyRemovalPolicy(s.removal(), nil)
		return made
	}
	return secrets{
		signing: secret("SigningSecret",
			"Backstop "+s.Stage+": signing secrets (whsec_...) of the Stripe endpoint, comma separated. Created empty."),
		stripeKey: secret("StripeKey",
			"Backstop "+s.Stage+": Stripe API key (rk_... with read rights). Created empty."),
	}
}
