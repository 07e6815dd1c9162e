package faultproxy

import "time"

// Action is what becomes of one command: a [Verdict], a [DelayForward], a
// [DelayReply], an [AnswerError] or a [Resend]. Nil is [Pass].
type Action interface{ action() }

// Verdict is an action that needs no details.
type Verdict int

// The verdicts. "Cut" resets both connections, as a crash does.
const (
	// Pass forwards the command and delivers its reply.
	Pass Verdict = iota
	// CutBefore cuts instead of forwarding: the server never hears of it.
	CutBefore
	// Swallow forwards the command, waits for the server's reply, so that the
	// command has had its effect, and cuts instead of delivering it.
	Swallow
	// SwallowSilently forwards the command and delivers nothing on this
	// connection any more, which stays open.
	SwallowSilently
)

// DelayForward holds the command, and those after it on its connection, for
// For or until Until is closed, whichever comes first; the one that is zero
// does not count. Then it is forwarded even if the client has gone away: the
// packet that was late.
type DelayForward struct {
	For   time.Duration
	Until <-chan struct{}
}

// DelayReply forwards the command at once and holds its reply, and those after
// it on its connection, in the same way.
type DelayReply struct {
	For   time.Duration
	Until <-chan struct{}
}

// AnswerError answers in the server's place; the server never hears of the
// command. Redis has neither code nor state: Message is the whole line, such
// as "READONLY You can't write against a read only replica."
type AnswerError struct {
	Code    uint16
	State   string // SQLSTATE, five characters; HY000 if empty
	Message string
}

// Resend sends a statement to the server a second time once it has answered the
// first, as a middlebox does that believes its first try to be lost. The client
// gets one reply, when the server has answered everything: that to the first
// try, or the last one if Last says so. What cannot be delivered is swallowed.
//
// Statements are sent in place of the second copy, one after the other, such as
// those of a whole transaction behind its COMMIT. Only a [MySQLProxy] can resend.
type Resend struct {
	Statements []string
	Last       bool
}

func (Verdict) action()      {}
func (DelayForward) action() {}
func (DelayReply) action()   {}
func (AnswerError) action()  {}
func (Resend) action()       {}

// hold waits as DelayForward and DelayReply say; false means that the link
// ended meanwhile.
func hold(d time.Duration, until, done <-chan struct{}) bool {
	var elapsed <-chan time.Time
	switch {
	case d > 0:
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	case until == nil:
		return true
	}
	select {
	case <-elapsed:
		return true
	case <-until:
		return true
	case <-done:
		return false
	}
}
