package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/store"
)

var _ gateway.Settings = (*settings)(nil)

// Settings implements [gateway.Settings].
func (s *settings) Settings() gateway.SettingsView {
	in := s.current.Load()
	all := in.loaded.Settings()
	v := gateway.SettingsView{
		Version: in.newest.Version, Tag: tagOf(in.newest.Version, in.newest.ID), ChangedAt: in.newest.At, ChangedBy: in.newest.By,
		Settings: make([]gateway.Setting, 0, len(all)),
	}
	for _, c := range all {
		v.Settings = append(v.Settings, gateway.Setting{
			Name: c.Name, Value: c.Value, Default: c.Default, Type: c.Type, Description: c.Description,
			Origin: c.Origin, Reloadable: c.Live, Pinned: c.Pinned,
		})
	}
	return v
}

// tagOf names a change: its version, and as much of its ID as tells it from another
// one that was given the version of one that was lost.
func tagOf(version int64, id string) string {
	if version == 0 {
		return "0"
	}
	return strconv.FormatInt(version, 10) + "-" + hex.EncodeToString([]byte(id[:min(6, len(id))]))
}

// NearestSetting implements [gateway.Settings].
func (s *settings) NearestSetting(name string) string { return configs.NearestSetting(name) }

// newest says which version of the settings is known, and who made it.
func (s *settings) newest() *insight.ConfigVersion {
	in := s.current.Load().newest
	return &insight.ConfigVersion{Version: uint64(max(0, in.Version)), ChangedAt: in.At, ChangedBy: in.By}
}

// ChangeSetting implements [gateway.Settings].
func (s *settings) ChangeSetting(ctx context.Context, c gateway.SettingChange) (gateway.SettingChanged, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.changeable(c.Name, c.Value == nil); err != nil {
		return gateway.SettingChanged{}, err
	}
	if err := s.refresh(ctx); err != nil {
		return gateway.SettingChanged{}, err
	}
	in := s.current.Load()
	newest := in.newest
	if c.On != tagOf(newest.Version, newest.ID) {
		return gateway.SettingChanged{}, gateway.ErrSettingsVersion
	}
	next := store.Overrides{Values: maps.Clone(newest.Values)}
	if next.Values == nil {
		next.Values = map[string]string{}
	}
	delete(next.Values, c.Name)
	if c.Value != nil {
		next.Values[c.Name] = *c.Value
	}
	loaded, _, err := s.base.Override(next.Values)
	if invalid, ok := errors.AsType[*configs.InvalidError](err); ok {
		return gateway.SettingChanged{}, &gateway.SettingInvalidError{Faults: invalid.Faults}
	}
	if err != nil {
		return gateway.SettingChanged{}, err
	}
	before, _ := in.loaded.Setting(c.Name)
	after, _ := loaded.Setting(c.Name)
	done := gateway.SettingChanged{
		Version: newest.Version, Tag: c.On, Name: c.Name, Before: before.Value, After: after.Value, Reason: c.Reason, By: c.By,
	}
	if c.DryRun {
		return done, nil
	}
	if c.Value != nil {
		next.Values[c.Name] = after.Value
	}
	if maps.Equal(next.Values, newest.Values) || c.Value != nil && s.stands(newest, after) { // there is nothing to record
		return done, nil
	}
	record := store.SettingChange{Name: c.Name, Before: done.Before, After: done.After, Reason: c.Reason, By: c.By}
	if c.Value != nil {
		record.Value = &after.Value
	}
	record, err = s.stored.ChangeSetting(ctx, newest.Version, record)
	if errors.Is(err, store.ErrSettingsVersion) {
		return gateway.SettingChanged{}, fmt.Errorf("%w: %w", gateway.ErrSettingsVersion, err)
	}
	if err != nil {
		return gateway.SettingChanged{}, err
	}
	done.Version, done.Tag, done.At = record.Version, tagOf(record.Version, record.ID), record.At
	next.Version, next.ID, next.By, next.At = record.Version, record.ID, record.By, record.At
	if err := s.apply(ctx, s.base, next); err != nil { // it was found valid above
		return gateway.SettingChanged{}, err
	}
	s.refused.api.Store(false)
	s.log.InfoContext(ctx, "a setting was changed", "setting", done.Name, "before", done.Before, "after", done.After,
		"version", done.Version, "changed_by", done.By, "reason", done.Reason)
	s.settleLevel()
	return done, nil
}

// stands reports whether a setting has been changed to the same value already: 48h
// and 2d are one, whichever way it was recorded.
func (s *settings) stands(changed store.Overrides, c configs.Setting) bool {
	if _, there := changed.Values[c.Name]; !there {
		return false
	}
	loaded, _, err := s.base.Override(changed.Values)
	if err != nil {
		return false
	}
	was, _ := loaded.Setting(c.Name)
	return was.Value == c.Value
}

// changeable tells why a setting cannot be changed over the API. A change from
// before it was pinned sleeps there, and can be taken back.
func (s *settings) changeable(name string, back bool) error {
	c, ok := s.current.Load().loaded.Setting(name)
	switch {
	case !ok:
		return gateway.ErrSettingUnknown
	case !c.Live:
		return gateway.ErrSettingFixed
	case c.Pinned && !back:
		return &gateway.SettingPinnedError{Origin: c.Origin}
	default:
		return nil
	}
}

// SettingChanges implements [gateway.Settings].
func (s *settings) SettingChanges(ctx context.Context, limit int) ([]gateway.SettingChanged, error) {
	recorded, err := s.stored.SettingChanges(ctx, limit)
	if err != nil {
		return nil, err
	}
	changes := make([]gateway.SettingChanged, 0, len(recorded))
	for i := range recorded {
		r := &recorded[i]
		changes = append(changes, gateway.SettingChanged{
			Version: r.Version, Tag: tagOf(r.Version, r.ID), Name: r.Name, Before: r.Before, After: r.After, Reason: r.Reason, By: r.By, At: r.At,
		})
	}
	return changes, nil
}
