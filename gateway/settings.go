package gateway

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Settings is the configuration in force, for operators. Safe for concurrent
// use.
type Settings interface {
	// Settings returns all settings as they are in force here.
	Settings() SettingsView
	// ChangeSetting puts another value in force, here at once and on the other
	// gateways within seconds. It is validated together with all others, and
	// refused whole or applied whole. The error is one of those below, or says
	// why the change could not be recorded.
	ChangeSetting(ctx context.Context, c SettingChange) (SettingChanged, error)
	// SettingChanges returns the newest changes, the newest first.
	SettingChanges(ctx context.Context, limit int) ([]SettingChanged, error)
	// NearestSetting returns the setting that a wrong name was probably meant to
	// be, or "".
	NearestSetting(name string) string
}

// Setting is one setting and the value it has.
type Setting struct {
	Name           string // such as "ttl.receipt"
	Value, Default string // secrets masked
	Type           string // what a value looks like, such as "duration"
	Description    string
	Origin         string // what gives the value, such as "default", "file NAME" or "api"
	// Reloadable says that it can be changed while the gateway runs.
	Reloadable bool
	// Pinned says that a file, the environment or a flag gives the value: it is
	// changed there and not here.
	Pinned bool
}

// SettingsView is all settings as of a version.
type SettingsView struct {
	Version int64 // of the newest change that this gateway knows; 0: there was none
	// Tag names that change: another one of the same version has another tag, for
	// a database that fails over may lose one and give its version again. At most
	// 64 lower-case letters, digits and hyphens.
	Tag       string
	ChangedAt time.Time
	ChangedBy string // who made that change
	Settings  []Setting
}

// SettingChange asks for another value.
type SettingChange struct {
	Name   string
	On     string  // the tag of the settings that were read
	Value  *string // nil: back to what the configuration says
	Reason string
	By     string
	DryRun bool // only say what would happen
}

// SettingChanged is a change that was made.
type SettingChanged struct {
	// Version is the one that it made. What changes nothing, and a dry run, make
	// none: it is the newest one then.
	Version       int64
	Tag           string // of the settings as they are now
	Name          string
	Before, After string
	Reason        string
	By            string
	At            time.Time
}

// Why a setting is not changed.
var (
	ErrSettingUnknown  = errors.New("there is no such setting")
	ErrSettingFixed    = errors.New("the setting cannot be changed while the gateway runs")
	ErrSettingsVersion = errors.New("the settings have another version by now")
)

// SettingPinnedError says that a setting is changed elsewhere. Its value can only
// go back to what the configuration says.
type SettingPinnedError struct {
	Origin string // what gives it, such as "file NAME", "environment VARIABLE" or "flag NAME"
}

func (e *SettingPinnedError) Error() string { return "the setting is given by " + e.Origin }

// SettingInvalidError says what is wrong with a value, or with the whole that it
// would be a part of.
type SettingInvalidError struct{ Faults []string }

func (e *SettingInvalidError) Error() string {
	return "the settings would be invalid: " + strings.Join(e.Faults, "; ")
}
