package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxBulk is Redis's own limit for one string; maxItems bounds what a count
// may claim, maxDepth how deep replies may nest.
const (
	maxBulk  = 512 << 20
	maxItems = 1 << 20
	maxDepth = 64
)

// readRequest reads one command in either form, and returns it as it was on
// the wire and as words.
func readRequest(r *bufio.Reader) (data []byte, words []string, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, nil, err
	}
	if line[0] != '*' { // typed by hand
		return line, strings.Fields(string(line)), nil
	}
	count, err := parseCount(line, maxItems)
	if err != nil {
		return nil, nil, err
	}
	data = line
	for range count {
		start := len(data)
		if data, err = appendFrame(data, r, maxDepth); err != nil {
			return nil, nil, err
		}
		frame := data[start:]
		if frame[0] != '$' {
			return nil, nil, fmt.Errorf("word of a command begins with %q", frame[0])
		}
		words = append(words, bulk(frame))
	}
	return data, words, nil
}

// bulk returns the content of a bulk string.
func bulk(frame []byte) string {
	_, content, _ := bytes.Cut(frame, []byte("\r\n"))
	return string(bytes.TrimSuffix(content, []byte("\r\n")))
}

// readReply reads one reply, or one push, as it is on the wire.
func readReply(r *bufio.Reader) ([]byte, error) { return appendFrame(nil, r, 0) }

// appendFrame appends the next value of the protocol to data.
func appendFrame(data []byte, r *bufio.Reader, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested deeper than %d", maxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	data = append(data, line...)
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return data, nil
	case '$', '=', '!':
		return appendBulk(data, line, r)
	case '*', '~', '>':
		return appendItems(data, line, 1, 0, r, depth)
	case '%':
		return appendItems(data, line, 2, 0, r, depth)
	case '|': // attributes, and then the value that they are about
		return appendItems(data, line, 2, 1, r, depth)
	default:
		return nil, fmt.Errorf("a value begins with %q", line[0])
	}
}

func appendBulk(data, line []byte, r *bufio.Reader) ([]byte, error) {
	length, err := parseCount(line, maxBulk)
	if err != nil || length < 0 { // -1 is null
		return data, err
	}
	// Grows as bytes arrive: a count alone costs nothing.
	buffer := bytes.NewBuffer(data)
	_, err = io.CopyN(buffer, r, int64(length+len("\r\n")))
	return buffer.Bytes(), err
}

func appendItems(data, line []byte, each, more int, r *bufio.Reader, depth int) ([]byte, error) {
	count, err := parseCount(line, maxItems)
	if err != nil {
		return nil, err
	}
	for range max(count, 0)*each + more {
		if data, err = appendFrame(data, r, depth+1); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// readLine reads a line with its end; it is never empty.
func readLine(r *bufio.Reader) ([]byte, error) {
	return r.ReadBytes('\n')
}

func parseCount(line []byte, limit int) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	if n < -1 || n > limit {
		return 0, fmt.Errorf("count %d is out of bounds", n)
	}
	return n, nil
}
