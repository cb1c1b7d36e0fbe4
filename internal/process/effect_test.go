package process_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/ledger"
)

func TestEffectsAreAppliedOnceThoughTheCommitsReplyIsLost(t *testing.T) {
	for name, lost := range map[string]int{"OnceSoTheSDKMeetsItsOwn": 1, "AtEveryTrySoTheNextAttemptMeetsTheMark": 4} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				seen := w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
					return []handler.Effect{w.tally(e.ID)}, nil
				})
				w.accept("evt_1", "invoice.paid", "cus_1")
				w.accept("evt_marker", "invoice.paid", "cus_1")
				w.on("TransactWriteItems", lost, awslocal.Fault{Kind: awslocal.ReplyLost})
				w.drain(w.processor(), time.Hour)
				w.wantStatus("evt_1", ledger.Done, 0)
				if got := w.tallied("evt_1"); got != 1 {
					t.Errorf("took effect %d times, want 1", got)
				}
				if got := w.tallied("evt_marker"); got != 1 || seen.of("evt_1") != 1 {
					t.Errorf("the marker took effect %d times; evt_1 ran %d times, want 1 and 1", got, seen.of("evt_1"))
				}
			})
		})
	}
}

func TestCrashAfterTheCommitDoesNotApplyTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		updates := 0
		w.mu.Lock()
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if c.Action == "UpdateItem" {
				if updates++; updates > 1 && updates < 60 {
					return awslocal.Fault{Kind: awslocal.Reset} // as if the process died after its commit
				}
			}
			return awslocal.Fault{}
		}
		w.mu.Unlock()
		p := w.processor()
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Processing, 0)
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 1) // the lost lease is charged
		if w.tallied("evt_1") != 1 || seen.of("evt_1") != 1 {
			t.Errorf("took effect %d times in %d runs, want 1 in 1", w.tallied("evt_1"), seen.of("evt_1"))
		}
	})
}

func TestConflictIsTriedAgainWithinTheAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		tokens := make(map[string]bool)
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if c.Action != "TransactWriteItems" {
				return awslocal.Fault{}
			}
			var in struct{ ClientRequestToken string }
			if err := json.Unmarshal(c.Body, &in); err != nil {
				t.Error(err)
			}
			if tokens[in.ClientRequestToken] = true; len(tokens) <= 3 {
				return awslocal.Fault{Kind: awslocal.Refuse, Code: "TransactionConflictException"}
			}
			return awslocal.Fault{}
		}
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
		if len(tokens) != 4 {
			t.Errorf("%d request tokens, want one for each of 4 compositions", len(tokens))
		}
		if w.tallied("evt_1") != 1 {
			t.Errorf("took effect %d times", w.tallied("evt_1"))
		}
	})
}

func TestConflictThatStaysIsReleasedUncharged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.on("TransactWriteItems", 1000, awslocal.Fault{Kind: awslocal.Refuse, Code: "TransactionConflictException"})
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Recorded, 0)
	})
}

func TestRowThatMovedMakesTheHandlerDecideAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		row := map[string]string{"pk": "balance", "sk": "-"}
		other := true
		seen := w.listen("invoice.paid", "h", func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
			stored, err := w.config.Projector.(handler.Table).Get(ctx, w.names.BillingTable, row)
			if err != nil {
				return nil, err
			}
			if other { // somebody writes between the read and the commit
				other = false
				w.project(t, row, 50)
			}
			before, _ := stored["cents"].(int64)
			var expect any
			if stored != nil {
				expect = before
			}
			return []handler.Effect{handler.Once{Table: w.names.BillingTable, Key: row,
				Set: handler.Row{"cents": before + 7}, Expect: handler.Row{"cents": expect}}}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
		stored, err := w.config.Projector.(handler.Table).Get(w.ctx, w.names.BillingTable, row)
		if err != nil || stored["cents"] != int64(57) || seen.of("evt_1") != 2 {
			t.Errorf("the row is %v (%v) after %d runs, want 57 after 2", stored, err, seen.of("evt_1"))
		}
	})
}

// project sets a balance past the processor.
func (w *world) project(t *testing.T, row map[string]string, cents int64) {
	t.Helper()
	_, err := w.config.Projector.Apply(w.ctx, "stripe#-#evt_other", handler.Project{Table: w.names.BillingTable, Key: row,
		Set: handler.Row{"cents": cents}, Version: handler.Version{CreatedS: 1}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRowThatNeverStandsStillIsReleasedUncharged(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", func(_ context.Context, _ handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{handler.Once{Table: w.names.BillingTable, Key: map[string]string{"pk": "a", "sk": "b"},
				Set: handler.Row{"n": int64(1)}, Expect: handler.Row{"n": int64(99)}}}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Recorded, 0)
		if seen.of("evt_1") != 5 {
			t.Errorf("decided %d times in one attempt, want 5", seen.of("evt_1"))
		}
	})
}

func TestFactsAreProjectedAndStaleOnesDroppedAndCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		row := map[string]string{"pk": "cus_1", "sk": "in_1"}
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			created := int64(200)
			if e.ID == "evt_older" {
				created = 100
			}
			return []handler.Effect{handler.Project{Table: w.names.BillingTable, Key: row, Set: handler.Row{"by": e.ID},
				Version: handler.Version{CreatedS: created, EventID: e.ID}}}, nil
		})
		w.accept("evt_newer", "invoice.paid", "cus_1")
		w.accept("evt_older", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_older", ledger.Done, 0)
		stored, err := w.config.Projector.(handler.Table).Get(w.ctx, w.names.BillingTable, row)
		if err != nil || stored["by"] != "evt_newer" {
			t.Errorf("the row is %v (%v), want the newer fact", stored, err)
		}
		if log := w.log.text(); strings.Count(log, `"StaleEffects":1`) != 1 {
			t.Errorf("the stale effect is not counted once: %s", log)
		}
		if n := w.count("TransactWriteItems"); n != 0 {
			t.Errorf("%d transactions for facts, want none", n)
		}
	})
}

func TestMoreEffectsThanOneTransactionTakesPark(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			var effects []handler.Effect
			for i := range 100 {
				effects = append(effects, w.tally(e.ID+string(rune('A'+i))))
			}
			return effects, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		if e := w.entry("evt_1"); e.Status != ledger.Parked || e.Class != ledger.ClassTooLarge {
			t.Errorf("it is %s of class %s, want parked too_large", e.Status, e.Class)
		}
	})
}

func TestEffectThatDynamoDBRefusesIsChargedAndNoOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{
				handler.Once{Table: w.names.BillingTable, Key: map[string]string{"pk": "named", "sk": "-"}, Add: map[string]int64{"name": 1}},
			}, nil
		})
		row := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "named"},
			"sk": &types.AttributeValueMemberS{Value: "-"}, "name": &types.AttributeValueMemberS{Value: "Ada"}}
		if _, err := w.db.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: &w.names.BillingTable, Item: row}); err != nil {
			t.Fatal(err)
		}
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.drain(w.processor(), time.Hour)
		w.wantStatus("evt_1", ledger.Parked, 8)
		if e := w.entry("evt_1"); e.Class != ledger.ClassError || !strings.Contains(e.LastError, "an effect is not valid") || strings.Contains(e.LastError, "Ada") {
			t.Errorf("class %s, error %q", e.Class, e.LastError)
		}
	})
}

func TestPayloadThatDoesNotDecodeParksAtOnceWithThePath(t *testing.T) {
	inWorld(t, func(w *world) {
		handler.On(&w.registry, "invoice.paid", "h", func(context.Context, handler.Event, *struct {
			AmountPaid int64 `json:"amount_paid"`
		}) ([]handler.Effect, error) {
			return nil, nil
		})
		w.record("evt_1", `{"id":"evt_1","type":"invoice.paid","created":1,"data":{"object":{"id":"in_1","customer":"cus_1","amount_paid":"5"}}}`)
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		e := w.entry("evt_1")
		if e.Status != ledger.Parked || e.Class != ledger.ClassDecode || !strings.Contains(e.LastError, "amount_paid") {
			t.Errorf("it is %s of class %s (%s), want parked with the path", e.Status, e.Class, e.LastError)
		}
	})
}

func TestLostLeaseStopsTheWorkerWithoutEffect(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			// Somebody else gives the claim back and takes the entry meanwhile.
			if err := w.ledger.Unclaim(w.ctx, key(e.ID), w.entry(e.ID).Token); err != nil {
				t.Error(err)
			}
			w.abandon(e.ID)
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		second := w.listen("invoice.paid", "second", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		failed := w.handle(w.processor(), w.receive())
		if second.of("evt_1") != 0 {
			t.Error("the next handler ran without a lease")
		}
		if len(failed) != 1 || w.tallied("evt_1") != 0 {
			t.Errorf("%d messages stay and %d effects, want 1 and none", len(failed), w.tallied("evt_1"))
		}
		if e := w.entry("evt_1"); e.Status != ledger.Processing || e.Generation != 2 {
			t.Errorf("it is %s at generation %d, want the other's claim untouched", e.Status, e.Generation)
		}
	})
}

func TestThawedWorkerWritesNothingPastItsLease(t *testing.T) {
	for name, effect := range map[string]func(w *world) []handler.Effect{
		"Counted": func(w *world) []handler.Effect { return []handler.Effect{w.tally("evt_1")} },
		"Fact": func(w *world) []handler.Effect {
			return []handler.Effect{handler.Project{Table: w.names.BillingTable, Key: map[string]string{"pk": "tally#evt_1", "sk": "-"}, Set: handler.Row{"n": int64(1)}}}
		},
		"Settling": func(*world) []handler.Effect { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var frozen time.Duration // what the wall clock went on by while the runtime stood still
				w.config.Now = func() time.Time { return time.Now().Add(frozen) }
				w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
					frozen = 33 * time.Second // 2 s before the lease's end
					return effect(w), nil
				})
				w.accept("evt_1", "invoice.paid", "cus_1")
				if failed := w.handle(w.processor(), w.receive()); len(failed) != 1 {
					t.Error("the message went")
				}
				if e := w.entry("evt_1"); e.Status != ledger.Processing || w.tallied("evt_1") != 0 {
					t.Errorf("it is %s with %d effects, want nothing written", e.Status, w.tallied("evt_1"))
				}
			})
		})
	}
}

func TestThawedWorkerRingsNoDoorbellPastItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		var frozen time.Duration // what the wall clock went on by while the runtime stood still
		w.config.Now = func() time.Time { return time.Now().Add(frozen) }
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			frozen = 33 * time.Second // 2 s before the lease's end
			return nil, handler.Permanent(errOrdinary)
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		if failed := w.handle(w.processor(), w.receive()); len(failed) != 1 {
			t.Error("the message went")
		}
		if dead := w.dead(); len(dead) != 0 {
			t.Errorf("%d messages in the dead-letter queue, want none", len(dead))
		}
		if e := w.entry("evt_1"); e.Status != ledger.Processing {
			t.Errorf("it is %s, want nothing written", e.Status)
		}
	})
}

func TestThawedWorkerStartsNoHandlerPastItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		var frozen time.Duration // what the wall clock went on by while the runtime stood still
		w.config.Now = func() time.Time { return time.Now().Add(frozen) }
		seen := w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if c.Action == "UpdateItem" && frozen == 0 {
				frozen = 36 * time.Second // in its claim, which is applied: the lease has passed when it hears of it
			}
			return awslocal.Fault{}
		}
		p := w.processor()
		if failed := w.handle(p, w.receive()); len(failed) != 1 {
			t.Error("the message went")
		}
		if n := seen.of("evt_1"); n != 0 {
			t.Errorf("the handler ran %d times under a lease that had passed", n)
		}
		w.fault = nil
		time.Sleep(2 * time.Minute)
		w.drain(p, time.Hour)
		if n := seen.of("evt_1"); n != 1 {
			t.Errorf("the handler ran %d times in all, want 1", n)
		}
		w.wantStatus("evt_1", ledger.Done, 1)
	})
}
