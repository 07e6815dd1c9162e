package gateway

// Route is a route of the admin listener, as its table has it.
type Route struct{ Method, Path string }

// Routes lists what the admin listener does, for tests that must miss nothing.
func (a *Admin) Routes() []Route {
	var all []Route
	for _, r := range a.table() {
		all = append(all, Route{r.method, r.path})
	}
	return all
}

// Refresh is what a handshake does first.
func (c *Certificates) Refresh() (changed bool, err error) { return c.refresh() }
