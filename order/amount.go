package order

import (
	"errors"
	"strconv"
)

// Amount is an exact sum of money in hundredths of the currency unit.
// It never passes through a float.
type Amount int64

// Limits of the columns that hold amounts.
const (
	// MaxAmount is the largest amount of one order line: DECIMAL(12,2).
	MaxAmount Amount = 999_999_999_999
	// MaxBalance is the largest balance of a user: DECIMAL(14,2).
	MaxBalance Amount = 99_999_999_999_999
)

var (
	errAmountSyntax = errors.New("must be a plain decimal number such as 19.90, without sign or exponent")
	errAmountPlaces = errors.New("must have at most two decimal places")
	errAmountRange  = errors.New("is too large")
)

// ParseAmount reads a plain decimal number: digits, optionally a point and one
// or two digits. Signs, exponents, blanks and needless leading zeros are
// refused, and so is anything above [MaxBalance]. "19.9" and "19.90" are equal.
// S may be a string or a byte slice, so that a decoder need not copy.
func ParseAmount[S ~string | ~[]byte](s S) (Amount, error) {
	var n Amount
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if i > 0 && s[0] == '0' {
			return 0, errAmountSyntax
		}
		n = n*10 + Amount(s[i]-'0')
		if n > MaxBalance/100 {
			return 0, errAmountRange
		}
	}
	if i == 0 {
		return 0, errAmountSyntax
	}
	n *= 100
	if i == len(s) {
		return n, nil
	}
	if s[i] != '.' || i+1 == len(s) {
		return 0, errAmountSyntax
	}
	places := s[i+1:]
	for j := range len(places) {
		if !isDigit(places[j]) {
			return 0, errAmountSyntax
		}
	}
	if len(places) > 2 {
		return 0, errAmountPlaces
	}
	n += Amount(places[0]-'0') * 10
	if len(places) == 2 {
		n += Amount(places[1] - '0')
	}
	return n, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Append appends the amount with exactly two decimal places.
func (a Amount) Append(b []byte) []byte {
	if a < 0 {
		b = append(b, '-')
		a = -a
	}
	b = strconv.AppendInt(b, int64(a/100), 10)
	cents := byte(a % 100) //nolint:gosec // G115: below 100
	return append(b, '.', '0'+cents/10, '0'+cents%10)
}

// String returns the amount with exactly two decimal places, such as "39.80".
func (a Amount) String() string { return string(a.Append(nil)) }
