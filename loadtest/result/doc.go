// Package result is the outcome of a run as a file, and what is done with such
// files: thresholds, comparison and merging.
//
// The file has a schema name with a version; a reader that does not know it
// refuses. Histograms are inside, so that several machines' results can be merged
// without loss and percentiles can be asked for later.
//
// It must not know how the numbers were made.
package result
