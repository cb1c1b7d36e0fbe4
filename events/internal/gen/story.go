package main

// storyStart is 2026-09-01T09:00:00Z.
const storyStart = 1788253200

// story is one business episode: play makes it happen in a world, and final is
// the truth at the end. final is a literal on purpose: projections are compared
// with it, so it must not come from the code that made the events.
type story struct {
	name, tag, title string
	play             func(w *world)
	final            string
}

// stories are all of them.
func stories() []story {
	return []story{
		signupTrial, trialPaused, renewal, paymentRecovered, dunning, upgradeProration,
		pauseResume, refundParts, disputeLost, resubscribe, guestCheckout, checkoutDelayed,
	}
}

// told is a story as its file holds it.
func told(s story) *object {
	ids, unordered := symbolic(s.tag), realistic("story/"+s.name)
	w := &world{now: storyStart, mint: func(prefix string) string {
		if prefix == "evt" || prefix == "req" || prefix == "ii" {
			return unordered(prefix) // an event's id must not tell its place in the story
		}
		return ids(prefix)
	}}
	s.play(w)

	objects, entitlements := newObject(), newObject()
	for _, o := range w.objects {
		if o.find("id") != nil {
			objects.fields = append(objects.fields, field{o.id(), o})
		} else { // a summary has no id; what the API answers is its list
			list := (*o.slot("entitlements")).(*object).clone()
			list.set("url", "/v1/entitlements/active_entitlements")
			entitlements.fields = append(entitlements.fields, field{o.str("customer"), list})
		}
	}
	return newObject("name", s.name, "title", s.title, "events", w.events, "final", parse(s.final),
		"stripe", newObject("objects", objects, "active_entitlements", entitlements))
}
