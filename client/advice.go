package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Advice is what to do after one attempt.
type Advice struct {
	// Again: send the same request with the same key again.
	Again bool
	After time.Duration // not before; 0 when nothing was asked for
	// Problem is the gateway's own word; nil when it has not spoken, and for a
	// success.
	Problem *Problem
}

// Advise judges one attempt at a request that has an Idempotency-Key, or is a
// read. It is for those who send by other means than a [Client]; err is what
// the sending returned, and resp is only looked at without one. The body of the
// response is read, and put back. Of a success it knows the status only: whether
// it is the gateway's is for the caller to see.
func Advise(resp *http.Response, err error) Advice {
	if err != nil {
		return adviseWithoutAnswer(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return Advice{}
	}
	a, err := read(resp)
	_ = resp.Body.Close()
	resp.Body = &kept{bytes.NewReader(a.body)}
	if err != nil {
		return adviseWithoutAnswer(err)
	}
	return advise(a)
}

// kept is a body that has been read. Closing it begins it anew: go-retryablehttp
// drains and closes an answer before it asks how long to wait.
type kept struct{ *bytes.Reader }

func (k *kept) Close() error {
	_, err := k.Seek(0, io.SeekStart)
	return err
}

// adviseWithoutAnswer: no answer is like an unknown outcome, except where it is
// the caller who has had enough, and where no attempt can ever arrive.
func adviseWithoutAnswer(err error) Advice {
	var certificate *tls.CertificateVerificationError
	return Advice{Again: !errors.Is(err, context.Canceled) && !errors.As(err, &certificate)}
}

func advise(a answer) Advice {
	if p := problemOf(a); p != nil {
		after, header := p.RetryAfter(), retryAfter(a.header)
		if after == 0 || header-after >= time.Second { // otherwise it is the same, rounded up
			after = max(after, header)
		}
		return Advice{Again: p.Retryable, After: after, Problem: p}
	}
	// Somebody on the way. The key makes it safe to ask again, so the question is
	// only whether that has a point.
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Advice{}
	default:
		if a.status < http.StatusInternalServerError && a.status != http.StatusOK && a.status != http.StatusCreated {
			return Advice{}
		}
	}
	return Advice{Again: true, After: retryAfter(a.header)}
}

// retryAfter reads Retry-After, which is seconds or a date; 0 for none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, time.Until(date))
}
