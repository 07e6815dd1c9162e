package gateway

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/oncegate/oncegate/order"
)

// Bounds of the log of changes that one answer shows.
const (
	defaultChanges = 50
	maxChanges     = 500
)

// settingsRoutes are the routes of the settings, if there are any.
func (a *Admin) settingsRoutes() []adminRoute {
	if a.o.Settings == nil {
		return nil
	}
	return []adminRoute{
		{http.MethodGet, "/admin/v1/config", a.listSettings},
		{http.MethodGet, "/admin/v1/config/changes", a.listSettingChanges},
		{http.MethodGet, "/admin/v1/config/{name}", a.getSetting},
		{http.MethodPut, "/admin/v1/config/{name}", a.putSetting},
	}
}

func (a *Admin) listSettings(w http.ResponseWriter, _ *http.Request) {
	v := a.o.Settings.Settings()
	b := appendInt([]byte{'{'}, "version", v.Version)
	if v.Version > 0 {
		b = appendTime(b, "changed_at", v.ChangedAt)
		b = appendText(b, "changed_by", v.ChangedBy)
	}
	b = append(appendMember(b, "settings"), '[')
	for i := range v.Settings {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSetting(b, &v.Settings[i])
	}
	w.Header().Set("ETag", quoted(v.Tag))
	a.answer(w, append(b, ']', '}'))
}

func (a *Admin) getSetting(w http.ResponseWriter, r *http.Request) {
	v := a.o.Settings.Settings()
	for i := range v.Settings {
		if v.Settings[i].Name == r.PathValue("name") {
			w.Header().Set("ETag", quoted(v.Tag))
			a.answer(w, appendSetting(nil, &v.Settings[i]))
			return
		}
	}
	a.problem(w, a.unknownSetting(r.PathValue("name")))
}

// unknownSetting is what is wrong with a name that no setting has.
func (a *Admin) unknownSetting(name string) *problem {
	detail := "There is no such setting."
	if meant := a.o.Settings.NearestSetting(name); meant != "" {
		detail = "There is no such setting: did you mean " + meant + "?"
	}
	return newProblem(CodeNotFound).withDetail(detail)
}

func appendSetting(b []byte, s *Setting) []byte {
	b = appendText(append(b, '{'), "name", s.Name)
	b = appendText(b, "value", s.Value)
	b = appendText(b, "default", s.Default)
	b = appendText(b, "type", s.Type)
	b = appendText(b, "origin", s.Origin)
	b = appendBool(b, "reloadable", s.Reloadable)
	b = appendBool(b, "pinned", s.Pinned)
	return append(appendText(b, "description", s.Description), '}')
}

func (a *Admin) putSetting(w http.ResponseWriter, r *http.Request) {
	on, given, ok := expectedTag(r.Header)
	switch {
	case !given:
		a.problem(w, newProblem(CodePreconditionRequired))
		return
	case !ok:
		a.problem(w, faultAt("If-Match", "must be the one ETag that was read, such as "+quoted("7-5f3a9c01b2d4")))
		return
	}
	body, ok := a.body(w, r)
	if !ok {
		return
	}
	c, err := decodeSettingChange(body)
	if err != nil {
		a.problem(w, settingProblem(err))
		return
	}
	c.Name, c.On = r.PathValue("name"), on
	c.By = operatorOf(r.Context()).UserID
	ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
	defer cancel()
	done, err := a.o.Settings.ChangeSetting(ctx, c)
	switch {
	case errors.Is(err, ErrSettingsVersion):
		a.outdated(w, c.On)
		return
	case errors.Is(err, ErrSettingUnknown):
		a.problem(w, a.unknownSetting(c.Name))
		return
	case err != nil:
		a.caused(w, settingProblem(err), err)
		return
	}
	b := appendInt([]byte{'{'}, "version", done.Version)
	b = appendText(b, "name", done.Name)
	b = appendText(b, "before", done.Before)
	b = appendText(b, "after", done.After)
	w.Header().Set("ETag", quoted(done.Tag))
	a.answer(w, append(appendBool(b, "dry_run", c.DryRun), '}'))
}

// outdated answers that there is another version than the one that was named, and
// which one as far as this gateway knows.
func (a *Admin) outdated(w http.ResponseWriter, named string) {
	p := newProblem(CodeVersionMismatch)
	if newest := a.o.Settings.Settings().Tag; newest != named {
		w.Header().Set("ETag", quoted(newest))
		p = p.withDetail("The settings have version " + quoted(newest) + ", not " + quoted(named) + ". Read the setting again, and decide anew.")
	}
	a.problem(w, p)
}

// listSettingChanges shows the newest changes, with who made them and why.
func (a *Admin) listSettingChanges(w http.ResponseWriter, r *http.Request) {
	limit, faults := wholeParameter(r.URL.Query(), "limit", defaultChanges, maxChanges)
	if len(faults) > 0 {
		a.problem(w, problemOf(&order.InvalidError{Faults: faults}))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
	defer cancel()
	changes, err := a.o.Settings.SettingChanges(ctx, limit)
	if err != nil {
		a.fail(w, err)
		return
	}
	b := append(appendMember([]byte{'{'}, "changes"), '[')
	for i := range changes {
		c := &changes[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(append(b, '{'), "version", c.Version)
		b = appendText(b, "name", c.Name)
		b = appendText(b, "before", c.Before)
		b = appendText(b, "after", c.After)
		b = appendText(b, "reason", c.Reason)
		b = appendText(b, "changed_by", c.By)
		b = append(appendTime(b, "changed_at", c.At), '}')
	}
	a.answer(w, append(b, ']', '}'))
}

// quoted is the entity tag of a version's tag (RFC 9110, section 8.8.3).
func quoted(tag string) string { return `"` + tag + `"` }

// settingsTag is what a tag looks like.
var settingsTag = regexp.MustCompile(`^"([0-9a-z-]{1,64})"$`)

// expectedTag reads If-Match. It must name one version: a change that fits any of
// them is one that may undo somebody else's.
func expectedTag(h http.Header) (tag string, given, ok bool) {
	values := h["If-Match"]
	if len(values) == 0 {
		return "", false, false
	}
	if len(values) > 1 {
		return "", true, false
	}
	m := settingsTag.FindStringSubmatch(values[0])
	if m == nil {
		return "", true, false
	}
	return m[1], true, true
}

// settingProblem translates why a setting was not changed.
func settingProblem(err error) *problem {
	var invalid *SettingInvalidError
	var pinned *SettingPinnedError
	switch {
	case errors.As(err, &invalid):
		p := newProblem(CodeInvalidRequest).withDetail("Correct what errors lists and send the change again; nothing was changed.")
		for _, fault := range invalid.Faults {
			p.faults = append(p.faults, order.FieldFault{Path: "value", Reason: fault})
		}
		return p
	case errors.Is(err, ErrSettingFixed):
		return newProblem(CodeSettingFixed)
	case errors.As(err, &pinned):
		return newProblem(CodeSettingPinned).withDetail("This setting is given by: " + pinned.Origin + ". Change it there.")
	}
	p := problemOf(err)
	if p.code == CodeUnavailable {
		p = p.withDetail("The change could not be recorded, or its record was not confirmed. Read the version again before another try.")
	}
	return p
}
