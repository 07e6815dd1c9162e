package gateway

import "github.com/gin-gonic/gin"

// routes builds the engine.
//
// Gin's mode is a setting of the whole process. Release mode is set because any
// other prints to standard output while routes are added.
func (s *Server) routes() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	// A key may hold any visible character: routes are matched on the path as it
	// was sent, and handlers unescape their own part (Gin would read + as a blank).
	e.UseEscapedPath = true
	e.UnescapePathValues = false
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, err
	}

	post := func(path string, serve func(*exchange)) {
		e.POST(path, s.handle(endpoint{name: path, scope: ScopeOrders, serve: serve}))
	}
	get := func(path, scope string, serve func(*exchange), query ...string) {
		h := s.handle(endpoint{name: path, scope: scope, quiet: scope == "", query: query, serve: serve})
		e.GET(path, h)
		e.HEAD(path, h)
	}
	post("/api/orders", s.createOrder)
	post("/order/create_user_order", s.createOrder)
	post("/api/order-batches", s.createBatch)
	get("/api/orders", ScopeOrders, s.listOrders, "cursor", "limit")
	get("/api/orders/:id", ScopeOrders, s.getOrder)
	post("/api/orders/:id/cancel", s.cancelOrder)
	get("/api/requests/:key", ScopeOrders, s.requestStatus)
	get("/api/policy", "", s.policy)
	get("/livez", "", s.livez)
	get("/readyz", "", s.readyz)
	get("/openapi.yaml", "", s.openAPI)
	if s.o.Webhooks != nil {
		e.POST("/webhooks/payments", s.handle(endpoint{name: "/webhooks/payments", serve: s.paymentEvent}))
	}
	if s.o.Demo != nil {
		s.o.Demo.add(s, e)
	}
	e.NoRoute(s.handle(endpoint{name: "none", serve: func(x *exchange) {
		x.problem(newProblem(CodeNotFound), nil)
	}}))
	e.NoMethod(s.handle(endpoint{name: "none", serve: func(x *exchange) {
		x.problem(newProblem(CodeMethodNotAllowed), nil)
	}}))
	return e, nil
}
