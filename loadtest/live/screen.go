package live

import (
	"io"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/oncegate/oncegate/loadtest"
)

// Screen redraws itself on a terminal.
type Screen struct {
	program *tea.Program
	last    chan loadtest.Snapshot // one place: the newest
	quit    chan struct{}
	stop    sync.Once
	wg      sync.WaitGroup
}

// Start draws on the terminal until Stop. Keys are read from in, nil for none;
// ctrl+c, which a terminal in this mode does not turn into a signal, calls
// interrupt each time.
func Start(title string, w io.Writer, in io.Reader, interrupt func()) *Screen {
	s := &Screen{
		program: tea.NewProgram(newModel(title, interrupt), tea.WithOutput(w), tea.WithInput(in), tea.WithoutSignalHandler(), tea.WithFPS(20)),
		last:    make(chan loadtest.Snapshot, 1),
		quit:    make(chan struct{}),
	}
	s.wg.Go(func() { _, _ = s.program.Run() }) // a broken terminal is no reason to stop the run
	s.wg.Go(func() {
		defer s.program.Quit()
		for {
			select {
			case snapshot := <-s.last:
				s.program.Send(snapshot)
			case <-s.quit:
				return
			}
		}
	})
	return s
}

// Show takes a snapshot; when the terminal is slower than the run, older ones
// are dropped. Not safe for concurrent use with itself.
func (s *Screen) Show(snapshot loadtest.Snapshot) {
	for {
		select {
		case s.last <- snapshot:
			return
		case <-s.quit:
			return
		default:
		}
		select {
		case <-s.last:
		default:
		}
	}
}

// Stop leaves the last picture on the terminal and gives the terminal back. It
// may be called more than once.
func (s *Screen) Stop() {
	s.stop.Do(func() { close(s.quit) })
	s.wg.Wait()
}
