package live

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest"
	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
)

func snapshot(at time.Duration, created, dropped int64) loadtest.Snapshot {
	s := loadtest.Snapshot{
		Phase: loadtest.Sending, Length: 10 * time.Second, Rate: 100,
		Progress: drive.Progress{Elapsed: at, Planned: created, DroppedStarts: dropped, InFlight: 3},
	}
	s.Counts[measure.Created] = created
	return s
}

func TestPlainLinesComeOnceASecond(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := NewPlain(&b)
	for i := range 21 {
		p.Show(snapshot(time.Duration(i)*200*time.Millisecond, int64(i*20), 0))
	}
	end := snapshot(5*time.Second, 500, 7)
	end.Phase = loadtest.Draining
	p.Show(end)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 6)
	require.Contains(t, lines[0], "100/s  created 100")
	require.Contains(t, lines[4], "draining")
	require.Contains(t, lines[5], "DROPPED 7")
}

func TestScreenShowsRatesAndDrops(t *testing.T) {
	t.Parallel()
	stopped := 0
	m := newModel("mixed", func() { stopped++ })
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	m.Update(snapshot(0, 0, 0))
	m.Update(snapshot(time.Second, 150, 4))
	text := m.draw()
	require.Contains(t, text, "150/s")
	require.Contains(t, text, "DROPPED 4")
	require.Contains(t, text, "10%")
	require.Contains(t, text, "0:09 left")
	m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	require.Equal(t, 1, stopped)
	require.Contains(t, m.draw(), "stopping")
	m.Update(tea.WindowSizeMsg{Width: 20})
	require.NotEmpty(t, m.draw(), "a narrow terminal is no reason to fail")
}

func TestScreenStopsTwiceAndDropsLateSnapshots(t *testing.T) {
	t.Parallel()
	s := Start("mixed", io.Discard, nil, func() {})
	for i := range 50 {
		s.Show(snapshot(time.Duration(i)*time.Second, int64(i), 0))
	}
	s.Stop()
	s.Show(snapshot(time.Minute, 1, 0))
	s.Stop()
}
