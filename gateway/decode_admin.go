package gateway

import (
	"strconv"

	"github.com/oncegate/oncegate/order"
)

// maxStock fits the signed 32-bit column of any engine.
const maxStock = 1_000_000_000

// decodeBalance reads {"balance":"100.00"}.
func decodeBalance(body string) (order.Amount, error) {
	balance := order.Amount(-1)
	err := decodeOne(body, "balance", func(d *decoder) { balance = d.amountMember(noRow, "balance") })
	return balance, err
}

// decodeAvailable reads {"available":100}.
func decodeAvailable(body string) (int64, error) {
	available := int64(-1)
	err := decodeOne(body, "available", func(d *decoder) {
		available = d.integerMember(noRow, "available")
		if d.fault == "" && len(d.faults) == 0 && (available < 0 || available > maxStock) {
			d.at(noRow, "available", "must be a whole number from 0 to "+strconv.Itoa(maxStock))
		}
	})
	return available, err
}

// decodeNothing reads {}, or no body at all: what would be passed over is refused.
func decodeNothing(body string) error {
	if body == "" {
		return nil
	}
	d := decoder{scanner: scanner{s: body}}
	if d.begin() {
		var seen uint8
		d.members(noRow, func(name string) { d.wanted(noRow, name, &seen, 0) })
		d.end()
	}
	if len(d.faults) > 0 {
		return &order.InvalidError{Faults: d.faults}
	}
	return nil
}

// decodeOne reads an object with exactly one member.
func decodeOne(body, member string, value func(*decoder)) error {
	d := decoder{scanner: scanner{s: body}}
	found := false
	if d.begin() {
		var seen uint8
		d.members(noRow, func(name string) {
			var bit uint8
			if name == member {
				bit = 1
			}
			if d.wanted(noRow, name, &seen, bit) {
				found = true
				value(&d)
			}
		})
		d.end()
	}
	if d.fault == "" && !found {
		d.at(noRow, member, "is required")
	}
	if len(d.faults) > 0 {
		return &order.InvalidError{Faults: d.faults}
	}
	return nil
}
