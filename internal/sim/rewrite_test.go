package sim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"

	"backstop/internal/ledger"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func isAction(r *http.Request, action string) bool {
	return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+action)
}

// rewrite changes the bodies of an action's requests.
func rewrite(action string, change func(string) string) func(Seam, http.RoundTripper) http.RoundTripper {
	return func(_ Seam, next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !isAction(r, action) {
				return next.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			// Go writes < and > as escapes into JSON.
			text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(body))
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(strings.NewReader(change(text)))
			return next.RoundTrip(r)
		})
	}
}

// rewriteAnswers changes the bodies of an action's answers that are errors.
func rewriteAnswers(action string, change func(string) string) func(Seam, http.RoundTripper) http.RoundTripper {
	return func(_ Seam, next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err != nil || !isAction(r, action) || answer.StatusCode == http.StatusOK {
				return answer, err
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return nil, err
			}
			body = []byte(change(string(body)))
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			answer.Header.Del("X-Amz-Crc32")
			answer.Header.Del("Content-Length")
			return answer, nil
		})
	}
}

var tokenText = regexp.MustCompile(`"token":\{"S":"[^"]*"\}`)

// ownToken makes an item a condition met look as if another had written it.
func ownToken(body string) string { return tokenText.ReplaceAllString(body, `"token":{"S":"another"}`) }

var mineAlways = regexp.MustCompile(`#status = (:v\d+) AND #generation = (:v\d+)`)

// add applies the numbers of a write by itself.
func add(ctx context.Context, s Seam, w ledger.Write) error {
	key := map[string]types.AttributeValue{}
	for name, v := range w.Key {
		key[name] = &types.AttributeValueMemberS{Value: v}
	}
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.Table, Key: key, UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	return err
}
