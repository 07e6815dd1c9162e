// Package history keeps what was sent and what came back, request by request.
//
// It is the evidence of a run: the audit, the linearizability check and the
// report read it, and nothing that is not in it can be claimed. A run keeps about
// half a kilobyte for each key, bodies included.
//
// It must not judge.
package history
