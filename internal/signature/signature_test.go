package signature

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	current  = "whsec_fake_current_for_tests"
	previous = "whsec_fake_previous_for_tests"
)

var (
	now  = time.Unix(1790000000, 999_000_000)
	body = []byte(`{"id":"evt_1","object":"event","type":"invoice.paid"}`)
	zero = strings.Repeat("0", 64)
)

// The signatures of body at 1790000000, computed by another implementation (Python's hmac).
// byEmpty is keyed by nothing.
const (
	byCurrent  = "3eee804a152c0751ecdf576a7b3e5ad5296f219c44d537df2f575882a05d9103"
	byPrevious = "224b07192e307a4ae7598971d4f94eca215fb75346f593e8a41f0f27e57f7acd"
	byEmpty    = "a97286263de9fbf01e8e69f0a1072a8f26b84dbfa640fbb6014d88eaf60522ac"
)

func TestSignatureOfAnyAcceptedSecretVerifies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		secrets []string
		header  string
		want    int
	}{
		"OneSecret":              {[]string{current}, "t=1790000000,v1=" + byCurrent, 0},
		"SecondSecret":           {[]string{current, previous}, "t=1790000000,v1=" + byPrevious, 1},
		"BothSigned":             {[]string{current, previous}, "t=1790000000,v1=" + byPrevious + ",v1=" + byCurrent, 0},
		"GoodFirst":              {[]string{current}, "t=1790000000,v1=" + byCurrent + ",v1=" + zero, 0},
		"GoodLast":               {[]string{current}, "t=1790000000,v1=" + zero + ",v1=" + byCurrent, 0},
		"GoodInTheMiddle":        {[]string{current}, "t=1790000000,v1=" + zero + ",v1=" + byCurrent + ",v1=" + byPrevious, 0},
		"BesideWhatIsNotHex":     {[]string{current}, "t=1790000000,v1=zz-not-hex,v1=" + byCurrent, 0},
		"BesideUnknownSchemes":   {[]string{current}, "t=1790000000,v0=" + zero + ",v1=" + byCurrent + ",v2=x=y,v9=", 0},
		"TimestampLast":          {[]string{current}, "v1=" + byCurrent + ",t=1790000000", 0},
		"UpperCase":              {[]string{current}, "t=1790000000,v1=" + strings.ToUpper(byCurrent), 0},
		"SpacesAroundParts":      {[]string{current}, " t=1790000000, v1=" + byCurrent + " ", 0},
		"BlankSecretsBesideReal": {[]string{"", " \n", current}, "t=1790000000,v1=" + byCurrent, 2},
	} {
		got, err := Verify(test.secrets, test.header, body, now)
		if err != nil || got != test.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, test.want)
		}
	}
}

func TestBrokenAndForgedHeadersAreRefusedWithTheirReason(t *testing.T) {
	t.Parallel()
	good := ",v1=" + byCurrent
	for name, test := range map[string]struct {
		header string
		want   Reason
	}{
		"Absent":            {"", HeaderMissing},
		"Blank":             {"  ", HeaderMissing},
		"NoPairs":           {"hello", HeaderMalformed},
		"JunkPart":          {"t=1790000000" + good + ",junk", HeaderMalformed},
		"TrailingComma":     {"t=1790000000" + good + ",", HeaderMalformed},
		"NoTimestamp":       {"v1=" + byCurrent, HeaderMalformed},
		"TimestampEmpty":    {"t=" + good, HeaderMalformed},
		"TimestampWords":    {"t=soon" + good, HeaderMalformed},
		"TimestampNaN":      {"t=NaN" + good, HeaderMalformed},
		"TimestampFraction": {"t=1790000000.5" + good, HeaderMalformed},
		"TimestampOverflow": {"t=99999999999999999999999" + good, HeaderMalformed},
		"TimestampNegative": {"t=-1" + good, HeaderMalformed},
		"TimestampSigned":   {"t=+1790000000" + good, HeaderMalformed},
		"TimestampTwice":    {"t=1790000000,t=1790000000" + good, HeaderMalformed},
		"NoSignature":       {"t=1790000000", HeaderMalformed},
		"SignatureEmpty":    {"t=1790000000,v1=", HeaderMalformed},
		"SignatureShort":    {"t=1790000000,v1=" + byCurrent[:62], HeaderMalformed},
		"SignatureLong":     {"t=1790000000,v1=" + byCurrent + "00", HeaderMalformed},
		"OnlyV0":            {"t=1790000000,v0=" + byCurrent, HeaderMalformed},
		"UnknownScheme":     {"t=1790000000,v9=" + byCurrent, HeaderMalformed},
		"SchemeUpperCase":   {"t=1790000000,V1=" + byCurrent, HeaderMalformed},
		"EqualsInside":      {"t=1790000000,v1===" + byCurrent, HeaderMalformed},
		"NoneMatches":       {"t=1790000000,v1=" + zero + ",v1=" + byPrevious, NoMatch},
		"OtherSecond":       {"t=1790000001" + good, NoMatch},
		"LeadingZero":       {"t=01790000000" + good, NoMatch},
		"KeyedByNothing":    {"t=1790000000,v1=" + byEmpty, NoMatch},
	} {
		_, err := Verify([]string{current, ""}, test.header, body, now)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

func TestWithoutUsableSecretNothingVerifies(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {}, {""}, {" ", "\t\r\n"}} {
		for _, header := range []string{"t=1790000000,v1=" + byEmpty, "t=1790000000,v1=" + byCurrent, "", "hello"} {
			if _, err := Verify(secrets, header, body, now); !errors.Is(err, NoUsableSecret) {
				t.Errorf("%q, %.20s: got %v", secrets, header, err)
			}
		}
	}
}

func TestToleranceHoldsBothWaysToTheSecond(t *testing.T) {
	t.Parallel()
	for offset, want := range map[int64]error{
		-3600: TooOld, -301: TooOld, -300: nil, -299: nil, 0: nil, 60: nil, 300: nil, 301: TooNew, 31536000: TooNew,
	} {
		at := time.Unix(1790000000+offset, 0)
		if _, err := Verify([]string{current}, Sign(current, body, at), body, now); !errors.Is(err, want) {
			t.Errorf("%+d s: got %v, want %v", offset, err, want)
		}
	}
}

func TestOnlyTheExactBytesVerify(t *testing.T) {
	t.Parallel()
	header := "t=1790000000,v1=" + byCurrent
	for _, altered := range []string{
		"", string(body) + "\n", " " + string(body), strings.Replace(string(body), `":"`, `": "`, 1), strings.Replace(string(body), "1", "2", 1),
	} {
		if _, err := Verify([]string{current}, header, []byte(altered), now); !errors.Is(err, NoMatch) {
			t.Errorf("%q: got %v", altered, err)
		}
	}
}

func TestSignWritesStripesHeader(t *testing.T) {
	t.Parallel()
	if got, want := Sign(current, body, now), "t=1790000000,v1="+byCurrent; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorsHoldNoSecretAndNoSignature(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"t=1790000000,v1=" + byPrevious, "t=1,v1=" + byPrevious, "v1=" + byPrevious} {
		_, err := Verify([]string{current}, header, body, now)
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, current) || strings.Contains(text, byPrevious) {
			t.Error(text)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("t=1790000000,v1=" + byCurrent)
	f.Add("t=1790000000, v1=zz,v0=" + zero)
	f.Add("v1==,t=,,")
	f.Fuzz(func(t *testing.T, header string) {
		_, err := Verify([]string{current, previous}, header, body, now)
		var reason Reason
		if err != nil && !errors.As(err, &reason) {
			t.Fatalf("an error without a reason: %v", err)
		}
		lower := strings.ToLower(header)
		if err == nil && !strings.Contains(lower, "v1="+byCurrent) && !strings.Contains(lower, "v1="+byPrevious) {
			t.Fatalf("accepted %q", header)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{1, 3, 12, 120} {
		payload := []byte(strings.Repeat("x", size<<10))
		header := Sign(current, payload, now)
		for name, secrets := range map[string][]string{"one": {current}, "second": {previous, current}} {
			b.Run(fmt.Sprintf("%dKB/%s", size, name), func(b *testing.B) {
				b.SetBytes(int64(len(payload)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Verify(secrets, header, payload, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
