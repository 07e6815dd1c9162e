package gateway

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/oncegate/oncegate/order"
)

// The states that the request status shows.
const (
	stateInProgress = "in_progress"
	stateSucceeded  = "succeeded"
	stateFailed     = "failed"
)

// keyInPath is the key that a path names, for comparisons; "" without one.
func keyInPath(params gin.Params) string {
	key, err := url.PathUnescape(params.ByName("key"))
	if err != nil {
		return ""
	}
	return key
}

// requestStatus tells what became of the caller's request with a key. Someone
// else's key and a key that nobody used are the same: not found.
func (s *Server) requestStatus(x *exchange) {
	text, err := url.PathUnescape(x.params.ByName("key"))
	if err == nil {
		x.key, err = order.ParseKey(text)
	}
	if err != nil {
		x.problem(newProblem(CodeKeyInvalid), nil)
		return
	}
	if !x.charged(replayCost) {
		return
	}
	st, err := s.o.Submitter.Status(x.r.Context(), x.who.UserID, x.key)
	if err != nil {
		x.fail(err)
		return
	}
	b := []byte{'{'}
	if st.State == order.Processing {
		p := problem{retryAfter: st.RetryAfter}
		x.set("Retry-After", strconv.FormatInt(p.seconds(), 10))
		b = appendText(b, "state", stateInProgress)
		b = appendInt(b, "retry_after_ms", max(1, st.RetryAfter.Milliseconds()))
		x.private(append(b, '}'))
		return
	}
	x.private(append(appendOutcome(b, &st), '}'))
}

// appendOutcome appends how a request ended, with the remembered answer.
func appendOutcome(b []byte, st *order.RequestStatus) []byte {
	b = appendText(b, "state", stateName(st.State))
	b = appendTime(b, "first_seen_at", st.Receipt.FirstSeen)
	resp := &st.Receipt.Response
	b = append(appendMember(b, "response"), '{')
	b = appendInt(b, "status", int64(statusOr(resp.Status, st.State)))
	if resp.Location != "" {
		b = appendText(b, "location", resp.Location)
	}
	if len(resp.Body) > 0 && strings.HasSuffix(resp.ContentType, "json") {
		b = append(appendMember(b, "body"), resp.Body...)
	}
	return append(b, '}')
}

// statusOr is the status of an answer, also when only its record is left.
func statusOr(status int, state order.State) int {
	switch {
	case status != 0:
		return status
	case state == order.Failed:
		return http.StatusConflict
	default:
		return http.StatusCreated
	}
}

func stateName(s order.State) string {
	switch s {
	case order.Succeeded:
		return stateSucceeded
	case order.Failed:
		return stateFailed
	default:
		return stateInProgress
	}
}
