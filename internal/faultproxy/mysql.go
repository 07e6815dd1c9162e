package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
)

// MySQLProxy is a [Proxy] that knows MySQL's commands. Connections must use
// neither TLS nor compression.
//
// It counts statements by their first word in upper case ("COMMIT", "INSERT")
// and other commands by their protocol name ("COM_PING").
type MySQLProxy struct {
	*Proxy
	*tally

	mu   sync.Mutex
	hook func(query string) Action
}

// NewMySQL starts a proxy in front of a MySQL or MariaDB. It ends with the test.
func NewMySQL(tb testing.TB, upstream string) *MySQLProxy {
	tb.Helper()
	p := &MySQLProxy{tally: newTally()}
	p.Proxy = start(tb, upstream, func() conversation { return &mysqlConversation{proxy: p} })
	return p
}

// OnQuery sets the hook that is asked about every statement sent as text, on
// all connections and from several goroutines at once. Nil passes all.
func (p *MySQLProxy) OnQuery(hook func(query string) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

func (p *MySQLProxy) ask(query string) Action {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook == nil {
		return Pass
	}
	return hook(query)
}

// mysqlConversation follows one connection.
type mysqlConversation struct {
	proxy      *MySQLProxy
	greeted    bool // the client has told its capabilities
	attributes bool // statements are preceded by attributes
	noEOF      bool // a result has no packet between its columns and its rows
}

// mysqlCommand is what the client asks for with one command.
type mysqlCommand struct {
	name     string
	query    string
	isQuery  bool
	sequence byte // of the reply
}

func (c *mysqlConversation) request(r *bufio.Reader) (piece, error) {
	p, err := readPacket(r)
	if err != nil {
		return piece{}, err
	}
	if !c.greeted {
		c.greeted = true
		if err := c.noteCapabilities(p.payload); err != nil {
			c.proxy.tb.Errorf("faultproxy: %v", err)
			return piece{}, err
		}
	}
	// Numbers start again with each command; what has another number goes on
	// with an exchange: a login, the content of a file.
	if p.first != 0 {
		return piece{data: p.raw}, nil
	}
	command := readCommand(p.payload, c.attributes)
	command.sequence = p.last + 1
	return piece{data: p.raw, asked: command}, nil
}

func (c *mysqlConversation) noteCapabilities(payload []byte) error {
	const (
		compress        = 1 << 5
		tls             = 1 << 11
		deprecateEOF    = 1 << 24
		queryAttributes = 1 << 27
	)
	if len(payload) < 4 {
		return fmt.Errorf("login packet of %d bytes", len(payload))
	}
	flags := binary.LittleEndian.Uint32(payload)
	if flags&(compress|tls) != 0 {
		return fmt.Errorf("a client wants TLS or compression, which the proxy cannot read")
	}
	c.attributes = flags&queryAttributes != 0
	c.noEOF = flags&deprecateEOF != 0
	return nil
}

func (*mysqlConversation) reply(r *bufio.Reader) (piece, error) { return chunk(r) }

func (c *mysqlConversation) decide(p piece) Action {
	command, ok := p.asked.(mysqlCommand)
	if !ok {
		return Pass
	}
	c.proxy.add(command.name)
	if !command.isQuery {
		return Pass
	}
	return c.proxy.ask(command.query)
}

func (*mysqlConversation) refuse(p piece, e AnswerError) []byte {
	command, _ := p.asked.(mysqlCommand) // only commands are refused
	return errorPacket(command.sequence, e)
}

func (c *mysqlConversation) again(p piece, a Resend) resending {
	r := resending{last: a.Last, end: func(b []byte) int { return replyEnd(b, c.noEOF) }}
	for _, statement := range a.Statements {
		r.copies = append(r.copies, queryPacket(statement, c.attributes))
	}
	if len(r.copies) == 0 {
		r.copies = [][]byte{p.data}
	}
	return r
}

func (*mysqlConversation) replies(l *link) replies { return &streamReplies{link: l} }
