// Package api holds the contract of the HTTP interface: the OpenAPI document
// that the gateway serves, that clients are generated from and that the tests
// hold every answer against.
package api

import _ "embed"

//go:embed openapi.yaml
var spec []byte

// Spec returns the OpenAPI 3.1 document. It must not be changed.
func Spec() []byte { return spec }
