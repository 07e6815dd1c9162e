package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// packet is one message of the MySQL protocol, put together from its parts.
type packet struct {
	raw         []byte // as it was on the wire
	payload     []byte
	first, last byte // sequence numbers of the first and the last part
}

const (
	packetHeader = 4
	fullPart     = 1<<24 - 1 // a part of this length is followed by another
)

func readPacket(r *bufio.Reader) (packet, error) {
	var p packet
	for part := 0; ; part++ {
		var header [packetHeader]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return packet{}, err
		}
		length := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		body := make([]byte, length)
		if _, err := io.ReadFull(r, body); err != nil {
			return packet{}, err
		}
		if part == 0 {
			p.first = header[3]
		}
		p.last = header[3]
		p.raw = append(append(p.raw, header[:]...), body...)
		p.payload = append(p.payload, body...)
		if length < fullPart {
			return p, nil
		}
	}
}

const comQuery = 0x03

// readCommand reads what a client asks for.
func readCommand(payload []byte, attributes bool) mysqlCommand {
	if len(payload) == 0 {
		return mysqlCommand{name: "COM_EMPTY"}
	}
	if payload[0] != comQuery {
		return mysqlCommand{name: commandName(payload[0])}
	}
	text := payload[1:]
	if attributes {
		text = skipAttributes(text)
	}
	query := string(text)
	return mysqlCommand{name: firstWord(query), query: query, isQuery: true}
}

// queryPacket encodes a statement of less than a full part.
func queryPacket(query string, attributes bool) []byte {
	payload := []byte{comQuery}
	if attributes {
		payload = append(payload, 0, 1)
	}
	payload = append(payload, query...)
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(payload))) //nolint:gosec // a statement of a test is shorter than a part
	return append(header, payload...)
}

// skipAttributes skips the two counts that precede a statement. Attributes
// themselves are not parsed: such a statement has a name of its own.
func skipAttributes(text []byte) []byte {
	if len(text) >= 2 && text[0] == 0 { // no attributes, one set of them
		return text[2:]
	}
	return text
}

func commandName(code byte) string {
	switch code {
	case 0x01:
		return "COM_QUIT"
	case 0x02:
		return "COM_INIT_DB"
	case 0x0e:
		return "COM_PING"
	case 0x11:
		return "COM_CHANGE_USER"
	case 0x16:
		return "COM_STMT_PREPARE"
	case 0x17:
		return "COM_STMT_EXECUTE"
	case 0x18:
		return "COM_STMT_SEND_LONG_DATA"
	case 0x19:
		return "COM_STMT_CLOSE"
	case 0x1a:
		return "COM_STMT_RESET"
	case 0x1f:
		return "COM_RESET_CONNECTION"
	default:
		return fmt.Sprintf("COM_%#02x", code)
	}
}

// firstWord returns the first word of a statement in upper case, past comments.
func firstWord(query string) string {
	for {
		query = strings.TrimLeft(query, " \t\r\n(")
		if !strings.HasPrefix(query, "/*") {
			break
		}
		_, rest, closed := strings.Cut(query, "*/")
		if !closed {
			return ""
		}
		query = rest
	}
	end := strings.IndexFunc(query, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	})
	if end < 0 {
		end = len(query)
	}
	return strings.ToUpper(query[:end])
}

// errorPacket encodes an error as a server's reply.
func errorPacket(sequence byte, e AnswerError) []byte {
	state := e.State
	if state == "" {
		state = "HY000"
	}
	payload := []byte{0xff}
	payload = binary.LittleEndian.AppendUint16(payload, e.Code)
	payload = append(payload, "#"+state+e.Message...)
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(payload))) //nolint:gosec // an error text of a test is short
	header[3] = sequence
	return append(header, payload...)
}
