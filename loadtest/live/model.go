package live

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/oncegate/oncegate/loadtest"
	"github.com/oncegate/oncegate/loadtest/measure"
)

const (
	defaultWidth = 80
	widest       = 110
	history      = 60 // seconds of the rate that are drawn
)

// model is the state of the screen: snapshots in, text out.
type model struct {
	title     string
	interrupt func()
	stopping  bool
	width     int
	now       loadtest.Snapshot
	second    loadtest.Snapshot // where the last whole second began
	rates     [measureCount]float64
	total     float64
	past      []float64
}

const measureCount = len(measure.Counts{})

func newModel(title string, interrupt func()) *model {
	return &model{title: title, interrupt: interrupt, width: defaultWidth}
}

// Init starts with nothing to do.
func (m *model) Init() tea.Cmd { return nil }

// Update takes a snapshot, a key or a new size.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = min(max(msg.Width, 40), widest)
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" {
			m.stopping = true
			m.interrupt()
		}
	case loadtest.Snapshot:
		m.take(msg)
	}
	return m, nil
}

// take works out the rates of the last whole second.
func (m *model) take(s loadtest.Snapshot) {
	m.now = s
	since := s.Progress.Elapsed - m.second.Progress.Elapsed
	if since < time.Second {
		return
	}
	for o := range s.Counts {
		m.rates[o] = rate(s.Counts[o]-m.second.Counts[o], since)
	}
	m.total = rate(s.Counts.Total()-m.second.Counts.Total(), since)
	if s.Phase == loadtest.Sending || s.Phase == loadtest.Draining {
		m.past = append(m.past, m.total)
		m.past = m.past[max(0, len(m.past)-history):]
	}
	m.second = s
}

// View draws.
func (m *model) View() tea.View { return tea.NewView(m.draw()) }

var (
	bold = lipgloss.NewStyle().Bold(true)
	dim  = lipgloss.NewStyle().Faint(true)
	warn = lipgloss.NewStyle().Foreground(lipgloss.Color("1")).Bold(true)
	blue = lipgloss.NewStyle().Foreground(lipgloss.Color("4"))
)

// colours are those of a terminal's own palette, so that they fit its ground.
var colours = map[measure.Outcome]string{
	measure.Created: "2", measure.Replayed: "4", measure.Read: "6", measure.Accepted: "6",
	measure.InProgress: "3", measure.Reused: "5", measure.Rejected: "5", measure.Limited: "3", measure.HungUp: "8",
	measure.Unavailable: "1", measure.Unexpected: "1", measure.Timeout: "1", measure.Transport: "1", measure.ClientLimit: "1",
}

func (m *model) draw() string {
	var b strings.Builder
	p := m.now.Progress
	b.WriteString(bold.Render(fit(m.title, m.width)) + "\n\n")
	b.WriteString(m.progress() + "\n\n")

	planned := ""
	if m.now.Rate > 0 {
		planned = dim.Render(fmt.Sprintf("  of %.0f intents/s planned", m.now.Rate))
	}
	dropped := dim.Render("dropped 0")
	if n := p.DroppedStarts + p.DroppedFollowUps; n > 0 {
		dropped = warn.Render(fmt.Sprintf("DROPPED %d", n))
	}
	fmt.Fprintf(&b, "%s  %s req/s%s\n", dim.Render("rate    "), bold.Render(fmt.Sprintf("%.0f", m.total)), planned)
	w := m.now.Window
	fmt.Fprintf(&b, "%s  p50 %-8s p99 %-8s max %-8s %s\n", dim.Render("response"),
		shown(w, w.P50), shown(w, w.P99), shown(w, w.Max), dim.Render("last second, from the due instant"))
	fmt.Fprintf(&b, "%s  in flight %-6d %s\n\n", dim.Render("requests"), p.InFlight, dropped)

	most := int64(1)
	for _, n := range m.now.Counts {
		most = max(most, n)
	}
	for _, o := range measure.Outcomes() {
		n := m.now.Counts[o]
		if n == 0 {
			continue
		}
		bar := strings.Repeat("█", max(1, int(float64(m.width-46)*float64(n)/float64(most))))
		if m.width < 60 {
			bar = ""
		}
		fmt.Fprintf(&b, "%-16s %10d  %9.0f/s  %s\n", o, n, m.rates[o], lipgloss.NewStyle().Foreground(lipgloss.Color(colours[o])).Render(bar))
	}
	if len(m.past) > 1 {
		b.WriteString("\n" + dim.Render("requests/s, last minute  ") + blue.Render(sparkline(m.past)) + "\n")
	}
	if m.stopping {
		b.WriteString(warn.Render("stopping: requests under way finish, then the verdict; ctrl+c again gives up") + "\n")
	}
	return b.String()
}

// progress is the bar with the phase and the remaining time.
func (m *model) progress() string {
	s := m.now
	share := 1.0
	left := "verdict follows"
	if s.Phase == loadtest.Sending && s.Length > 0 {
		share = min(1, s.Progress.Elapsed.Seconds()/s.Length.Seconds())
		left = clock(max(0, s.Length-s.Progress.Elapsed)) + " left"
	}
	if s.Phase == "" {
		share, left = 0, ""
	}
	size := max(10, m.width-40)
	full := int(share * float64(size))
	bar := blue.Render(strings.Repeat("━", full)) + dim.Render(strings.Repeat("─", size-full))
	return fmt.Sprintf("%-9s %s %3.0f%%  %s  %s", s.Phase, bar, 100*share, clock(s.Progress.Elapsed), left)
}

func sparkline(v []float64) string {
	top := 1.0
	for _, x := range v {
		top = max(top, x)
	}
	marks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, x := range v {
		b.WriteRune(marks[min(int(x/top*float64(len(marks))), len(marks)-1)])
	}
	return b.String()
}

func fit(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}
