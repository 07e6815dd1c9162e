package faultproxy

import (
	"bufio"
	"strings"
	"sync"
	"testing"
)

// RedisProxy is a [Proxy] that knows Redis commands and matches replies to
// them, pipelines included. Connections must not use TLS, nor CLIENT REPLY.
//
// It counts commands by their name in upper case ("SET", "EVALSHA").
type RedisProxy struct {
	*Proxy
	*tally

	mu   sync.Mutex
	hook func(Command) Action
}

// Command is one Redis command.
type Command struct {
	Name string   // in upper case
	Args []string // what follows the name
}

// NewRedis starts a proxy in front of a Redis. It ends with the test.
func NewRedis(tb testing.TB, upstream string) *RedisProxy {
	tb.Helper()
	p := &RedisProxy{tally: newTally()}
	p.Proxy = start(tb, upstream, func() conversation { return redisConversation{proxy: p} })
	return p
}

// OnCommand sets the hook that is asked about every command, on all
// connections and from several goroutines at once. Nil passes all. Commands of
// a pipeline are asked about one by one, and what their actions do to the
// connection happens in their order: replies before a cut are delivered.
func (p *RedisProxy) OnCommand(hook func(Command) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

func (p *RedisProxy) ask(c Command) Action {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook == nil {
		return Pass
	}
	return hook(c)
}

// redisConversation follows one connection.
type redisConversation struct {
	proxy *RedisProxy
}

func (redisConversation) request(r *bufio.Reader) (piece, error) {
	data, words, err := readRequest(r)
	if err != nil {
		return piece{}, err
	}
	if len(words) == 0 { // an empty line, which has no reply
		return piece{data: data}, nil
	}
	return piece{data: data, asked: Command{Name: strings.ToUpper(words[0]), Args: words[1:]}}, nil
}

func (redisConversation) reply(r *bufio.Reader) (piece, error) {
	data, err := readReply(r)
	if err != nil {
		return piece{}, err
	}
	return piece{data: data, push: data[0] == '>'}, nil
}

func (c redisConversation) decide(p piece) Action {
	command, ok := p.asked.(Command)
	if !ok {
		return Pass
	}
	c.proxy.add(command.Name)
	action := c.proxy.ask(command)
	if _, resend := action.(Resend); resend {
		c.proxy.tb.Errorf("faultproxy: Redis commands cannot be resent")
		return Pass
	}
	return action
}

func (redisConversation) refuse(_ piece, e AnswerError) []byte {
	return []byte("-" + e.Message + "\r\n")
}

func (redisConversation) again(piece, Resend) resending { return resending{} }

func (redisConversation) replies(l *link) replies { return newOrderedReplies(l) }

// endless says whether a command turns the connection into a stream: what the
// server sends is no longer one reply per command.
func (c Command) endless() bool {
	switch c.Name {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "PSYNC", "SYNC":
		return true
	default:
		return false
	}
}
