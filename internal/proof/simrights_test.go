package proof

import (
	"strings"
	"testing"
	"testing/synctest"

	"backstop/infra/template"
	"backstop/internal/awslocal"
	"backstop/internal/ledger"
	"backstop/internal/sim"
)

// histories are the seeds played: enough for every kind of call in a second or two.
const histories = 12

// simulated plays histories with faults, crashes and handlers of all kinds, and returns which function needed which
// permission. Only the tables' and queues' names differ from the other runs'.
func simulated(t *testing.T) map[string][]template.Permission {
	t.Helper()
	recorder := &awslocal.Recorder{}
	codec := ledger.NewCodec() // outside of any bubble, where its channels belong
	packed, name := codec.Pack([]byte("{}"), 0)
	if _, err := codec.Unpack(packed, name); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(histories) {
		synctest.Test(t, func(t *testing.T) {
			report, err := sim.Run(t.Context(), sim.Options{Seed: seed + 1, Codec: codec, Recorder: recorder})
			if err != nil || report.Lifecycles == 0 {
				t.Fatalf("%d events: %v", report.Lifecycles, err)
			}
		})
	}
	used := map[string][]template.Permission{}
	for _, use := range recorder.Uses() {
		kind, _, _ := strings.Cut(use.Caller, "-")
		if kind == "poller" {
			kind = template.Processor // in whose name the event source mapping calls
		}
		used[kind] = append(used[kind], template.Permission{
			Action: use.Action, Resource: strings.Replace(use.Resource, "backstop-sim-", "backstop-dev-", 1),
		})
	}
	return used
}
