package gateway

import "net/http"

// healthRoutes are those of the public listener, for a process without one.
func (a *Admin) healthRoutes() []adminRoute {
	if a.o.Health == nil {
		return nil
	}
	return []adminRoute{
		{http.MethodGet, "/livez", a.livez},
		{http.MethodGet, "/readyz", a.readyz},
	}
}

func (a *Admin) livez(w http.ResponseWriter, _ *http.Request) {
	a.health(w, http.StatusOK, healthBody(healthOK, nil, nil))
}

func (a *Admin) readyz(w http.ResponseWriter, r *http.Request) {
	status, body := a.o.Health.ready(r.Context())
	a.health(w, status, body)
}

func (a *Admin) health(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", noStore)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone if it fails, and there is nobody to tell
}
