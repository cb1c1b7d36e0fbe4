package ledger

import (
	_ "embed"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// NewCodec makes the encoder and the decoder.
func NewCodec() *Codec {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		panic(err)
	}
	return &Codec{enc, dec}
}

type Codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func (c *Codec) Pack(b []byte) ([]byte, string) { return c.enc.EncodeAll(b, nil), "z1" }
func (c *Codec) Unpack(b []byte, codec string) ([]byte, error) {
	if codec != "z1" {
		return nil, fmt.Errorf("%w: %q", ErrCodec, codec)
	}
	return c.dec.DecodeAll(b, nil)
}
