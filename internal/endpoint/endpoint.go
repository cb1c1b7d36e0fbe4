// Package endpoint brings the webhook endpoint at Stripe and the stored signing secrets to where a stage wants them:
// it creates, updates, and rolls without refusing a delivery. Package stripeadmin says how a roll works.
//
// Every command says what it would do before it does it, and can be repeated: where one died, the next one goes on.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/secret"
	"backstop/internal/stripeadmin"
)

const (
	// Settle is how long after a secret was stored deliveries signed with it may come: by then every running instance
	// of the receiver reads the store again at the first signature that does not match.
	Settle = secret.RefreshEvery + 5*time.Second

	// linger is how long after an endpoint was deleted a delivery signed with its secret may still be under way: longer
	// than Stripe waits for an answer.
	linger = time.Minute

	// probes is how often the receiver is asked whether it takes a secret: requests spread over its instances.
	probes = 20
)

// Admin is Stripe; *stripeadmin.Client is one.
type Admin interface {
	List(ctx context.Context) ([]stripeadmin.Endpoint, error)
	Create(ctx context.Context, w stripeadmin.Wanted, replaces string) (stripeadmin.Endpoint, string, error)
	Update(ctx context.Context, id string, w stripeadmin.Wanted) (stripeadmin.Endpoint, error)
	GoLive(ctx context.Context, id string, w stripeadmin.Wanted, now time.Time) (stripeadmin.Endpoint, error)
	Succeeded(ctx context.Context, id string) error
	Delete(ctx context.Context, id string) error
	Pending(ctx context.Context, before, now time.Time) (int, error)
}

// Store keeps the signing secrets; *secretstore.Store is one.
type Store interface {
	Load(ctx context.Context) (Named, error)
	Save(ctx context.Context, secrets Named) error
}

// Provisioner carries out commands.
type Provisioner struct {
	Admin Admin
	Store Store
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error

	// Accepts asks the receiver at a URL whether it takes deliveries signed with a secret.
	Accepts func(ctx context.Context, url, secret string) (bool, error)

	// Clean says why the ledger cannot be said to hold everything Stripe listed since a time; empty: it does.
	Clean func(ctx context.Context, since time.Time) (string, error)
}

// Outcome is what a command did, or would do.
type Outcome struct {
	Endpoint *stripeadmin.Endpoint `json:"endpoint,omitempty"`
	Steps    []string              `json:"steps"`             // done, or to be done
	Waiting  []string              `json:"waiting,omitempty"` // why the rest has to wait
	Notes    []string              `json:"notes,omitempty"`
}

func (o *Outcome) step(format string, args ...any) {
	o.Steps = append(o.Steps, fmt.Sprintf(format, args...))
}
func (o *Outcome) wait(format string, args ...any) {
	o.Waiting = append(o.Waiting, fmt.Sprintf(format, args...))
}
func (o *Outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// Ours returns the endpoints of a stage: those its metadata names, and unnamed ones that post to its URL.
func Ours(list []stripeadmin.Endpoint, w stripeadmin.Wanted) []stripeadmin.Endpoint {
	var ours []stripeadmin.Endpoint
	for _, e := range list {
		if e.Connect == w.Connect && (e.Stage == w.Stage || e.Stage == "" && e.URL == w.URL) {
			ours = append(ours, e)
		}
	}
	return ours
}

// Apply creates the stage's endpoint, or brings it to what is wanted. Without do, nothing is changed. A new endpoint
// delivers when the receiver takes its secret, and not before.
func (p *Provisioner) Apply(ctx context.Context, w stripeadmin.Wanted, do bool) (Outcome, error) {
	o := Outcome{Steps: []string{}}
	list, err := p.Admin.List(ctx)
	if err != nil {
		return o, err
	}
	stored, err := p.Store.Load(ctx)
	if err != nil {
		return o, err
	}
	ours := Ours(list, w)
	begun := slices.IndexFunc(ours, func(e stripeadmin.Endpoint) bool { return e.Idle() && e.Replaces == "" })
	if len(ours) == 0 || begun >= 0 {
		var idle *stripeadmin.Endpoint
		if begun >= 0 {
			idle = &ours[begun]
		}
		err := p.open(ctx, &o, w, idle, "", stored, do)
		return o, err
	}
	for _, e := range ours {
		if e.Idle() {
			o.note("%s is being prepared by a roll that has not ended: `backstop endpoint roll` goes on with it", e.ID)
			continue
		}
		if e.APIVersion != stripeadmin.APIVersion {
			o.note("%s was created with API version %q, which cannot be changed: `backstop endpoint roll` makes one with %s", e.ID, e.APIVersion, stripeadmin.APIVersion)
		}
		if !stored.has(e.ID) {
			o.note("the secret of %s is not stored under its id: it may be stored without, or `backstop endpoint roll` makes a new one", e.ID)
		}
		o.Endpoint = &e
		changes := differences(e, w)
		if len(changes) == 0 {
			continue
		}
		o.step("update %s: %s", e.ID, join(changes))
		if do {
			updated, err := p.Admin.Update(ctx, e.ID, w)
			if err != nil {
				return o, err
			}
			o.Endpoint = &updated
		}
	}
	return o, nil
}

func differences(e stripeadmin.Endpoint, w stripeadmin.Wanted) []string {
	var changes []string
	if e.URL != w.URL {
		changes = append(changes, "its URL, from "+e.URL)
	}
	if !e.Enabled {
		changes = append(changes, "enable it")
	}
	if e.Stage != w.Stage {
		changes = append(changes, "name its stage")
	}
	missing, unwanted := Compare(e.Types, w.Types)
	if len(missing) > 0 {
		changes = append(changes, "subscribe to "+join(missing))
	}
	if len(unwanted) > 0 {
		changes = append(changes, "unsubscribe from "+join(unwanted))
	}
	return changes
}

// Compare returns the types wanted and not there, and those there and not wanted. "*" is every type.
func Compare(have, want []string) (missing, unwanted []string) {
	for _, t := range want {
		if !slices.Contains(have, t) && !slices.Contains(have, "*") {
			missing = append(missing, t)
		}
	}
	for _, t := range have {
		if !slices.Contains(want, t) {
			unwanted = append(unwanted, t)
		}
	}
	return missing, unwanted
}

// create creates an endpoint and stores its secret. If that cannot be stored nobody will ever know it, and the
// endpoint is deleted again.
func (p *Provisioner) create(ctx context.Context, w stripeadmin.Wanted, replaces string, stored Named) (stripeadmin.Endpoint, string, error) {
	made, text, err := p.Admin.Create(ctx, w, replaces)
	if err != nil {
		return stripeadmin.Endpoint{}, "", err
	}
	if err := p.Store.Save(ctx, stored.with(made.ID, text)); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return stripeadmin.Endpoint{}, "", errors.Join(err, p.Admin.Delete(undo, made.ID))
	}
	return made, text, nil
}

// Roll gives the stage's endpoint another signing secret, as far as it can be done now. It is repeated until the old
// endpoint is gone; until then both deliver.
func (p *Provisioner) Roll(ctx context.Context, w stripeadmin.Wanted, do bool) (Outcome, error) {
	o := Outcome{Steps: []string{}}
	list, err := p.Admin.List(ctx)
	if err != nil {
		return o, err
	}
	stored, err := p.Store.Load(ctx)
	if err != nil {
		return o, err
	}
	old, successor, err := pair(Ours(list, w))
	if err != nil {
		return o, err
	}
	if old == nil { // it was deleted, and the roll died before it cleaned up
		return o, p.cleanUp(ctx, &o, *successor, successor.Replaces, list, stored, do)
	}
	if successor != nil && successor.LiveS > 0 {
		return o, p.finish(ctx, &o, *old, *successor, list, stored, do)
	}
	return o, p.begin(ctx, &o, w, *old, successor, stored, do)
}

// pair finds the endpoint in service and the one that is to take its place, if there is one.
func pair(ours []stripeadmin.Endpoint) (old, successor *stripeadmin.Endpoint, err error) {
	for i := range ours {
		e := &ours[i]
		switch {
		case e.Replaces != "" && successor == nil:
			successor = e
		case e.Replaces == "" && old == nil:
			old = e
		default:
			return nil, nil, fmt.Errorf("more than one endpoint of this stage is in service: delete all but one (%s, ...) at Stripe", e.ID)
		}
	}
	switch {
	case old == nil && successor == nil, old != nil && old.Idle():
		return nil, nil, errors.New("this stage has no endpoint in service: `backstop endpoint apply` creates one")
	case old != nil && successor != nil && successor.Replaces != old.ID:
		return nil, nil, fmt.Errorf("%s says that it replaces %s, but %s is in service: delete one of them at Stripe", successor.ID, successor.Replaces, old.ID)
	}
	return old, successor, nil
}

// begin makes the successor and lets it deliver, too.
func (p *Provisioner) begin(ctx context.Context, o *Outcome, w stripeadmin.Wanted, old stripeadmin.Endpoint, successor *stripeadmin.Endpoint, stored Named, do bool) error {
	w.URL = old.URL
	if err := p.open(ctx, o, w, successor, old.ID, stored, do); err != nil {
		return err
	}
	o.wait("%s delivers, too; a later `backstop endpoint roll` deletes it, when it has nothing left to deliver again and an audit was clean", old.ID)
	return nil
}

// open creates an endpoint, or goes on with an idle one, stores its secret, and lets it deliver when the receiver takes
// that.
func (p *Provisioner) open(ctx context.Context, o *Outcome, w stripeadmin.Wanted, idle *stripeadmin.Endpoint, replaces string, stored Named, do bool) error {
	if idle != nil && !stored.has(idle.ID) {
		o.step("delete %s, whose secret nobody knows", idle.ID)
		if do {
			if err := p.Admin.Delete(ctx, idle.ID); err != nil {
				return err
			}
		}
		idle = nil
	}
	if idle == nil {
		o.step("create an endpoint at %s, API version %s, delivering nothing yet, and store its secret", w.URL, stripeadmin.APIVersion)
	}
	o.step("wait %s, until every instance of the receiver would read it, and ask the receiver", Settle)
	o.step("let the endpoint deliver %d types", len(w.Types))
	if !do {
		return nil
	}
	if idle == nil {
		made, text, err := p.create(ctx, w, replaces, stored)
		if err != nil {
			return err
		}
		idle, stored = &made, stored.with(made.ID, text)
	}
	if err := p.Sleep(ctx, Settle); err != nil {
		return err
	}
	if err := p.taken(ctx, w.URL, stored.Value(idle.ID)); err != nil {
		return fmt.Errorf("%s is made, its secret is stored, and it delivers nothing yet; the same command goes on with it: %w", idle.ID, err)
	}
	live, err := p.Admin.GoLive(ctx, idle.ID, w, p.Now())
	if err != nil {
		return err
	}
	o.Endpoint = &live
	return nil
}

// taken asks the receiver until it has taken the secret so many times in a row.
func (p *Provisioner) taken(ctx context.Context, url, text string) error {
	for range probes {
		ok, err := p.Accepts(ctx, url, text)
		if err != nil {
			return fmt.Errorf("ask the receiver whether it takes the secret: %w", err)
		}
		if !ok {
			return errors.New("the receiver does not take the secret: is the store the one it reads?")
		}
	}
	return nil
}

// finish deletes the old endpoint when nothing depends on it any more.
func (p *Provisioner) finish(ctx context.Context, o *Outcome, old, successor stripeadmin.Endpoint, list []stripeadmin.Endpoint, stored Named, do bool) error {
	o.Endpoint = &successor
	live := time.Unix(successor.LiveS, 0)
	pending, err := p.Admin.Pending(ctx, live.Add(linger), p.Now())
	if err != nil {
		return err
	}
	if pending > 0 {
		o.wait("%d events from before the new endpoint are still to be delivered: deleting %s would drop them", pending, old.ID)
	}
	why, err := p.Clean(ctx, live)
	if err != nil {
		return err
	}
	if why != "" {
		o.wait("%s", why)
	}
	if !stored.has(successor.ID) {
		o.wait("the secret of %s is not stored", successor.ID)
	} else if err := p.taken(ctx, successor.URL, stored.Value(successor.ID)); err != nil {
		o.wait("%v", err)
	}
	if len(o.Waiting) > 0 {
		return nil
	}
	o.step("delete %s", old.ID)
	if do {
		if err := p.Admin.Delete(ctx, old.ID); err != nil {
			return err
		}
		if err := p.Sleep(ctx, linger); err != nil {
			return err
		}
	}
	return p.cleanUp(ctx, o, successor, old.ID, list, stored, do)
}

// cleanUp forgets the secret of an endpoint that is gone. Secrets stored without an endpoint's id are forgotten with
// it when every endpoint that is left at the URL has one under its id.
func (p *Provisioner) cleanUp(ctx context.Context, o *Outcome, successor stripeadmin.Endpoint, gone string, list []stripeadmin.Endpoint, stored Named, do bool) error {
	o.Endpoint = &successor
	known := true
	for _, e := range list {
		if e.URL == successor.URL && e.ID != gone && !stored.has(e.ID) {
			known = false
		}
	}
	left := stored.without(func(name string) bool { return name == gone || known && unnamed(name) })
	o.step("remove the old secret from the store")
	if !do {
		return nil
	}
	if err := p.Store.Save(ctx, left); err != nil {
		return err
	}
	return p.Admin.Succeeded(ctx, successor.ID)
}

// join lists a few texts.
func join(texts []string) string {
	const most = 5
	list := ""
	for i, text := range texts {
		switch {
		case i == most:
			return list + fmt.Sprintf(" and %d more", len(texts)-most)
		case i > 0:
			list += ", "
		}
		list += text
	}
	return list
}
