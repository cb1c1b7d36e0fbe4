package sim

import (
	"context"
	"net/http"

	"backstop/internal/awsclient"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/receive"
	"backstop/internal/reconcile"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Hooks put something else in the place of a part of the product, at the small interfaces the use cases have or at
// the wire. All are optional. They are how the tests plant faults.
type Hooks struct {
	Secrets       func(Seam, receive.Secrets) receive.Secrets
	ReceiveLedger func(Seam, receive.Ledger) receive.Ledger
	ReceiveQueue  func(Seam, receive.Queue) receive.Queue
	ProcessLedger func(Seam, process.Ledger) process.Ledger
	ProcessQueue  func(Seam, process.Queue) process.Queue
	SweepLedger   func(Seam, reconcile.Ledger) reconcile.Ledger
	SweepControl  func(Seam, reconcile.Control) reconcile.Control
	Handler       func(Seam, handler.Handler) handler.Handler
	Batch         func(payload []byte) []byte // an invocation of the processor
	Wire          func(Seam, http.RoundTripper) http.RoundTripper

	// Decide takes the place of the rule for two events of one second.
	Decide func(incoming, previous, storedState, storedPrevious int64) handler.Decision
}

// Seam is what a hook may use of the process it is in.
type Seam struct {
	Process string
	Life    context.Context  // of the process
	Go      func(func())     // starts a goroutine the process's death ends
	DB      *dynamodb.Client // the process's own
	Ledger  *ledger.Store    // the process's own
	Table   string           // the ledger's
	Codec   *ledger.Codec
}

func (w *world) seam(p *proc) Seam {
	return Seam{Process: p.name, Life: p.life, Go: p.spawn, DB: p.db, Ledger: p.ledger, Table: w.names.LedgerTable, Codec: w.Codec}
}

func retryer(random func() float64) func() aws.Retryer { return awsclient.Retryer(random) }
