package billing

import (
	"strings"

	"backstop/internal/handler"
)

type wireSession struct {
	ID                string `json:"id"`
	Status            string `json:"status"`
	PaymentStatus     string `json:"payment_status"`
	Mode              string `json:"mode"`
	Customer          ref    `json:"customer"`
	CustomerEmail     string `json:"customer_email"`
	Currency          string `json:"currency"`
	AmountTotal       *int64 `json:"amount_total"`
	ClientReferenceID string `json:"client_reference_id"`
	PaymentIntent     ref    `json:"payment_intent"`
	Subscription      ref    `json:"subscription"`
	Invoice           ref    `json:"invoice"`
	Created           *int64 `json:"created"`
	CustomerDetails   *struct {
		Email string `json:"email"`
	} `json:"customer_details"`
}

var sessions = snapshot[wireSession]{read: readSession}

// readSession keeps status and payment_status apart: a completed session of a delayed payment method is not paid yet,
// and the failure of that payment changes neither of the two (Stripe documentation, "Fulfill orders").
func readSession(src source, s *wireSession) (fact, error) {
	if !usable(s.ID) {
		return fact{}, errNoID
	}
	email := s.CustomerEmail
	if s.CustomerDetails != nil && s.CustomerDetails.Email != "" {
		email = s.CustomerDetails.Email
	}
	failed := strings.HasSuffix(src.eventType, ".async_payment_failed")
	f := fact{object: "checkout.session", id: s.ID, row: s.ID, kind: kindSession, rank: rankUpdate}
	if failed || strings.HasSuffix(src.eventType, ".async_payment_succeeded") {
		f.rank = rankEnd
	}
	f.set = handler.Row{
		"status":              text(s.Status),
		"payment_status":      text(s.PaymentStatus),
		"payment_failed":      flag(failed),
		"mode":                text(s.Mode),
		"customer":            text(s.Customer),
		"email":               text(short(email, 512)),
		"currency":            text(s.Currency),
		"amount_total":        number(s.AmountTotal),
		"client_reference_id": text(s.ClientReferenceID),
		"payment_intent":      text(s.PaymentIntent),
		"subscription":        text(s.Subscription),
		"invoice":             text(s.Invoice),
		"created_s":           number(s.Created),
	}
	index(f.set, src.account, s.Customer, kindSession, s.ID)
	return f, nil
}
