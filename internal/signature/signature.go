// Package signature verifies that a delivery comes from Stripe.
//
// Stripe signs each delivery with a secret of the endpoint and sends the result in the Stripe-Signature header (Stripe
// documentation, "Resolve webhook signature verification errors" and "Verify webhook signatures manually"):
//
//	t=1790000000,v1=<hex>,v1=<hex>,v0=<hex>
//
// v1 is the HMAC-SHA256, keyed by the secret's text as it stands, of the timestamp's text, a full stop and the body's
// exact bytes. While a secret is being rolled there are several v1. v0 and whatever scheme may come are ignored.
//
// # What differs from stripe-go v82's webhook.ConstructEvent, and why
//
//   - Several secrets are tried, so that a secret is rolled without refusing one delivery; ConstructEvent takes one.
//   - A secret that is empty or blank never verifies: anybody can compute a signature keyed by nothing. ConstructEvent
//     computes it, too.
//   - The tolerance holds both ways. ConstructEvent accepts a timestamp any time ahead, so a captured delivery with a
//     clock set forward stays good until then.
//   - Nothing is decoded and no api_version is judged. ConstructEvent refuses every version that is not of its own
//     release train, which turns an upgrade of the account into an outage, and cannot decode thin events.
//   - The timestamp enters the HMAC as its text stands in the header, and is digits only: no sign, no second t.
//   - Each way to fail has a Reason of its own, since "secret of another endpoint", "no header" and "clock wrong" are
//     mended in different places. Neither a reason nor an error holds a secret or a signature.
//
// Nothing of stripe-go is used, which also keeps it out of the receiver's binary.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Header is the name of the header, compared without regard to case.
const Header = "Stripe-Signature"

// Tolerance is how far the timestamp may be from our clock, either way, in whole seconds. It is Stripe's own default:
// long enough for skewed clocks and slow networks, short enough to make a captured delivery useless.
const Tolerance = 300 * time.Second

// Reason says why a delivery does not verify. It is an error; errors.Is and errors.As find it.
type Reason string

// The reasons.
const (
	NoUsableSecret  Reason = "no_usable_secret"           // ours to mend: nothing can be verified
	HeaderMissing   Reason = "signature_header_missing"   // not from Stripe, or a proxy drops the header
	HeaderMalformed Reason = "signature_header_malformed" // no t, a bad t, or no v1 of a signature's form
	TooOld          Reason = "signature_too_old"          // a replay, or our clock is fast
	TooNew          Reason = "signature_too_new"          // our clock is slow
	NoMatch         Reason = "no_accepted_secret_matched" // another endpoint's secret, or altered bytes
)

const (
	signatureSize = 2 * sha256.Size     // characters of a v1, in hexadecimal
	timestampMax  = len("253402300799") // digits of a t: up to the last second of the year 9999
)

func (r Reason) Error() string { return "the delivery does not verify: " + string(r) }

// Verify checks header against body with each of secrets and returns the position in secrets of the one that signed.
// Blank secrets are passed over. Errors are a Reason.
func Verify(secrets []string, header string, body []byte, now time.Time) (int, error) {
	if !anyUsable(secrets) {
		return -1, NoUsableSecret
	}
	if strings.TrimSpace(header) == "" {
		return -1, HeaderMissing
	}
	timestamp, second, ok := parse(header)
	if !ok {
		return -1, HeaderMalformed
	}
	switch age := now.Unix() - second; {
	case age > int64(Tolerance/time.Second):
		return -1, TooOld
	case -age > int64(Tolerance/time.Second):
		return -1, TooNew
	}
	for i, secret := range secrets {
		if !usable(secret) {
			continue
		}
		var want [sha256.Size]byte
		sum(want[:0], secret, timestamp, body)
		if matches(header, want[:]) {
			return i, nil
		}
	}
	return -1, NoMatch
}

// Sign returns the header Stripe would send with body at time t, for senders and tests.
func Sign(secret string, body []byte, t time.Time) string {
	timestamp := strconv.FormatInt(t.Unix(), 10)
	return "t=" + timestamp + ",v1=" + hex.EncodeToString(sum(nil, secret, timestamp, body))
}

func usable(secret string) bool { return strings.TrimSpace(secret) != "" }

func anyUsable(secrets []string) bool {
	for _, secret := range secrets {
		if usable(secret) {
			return true
		}
	}
	return false
}

// sum appends the signature to dst.
func sum(dst []byte, secret, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	var prefix [timestampMax + 1]byte
	mac.Write(append(append(prefix[:0], timestamp...), '.'))
	mac.Write(body)
	return mac.Sum(dst)
}

// parse reads the header: the text and value of its one t, and whether it has that and at least one v1 that could be
// a signature.
func parse(header string) (timestamp string, second int64, ok bool) {
	signed := false
	for part := range strings.SplitSeq(header, ",") {
		scheme, value, found := strings.Cut(strings.Trim(part, " \t"), "=")
		if !found {
			return "", 0, false
		}
		switch scheme {
		case "t":
			if timestamp != "" || !digits(value) {
				return "", 0, false
			}
			timestamp = value
		case "v1":
			var decoded [sha256.Size]byte
			signed = signed || decode(decoded[:], value)
		}
	}
	if timestamp == "" || !signed {
		return "", 0, false
	}
	second, err := strconv.ParseInt(timestamp, 10, 64)
	return timestamp, second, err == nil
}

// digits reports whether value is the text of a second.
func digits(value string) bool {
	if value == "" || len(value) > timestampMax {
		return false
	}
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return false
		}
	}
	return true
}

// matches compares want with every v1 of a header that parse accepted, each in constant time.
func matches(header string, want []byte) bool {
	matched := false
	for part := range strings.SplitSeq(header, ",") {
		value, found := strings.CutPrefix(strings.Trim(part, " \t"), "v1=")
		if !found {
			continue
		}
		var got [sha256.Size]byte
		if decode(got[:], value) && hmac.Equal(got[:], want) {
			matched = true
		}
	}
	return matched
}

// decode reads a v1 into dst, if it has a signature's form.
func decode(dst []byte, value string) bool {
	if len(value) != signatureSize {
		return false
	}
	var text [signatureSize]byte
	copy(text[:], value)
	_, err := hex.Decode(dst, text[:])
	return err == nil
}
