//go:build unix

package consumer_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
)

// alarmed is a broker of AMQP 0.9.1 without room: it agrees to all that is asked
// for, takes what is published and confirms none of it. It serves one connection
// after the other.
type alarmed struct {
	t         *testing.T
	listener  net.Listener
	published chan struct{}
}

func newAlarmed(t *testing.T) *alarmed {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &alarmed{t: t, listener: listener, published: make(chan struct{}, 16)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.serve(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-served })
	return b
}

// Numbers of the protocol, class and method in one.
const (
	connectionStart   = 10<<16 | 10
	connectionStartOK = 10<<16 | 11
	connectionTune    = 10<<16 | 30
	connectionOpen    = 10<<16 | 40
	connectionClose   = 10<<16 | 50
	channelOpen       = 20<<16 | 10
	exchangeDeclare   = 40<<16 | 10
	queueDeclare      = 50<<16 | 10
	queueBind         = 50<<16 | 20
	basicPublish      = 60<<16 | 40
	confirmSelect     = 85<<16 | 10
)

func (b *alarmed) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	if _, err := in.Discard(len("AMQP\x00\x00\x09\x01")); err != nil {
		return
	}
	// Version 0-9, no properties, PLAIN, en_US.
	answer(conn, 0, connectionStart, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
	for {
		channel, method, err := readMethod(in)
		if err != nil {
			return
		}
		switch method {
		case connectionStartOK: // 8 channels, frames of 128 KiB, no heartbeat
			answer(conn, channel, connectionTune, "\x00\x08\x00\x02\x00\x00\x00\x00")
		case connectionOpen:
			answer(conn, channel, method+1, "\x00")
		case channelOpen:
			answer(conn, channel, method+1, "\x00\x00\x00\x00")
		case queueDeclare:
			answer(conn, channel, method+1, "\x01q\x00\x00\x00\x00\x00\x00\x00\x00")
		case exchangeDeclare, queueBind, confirmSelect, connectionClose:
			answer(conn, channel, method+1, "")
		case basicPublish:
			b.published <- struct{}{}
		}
	}
}

const methodFrame, frameEnd = 1, 0xCE

func answer(conn net.Conn, channel uint16, method uint32, arguments string) {
	frame := binary.BigEndian.AppendUint16([]byte{methodFrame}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(4+len(arguments)))
	frame = binary.BigEndian.AppendUint32(frame, method)
	_, _ = conn.Write(append(append(frame, arguments...), frameEnd))
}

// readMethod reads a frame, and of one without a method the zero method.
func readMethod(in io.Reader) (channel uint16, method uint32, err error) {
	var head [7]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, 0, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(in, body); err != nil {
		return 0, 0, err
	}
	if head[0] == methodFrame {
		method = binary.BigEndian.Uint32(body)
	}
	return binary.BigEndian.Uint16(head[1:]), method, nil
}

// A broker under its memory alarm confirms a publication when the alarm is over.
func TestAMessageThatIsNotConfirmedAsParkedIsGivenBack(t *testing.T) {
	t.Parallel()
	broker := newAlarmed(t)
	connected := lines{"Connected to AMQP", make(chan string, 16)}
	subscriber, publisher, err := consumer.Open(consumer.BrokerOptions{
		Kind: consumer.AMQP, Group: group, Logger: slog.New(slog.NewTextHandler(connected, &slog.HandlerOptions{Level: slog.LevelDebug})),
		AMQP: &consumer.AMQPOptions{URL: "amqp://" + broker.listener.Addr().String() + "/"},
	})
	require.NoError(t, err)
	require.NoError(t, subscriber.Close())
	unparked := lines{"could not be parked", make(chan string, 16)}
	q := &queue{messages: []*message.Message{message.NewMessage("broken", []byte("{"))}}
	o := memoryOptions(q, nil, newLedger())
	o.Parker = consumer.TopicParker{Publisher: publisher, Topic: "payments.parked", Now: time.Now}
	o.MaxRetryDelay = time.Hour // it is not tried again in this test
	o.Timeout = 5 * time.Second // a busy machine has to connect and publish within it
	o.Logger = slog.New(slog.NewTextHandler(unparked, nil))

	stop := consume(t, o)
	<-broker.published
	require.Contains(t, <-unparked.to, "has not confirmed it in time: context deadline exceeded")
	stop()
	require.False(t, q.done())
	require.Equal(t, 1, value(t, o, "oncegate_consumer_redeliveries_total", "unparkable"))
	require.Equal(t, 0, value(t, o, "oncegate_consumer_parked_total", "undecodable"))
	<-connected.to
	<-connected.to // again, after it was cut off
	require.NoError(t, publisher.Close())
}

// lines are those of a log that say something.
type lines struct {
	what string
	to   chan string
}

func (l lines) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.what) {
		l.to <- string(line)
	}
	return len(line), nil
}

// endless is a subscriber whose subscription does not come about.
type endless struct{ subscribing chan struct{} }

func (e *endless) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	close(e.subscribing)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*endless) Close() error { return nil }

func TestAnEndDoesNotWaitForASubscriptionThatDoesNotComeAbout(t *testing.T) {
	t.Parallel()
	e := &endless{make(chan struct{})}
	o := memoryOptions(nil, &drawer{}, newLedger())
	o.Subscriber = e
	stop := consume(t, o)
	<-e.subscribing
	stop()
}
