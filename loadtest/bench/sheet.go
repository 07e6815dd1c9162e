//go:build unix

package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Sheet is what a path found that is no comparison: a table of figures.
type Sheet struct {
	ID      string   `json:"id"` // of the path
	Title   string   `json:"title"`
	Of      string   `json:"of"` // what the lines are
	Columns []Column `json:"columns"`
	Lines   []Line   `json:"lines"`
	Notes   []string `json:"notes,omitempty"`
}

// Column says what stands in the same place of every line.
type Column struct {
	Name string `json:"name"`
	Unit unit   `json:"unit"`
}

// Line is one thing that was measured.
type Line struct {
	Name    string   `json:"name"`
	Figures []Figure `json:"figures"` // one for each column
}

// Figure is a value of each round, in the column's unit, times in seconds; none
// where there is nothing to tell.
type Figure []float64

// once is a figure that was measured once.
func once(value float64) Figure { return Figure{value} }

// untold is a figure that there is not.
func untold() Figure { return Figure{} }

func (s *Sheet) add(name string, figures ...Figure) {
	s.Lines = append(s.Lines, Line{Name: name, Figures: figures})
}

// note says something once, however often it comes up.
func (s *Sheet) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// text is the median and, where rounds differ, how far they reach.
func (f Figure) text(u unit) string {
	if len(f) == 0 {
		return "–"
	}
	text := u.format(median(f))
	if low, high := u.format(slices.Min(f)), u.format(slices.Max(f)); low != high {
		text += " (" + low + "–" + high + ")"
	}
	return text
}

// text writes the sheet as a Markdown table under its title.
func (s *Sheet) text() string {
	head := []string{s.Of}
	for _, c := range s.Columns {
		head = append(head, c.Name)
	}
	lines := [][]string{head}
	for _, l := range s.Lines {
		cells := []string{l.Name}
		for i, c := range s.Columns {
			cells = append(cells, l.Figures[i].text(c.Unit))
		}
		lines = append(lines, cells)
	}
	var b strings.Builder
	b.WriteString("\n**" + s.Title + "**\n\n" + table(lines))
	for _, note := range s.Notes {
		b.WriteString("\n- " + note)
	}
	return b.String()
}
