//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer is what a customer heard.
type answer struct {
	status   int
	body     string
	replayed bool
}

// code is the code of a problem document, or "".
func (a answer) code() string {
	var p struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.body), &p) != nil {
		return ""
	}
	return p.Code
}

// final reports whether asking again is of no use: the answer is not "wait", "try
// later", or that the request did not arrive whole.
func (a answer) final() bool {
	var p struct {
		Retryable bool `json:"retryable"`
	}
	return a.status < http.StatusInternalServerError && (json.Unmarshal([]byte(a.body), &p) != nil || !p.Retryable)
}

// decided reports whether asking again with the same key gives the same.
func (a answer) decided() bool {
	return a.status == http.StatusCreated || a.status == http.StatusUnprocessableEntity
}

// order posts an order; the error is the connection's.
func (g *gateway) order(bearer, key, body string) (answer, error) {
	return ask(http.MethodPost, "http://"+g.addr+"/api/orders", bearer, key, body)
}

// insist asks again with the same key, as a customer with patience does, until
// there is a final answer.
func (g *gateway) insist(bearer, key, body string) answer {
	g.t.Helper()
	last, _ := g.insistCounting(bearer, key, body)
	return last
}

// insistCounting tells as well how often it asked. Whoever had to ask again may be
// told of an order that an answer was made for which nobody heard.
func (g *gateway) insistCounting(bearer, key, body string) (last answer, asked int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	var err error
	for tick := every(ctx, 50*time.Millisecond); tick(); {
		asked++
		if last, err = g.order(bearer, key, body); err == nil && last.final() {
			return last, asked
		}
	}
	g.t.Fatalf("no answer in %v: %d %s %v", readyTime, last.status, last.body, err)
	return last, asked
}

func ask(method, url, bearer, key, body string) (answer, error) {
	headers := map[string]string{}
	if bearer != "" {
		headers["Authorization"] = "Bearer " + bearer
	}
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	return askWith(method, url, body, headers)
}

func askWith(method, url, body string, headers map[string]string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(b), resp.Header.Get("Idempotent-Replayed") == "true"}, err
}
