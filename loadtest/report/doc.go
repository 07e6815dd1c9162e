// Package report shows a result to people: as plain lines, and as one HTML file
// that needs nothing else, no network and no other file.
//
// The verdict comes first, then whether the numbers may be believed, then the
// numbers.
//
// It must not compute anything that is not in the result.
package report
