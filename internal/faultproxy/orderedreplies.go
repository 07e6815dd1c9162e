package faultproxy

// orderedReplies serves Redis: every command has exactly one reply, in the
// order of the commands, and several commands may be on their way.
type orderedReplies struct {
	link   *link
	queue  chan expectation
	silent bool // nothing is delivered any more
	stream bool // the server sends what it likes
}

// expectation is what is to happen to the client next.
type expectation struct {
	answer  []byte // this, in the server's place
	cut     bool
	endless bool   // from now on, whatever the server sends
	action  Action // this with the server's next reply
}

// inFlight bounds the commands on their way; a client that sends more waits.
const inFlight = 4096

func newOrderedReplies(l *link) *orderedReplies {
	return &orderedReplies{link: l, queue: make(chan expectation, inFlight)}
}

func (o *orderedReplies) expect(p piece, a Action) {
	command, _ := p.asked.(Command) // only commands are expected to be answered
	o.push(expectation{action: a, endless: command.endless()})
}

func (o *orderedReplies) answer(data []byte) { o.push(expectation{answer: data}) }

func (o *orderedReplies) cut() { o.push(expectation{cut: true}) }

func (*orderedReplies) resend(resending) {} // a RedisProxy lets no test ask for it

func (o *orderedReplies) push(e expectation) {
	select {
	case o.queue <- e:
	case <-o.link.done:
	}
}

func (o *orderedReplies) deliver(answers <-chan piece) {
	for {
		select {
		case e := <-o.queue:
			if o.meet(e) {
				continue
			}
			if !o.awaitReply(e, answers) {
				return
			}
		case p, ok := <-answers:
			if !ok || !o.arrive(p) {
				return
			}
		case <-o.link.done:
			return
		}
	}
}

// meet fulfils an expectation that needs nothing from the server.
func (o *orderedReplies) meet(e expectation) bool {
	switch {
	case e.cut:
		o.link.cut()
	case e.endless:
		o.stream = true
	case e.answer != nil:
		o.toClient(e.answer)
	default:
		return false
	}
	return true
}

// awaitReply waits for the reply that belongs to an expectation.
func (o *orderedReplies) awaitReply(e expectation, answers <-chan piece) bool {
	for p := range answers {
		if !o.link.weather.wait(p.readAt, o.link.done) {
			return false
		}
		if !p.push && !o.stream {
			return o.obey(e.action, p)
		}
		o.toClient(p.data)
	}
	return false
}

// arrive handles a piece that came before its expectation was looked at.
func (o *orderedReplies) arrive(p piece) bool {
	if !o.link.weather.wait(p.readAt, o.link.done) {
		return false
	}
	for !p.push && !o.stream {
		select {
		case e := <-o.queue:
			if !o.meet(e) {
				return o.obey(e.action, p)
			}
		case <-o.link.done:
			return false
		}
	}
	o.toClient(p.data)
	return true
}

// obey does with a reply what its command's action says.
func (o *orderedReplies) obey(action Action, p piece) bool {
	switch a := action.(type) {
	case DelayReply:
		if !hold(a.For, a.Until, o.link.done) {
			return false
		}
	case Verdict:
		switch a {
		case Swallow:
			o.link.cut()
			return false
		case SwallowSilently:
			o.silent = true
		case Pass, CutBefore:
		}
	}
	o.toClient(p.data)
	return true
}

func (o *orderedReplies) toClient(data []byte) {
	if !o.silent {
		o.link.toClient(data)
	}
}
