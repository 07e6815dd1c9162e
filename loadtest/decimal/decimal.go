package decimal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var amount = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,2})?$`)

// Hundredths reads an amount with at most two places and no sign, exactly.
func Hundredths(text string) (int64, error) {
	if !amount.MatchString(text) {
		return 0, fmt.Errorf("%q is not an amount such as 1000.00", text)
	}
	whole, cents, _ := strings.Cut(text, ".")
	return strconv.ParseInt(whole+(cents + "00")[:2], 10, 64)
}

var form = regexp.MustCompile(`^[+-]?[0-9]{1,15}(\.[0-9]{1,9})?$`)

// Parse reads one number; anything before or behind it is an error.
func Parse(text string) (float64, error) {
	if !form.MatchString(text) {
		return 0, fmt.Errorf("%q is not a decimal number", text)
	}
	return strconv.ParseFloat(text, 64)
}

// Text writes hundredths as the contract spells an amount: two places, no exponent.
// They must not be below zero.
func Text(hundredths int64) string {
	return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
}
