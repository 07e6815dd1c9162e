package gateway

import (
	"errors"
	"strconv"
	"strings"

	"github.com/oncegate/oncegate/order"
)

const (
	// maxFaults bounds the faults that one answer lists.
	maxFaults = 100
	// maxPathName bounds a member name of the caller's in a path, in bytes.
	maxPathName = 64
	// noRow stands for "not in a batch".
	noRow = -1
)

// draft is what could be read of a body.
type draft struct {
	lines  []order.Line
	faults []order.FieldFault
	broken bool // a syntax error hides the rest
}

// command validates the draft. The error is an [*order.InvalidError] that lists
// the faults of reading and, for members that could be read, of meaning.
func (d draft) command(op order.Operation, userID string, key order.Key) (*order.Command, error) {
	if len(d.faults) == 0 {
		return order.NewCommand(op, userID, key, d.lines)
	}
	faults := d.faults
	var invalid *order.InvalidError
	if _, err := order.NewCommand(op, userID, key, d.lines); !d.broken && errors.As(err, &invalid) {
		for _, f := range invalid.Faults {
			if len(faults) < maxFaults && !reported(d.faults, f.Path) {
				faults = append(faults, f)
			}
		}
	}
	return nil, &order.InvalidError{Faults: faults}
}

// reported tells whether a path, or the row it is in, has a fault already.
func reported(faults []order.FieldFault, path string) bool {
	for _, f := range faults {
		if rest, ok := strings.CutPrefix(path, f.Path); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

// decodeOrder reads the body of a single order.
func decodeOrder(body string) draft {
	d := decoder{scanner: scanner{s: body}}
	lines := make([]order.Line, 1)
	if d.begin() {
		d.line(&lines[0], noRow)
		d.end()
	}
	return draft{lines: lines, faults: d.faults, broken: d.fault != ""}
}

// decodeBatch reads the body of a batch of at most maxRows orders.
func decodeBatch(body string, maxRows int) draft {
	d := decoder{scanner: scanner{s: body}}
	var lines []order.Line
	if d.begin() {
		lines = d.batch(maxRows)
		d.end()
	}
	return draft{lines: lines, faults: d.faults, broken: d.fault != ""}
}

// decoder reads the bodies of this API and collects their faults.
type decoder struct {
	scanner
	faults []order.FieldFault
	within string // the member whose object is being read; empty for the body's own
}

// at records a fault of a member; of the row or the body when name is empty.
func (d *decoder) at(row int, name, reason string) {
	if len(d.faults) == maxFaults {
		d.fail("has more faults than are listed")
		return
	}
	if len(name) > maxPathName {
		name = strings.ToValidUTF8(name[:maxPathName], "")
	}
	path := name
	if d.within != "" {
		path = strings.TrimSuffix(d.within+"."+name, ".")
	}
	if row != noRow {
		path = "orders[" + strconv.Itoa(row) + "]"
		if name != "" {
			path += "." + name
		}
	}
	d.faults = append(d.faults, order.FieldFault{Path: path, Reason: reason})
}

// begin expects the body's object.
func (d *decoder) begin() bool {
	if d.take('{') {
		return true
	}
	d.fail("must be one JSON object")
	d.at(noRow, "", d.fault)
	return false
}

// end expects nothing after it.
func (d *decoder) end() {
	if d.space(); d.fault == "" && d.i < len(d.s) {
		d.fail("must be one JSON object with nothing after it")
		d.at(noRow, "", d.fault)
	}
}

// members calls value for each member of an object whose brace was consumed.
// A syntax error is recorded with the member in which it was met.
func (d *decoder) members(row int, value func(name string)) {
	for first := true; d.item(first, '}'); first = false {
		name := d.name()
		if d.fault != "" {
			break
		}
		value(name)
		if d.fault != "" {
			d.broken(row, name)
			return
		}
	}
	if d.fault != "" {
		d.broken(row, "")
	}
}

// broken records the syntax error once, where it is known best.
func (d *decoder) broken(row int, name string) {
	for i := range d.faults {
		if d.faults[i].Reason == d.fault {
			return
		}
	}
	d.at(row, name, d.fault)
}

// line reads one order whose brace was consumed.
func (d *decoder) line(l *order.Line, row int) {
	var seen uint8
	d.members(row, func(name string) {
		var bit uint8
		switch name {
		case "sku":
			bit = 1
		case "quantity":
			bit = 2
		case "amount":
			bit = 4
		case "external_order_no":
			bit = 8
		}
		if !d.wanted(row, name, &seen, bit) {
			return
		}
		switch bit {
		case 1:
			l.SKU, _ = d.textMember(row, name)
		case 2:
			l.Quantity = d.integerMember(row, name)
		case 4:
			l.Amount = d.amountMember(row, name)
		case 8:
			text, ok := d.textMember(row, name)
			if ok && text == "" {
				d.at(row, name, "must not be empty: leave it out instead")
			}
			l.ExternalOrderNo = text
		}
	})
}

// wanted tells whether a member's value is to be read: it is known, given once
// and not null. Any other value is passed over.
func (d *decoder) wanted(row int, name string, seen *uint8, bit uint8) bool {
	switch {
	case bit == 0:
		d.at(row, name, "is not a known member")
	case *seen&bit != 0:
		d.at(row, name, "is given more than once")
	default:
		*seen |= bit
		return d.peek() != 'n' || !d.literal("null")
	}
	d.skip(1)
	return false
}

func (d *decoder) batch(maxRows int) []order.Line {
	var lines []order.Line
	var seen uint8
	d.members(noRow, func(name string) {
		var bit uint8
		if name == "orders" {
			bit = 1
		}
		if !d.wanted(noRow, name, &seen, bit) {
			return
		}
		if !d.take('[') {
			d.at(noRow, name, "must be an array")
			d.skip(1)
			return
		}
		for first := true; d.item(first, ']'); first = false {
			row := len(lines)
			if row == maxRows {
				d.fail("must have at most " + strconv.Itoa(maxRows) + " rows")
				return
			}
			lines = append(lines, order.Line{})
			if d.take('{') {
				d.line(&lines[row], row)
				continue
			}
			d.at(row, "", "must be an object")
			d.skip(2)
		}
	})
	return lines
}

func (d *decoder) textMember(row int, name string) (text string, ok bool) {
	if d.peek() != '"' {
		d.at(row, name, "must be a string")
		d.skip(2)
		return "", false
	}
	text = d.text()
	return text, d.fault == ""
}

// integerMember reads an integer that is written as one. Whatever does not fit
// is -1, which no member of this API allows.
func (d *decoder) integerMember(row int, name string) int64 {
	if c := d.peek(); c != '-' && !isDigit(c) {
		d.at(row, name, "must be a number")
		d.skip(2)
		return -1
	}
	token := d.number()
	if d.fault != "" {
		return -1
	}
	if token == "-0" || strings.ContainsAny(token, ".eE") {
		d.at(row, name, "must be a whole number, written without sign, point and exponent")
		return -1
	}
	n, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (d *decoder) amountMember(row int, name string) order.Amount {
	var token string
	switch c := d.peek(); {
	case c == '"':
		token = d.text()
	case c == '-' || isDigit(c):
		token = d.number()
	default:
		d.at(row, name, "must be a decimal number, as a string or as a number")
		d.skip(2)
		return -1
	}
	if d.fault != "" {
		return -1
	}
	amount, err := order.ParseAmount(token)
	if err != nil {
		d.at(row, name, err.Error())
		return -1
	}
	return amount
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
