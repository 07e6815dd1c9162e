package cache

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// reason says why the guard could not help, in metrics and logs.
type reason string

// The reasons. Those of the first group say something of Redis, those of the
// second of an entry, those of the third of neither.
const (
	reasonTimeout     reason = "timeout"
	reasonUnreachable reason = "unreachable"
	reasonMemory      reason = "out_of_memory"
	reasonReadOnly    reason = "read_only"
	reasonError       reason = "error"

	reasonWrongType  reason = "wrong_type"
	reasonUnreadable reason = "unreadable"
	reasonForged     reason = "bad_mac"
	reasonVersion    reason = "other_version"
	reasonFuture     reason = "from_the_future"
	reasonLarge      reason = "large_answer"

	reasonBreaker    reason = "breaker_open"
	reasonOverloaded reason = "overloaded"
	reasonCancelled  reason = "cancelled"
)

func reasons() []reason {
	return []reason{
		reasonTimeout, reasonUnreachable, reasonMemory, reasonReadOnly, reasonError,
		reasonWrongType, reasonUnreadable, reasonForged, reasonVersion, reasonFuture, reasonLarge,
		reasonBreaker, reasonOverloaded, reasonCancelled,
	}
}

var (
	errCallerLeft = errors.New("the caller left")
	errFuture     = errors.New("an entry from the future")
)

// reasonOf sorts an error, once.
func reasonOf(err error) reason {
	var reply redis.Error
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return reasonBreaker
	case errors.Is(err, errCallerLeft):
		return reasonCancelled
	case errors.Is(err, errQueueFull), errors.Is(err, redis.ErrAutoPipelineQueueFull):
		return reasonOverloaded
	case errors.Is(err, errMAC):
		return reasonForged
	case errors.Is(err, errVersion):
		return reasonVersion
	case errors.Is(err, errFuture):
		return reasonFuture
	case errors.Is(err, errUnreadable):
		return reasonUnreadable
	case errors.As(err, &reply):
		return reasonOfReply(reply.Error())
	case isTimeout(err):
		return reasonTimeout
	case isUnreachable(err):
		return reasonUnreachable
	default:
		return reasonError
	}
}

// reasonOfReply sorts an error that Redis itself answered with.
func reasonOfReply(reply string) reason {
	code, _, _ := strings.Cut(reply, " ")
	switch code {
	case "OOM":
		return reasonMemory
	case "READONLY":
		return reasonReadOnly
	case "WRONGTYPE":
		return reasonWrongType
	default:
		return reasonError
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || (errors.As(err, &t) && t.Timeout())
}

func isUnreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// isAnswer reports whether Redis did what it was asked: that nobody has the
// key, or that it holds another type, is an answer.
func isAnswer(err error) bool {
	return err == nil || isNil(err) || reasonOf(err) == reasonWrongType
}

// isNil reports whether Redis answered that there is nothing. The client's own
// error for Sentinels that do not know a master wraps the same value, so that is
// not enough.
func isNil(err error) bool {
	return err == redis.Nil //nolint:errorlint // as said
}

// saysNothing reports whether an error says nothing of Redis: the caller left
// while it was waiting, the command never left this process, or whoever was to
// send it panicked.
func saysNothing(err error) bool {
	if isAnswer(err) { // nearly always: sorting costs an allocation
		return false
	}
	r := reasonOf(err)
	return r == reasonCancelled || r == reasonOverloaded || errors.Is(err, errInterrupted)
}

// mayHaveRun reports whether a command that ended with an error may have been
// carried out, or may be yet: a late packet is still delivered.
func mayHaveRun(err error) bool {
	var reply redis.Error
	var op *net.OpError
	switch reasonOf(err) {
	case reasonBreaker, reasonOverloaded:
		return false
	default:
		refused := errors.Is(err, errNotSent) || errors.As(err, &op) && op.Op == "dial"
		return !refused && !errors.As(err, &reply)
	}
}
