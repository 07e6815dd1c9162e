package gateway

import (
	"errors"

	"github.com/oncegate/oncegate/order"
)

// decodePayment reads {"type":…,"data":{"order_id":…,"amount":…,"provider_reference":…}}
// and validates it. Unknown members are refused here too: one of them could be
// a currency. The error is an [*order.InvalidError].
func decodePayment(body, messageID string) (order.PaymentMessage, error) {
	d := decoder{scanner: scanner{s: body}}
	m := order.PaymentMessage{Consumer: webhookConsumer, MessageID: messageID}
	if d.begin() {
		d.payment(&m)
		d.end()
	}
	faults := d.faults
	if d.fault == "" {
		faults = d.meaningless(&m)
	}
	if len(faults) > 0 {
		return order.PaymentMessage{}, &order.InvalidError{Faults: faults}
	}
	m.Digest = m.ContentDigest()
	return m, nil
}

// meaningless adds to the faults of reading those of meaning, for members that
// could be read.
func (d *decoder) meaningless(m *order.PaymentMessage) []order.FieldFault {
	var faults []order.FieldFault
	if m.OrderID.IsZero() {
		faults = append(faults, order.FieldFault{Path: "data.order_id", Reason: "is required and must be an order's id"})
	}
	if invalid, ok := errors.AsType[*order.InvalidError](m.Validate()); ok {
		faults = append(faults, invalid.Faults...)
	}
	all := d.faults
	for _, f := range faults {
		if f.Path == messageIDPath {
			f.Path = webhookIDName
		}
		if len(all) < maxFaults && !reported(d.faults, f.Path) {
			all = append(all, f)
		}
	}
	return all
}

// messageIDPath is how [order.PaymentMessage] calls what is a header here.
const messageIDPath = "message id"

func (d *decoder) payment(m *order.PaymentMessage) {
	var seen uint8
	d.members(noRow, func(name string) {
		var bit uint8
		switch name {
		case "type":
			bit = 1
		case "data":
			bit = 2
		}
		if !d.wanted(noRow, name, &seen, bit) {
			return
		}
		switch bit {
		case 1:
			text, _ := d.textMember(noRow, name)
			m.Type = order.EventType(text)
		case 2:
			if !d.take('{') {
				d.at(noRow, name, "must be an object")
				d.skip(1)
				return
			}
			d.within = name
			d.paymentData(m)
			d.within = ""
		}
	})
}

func (d *decoder) paymentData(m *order.PaymentMessage) {
	var seen uint8
	d.members(noRow, func(name string) {
		var bit uint8
		switch name {
		case "order_id":
			bit = 1
		case "amount":
			bit = 2
		case "provider_reference":
			bit = 4
		}
		if !d.wanted(noRow, name, &seen, bit) {
			return
		}
		switch bit {
		case 1:
			text, ok := d.textMember(noRow, name)
			if !ok {
				return
			}
			id, err := order.ParseID(text)
			if err != nil {
				d.at(noRow, name, err.Error())
			}
			m.OrderID = id
		case 2:
			m.Amount = d.amountMember(noRow, name)
		case 4:
			m.ProviderReference, _ = d.textMember(noRow, name)
		}
	})
}
