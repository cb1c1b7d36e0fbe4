package ledger

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// The codecs a body can be stored in. A dictionary is part of the format: what was packed with it can be read as long
// as it is in the binary, so a better dictionary becomes z2 beside it, and dictionary.z1 is never changed.
const (
	codecRaw = "raw" // as received: packing did not make it smaller
	codecZ1  = "z1"  // one zstd frame (RFC 8878) with dictionary.z1, without its magic number
)

// frameMagic begins every zstd frame. What is the same in all bodies is not worth four bytes in each.
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

//go:generate go run ./gendict -id 1 -out dictionary.z1

//go:embed dictionary.z1
var dictionaryZ1 []byte

const (
	// maxBody bounds what a stored body unpacks to: Lambda hands a function no more than 6 MB (AWS Lambda Developer
	// Guide, "Lambda quotas"), so nothing larger was ever received.
	maxBody = 6 << 20

	// packWindow is how far back the encoder looks: the dictionary and 64 KB of the body. Ordinary events are 1 to
	// 12 KB; a wider window makes the encoder larger for the few that gain by it.
	packWindow = 128 << 10
)

// Codec packs and unpacks bodies. It is safe for concurrent use; its memory is bounded by two encoders (10 MB, made at
// the first packing or by Warm) and one decoder, which take turns.
type Codec struct {
	quick, thorough *zstd.Encoder
	decoder         *zstd.Decoder
}

// NewCodec returns a codec whose encoders are made at the first Pack, or by Warm.
func NewCodec() *Codec {
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderDicts(dictionaryZ1),
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxBody))
	if err != nil {
		panic("ledger: the embedded dictionary does not load: " + err.Error())
	}
	return &Codec{encoder(zstd.SpeedFastest), encoder(zstd.SpeedBetterCompression), decoder}
}

func encoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderDict(dictionaryZ1),
		zstd.WithEncoderLevel(level),
		zstd.WithWindowSize(packWindow),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false)) // DynamoDB keeps its own checksums
	if err != nil {
		panic("ledger: the embedded dictionary does not load: " + err.Error())
	}
	return e
}

// Warm makes the encoders, which takes milliseconds, before the first body is packed.
func (c *Codec) Warm() {
	c.quick.EncodeAll([]byte("{}"), nil)
	c.thorough.EncodeAll([]byte("{}"), nil)
}

// Pack returns the body as it is stored, and its codec. It keeps no reference to body unless the codec is raw.
//
// The quick encoder does when its result fits in enough bytes. Otherwise the thorough one makes it a quarter smaller,
// for several times the time: it begins each body by restoring a table of 4 MB. The best level takes ten times as
// long again, for little.
func (c *Codec) Pack(body []byte, enough int) (packed []byte, codec string) {
	packed = pack(c.quick, body)
	if len(packed) > enough {
		packed = pack(c.thorough, body)
	}
	if len(packed) >= len(body) {
		return body, codecRaw
	}
	return packed, codecZ1
}

func pack(e *zstd.Encoder, body []byte) []byte {
	return bytes.TrimPrefix(e.EncodeAll(body, make([]byte, 0, 1024)), frameMagic)
}

// Unpack returns the exact bytes Pack was given.
//
// Errors: ErrCodec when the codec is unknown or the bytes are not what it packs.
func (c *Codec) Unpack(packed []byte, codec string) ([]byte, error) {
	switch codec {
	case codecRaw:
		return packed, nil
	case codecZ1:
		body, err := c.decoder.DecodeAll(slices.Concat(frameMagic, packed), nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCodec, err)
		}
		return body, nil
	default:
		return nil, fmt.Errorf("%w: its codec is %q", ErrCodec, codec)
	}
}
