package gateway

import (
	"crypto/rand"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"

	"github.com/gin-gonic/gin"
)

// Demo is a page for trying the gateway in a browser. It signs its visitors in
// without asking who they are, so it is for a gateway that is being tried, and
// only this machine is served, by its own names: a page whose name was rebound
// to this address gets nothing.
type Demo struct {
	// Files has index.html, and beside it what it asks for.
	Files fs.FS
	// Token signs in a visitor, who may order and nothing else.
	Token func(userID string) (string, error)
}

// demoPolicy allows the page its own files and this gateway, and nothing else.
const demoPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// visitor is the name of one who was signed in before. Nobody can guess another's.
var visitor = regexp.MustCompile(`^demo-[A-Z2-7]{26}$`)

// add adds the routes of the page.
func (d *Demo) add(s *Server, e *gin.Engine) {
	local := func(name string, serve func(*exchange)) gin.HandlerFunc {
		return s.handle(endpoint{name: name, quiet: true, serve: func(x *exchange) {
			if !fromThisMachine(x.r) || !calledBy(x.r, nil) {
				x.problem(newProblem(CodeNotFound), nil)
				return
			}
			serve(x)
		}})
	}
	e.GET("/demo", local("/demo", func(x *exchange) { d.file(x, "index.html") }))
	e.GET("/demo/:file", local("/demo/:file", func(x *exchange) { d.file(x, x.params.ByName("file")) }))
	e.POST("/demo/session", local("/demo/session", d.session))
}

func (d *Demo) file(x *exchange, name string) {
	content, err := fs.ReadFile(d.Files, name)
	if err != nil {
		x.problem(newProblem(CodeNotFound), nil)
		return
	}
	x.set("Content-Security-Policy", demoPolicy)
	x.set("X-Content-Type-Options", "nosniff")
	x.set("Referrer-Policy", "no-referrer")
	x.set("Cache-Control", "no-cache")
	x.body(http.StatusOK, mime.TypeByExtension(path.Ext(name)), content)
}

// session signs a visitor in: a new one, or one who is back.
func (d *Demo) session(x *exchange) {
	// A page of somebody else's could not read the answer, and gets none.
	if p := ownPage(x.r); p != nil {
		x.problem(p, nil)
		return
	}
	user := x.r.URL.Query().Get("user")
	if user == "" {
		user = "demo-" + rand.Text()
	}
	if !visitor.MatchString(user) {
		x.problem(faultAt("user", "must be the name of a visitor"), nil)
		return
	}
	token, err := d.Token(user)
	if err != nil {
		x.fail(err)
		return
	}
	b := appendText([]byte{'{'}, "user", user)
	x.private(append(appendText(b, "token", token), '}'))
}
