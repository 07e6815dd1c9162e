package configs

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var (
	errDuration = errors.New("must be a duration with a unit, such as 50ms, 10s or 30d")
	errSize     = errors.New("must be a number of bytes, such as 16384, 16KiB or 1MiB")
)

// ParseDuration reads a Go duration, or a whole number of days such as "30d".
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/day) {
			return 0, errDuration
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// formatDuration writes what [ParseDuration] reads, without "0s" tails.
func formatDuration(d time.Duration) string {
	if d != 0 && d%day == 0 {
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
	if err != nil || n > uint64(math.MaxInt64/unit) { //nolint:gosec // G115: the quotient is positive
		return 0, errSize
	}
	return Size(n) * unit, nil
}

// String writes what [ParseSize] reads, in the largest unit that fits.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s >= u.bytes && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
