package faultproxy

import "sync"

// streamReplies serves protocols in which a client waits for the whole reply
// before it sends the next command, so that whatever the server sends belongs
// to the last command.
type streamReplies struct {
	link *link

	mu     sync.Mutex
	action Action
	silent bool
	again  *resending
}

func (s *streamReplies) expect(_ piece, a Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.action = a
}

func (s *streamReplies) answer(data []byte) { s.link.toClient(data) }

func (s *streamReplies) cut() { s.link.cut() }

func (s *streamReplies) resend(r resending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = &r
}

func (s *streamReplies) deliver(answers <-chan piece) {
	for p := range answers {
		if !s.link.weather.wait(p.readAt, s.link.done) {
			return
		}
		if r := s.resending(); r != nil {
			if !s.collect(r, p.data) {
				return
			}
			continue
		}
		if !s.obey(p) {
			return
		}
	}
}

// take returns the action that holds for what has arrived. A delay holds for
// the beginning of a reply only.
func (s *streamReplies) take() Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.action
	if _, delayed := a.(DelayReply); delayed {
		s.action = Pass
	}
	if a == Action(SwallowSilently) {
		s.silent = true
	}
	return a
}

func (s *streamReplies) obey(p piece) bool {
	switch a := s.take().(type) {
	case DelayReply:
		if !hold(a.For, a.Until, s.link.done) {
			return false
		}
	case Verdict:
		if a == Swallow {
			s.link.cut()
			return false
		}
	}
	if !s.silent {
		s.link.toClient(p.data)
	}
	return true
}

func (s *streamReplies) resending() *resending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// collect goes on with a statement that is sent again; false ends the link.
func (s *streamReplies) collect(r *resending, data []byte) bool {
	reply, err := r.collect(data, s.link.server)
	if reply != nil {
		s.mu.Lock()
		s.again = nil
		s.mu.Unlock()
		s.link.toClient(reply)
	}
	return err == nil
}
