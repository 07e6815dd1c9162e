// Package identity makes the users of a run and the tokens that prove them, or
// reads them from a file.
//
// It must not know what the users do.
package identity
