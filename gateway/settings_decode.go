package gateway

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oncegate/oncegate/order"
)

// Bounds of a change, in characters.
const (
	maxSettingValue  = 255
	maxSettingReason = 500
)

// The members of a change, as bits.
const (
	valueMember uint8 = 1 << iota
	reasonMember
	dryRunMember
)

// decodeSettingChange reads {"value":"48h","reason":"sale tonight","dry_run":false}.
// Only value may be null, which takes the change of a setting back.
func decodeSettingChange(body string) (c SettingChange, err error) {
	d := decoder{scanner: scanner{s: body}}
	var seen uint8
	if d.begin() {
		d.members(noRow, func(name string) {
			bit := map[string]uint8{"value": valueMember, "reason": reasonMember, "dry_run": dryRunMember}[name]
			before := seen
			if !d.wanted(noRow, name, &seen, bit) {
				if bit == dryRunMember && before&bit == 0 { // null for no would make the change
					d.at(noRow, name, "must be true or false")
				}
				return
			}
			switch bit {
			case valueMember:
				c.Value = d.settingValue()
			case reasonMember:
				text, _ := d.textMember(noRow, name)
				c.Reason = strings.TrimSpace(text)
			case dryRunMember:
				c.DryRun = d.boolMember(name)
			}
		})
		d.end()
	}
	if d.fault == "" && len(d.faults) == 0 {
		switch {
		case seen&valueMember == 0:
			d.at(noRow, "value", "is required: the value, or null for what the configuration says")
		case c.Value != nil && utf8.RuneCountInString(*c.Value) > maxSettingValue:
			d.at(noRow, "value", "must have at most "+strconv.Itoa(maxSettingValue)+" characters")
		}
		switch {
		case c.Reason == "" || utf8.RuneCountInString(c.Reason) > maxSettingReason:
			d.at(noRow, "reason", "is required, with at most "+strconv.Itoa(maxSettingReason)+" characters")
		case strings.ContainsFunc(c.Reason, IsControl): // it is shown to others, in terminals too
			d.at(noRow, "reason", "must not contain control characters")
		}
	}
	if len(d.faults) > 0 {
		return SettingChange{}, &order.InvalidError{Faults: d.faults}
	}
	return c, nil
}

// settingValue reads a value as the text that the environment would have.
func (d *decoder) settingValue() *string {
	var text string
	switch c := d.peek(); {
	case c == '"':
		text = d.text()
	case c == '-' || isDigit(c):
		text = d.number()
	case d.literal("true"):
		text = "true"
	case d.literal("false"):
		text = "false"
	default:
		d.at(noRow, "value", "must be a string, a number, true, false or null")
		d.skip(2)
	}
	return &text
}

func (d *decoder) boolMember(name string) bool {
	c := d.peek()
	yes := c == 't' && d.literal("true")
	if !yes && (c != 'f' || !d.literal("false")) {
		d.at(noRow, name, "must be true or false")
		d.skip(2)
	}
	return yes
}

// IsControl reports whether a character is not shown, but changes how others are: in
// a text of somebody else's it is a command to a terminal.
func IsControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
