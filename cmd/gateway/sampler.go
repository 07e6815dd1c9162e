package main

import (
	"fmt"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sampler keeps a share of the requests, from 0 to 1, and of each all spans or
// none. What a caller says of its trace decides nothing: otherwise anybody, even
// without a token, could have every request kept, by the flag or by an id that a
// sampler by ids would keep.
func sampler(kept float64) sdktrace.Sampler {
	s := odds(kept)
	return sdktrace.ParentBased(s, sdktrace.WithRemoteParentSampled(s), sdktrace.WithRemoteParentNotSampled(s))
}

// odds is a sampler that throws dice. Its results have no tracestate.
type odds float64

// ShouldSample implements [sdktrace.Sampler].
func (s odds) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if rand.Float64() < float64(s) { //nolint:gosec // G404: not a secret
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// Description implements [sdktrace.Sampler].
func (s odds) Description() string { return fmt.Sprintf("Odds{%g}", float64(s)) }
