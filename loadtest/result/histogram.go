package result

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// Histogram is an HdrHistogram in microseconds. In the file it stands as its
// count, a few percentiles for the eye, and the whole of it as "hdr" (V2,
// compressed, base64).
type Histogram struct{ *hdr.Histogram }

// ladder is written into files and shown in reports.
var ladder = [...]float64{50, 75, 90, 95, 99, 99.9, 99.99, 100}

// Ladder lists the percentiles that reports show.
func Ladder() []float64 { return ladder[:] }

// Wrap makes a histogram of the file from one in memory; nil is empty.
func Wrap(h *hdr.Histogram) Histogram {
	if h == nil {
		h = measure.NewHistogram()
	}
	return Histogram{h}
}

// Empty reports whether nothing was recorded.
func (h Histogram) Empty() bool { return h.count() == 0 }

func (h Histogram) count() int64 {
	if h.Histogram == nil {
		return 0
	}
	return h.TotalCount()
}

// add merges another histogram into this one; one that is absent from a file
// adds nothing.
func (h Histogram) add(o Histogram) {
	if o.Histogram != nil {
		h.Merge(o.Histogram)
	}
}

// At is a percentile; zero when nothing was recorded.
func (h Histogram) At(p float64) time.Duration {
	if h.Empty() {
		return 0
	}
	return measure.At(h.Histogram, p)
}

// Average is the mean; zero when nothing was recorded.
func (h Histogram) Average() time.Duration {
	if h.Empty() {
		return 0
	}
	return time.Duration(h.Mean() * float64(time.Microsecond))
}

type histogramFile struct {
	Count       int64            `json:"count"`
	MeanUS      float64          `json:"mean_us"`
	Percentiles map[string]int64 `json:"percentiles_us"`
	HDR         string           `json:"hdr,omitempty"`
}

// MarshalJSON writes the file form.
func (h Histogram) MarshalJSON() ([]byte, error) {
	f := histogramFile{Percentiles: map[string]int64{}}
	if !h.Empty() {
		f.Count = h.TotalCount()
		f.MeanUS = h.Mean()
		for _, p := range ladder {
			f.Percentiles[fmt.Sprintf("p%g", p)] = h.At(p).Microseconds()
		}
		b, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("encode a histogram: %w", err)
		}
		f.HDR = string(b)
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads the file form. What says nothing stays empty, without the
// memory of a histogram.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var f histogramFile
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	h.Histogram = nil
	if f.HDR == "" {
		return nil
	}
	if err := usualShape(f.HDR); err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	got, err := hdr.Decode([]byte(f.HDR))
	if err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	h.Histogram = got
	return nil
}

// The beginning of an encoded histogram (HdrHistogram, V2 compressed): a cookie
// and a length, then compressed the cookie, two lengths, and what it can hold.
const (
	outerHead = 8
	innerHead = 32
)

// usualShape looks at what a histogram can hold before there is memory for it:
// that follows from a few bytes of the file, and can be a million times as much.
func usualShape(text string) error {
	encoded := base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))
	if _, err := io.CopyN(io.Discard, encoded, outerHead); err != nil {
		return err
	}
	z, err := zlib.NewReader(encoded)
	if err != nil {
		return err
	}
	var head [innerHead]byte
	if _, err := io.ReadFull(z, head[:]); err != nil {
		return err
	}
	digits := int64(binary.BigEndian.Uint32(head[12:]))
	lowest := int64(binary.BigEndian.Uint64(head[16:]))  //nolint:gosec // G115: a bit pattern
	highest := int64(binary.BigEndian.Uint64(head[24:])) //nolint:gosec // G115: a bit pattern
	if low, high, figures := measure.Shape(); lowest != low || highest != high || digits != figures {
		return fmt.Errorf("it holds %d to %d with %d digits, those of this program %d to %d with %d", lowest, highest, digits, low, high, figures)
	}
	return nil
}
