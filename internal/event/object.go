package event

import "backstop/internal/jsonscan"

// object holds the raw values of those fields of an object that decide the group, as they stood last.
type object struct {
	raw                                   []byte
	id, kind, relatedType                 []byte
	customer                              []byte
	intent, charge, invoice, subscription []byte
	paymentIntent, paymentCharge          []byte // an invoice_payment's payment.payment_intent and payment.charge
	parentSubscription                    []byte // an invoice's parent.subscription_details.subscription
}

// read reads the object that comes next. What is not an object counts as absent.
func (o *object) read(s *jsonscan.Scanner) error {
	if s.Next() != '{' {
		_, err := s.Value()
		return err
	}
	start := s.Pos()
	err := s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			o.id, err = s.Value()
		case "object":
			o.kind, err = s.Value()
		case "type":
			o.relatedType, err = s.Value()
		case "customer":
			o.customer, err = ref(s)
		case "payment_intent":
			o.intent, err = ref(s)
		case "charge":
			o.charge, err = ref(s)
		case "invoice":
			o.invoice, err = ref(s)
		case "subscription":
			o.subscription, err = ref(s)
		case "payment":
			o.paymentIntent, o.paymentCharge = nil, nil
			err = o.payment(s)
		case "parent":
			o.parentSubscription = nil
			err = o.parent(s)
		default:
			_, err = s.Value()
		}
		return err
	})
	o.raw = s.Since(start)
	return err
}

// payment reads what an invoice_payment paid with.
func (o *object) payment(s *jsonscan.Scanner) error {
	return fields(s, func(key []byte) (err error) {
		switch string(key) {
		case "payment_intent":
			o.paymentIntent, err = ref(s)
		case "charge":
			o.paymentCharge, err = ref(s)
		default:
			_, err = s.Value()
		}
		return err
	})
}

// parent reads what made an invoice, which since API version 2025-03-31.basil names the subscription there (Stripe
// changelog, "Invoicing resources now specify how they were generated").
func (o *object) parent(s *jsonscan.Scanner) error {
	return fields(s, func(key []byte) error {
		if string(key) != "subscription_details" {
			_, err := s.Value()
			return err
		}
		o.parentSubscription = nil
		return fields(s, func(key []byte) (err error) {
			if string(key) == "subscription" {
				o.parentSubscription, err = ref(s)
				return err
			}
			_, err = s.Value()
			return err
		})
	})
}

// fields walks the object that comes next, and passes over anything else.
func fields(s *jsonscan.Scanner, member func(key []byte) error) error {
	if s.Next() != '{' {
		_, err := s.Value()
		return err
	}
	return s.Object(member)
}

// ref reads a reference: an id, or an expanded object whose id then counts.
func ref(s *jsonscan.Scanner) (id []byte, err error) {
	if s.Next() != '{' {
		return s.Value()
	}
	err = s.Object(func(key []byte) error {
		value, err := s.Value()
		if string(key) == "id" {
			id = value
		}
		return err
	})
	return id, err
}

// customerID is rules 1 to 3 of Group.
func (o *object) customerID(previous *object) string {
	if id := plausibleText(o.customer); id != "" {
		return id
	}
	if id := plausibleText(o.id); id != "" && equalText(o.kind, "customer") {
		return id
	}
	return plausibleText(previous.customer)
}

// reference is rules 4 and 5 of Group.
func (o *object) reference() string {
	id := plausibleText(o.id)
	for _, kin := range []struct {
		kind string
		refs [2][]byte
	}{
		{"payment_intent", [2][]byte{o.intent, o.paymentIntent}},
		{"charge", [2][]byte{o.charge, o.paymentCharge}},
		{"invoice", [2][]byte{o.invoice}},
		{"subscription", [2][]byte{o.subscription, o.parentSubscription}},
	} {
		if id != "" && equalText(o.kind, kin.kind) {
			return id
		}
		for _, value := range kin.refs {
			if ref := plausibleText(value); ref != "" {
				return ref
			}
		}
	}
	return id
}
