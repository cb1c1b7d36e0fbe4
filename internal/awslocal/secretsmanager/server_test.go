package secretsmanager_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal/secretsmanager"
)

type bundle struct {
	*sm.Client
	t   *testing.T
	now time.Time
}

func setup(t *testing.T) *bundle {
	b := &bundle{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server := httptest.NewServer(secretsmanager.New(secretsmanager.Options{Now: func() time.Time { return b.now }}))
	t.Cleanup(server.Close)
	b.Client = sm.New(sm.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	return b
}

// token makes a version id of the length AWS wants.
func token(s string) *string { return aws.String(s + strings.Repeat("-", 32-len(s))) }

func (b *bundle) create(value string) *sm.CreateSecretOutput {
	b.t.Helper()
	in := &sm.CreateSecretInput{Name: aws.String("backstop/signing"), ClientRequestToken: token("v1")}
	if value != "" {
		in.SecretString = &value
	}
	out, err := b.CreateSecret(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bundle) put(version, value string, stages ...string) {
	b.t.Helper()
	_, err := b.PutSecretValue(b.t.Context(), &sm.PutSecretValueInput{
		SecretId: aws.String("backstop/signing"), ClientRequestToken: token(version), SecretString: &value, VersionStages: stages,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// read returns the value at a stage, or the error's code.
func (b *bundle) read(in *sm.GetSecretValueInput) string {
	b.t.Helper()
	if in.SecretId == nil {
		in.SecretId = aws.String("backstop/signing")
	}
	out, err := b.GetSecretValue(b.t.Context(), in)
	if err != nil {
		return code(err)
	}
	return aws.ToString(out.SecretString)
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return "none"
}

func TestPutMovesTheStages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("one")
	b.put("v2", "two")
	b.put("v3", "three")
	got := []string{
		b.read(&sm.GetSecretValueInput{}),
		b.read(&sm.GetSecretValueInput{VersionStage: aws.String("AWSCURRENT")}),
		b.read(&sm.GetSecretValueInput{VersionStage: aws.String("AWSPREVIOUS")}),
		b.read(&sm.GetSecretValueInput{VersionId: token("v1")}),
		b.read(&sm.GetSecretValueInput{VersionStage: aws.String("OTHER")}),
		b.read(&sm.GetSecretValueInput{VersionId: token("v1"), VersionStage: aws.String("AWSCURRENT")}),
	}
	if diff := cmp.Diff([]string{"three", "three", "two", "one", "ResourceNotFoundException", "InvalidRequestException"}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	out, err := b.DescribeSecret(t.Context(), &sm.DescribeSecretInput{SecretId: aws.String("backstop/signing")})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{*token("v2"): {"AWSPREVIOUS"}, *token("v3"): {"AWSCURRENT"}}
	if diff := cmp.Diff(want, out.VersionIdsToStages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestRepeatedPutIsHarmlessAndAnotherValueIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("one")
	b.put("v2", "two")
	b.put("v3", "three")
	b.put("v2", "two") // a late retry must not take AWSCURRENT back
	if got := b.read(&sm.GetSecretValueInput{}); got != "three" {
		t.Errorf("current = %s", got)
	}
	_, err := b.PutSecretValue(t.Context(), &sm.PutSecretValueInput{
		SecretId: aws.String("backstop/signing"), ClientRequestToken: token("v2"), SecretString: aws.String("else"),
	})
	if code(err) != "ResourceExistsException" {
		t.Errorf("same token, other value: %v", err)
	}
}

func TestOwnStageLeavesCurrentAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("one")
	b.put("v2", "two", "PENDING")
	got := []string{b.read(&sm.GetSecretValueInput{}), b.read(&sm.GetSecretValueInput{VersionStage: aws.String("PENDING")}),
		b.read(&sm.GetSecretValueInput{VersionStage: aws.String("AWSPREVIOUS")})}
	if diff := cmp.Diff([]string{"one", "two", "ResourceNotFoundException"}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestSecretCreatedEmptyHasNoValueYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out := b.create("")
	if out.VersionId != nil {
		t.Errorf("version = %s", *out.VersionId)
	}
	if got := b.read(&sm.GetSecretValueInput{}); got != "ResourceNotFoundException" {
		t.Errorf("value = %s", got)
	}
	b.put("v1", "one")
	for _, id := range []string{"backstop/signing", *out.ARN, (*out.ARN)[:len(*out.ARN)-7]} {
		if got := b.read(&sm.GetSecretValueInput{SecretId: &id}); got != "one" {
			t.Errorf("by %s: %s", id, got)
		}
	}
}

func TestErrorsAreSecretsManagers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("one")
	_, exists := b.CreateSecret(t.Context(), &sm.CreateSecretInput{Name: aws.String("backstop/signing"), SecretString: aws.String("two")})
	_, missing := b.PutSecretValue(t.Context(), &sm.PutSecretValueInput{SecretId: aws.String("no"), SecretString: aws.String("two")})
	_, empty := b.PutSecretValue(t.Context(), &sm.PutSecretValueInput{SecretId: aws.String("backstop/signing")})
	_, large := b.PutSecretValue(t.Context(), &sm.PutSecretValueInput{SecretId: aws.String("backstop/signing"), SecretString: aws.String(strings.Repeat("x", 65537))})
	_, unsupported := b.RotateSecret(t.Context(), &sm.RotateSecretInput{SecretId: aws.String("backstop/signing")})
	for want, err := range map[string]error{
		"ResourceExistsException": exists, "ResourceNotFoundException": missing, "InvalidRequestException": empty,
		"ValidationException": large, "UnknownOperationException": unsupported,
	} {
		if code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestDeletedSecretIsRefusedThenGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("one")
	out, err := b.DeleteSecret(t.Context(), &sm.DeleteSecretInput{SecretId: aws.String("backstop/signing"), RecoveryWindowInDays: aws.Int64(7)})
	if err != nil || !out.DeletionDate.Equal(time.Date(2026, 1, 9, 3, 4, 5, 0, time.UTC)) {
		t.Fatalf("delete = %+v, %v", out, err)
	}
	if got := b.read(&sm.GetSecretValueInput{}); got != "InvalidRequestException" {
		t.Errorf("within the window: %s", got)
	}
	list, err := b.ListSecrets(t.Context(), &sm.ListSecretsInput{})
	if err != nil || len(list.SecretList) != 0 {
		t.Errorf("list = %v, %v", list.SecretList, err)
	}
	b.now = b.now.Add(7 * 24 * time.Hour)
	if got := b.read(&sm.GetSecretValueInput{}); got != "ResourceNotFoundException" {
		t.Errorf("after the window: %s", got)
	}
	b.create("again")
	if got := b.read(&sm.GetSecretValueInput{}); got != "again" {
		t.Errorf("made anew: %s", got)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"c", "a", "b"} {
		if _, err := b.CreateSecret(t.Context(), &sm.CreateSecretInput{Name: &name, SecretBinary: []byte{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	pages := sm.NewListSecretsPaginator(b.Client, &sm.ListSecretsInput{MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.SecretList {
			names = append(names, *s.Name)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	out, err := b.GetSecretValue(t.Context(), &sm.GetSecretValueInput{SecretId: aws.String("a")})
	if err != nil || string(out.SecretBinary) != "\x01\x02" {
		t.Errorf("binary = %v, %v", out, err)
	}
}
