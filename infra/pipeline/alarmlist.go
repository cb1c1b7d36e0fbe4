package pipeline

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"backstop/internal/schema"
	"backstop/internal/telemetry"
)

// What a missing value means; one is chosen for each alarm.
const (
	missingIsFine   = awscloudwatch.TreatMissingData_NOT_BREACHING // nothing happened, nothing to report
	missingIsBad    = awscloudwatch.TreatMissingData_BREACHING     // the reporter itself is what is watched
	missingKeepsOld = awscloudwatch.TreatMissingData_IGNORE        // an absent reporter must not clear what it reported
)

const fiveMinutes = 5 * time.Minute

// alarmList is every alarm of a stage.
//
// Cost a month, by list price: $0.10 for each metric an alarm reads, $0.50 for the composite, $0.30 for each metric of
// the functions; with the dashboard and the secrets $15.90 in dev and $16.10 in prod. A test adds them up.
func alarmList(s Settings, p parts) []alarm {
	var list []alarm
	for _, group := range [][]alarm{
		parkedAlarms(p), lateAlarms(s, p), receiverAlarms(s, p), processorAlarms(s, p), storageAlarms(p), auditAlarms(s, p),
	} {
		list = append(list, group...)
	}
	return list
}

// parkedAlarms tell of events that wait for a person.
func parkedAlarms(p parts) []alarm {
	return []alarm{{
		name:  "parked-events",
		means: "Events are parked: they used up their attempts or cannot succeed, and nothing will run them again by itself.",
		do:    "List them with `backstop events --status parked`, mend the cause, then `backstop replay --status parked`.",
		calm:  "One is enough: only a verified event that failed 8 attempts, or for good, is parked, and it stays until somebody decides.",
		// The alarm of record: it counts the ledger, where a parked event never expires.
		metric:    p.own(telemetry.ParkedOpen, maximum, fiveMinutes, unlabelled),
		threshold: 1, periods: 1, datapoint: 1,
		missing: missingKeepsOld,
		pages:   true,
	}, {
		name:      "dead-letter-queue-not-empty",
		means:     "A pointer was parked a moment ago. It may be a ghost of an event that was replayed since; parked-events counts.",
		do:        "Look at parked-events; `backstop dlq tidy` removes ghosts at once, the reconciler does within minutes.",
		calm:      "The doorbell: it rings on the first message on purpose and does not page. No request can put one there unverified.",
		metric:    p.queue(p.queues.dead.QueueName(), "ApproximateNumberOfMessagesVisible", maximum, time.Minute, unlabelled),
		threshold: 1, periods: 1, datapoint: 1,
		missing: missingIsFine,
	}}
}

// lateAlarms tell that work is not keeping up.
func lateAlarms(s Settings, p parts) []alarm {
	objective := s.Objective.Seconds()
	return []alarm{{
		name:  "oldest-open-event-over-objective",
		means: "The oldest recorded event is not settled within the objective, or the sweep that measures it does not run.",
		do:    "Check that the mapping is not paused (`backstop status`), then which dependency is down.",
		calm: fmt.Sprintf("One event that fails each attempt is parked within %s, one that kills its process within %s: before this.",
			words(s.failingWithin()), words(s.killingWithin())),
		// Five minutes in a row, since runs of a schedule drift over the minute. Missing counts: no sweep, no healing.
		metric:    p.own(telemetry.OldestTodoS, maximum, time.Minute, unlabelled),
		threshold: objective, periods: 5, datapoint: 5,
		missing: missingIsBad,
		stops:   true,
	}, {
		name:      "oldest-message-over-objective",
		means:     "The oldest pointer waits longer than the objective: the processor does not consume, or hands back.",
		do:        "Check that the mapping is not paused (`backstop status`), then the processor's errors.",
		calm:      "Same arithmetic as the open events; this one is SQS's own view, which needs no reconciler.",
		metric:    p.queue(p.queues.main.QueueName(), "ApproximateAgeOfOldestMessage", maximum, time.Minute, unlabelled),
		threshold: objective, periods: 5, datapoint: 5,
		missing: missingIsFine,
		stops:   true,
	}, {
		name:  "one-group-fills-the-scan-window",
		means: "One customer's backlog nears the 120,000 messages SQS looks through; beyond it all other customers stand still.",
		do:    "The sweep's log line names it: largest_group. See what its head waits on with `backstop events --customer`, and mend or discard that.",
		calm:  "It takes tens of thousands of open events.",
		// Half of the window (Amazon SQS Developer Guide, "Avoid large message backlogs with the same message group
		// ID"): at 100 events a second of one customer, ten minutes remain.
		metric:    p.own(telemetry.LargestGroup, maximum, fiveMinutes, unlabelled),
		threshold: 60_000, periods: 2, datapoint: 2,
		missing: missingIsFine,
	}, {
		name:      "runs-not-started",
		means:     "EventBridge Scheduler could not start a run of the reconciler: rights, a throttle or a deleted function.",
		do:        "Read the message in the queue of unstarted runs: it holds the error.",
		calm:      "No request has a part in it. Messages leave after a day, and with them the alarm.",
		metric:    p.queue(p.schedules.dead.QueueName(), "ApproximateNumberOfMessagesVisible", maximum, fiveMinutes, unlabelled),
		threshold: 3, periods: 1, datapoint: 1, // 3: a single throttle is made up for by the next run
		missing: missingIsFine,
	}}
}

// receiverAlarms tell that deliveries do not come in.
func receiverAlarms(s Settings, p parts) []alarm {
	const quarter = 15 * time.Minute
	list := []alarm{{
		name:      "deliveries-fail",
		means:     "Deliveries are answered 5xx: the ledger or the queue cannot be written, or the receiver does not run.",
		do:        "Read the reasons in the dashboard's third row; Stripe repeats for three days, so mend first, then relax.",
		calm:      "Five in five minutes: one request is one failure, and Stripe waits before it repeats it.",
		metric:    p.metrics.api(p.api, "5xx", sum, fiveMinutes, unlabelled),
		threshold: 5, periods: 1, datapoint: 1,
		missing: missingIsFine,
		stops:   true,
	}, {
		name:      "deliveries-keep-failing",
		means:     "Deliveries are answered 5xx again and again, each time few: with little traffic this is all of them.",
		do:        "As for deliveries-fail.",
		calm:      "Three of twelve five-minute periods: a request that fails once is one, and one that fails each time it is repeated is worth a look.",
		metric:    p.metrics.api(p.api, "5xx", sum, fiveMinutes, unlabelled),
		threshold: 1, periods: 12, datapoint: 3,
		missing: missingIsFine,
		stops:   true,
	}, {
		name:      "acknowledgement-slow",
		means:     "One of a hundred deliveries waits longer for its answer than it should; beyond the time-out they fail.",
		do:        "Compare DynamoDB's and SQS's latency with cold starts on the dashboard.",
		calm:      "Fifteen minutes in a row, and percentiles of few values are not looked at: one slow request is neither.",
		metric:    p.own(telemetry.AckMS, p99, fiveMinutes, unlabelled),
		threshold: float64(s.AckP99.Milliseconds()), periods: 3, datapoint: 3,
		missing:   missingIsFine,
		ignoreFew: true,
	}, {
		name:  "signatures-do-not-match",
		means: "Half of the deliveries or more carry no signature of ours, or an old one: a rolled secret, a second endpoint, a clock.",
		do:    "Run `backstop doctor`: it compares the endpoint with the stored secrets.",
		calm: "The baseline is a share, so scanners beside ordinary traffic stay under it; at least 10 in 15 minutes, twice in a row, " +
			"so a single forged request is nothing.",
		metric: math("IF(FILL(signature, 0) + FILL(age, 0) >= 10, 100 * (FILL(signature, 0) + FILL(age, 0)) / "+
			"(FILL(signature, 0) + FILL(age, 0) + FILL(good, 0)), 0)", quarter, "% refused", map[string]awscloudwatch.IMetric{
			"signature": p.own(telemetry.RefusedSig, sum, quarter, unlabelled),
			"age":       p.own(telemetry.RefusedAge, sum, quarter, unlabelled),
			"good":      p.own(telemetry.Received, sum, quarter, unlabelled),
		}),
		threshold: 50, periods: 2, datapoint: 2,
		missing: missingIsFine,
	}, {
		name:      "no-usable-signing-secret",
		means:     "The receiver has no signing secret it can use and refuses every delivery.",
		do:        "Put the endpoint's whsec_... into the secret: the stack's output has the command.",
		calm:      "One request is enough to see it, but it tells of the deployment: every further request is refused too.",
		metric:    p.own(telemetry.RefusedConfig, sum, fiveMinutes, unlabelled),
		threshold: 1, periods: 1, datapoint: 1,
		missing: missingIsFine,
		stops:   true,
	}, {
		name:  "event-too-large",
		means: "A verified event does not fit the ledger. It is refused, and Stripe gives up on it after three days.",
		do:    "Find its id in the receiver's log and handle it by hand from Stripe's dashboard.",
		calm: "One is enough: it is verified and it is lost to us unless somebody acts. It stays on for a day, so that " +
			"Stripe's repetitions do not ring it again and again.",
		metric:    p.own(telemetry.TooLarge, sum, time.Hour, unlabelled),
		threshold: 1, periods: 24, datapoint: 1,
		missing: missingIsFine,
	}, {
		name:      "unexpected-api-version",
		means:     "Events come in another API version than the handlers expect. They are processed; fields may be elsewhere.",
		do:        "Compare the endpoint's version with `backstop doctor`; an endpoint's version is fixed when it is created.",
		calm:      "Two of three hours: one old event that somebody resends is a single hour.",
		metric:    p.own(telemetry.VersionMismatch, sum, time.Hour, unlabelled),
		threshold: 1, periods: 3, datapoint: 2,
		missing: missingIsFine,
	}}
	if hours := s.silentHours(); hours > 0 {
		list = append(list, alarm{
			name:   "silence",
			means:  "No verified delivery for several times the usual gap: an endpoint disabled at Stripe, a wrong URL, a broken domain.",
			do:     "Run `backstop doctor`; look at the endpoint in Stripe's dashboard. Nothing to sell? Raise -c silence=HOURS.",
			calm:   "Bad requests do not count; one good one clears it, and only as many empty hours in a row ring it again.",
			metric: p.own(telemetry.Received, sum, time.Hour, unlabelled),
			below:  true, threshold: 1, periods: hours, datapoint: hours,
			missing: missingIsBad,
			stops:   true,
		})
	}
	if s.Receiver.Reserved > 0 {
		list = append(list, alarm{
			name:      "receiver-near-its-concurrency",
			means:     "The receiver runs at four fifths of its reserved concurrency; beyond it deliveries fail.",
			do:        "Is it traffic (dashboard, deliveries) or slowness (acknowledgement time)? Raise Receiver.Reserved for the first.",
			calm:      "Three minutes in a row at 80 %: that is thousands of requests.",
			metric:    p.lambda(p.functions.receiver, "ConcurrentExecutions", maximum, time.Minute, unlabelled),
			threshold: float64(s.Receiver.Reserved) * 0.8, periods: 3, datapoint: 3,
			missing: missingIsFine,
		})
	}
	return list
}

// processorAlarms tell that the processor is not well.
func processorAlarms(s Settings, p parts) []alarm {
	f := p.functions.processor
	return []alarm{{
		name:  "processor-crashes",
		means: "The processor dies or runs out of time. (An event that only fails is not an error of the function.)",
		do:    "Read the last line of the process in its log; suspects are run alone, so the killer is named there.",
		calm: fmt.Sprintf("Five in five minutes, twice in fifteen: an event that kills its process does so %d times within %s and is "+
			"parked, so one such event is not enough.", attempts, words(s.killingWithin())),
		metric:    p.lambda(f, "Errors", sum, fiveMinutes, unlabelled),
		threshold: 5, periods: 3, datapoint: 2,
		missing: missingIsFine,
		stops:   true,
	}, {
		name:      "processor-throttled",
		means:     "Lambda refuses to run the processor: the account's concurrency is used up, or less is reserved than the mapping asks for.",
		do:        "Look who uses the account's concurrency; reserve some for the processor.",
		calm:      "Ten in each of three five-minute periods: throttles come from load, never from one request.",
		metric:    p.lambda(f, "Throttles", sum, fiveMinutes, unlabelled),
		threshold: 10, periods: 3, datapoint: 3,
		missing: missingIsFine,
	}, {
		name:      "processor-near-its-time-out",
		means:     "Batches take four fifths of the processor's time-out: a dependency is slow, or a handler does too much.",
		do:        "See which type is slow in the dashboard's fourth row.",
		calm:      fmt.Sprintf("Thirty minutes in a row: one event that hangs is parked within %s.", words(s.killingWithin())),
		metric:    p.lambda(f, "Duration", maximum, fiveMinutes, unlabelled),
		threshold: float64(schema.ProcessorTimeout.Milliseconds()) * 0.8, periods: 6, datapoint: 6,
		missing: missingIsFine,
	}, {
		name:      "processor-at-its-concurrency",
		means:     "The mapping has been running as many batches as it may for a quarter of an hour: there is more work than that.",
		do:        "If the backlog grows (dashboard, second row), raise MaxConcurrency, minding Stripe's and DynamoDB's limits.",
		calm:      "Fifteen minutes in a row: a burst is worked off in less, one request is nothing.",
		metric:    p.lambda(f, "ConcurrentExecutions", maximum, time.Minute, unlabelled),
		threshold: float64(s.MaxConcurrency), periods: 15, datapoint: 15,
		missing: missingIsFine,
	}}
}

// storageAlarms tell of DynamoDB.
func storageAlarms(p parts) []alarm {
	ledger, billing := p.tables.ledger.TableName(), p.tables.billing.TableName()
	return []alarm{{
		name:  "tables-throttle",
		means: "DynamoDB refuses reads or writes: a hot partition, or a burst beyond twice the table's former peak.",
		do:    "See which table and index on the dashboard; on-demand tables grow by themselves within minutes.",
		calm:  "A hundred in each of three five-minute periods: the SDK's own repetition hides a short burst, one request makes three.",
		metric: math("FILL(lw, 0) + FILL(lr, 0) + FILL(ow, 0) + FILL(bw, 0) + FILL(br, 0)", fiveMinutes, "throttled requests", map[string]awscloudwatch.IMetric{
			"lw": p.table(ledger, "WriteThrottleEvents", fiveMinutes, unlabelled),
			"lr": p.table(ledger, "ReadThrottleEvents", fiveMinutes, unlabelled),
			"ow": p.index(ledger, schema.OpenIndex, "WriteThrottleEvents", fiveMinutes, unlabelled),
			"bw": p.table(billing, "WriteThrottleEvents", fiveMinutes, unlabelled),
			"br": p.table(billing, "ReadThrottleEvents", fiveMinutes, unlabelled),
		}),
		threshold: 100, periods: 3, datapoint: 3,
		missing: missingIsFine,
	}, {
		name:  "tables-fail",
		means: "DynamoDB answers the ledger's writes with errors of its own.",
		do:    "See the AWS Health dashboard. Deliveries fail and come again; nothing is lost.",
		calm:  "Ten in each of two five-minute periods: single ones happen to everybody, and the SDK repeats them.",
		metric: math("FILL(put, 0) + FILL(update, 0)", fiveMinutes, "system errors", map[string]awscloudwatch.IMetric{
			"put":    p.operation(ledger, "PutItem", "SystemErrors", fiveMinutes, unlabelled),
			"update": p.operation(ledger, "UpdateItem", "SystemErrors", fiveMinutes, unlabelled),
		}),
		threshold: 10, periods: 2, datapoint: 2,
		missing: missingIsFine,
	}}
}

// auditAlarms tell what the comparison with Stripe's list found.
func auditAlarms(s Settings, p parts) []alarm {
	if !s.Audit {
		return nil
	}
	return []alarm{{
		name:      "audit-found-missing-events",
		means:     "Stripe has events that never arrived. The audit recorded them, so they are processed; why did they not come?",
		do:        "Run `backstop doctor` and look at the endpoint's failed deliveries in Stripe's dashboard.",
		calm:      "Two of four audits: one delivery that failed once is found by one audit only, since it is healed then.",
		metric:    p.own(telemetry.AuditMissing, sum, auditEvery, unlabelled),
		threshold: 1, periods: 4, datapoint: 2,
		missing: missingIsFine, // audit-did-not-run tells of that
	}, {
		name:      "audit-could-not-heal",
		means:     "Stripe has events that never arrived and could not be recorded either.",
		do:        "Read the audit's line in the reconciler's log for the ids and the reason.",
		calm:      "Two audits in a row: a write that failed once succeeds in the next.",
		metric:    p.own(telemetry.AuditUnhealed, sum, auditEvery, unlabelled),
		threshold: 1, periods: 2, datapoint: 2,
		missing: missingIsFine,
	}, {
		name:   "audit-did-not-run",
		means:  "No audit has ended well for 45 minutes: nobody is comparing with Stripe's list.",
		do:     "Is there an API key in its secret, with the right to read events? No key at all: deploy with -c audit=off.",
		calm:   "Three audits in a row: a time-out at Stripe costs one. Requests have no part in it.",
		metric: p.own(telemetry.AuditRan, sum, auditEvery, unlabelled),
		below:  true, threshold: 1, periods: 3, datapoint: 3,
		missing: missingIsBad,
	}}
}
