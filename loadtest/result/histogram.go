package result

import (
	"encoding/json"
	"fmt"
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
func (h Histogram) Empty() bool { return h.Histogram == nil || h.TotalCount() == 0 }

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

// UnmarshalJSON reads the file form.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var f histogramFile
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	h.Histogram = measure.NewHistogram()
	if f.HDR == "" {
		return nil
	}
	got, err := hdr.Decode([]byte(f.HDR))
	if err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	// Copied into the usual shape, whatever shape the file has.
	h.Merge(got)
	return nil
}
