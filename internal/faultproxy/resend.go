package faultproxy

import "io"

// resending is a statement on its way that is sent to the server again.
type resending struct {
	copies [][]byte              // what is still to be sent
	end    func(data []byte) int // length of the first whole reply, or 0
	last   bool                  // the client gets the last reply, not the first

	got  []byte // from the server, and not looked at
	kept []byte // what the client is to get
}

// collect takes what the server has sent. After each whole reply it sends the
// next copy; when everything is answered it returns the client's reply.
func (r *resending) collect(data []byte, server io.Writer) (reply []byte, err error) {
	r.got = append(r.got, data...)
	for n := r.end(r.got); n > 0; n = r.end(r.got) {
		if r.kept == nil || r.last {
			r.kept = r.got[:n:n]
		}
		r.got = r.got[n:]
		if len(r.copies) == 0 {
			return append(r.kept, r.got...), nil
		}
		next := r.copies[0]
		r.copies = r.copies[1:]
		if _, err := server.Write(next); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Beginnings of packets with which a server answers a statement.
const (
	packetOK    = 0x00
	packetEOF   = 0xfe
	packetError = 0xff
)

// replyEnd returns the length of the reply to one statement at the beginning of
// data, or 0 while it is not whole: an OK, an error, or a result of columns and
// rows. noEOF says that nothing is between the two.
func replyEnd(data []byte, noEOF bool) int {
	at := 0
	next := func() (payload []byte) {
		if len(data) < at+packetHeader {
			return nil
		}
		h := data[at:]
		begin, length := at+packetHeader, int(h[0])|int(h[1])<<8|int(h[2])<<16
		if length == 0 || len(data) < begin+length {
			return nil
		}
		at = begin + length
		return data[begin:at]
	}
	head := next()
	if head == nil {
		return 0
	}
	if head[0] == packetOK || head[0] == packetError {
		return at
	}
	skip := int(head[0]) // columns; more than 250 no test asks for
	if !noEOF {
		skip++
	}
	for range skip {
		if next() == nil {
			return 0
		}
	}
	for {
		switch row := next(); {
		case row == nil:
			return 0
		case row[0] == packetEOF, row[0] == packetError:
			return at
		}
	}
}
