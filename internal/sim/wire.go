package sim

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"time"

	"backstop/internal/awslocal"
)

// Names of the faults, as the report counts them.
const (
	faultRefused   = "5xx, not applied"
	faultThrottled = "throttled"
	faultReset     = "connection reset, not applied"
	faultLost      = "applied, reply lost"
	faultSlow      = "slow, perhaps not applied"
	faultSlowReply = "applied, reply slow"
	faultLate      = "applied long after the caller gave up"
	faultService   = "a service of AWS down"
	faultDeath     = "process killed before a call"
	faultDeath2    = "process killed after a call"
	faultFreeze    = "process frozen beyond its lease"
	faultAnswer    = "batch answer lost"
	faultOOM       = "process killed by its handler"
	faultDeadline  = "process killed at its deadline"
	faultDeaf      = "answer to Stripe lost"
	faultOutside   = "outside call failed"
	faultForged    = "delivery with a wrong signature"
)

// intercept stands at the process's wire: it gives the call a moment of its own, and what goes wrong with it.
func (p *proc) intercept(c *awslocal.Call) awslocal.Fault {
	p.stop()
	w := p.w
	subject := subjectOf(c.Body)
	d := w.dice.about("call", p.name, c.Action, subject).at(time.Now())
	p.align(d)
	p.freeze(d)
	p.stop()

	w.mu.Lock()
	calmed, profile := w.calmed, w.profile
	w.report.Calls++
	w.mu.Unlock()
	if calmed {
		w.call(p, c, subject, "")
		return awslocal.Fault{}
	}
	if w.isDown(c.Service) {
		w.call(p, c, subject, faultService)
		if w.deaf {
			return awslocal.Fault{Kind: awslocal.ReplyLost}
		}
		return awslocal.Fault{Kind: awslocal.Unavailable}
	}
	if p.kind != pollerKind && d.about("death").chance(profile.deaths) {
		if d.about("before").chance(0.5) {
			w.call(p, c, subject, faultDeath)
			p.end(faultDeath)
			runtime.Goexit()
		}
		w.call(p, c, subject, faultDeath2)
		w.mu.Lock()
		p.dieAfter[c] = true
		w.mu.Unlock()
		return awslocal.Fault{}
	}
	if !d.about("fault").chance(profile.wire) {
		w.call(p, c, subject, "")
		return awslocal.Fault{}
	}
	name, fault := chooseFault(d.about("kind"))
	w.call(p, c, subject, name)
	if name == faultLate {
		w.applyLate(p, c, d.about("late").between(100*time.Millisecond, 40*time.Second))
	}
	return fault
}

func chooseFault(d dice) (string, awslocal.Fault) {
	switch d.below(16) {
	case 0, 1:
		return faultRefused, awslocal.Fault{Kind: awslocal.Unavailable}
	case 2, 3:
		return faultThrottled, awslocal.Fault{Kind: awslocal.Throttle}
	case 4, 5:
		return faultReset, awslocal.Fault{Kind: awslocal.Reset}
	case 6, 7, 8, 9, 10:
		return faultLost, awslocal.Fault{Kind: awslocal.ReplyLost}
	case 11:
		return faultSlow, awslocal.Fault{Delay: d.about("slow").between(200*time.Millisecond, 5*time.Second)}
	case 12, 13:
		return faultSlowReply, awslocal.Fault{ReplyDelay: d.about("slow").between(200*time.Millisecond, 5*time.Second)}
	default:
		return faultLate, awslocal.Fault{Kind: awslocal.Reset}
	}
}

// lateMark ends the name of a caller whose call comes late.
const lateMark = "~"

// applyLate sends the call once more, on nobody's behalf, when its caller has long given up.
func (w *world) applyLate(p *proc, c *awslocal.Call, after time.Duration) {
	header, body := c.Header.Clone(), bytes.Clone(c.Body)
	w.running.Go(func() {
		select {
		case <-time.After(after):
		case <-w.life.Done():
			return
		}
		request, err := http.NewRequestWithContext(context.WithoutCancel(w.life), http.MethodPost, endpoint+"/", bytes.NewReader(body))
		if err != nil {
			return
		}
		request.Header = header
		transport := &awslocal.Transport{Server: w.server, Caller: p.name + lateMark}
		w.note(p.name, "", "late: "+c.Action+" "+subjectOf(body))
		if response, err := transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	})
}

// freeze holds every call of a process that is frozen, until it thaws: when its time has come or, which is the worst
// moment, just after another has taken over what it works on.
func (p *proc) freeze(d dice) {
	w := p.w
	w.mu.Lock()
	p.calls++
	if p.freezeAt > 0 && p.calls == p.freezeAt && !w.calmed {
		p.thaw = time.Now().Add(p.freezeFor)
		p.overtaken = make(chan struct{})
		w.report.Faults[faultFreeze]++
		w.froze(p)
	}
	thaw, overtaken := p.thaw, p.overtaken
	w.mu.Unlock()
	left := time.Until(thaw)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-overtaken:
	}
	time.Sleep(time.Duration(d.about("thaw").below(int(3 * time.Millisecond))))
}

// overtake thaws a frozen process. The caller holds the lock.
func (p *proc) overtake() {
	if p.thaw.After(time.Now()) {
		p.thaw = time.Now()
		close(p.overtaken)
	}
}

// subjectOf names what a call is about, by something that is the same in every run of the history.
func subjectOf(body []byte) string {
	for _, mark := range []string{`"pk":{"S":"`, `"MessageDeduplicationId":"`, `"ReceiptHandle":"`, `":v0":{"S":"`} {
		if _, rest, found := bytes.Cut(body, []byte(mark)); found {
			subject, _, _ := bytes.Cut(rest, []byte(`"`))
			return string(subject)
		}
	}
	return ""
}
