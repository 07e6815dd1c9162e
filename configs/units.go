package configs

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// What stands for a value that is too large to be held. No setting's range has it,
// and the range says more than that it cannot be read.
const (
	longest = time.Duration(math.MaxInt64)
	largest = Size(math.MaxInt64)
)

var (
	errDuration = errors.New("must be a duration with a unit, such as 50ms, 10s or 30d")
	errLong     = errors.New("is longer than 106751d")
	errSize     = errors.New("must be a number of bytes, such as 16384, 16KiB or 1MiB")
	errLarge    = errors.New("is more than 8589934591GiB")
)

var wholeNumbers = regexp.MustCompile(`[0-9]+`)

// ParseDuration reads a Go duration, or a whole number of days such as "30d".
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok && isDigits(days) {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/day) {
			return 0, errLong
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && d != longest {
		return d, nil
	}
	// With other numbers it is one: only its length is wrong.
	if _, err := time.ParseDuration(wholeNumbers.ReplaceAllString(s, "1")); err == nil && !strings.HasPrefix(s, "-") {
		return 0, errLong
	}
	return 0, errDuration
}

// FormatDuration writes what [ParseDuration] reads, in one way: whole days as
// such, and without "0s" tails. All that people read of settings is in it.
func FormatDuration(d time.Duration) string {
	if d == longest {
		return "over 106751d"
	}
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size is a number of bytes.
type Size int64

type sizeUnit struct {
	suffix string
	bytes  Size
}

// sizeUnits are the units, the largest first.
func sizeUnits() [3]sizeUnit {
	return [...]sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// ParseSize reads a number of bytes, optionally in KiB, MiB or GiB.
func ParseSize(s string) (Size, error) {
	unit := Size(1)
	for _, u := range sizeUnits() {
		if number, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = number, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case isDigits(s) && err != nil, err == nil && n > uint64(math.MaxInt64/unit): //nolint:gosec // G115: the quotient is positive
		return 0, errLarge
	case err != nil:
		return 0, errSize
	}
	return Size(n) * unit, nil
}

// isDigits reports whether a text is a number, whatever its size: [strconv] says of
// one that is too large nothing of what comes behind it.
func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String writes what [ParseSize] reads, in the largest unit that fits.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s >= u.bytes && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
