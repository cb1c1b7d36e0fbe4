package main

// feature is something a customer may use; as a price it is the account's
// set-up, with the same id in all worlds.
type feature struct{ id, lookupKey string }

var (
	reports = feature{"feat_test_61TB8kW0mQzLr5tHn41BxlTnrVo4w8Aa", "reports"}
	exports = feature{"feat_test_61TB8kX2cVyPd9sJf41BxlTnrVo4w3Bb", "exports"}
	support = feature{"feat_test_61TB8kYeRkMg6wXu141BxlTnrVo4w7Cc", "priority_support"}
)

// summary is the list of a customer's active entitlements, at first empty.
func (w *world) summary(cus *object) *object {
	return w.make("active_entitlement_summary", "", "customer", cus.id(), "entitlements.url", "/v1/customer/"+cus.id()+"/entitlements")
}

// grant gives the customer of a summary exactly these features. An entitlement
// that stays keeps its id.
func (w *world) grant(sum *object, features ...feature) {
	held := map[string]*object{}
	for _, e := range (*sum.slot("entitlements.data")).([]any) {
		held[e.(*object).str("feature")] = e.(*object)
	}
	list := []*object{}
	for _, f := range features {
		e := held[f.id]
		if e == nil {
			e = shape("active_entitlement").set("id", w.mint("ent_test"), "feature", f.id, "lookup_key", f.lookupKey)
		}
		list = append(list, e)
	}
	sum.set("entitlements.data", list)
}
