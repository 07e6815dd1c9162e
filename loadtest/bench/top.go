//go:build unix

package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/pprof/profile"
)

// topFunctions is how many are listed.
const topFunctions = 10

// writeTop lists the functions in which the most processor time was spent,
// without what they call, and their share of all of it.
func writeTop(w io.Writer, title string, from io.Reader) error {
	p, err := profile.Parse(from)
	if err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" && t.Unit == "nanoseconds" })
	if at < 0 {
		return errors.New("read the profile: it is not one of processor time")
	}
	var all int64
	spent := map[string]int64{}
	for _, s := range p.Sample {
		all += s.Value[at]
		spent[leaf(s)] += s.Value[at]
	}
	type entry struct {
		name string
		ns   int64
	}
	var top []entry
	for name, ns := range spent {
		top = append(top, entry{name, ns})
	}
	slices.SortFunc(top, func(a, b entry) int { return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.name, b.name)) })
	if _, err := fmt.Fprintf(w, "%s: %.2f s of processor time in %v\n\n", title, seconds(all), time.Duration(p.DurationNanos).Round(100*time.Millisecond)); err != nil {
		return fmt.Errorf("write the top of a profile: %w", err)
	}
	lines := [][]string{{"share", "time", "function"}}
	for _, e := range top[:min(len(top), topFunctions)] {
		lines = append(lines, []string{
			fmt.Sprintf("%.1f %%", 100*float64(e.ns)/float64(max(all, 1))), fmt.Sprintf("%.2f s", seconds(e.ns)), "`" + e.name + "`",
		})
	}
	if _, err := io.WriteString(w, table(lines)); err != nil {
		return fmt.Errorf("write the top of a profile: %w", err)
	}
	return nil
}

// leaf is the function that ran, the innermost of those that were inlined.
func leaf(s *profile.Sample) string {
	if len(s.Location) == 0 || len(s.Location[0].Line) == 0 || s.Location[0].Line[0].Function == nil {
		return "unknown"
	}
	return s.Location[0].Line[0].Function.Name
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }
