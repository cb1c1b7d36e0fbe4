package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"backstop/internal/ledger"
)

// noise is n bytes that do not pack, the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func L(vs ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: vs}
}

func nullValue() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} }

// Entries packed with a dictionary can only be read with the same one.
func TestDictionaryNeverChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("dictionary.z1")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got, want := hex.EncodeToString(sum[:]), "944beffcc4510612cc753c66e6d3c3828eadbc46c85c5fc87420ad58c4996dac"; got != want {
		t.Errorf("dictionary.z1 is %s, want %s: a better dictionary is z2", got, want)
	}
}

func TestExactBytesComeBack(t *testing.T) {
	t.Parallel()
	codec := shared()
	fragments := []string{
		`{`, `}`, `"id": "evt_`, "\n      ", `"customer": "cus_`, `null,`, "é", "\x00", "\r\n", `"object": "event",`, `\u00e9`, `1790068848`,
	}
	rapid.Check(t, func(t *rapid.T) {
		var body []byte
		for _, part := range rapid.SliceOfN(rapid.OneOf(
			rapid.Map(rapid.SampledFrom(fragments), func(s string) []byte { return []byte(s) }),
			rapid.SliceOfN(rapid.Byte(), 0, 40),
		), 0, 200).Draw(t, "parts") {
			body = append(body, part...)
		}
		roundTrip(t, codec, body)
	})
}

func roundTrip(t interface{ Fatalf(string, ...any) }, codec *ledger.Codec, body []byte) {
	packed, name := codec.Pack(body, 300)
	if len(packed) > len(body) {
		t.Fatalf("packing made %d bytes of %d", len(packed), len(body))
	}
	back, err := codec.Unpack(packed, name)
	if err != nil {
		t.Fatalf("unpacking: %v", err)
	}
	if !bytes.Equal(back, body) {
		t.Fatalf("%d bytes came back as %d", len(body), len(back))
	}
}

func TestLargeBodiesComeBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4 << 20, 6 << 20} {
		roundTrip(t, shared(), bytes.Repeat([]byte(`{"id": "li_1", "object": "line_item"}, `), size/39))
	}
	roundTrip(t, shared(), noise(4<<20))
}

func TestWhatDoesNotPackIsStoredRaw(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{nil, []byte("x"), noise(300)} {
		if packed, name := shared().Pack(body, 700); name != "raw" || !bytes.Equal(packed, body) {
			t.Errorf("%d bytes packed as %s", len(body), name)
		}
	}
}

// An entry stored by an earlier version of this code stays readable.
func TestOldEntriesStayReadable(t *testing.T) {
	t.Parallel()
	packed, err := base64.StdEncoding.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := shared().Unpack(packed, "z1")
	if want := "{\n  \"id\": \"evt_1SqAn193ZBBxlTnrVoGWgm65\",\n  \"object\": \"event\",\n  \"api_version\": \"2025-08-27.basil\"\n}"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

const golden = "AQABNQEApAExU3FBbjE5M1pCQnhsVG5yVm9HV2dtNjUKfQLcDKBkSsN8SQE="

func TestBrokenBodiesAreErrors(t *testing.T) {
	t.Parallel()
	packed, _ := shared().Pack(bytes.Repeat([]byte(`{"id": "evt_"}`), 20), 700)
	bomb, _ := ledger.NewCodec().Pack(make([]byte, 6<<20+1), 700)
	for name, test := range map[string]struct {
		packed []byte
		codec  string
	}{
		"unknown codec":  {packed, "z9"},
		"no codec":       {packed, ""},
		"not packed":     {[]byte("{}"), "z1"},
		"cut":            {packed[:len(packed)-3], "z1"},
		"over the bound": {bomb, "z1"},
	} {
		if got, err := shared().Unpack(test.packed, test.codec); !errors.Is(err, ledger.ErrCodec) {
			t.Errorf("%s: %d bytes, %v; want ErrCodec", name, len(got), err)
		}
	}
}

func FuzzCodec(f *testing.F) {
	f.Add([]byte(`{"id": "evt_1", "object": "event"}`), []byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, body, packed []byte) {
		roundTrip(t, shared(), body)
		if got, err := shared().Unpack(packed, "z1"); err == nil && len(got) > 6<<20 {
			t.Fatalf("unpacked to %d bytes", len(got))
		}
	})
}
