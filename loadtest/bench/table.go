//go:build unix

package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Text writes the report as a Markdown document that is also read as it stands.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.Environment.text())
	if len(r.Rows) > 0 {
		fmt.Fprintf(&b, "\nThe sides took turns, each first in every other round: rounds %d, each turn %v after its warm-up.\n\n", r.Rounds, r.Window)
		b.WriteString(table(append([][]string{{
			"path", "against", "connections", "this", "that", "ratio", "min–max", "at least", "aim", "met",
		}}, r.cells()...)))
	}
	for i := range r.Rows {
		for _, note := range r.Rows[i].Notes {
			fmt.Fprintf(&b, "\n- %s, %d connections: %s", r.Rows[i].Path, r.Rows[i].Connections, note)
		}
	}
	for i := range r.Sheets {
		b.WriteString(strings.TrimRight(r.Sheets[i].text(), "\n") + "\n")
	}
	if r.Environment.busy() {
		b.WriteString("\n- The machine was busy with something else when this began: only a quiet one gives numbers to quote.")
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func (r *Report) cells() [][]string {
	var lines [][]string
	for i := range r.Rows {
		row := &r.Rows[i]
		least, aim := "–", "–"
		if t := row.Target; t != nil {
			least = t.format(t.AtLeast)
			if t.Aim != 0 {
				aim = t.format(t.Aim)
			}
		}
		lines = append(lines, []string{
			row.Path, row.Baseline.Name, strconv.Itoa(row.Connections),
			row.Unit.format(row.Subject.Median), row.Unit.format(row.Baseline.Median),
			two(row.Ratio) + " ×", two(row.Min) + "–" + two(row.Max), least, aim, string(row.Met),
		})
	}
	return lines
}

func (t *Target) format(v float64) string {
	sign := "≥ "
	if t.Lower {
		sign = "≤ "
	}
	return sign + strconv.FormatFloat(v, 'f', -1, 64) + " ×"
}

// mebi is the bytes of a MiB.
const mebi = 1 << 20

func two(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// format writes a value of the unit for the eye.
func (u unit) format(v float64) string {
	switch u {
	case halfway, elapsed:
		return two(v*float64(time.Second/time.Millisecond)) + " ms"
	case octets:
		if v >= mebi {
			return strconv.FormatFloat(v/mebi, 'f', 1, 64) + " MiB"
		}
		return grouped(int64(math.Round(v))) + " B"
	case count:
		return grouped(int64(math.Round(v)))
	case rate:
	}
	return grouped(int64(v+0.5)) + "/s"
}

// grouped writes a number with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// table writes lines as a Markdown table whose columns line up; the first line
// is the head.
func table(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	write := func(line []string, pad string) {
		for i, cell := range line {
			b.WriteString("| " + cell + strings.Repeat(pad, widths[i]-utf8.RuneCountInString(cell)) + " ")
		}
		b.WriteString("|\n")
	}
	write(lines[0], " ")
	write(make([]string, len(widths)), "-")
	for _, line := range lines[1:] {
		write(line, " ")
	}
	return b.String()
}
