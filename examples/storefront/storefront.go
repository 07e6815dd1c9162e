// Package storefront is a page that shows what a storefront has to do so that a
// button may be pressed twice and the page reloaded in the middle without a
// second order: one page, one script, no framework.
//
// The gateway serves it at /demo when it runs with the embedded database. To
// use it as a model, read page/storefront.js; the rest is decoration. It must
// not know anything of the gateway but its documented interface.
package storefront

import (
	"embed"
	"io/fs"
)

//go:embed page
var files embed.FS

// Files returns the page: index.html, and beside it what it asks for.
func Files() fs.FS {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is the one above
	}
	return page
}
