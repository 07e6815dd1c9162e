// Package live shows a run while it goes on: a view that redraws itself on a
// terminal, and one plain line a second where there is none.
//
// It must not influence the run: a slow terminal loses pictures, never requests.
package live
