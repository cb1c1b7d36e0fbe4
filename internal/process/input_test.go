package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/ledger"
)

func TestMessagesThatAreNoPointersGoToTheDeadLetterQueueAtTheirSecondReceive(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.record("evt_bad", body("evt_bad", "invoice.paid", "cus_1"))
		w.sendRaw("not json", "cus_1")
		w.sendRaw(`{"v":1,"key":"stripe#-#evt_bad","type":"","created":1,"replay":0}`, "cus_1")
		w.enqueue("evt_absent", "invoice.paid", "cus_1")
		w.accept("evt_good", "invoice.paid", "cus_1")
		p := w.processor()
		batch := w.receive()
		if failed := w.handle(p, batch); len(failed) != 4 || failed[0] != batch[0].ID {
			t.Errorf("%d messages stay in the queue, want the one that is no pointer and the three behind it", len(failed))
		}
		if dead := w.dead(); len(dead) != 0 {
			t.Errorf("%d messages went to the dead-letter queue at their first receive", len(dead))
		}
		w.drain(p, time.Minute)
		w.wantStatus("evt_good", ledger.Done, 0)
		if e := w.entry("evt_bad"); e.Status != ledger.Parked || e.Class != ledger.ClassPointer {
			t.Errorf("the entry of the odd pointer is %s of class %s, want parked", e.Status, e.Class)
		}
		want := map[string]string{
			"not json": "not a JSON object",
			`{"v":1,"key":"stripe#-#evt_bad","type":"","created":1,"replay":0}`: "no event type",
			"evt_absent": "does not exist",
		}
		dead := 0
		for range 3 { // a FIFO queue gives one message of a group after the other was deleted or hidden
			for _, m := range w.dead() {
				dead++
				for body, reason := range want {
					if strings.Contains(*m.Body, body) && !strings.Contains(*m.MessageAttributes["reason"].StringValue, reason) {
						t.Errorf("%s has the reason %q, want %q", *m.Body, *m.MessageAttributes["reason"].StringValue, reason)
					}
				}
			}
		}
		if dead != 3 {
			t.Errorf("%d messages in the dead-letter queue, want 3", dead)
		}
	})
}

func TestNewerPointerIsHandedBackForTheDeployment(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.record("evt_1", body("evt_1", "invoice.paid", "cus_1"))
		w.sendRaw(`{"v":2,"entry":{"k":"stripe#-#evt_1"}}`, "cus_1")
		batch := w.receive()
		if failed := w.handle(w.processor(), batch); len(failed) != 1 {
			t.Errorf("%d messages stay in the queue, want 1", len(failed))
		}
		if len(w.dead()) != 0 {
			t.Error("a pointer of a newer version was dead-lettered")
		}
		w.wantStatus("evt_1", ledger.Recorded, 0)
		time.Sleep(29 * time.Second)
		if got := len(w.receive()); got != 0 {
			t.Error("it is back before 30 s")
		}
		time.Sleep(time.Second)
		if got := len(w.receive()); got != 1 {
			t.Error("it is not back after 30 s")
		}
	})
}

func TestEntryWithUnknownCodecIsParked(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		w.set("evt_1", "codec", &types.AttributeValueMemberS{Value: "zstd-99"})
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_2", ledger.Done, 0)
		if dead := w.dead(); len(dead) != 1 || *dead[0].MessageAttributes["class"].StringValue != "codec" {
			t.Errorf("the dead-letter queue holds %d messages, want the one of class codec", len(dead))
		}
		out, err := w.db.GetItem(w.ctx, &dynamodb.GetItemInput{TableName: &w.names.LedgerTable,
			Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "stripe#-#evt_1"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Item["status"].(*types.AttributeValueMemberS).Value; got != "parked" {
			t.Errorf("the entry is %s, want parked", got)
		}
	})
}

func TestPointerToAnEntryOfUnknownStatusIsDeadLetteredNotDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		w.set("evt_1", "status", &types.AttributeValueMemberS{Value: "archived"})
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_2", ledger.Done, 0)
		w.wantStatus("evt_1", "archived", 0)
		if seen.of("evt_1") != 0 {
			t.Error("it ran")
		}
		dead := w.dead()
		if len(dead) != 1 || !strings.Contains(*dead[0].Body, "evt_1") ||
			!strings.Contains(*dead[0].MessageAttributes["reason"].StringValue, "status this version does not know") {
			t.Errorf("the dead-letter queue holds %d messages, want the one of evt_1 with its reason", len(dead))
		}
	})
}

// set changes an attribute of an entry past the ledger.
func (w *world) set(id, name string, value types.AttributeValue) {
	w.Helper()
	_, err := w.db.UpdateItem(w.ctx, &dynamodb.UpdateItemInput{
		TableName:                 &w.names.LedgerTable,
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: string(key(id))}},
		UpdateExpression:          aws.String("SET #n = :v"),
		ExpressionAttributeNames:  map[string]string{"#n": name},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
	})
	if err != nil {
		w.Fatal(err)
	}
}

func TestTypeNobodyListensToIsSkipped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.accept("evt_1", "price.updated", "cus_1")
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Skipped, 0)
		if log := w.log.text(); !strings.Contains(log, `"Skipped":1`) || !strings.Contains(log, "no handler listens") {
			t.Errorf("the log does not count it: %s", log)
		}
	})
}

func TestEventOfTheOtherModeIsSkippedAndCounted(t *testing.T) {
	for mode, want := range map[string]ledger.Status{"live": ledger.Skipped, "test": ledger.Done, "": ledger.Done} {
		t.Run("Mode "+mode, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.config.Mode = mode
				seen := w.listen("invoice.paid", "h", fine)
				w.accept("evt_1", "invoice.paid", "cus_1") // livemode false
				w.handle(w.processor(), w.receive())
				w.wantStatus("evt_1", want, 0)
				skipped := want == ledger.Skipped
				if skipped != (seen.of("evt_1") == 0) || skipped != strings.Contains(w.log.text(), `"WrongMode":1`) {
					t.Errorf("ran %d times; the log says %s", seen.of("evt_1"), w.log.text())
				}
			})
		})
	}
}

func TestPointerOfASettledEventIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		if failed := w.handle(w.processor(), w.receive()); len(failed) != 0 {
			t.Errorf("%d messages stay in the queue, want none", len(failed))
		}
		if seen.of("evt_1") != 1 || seen.of("evt_2") != 1 {
			t.Errorf("evt_1 ran %d times and evt_2 %d, want once each", seen.of("evt_1"), seen.of("evt_2"))
		}
	})
}

func TestRedrivenPointerIsAReplayAndAnyOtherToAParkedEntryIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := true
		seen := w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if broken {
				return nil, handler.Permanent(errors.New("no such plan"))
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Parked, 1)
		dead := w.dead()
		if len(dead) != 1 {
			t.Fatalf("%d messages in the dead-letter queue, want 1", len(dead))
		}
		broken = false

		w.enqueue("evt_1", "invoice.paid", "cus_1")                                                                      // an ordinary pointer
		w.sendRaw(`{"v":1,"key":"stripe#-#evt_1","type":"invoice.paid","created":1,"replay":0,"generation":7}`, "cus_1") // of another parking
		if failed := w.handle(p, w.receive()); len(failed) != 0 || seen.of("evt_1") != 1 {
			t.Errorf("%d messages stay, %d runs: want both dropped", len(failed), seen.of("evt_1"))
		}
		w.wantStatus("evt_1", ledger.Parked, 1)

		w.sendRaw(*dead[0].Body, "cus_1")
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
		if e := w.entry("evt_1"); e.Replay != 1 || e.Replays[0].By != "redrive" || seen.of("evt_1") != 2 {
			t.Errorf("replay %d, %+v, %d runs", e.Replay, e.Replays, seen.of("evt_1"))
		}

		w.sendRaw(*dead[0].Body, "cus_1") // and once more
		w.handle(p, w.receive())
		if seen.of("evt_1") != 2 {
			t.Error("a done event ran again")
		}
	})
}

func TestCrashAfterTheRedrivesReplayRunsTheEventAll(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := true
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if broken {
				return nil, handler.Permanent(errors.New("no such plan"))
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		broken = false
		dead := w.dead()
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Parked, Token: "died", By: "redrive"}); err != nil {
			t.Fatal(err)
		}
		w.sendRaw(*dead[0].Body, "cus_1")
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
	})
}

func TestDeadLetterIsSentBeforeTheEntryIsParked(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, handler.Permanent(errors.New("no such plan"))
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.on("SendMessage", 12, awslocal.Fault{Kind: awslocal.Unavailable}) // 3 tries of 4 calls each
		p := w.processor()
		if failed := w.handle(p, w.receive()); len(failed) != 1 {
			t.Error("the message went although nobody could be told")
		}
		w.wantStatus("evt_1", ledger.Recorded, 1)
		w.drain(p, time.Hour)
		if e := w.entry("evt_1"); e.Status != ledger.Parked {
			t.Errorf("it is %s, want parked once the queue works again", e.Status)
		}
		if len(w.dead()) != 1 {
			t.Error("parked without a dead-letter message")
		}
	})
}

func TestCrashBetweenDeadLetterAndParkingLeavesAGhostAndParksAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, handler.Permanent(errors.New("no such plan"))
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		// The claim passes; what follows the dead-letter message does not, as if the process had died there.
		updates := 0
		w.mu.Lock()
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if c.Action == "UpdateItem" {
				if updates++; updates > 1 && updates < 100 {
					return awslocal.Fault{Kind: awslocal.Reset}
				}
			}
			return awslocal.Fault{}
		}
		w.mu.Unlock()
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Processing, 0)
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		w.drain(p, time.Hour)
		e := w.entry("evt_1")
		if e.Status != ledger.Parked || e.Generation != 2 {
			t.Errorf("it is %s at generation %d, want parked at 2", e.Status, e.Generation)
		}
		dedups := []string{}
		for _, m := range w.dead() {
			dedups = append(dedups, m.Attributes["MessageDeduplicationId"])
		}
		if strings.Join(dedups, " ") != "evt_1#g1 evt_1#g2" {
			t.Errorf("the dead-letter queue holds %v, want the ghost and the parked one", dedups)
		}
	})
}
