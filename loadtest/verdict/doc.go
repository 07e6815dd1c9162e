// Package verdict judges a run by its history and by what the deployment has.
//
// Three judges look at the same evidence. [Answers] compares the answers of each
// key with each other and with what was sent. [Audit] compares them with the rows
// that are there now, read by SQL or over HTTP. [Linearizable] asks whether one
// order of events exists in which every answer is right.
//
// It must not forgive: what it could not decide is said, not passed over.
package verdict
