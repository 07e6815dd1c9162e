package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"
)

// ErrSettingsVersion says that somebody else has changed a setting meanwhile.
// Nothing was recorded.
var ErrSettingsVersion = errors.New("the settings have another version by now")

// SettingChange is one recorded change of a setting.
type SettingChange struct {
	// Version counts the changes; the first is 1.
	Version int64
	// ID tells it from another change of the same version: a database that fails
	// over asynchronously may lose one, and give its version again.
	ID   string // 16 bytes, made by [Store.ChangeSetting]
	Name string // at most 64 ASCII characters
	// Value is in force from now on, at most 255 characters; nil: whatever the
	// configuration of each gateway says.
	Value *string
	// Before and After are the values in force at the gateway that made the
	// change, for the record.
	Before, After string
	Reason        string // at most 500 characters
	By            string // at most 255 characters
	At            time.Time
}

// Overrides are the settings that were changed and not changed back, as of a version.
type Overrides struct {
	Version int64             // 0: none was ever changed
	ID      string            // of the newest change
	Values  map[string]string // by name
	By      string            // who made the newest change
	At      time.Time         // when, by the database's clock
}

// SettingsVersion returns version and ID of the newest change, nothing before
// the first.
func (s *Store) SettingsVersion(ctx context.Context) (version int64, id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	err = s.reads.QueryRowContext(ctx, "SELECT version, change_id FROM config_changes ORDER BY version DESC LIMIT 1").Scan(&version, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return version, id, s.translate("read the version of the settings", err)
}

// Overrides returns the settings that are changed at present. It is one
// statement, so version and values belong together.
func (s *Store) Overrides(ctx context.Context) (Overrides, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	found := Overrides{Values: map[string]string{}}
	q := query{d: s.d}
	q.reset(`SELECT version, change_id, name, value, changed_by, changed_at FROM config_changes
		WHERE version IN (SELECT MAX(version) FROM config_changes GROUP BY name)`)
	err := scanRows(ctx, s.reads, &q, func(rows *sql.Rows) error {
		var version int64
		var id, name, by string
		var value sql.Null[string]
		var at instant
		if err := rows.Scan(&version, &id, &name, &value, &by, &at); err != nil {
			return err
		}
		if value.Valid {
			found.Values[name] = value.V
		}
		if version > found.Version {
			found.Version, found.ID, found.By, found.At = version, id, by, at.Time
		}
		return nil
	})
	return found, s.translate("read the changed settings", err)
}

// ChangeSetting records a change on top of a version, and returns it with its
// own version and time. When that version is not the newest any more it is
// [ErrSettingsVersion]. An error that wraps [order.ErrUnavailable] leaves open
// whether the change was recorded.
func (s *Store) ChangeSetting(ctx context.Context, on int64, c SettingChange) (SettingChange, error) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	c.Version, c.ID = on+1, string(id[:])
	var at instant
	outdated := false
	err := s.inTransaction(ctx, "record a change of the settings", waitingFor(settingsRow), func(t *transaction) error {
		// A copy of an earlier attempt's row: its COMMIT was carried out, and not
		// answered. An attempt that is still under way holds the row's place, and
		// the insert waits for its end.
		own, err := t.settingChangedAt(&at, c.Version, id)
		if own || err != nil {
			return err
		}
		var newest int64
		t.q.reset("SELECT COALESCE(MAX(version), 0) FROM config_changes")
		if err := t.rows(func(rows *sql.Rows) error { return rows.Scan(&newest) }); err != nil {
			return err
		}
		if outdated = newest != on; outdated {
			return nil
		}
		if err := t.insertSetting(&c, id); err != nil {
			return err // a version that another gateway has taken is found at the next attempt
		}
		_, err = t.settingChangedAt(&at, c.Version, id)
		return err
	})
	if err != nil {
		return SettingChange{}, err
	}
	if outdated {
		return SettingChange{}, ErrSettingsVersion
	}
	c.At = at.Time
	return c, nil
}

func (t *transaction) insertSetting(c *SettingChange, id [16]byte) error {
	t.q.reset("INSERT INTO config_changes (version, change_id, name, value, value_before, value_after, reason, changed_by, changed_at) VALUES (")
	for _, v := range []any{c.Version, id[:], c.Name, c.Value, c.Before, c.After, c.Reason, c.By} {
		t.q.bind(v)
		t.q.add(",")
	}
	t.q.add(t.d.now + ")")
	return t.exec(1)
}

// settingChangedAt reads when a change was recorded, and whether it was.
func (t *transaction) settingChangedAt(at *instant, version int64, id [16]byte) (found bool, err error) {
	t.q.reset("SELECT changed_at FROM config_changes WHERE version = ")
	t.q.bind(version)
	t.q.add(" AND change_id = ")
	t.q.bind(id[:])
	err = t.rows(func(rows *sql.Rows) error {
		found = true
		return rows.Scan(at)
	})
	return found, err
}

// SettingChanges returns the newest changes, the newest first.
func (s *Store) SettingChanges(ctx context.Context, limit int) (changes []SettingChange, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	q := query{d: s.d}
	q.reset("SELECT version, change_id, name, value, value_before, value_after, reason, changed_by, changed_at FROM config_changes ORDER BY version DESC LIMIT ")
	q.bind(limit)
	err = scanRows(ctx, s.reads, &q, func(rows *sql.Rows) error {
		var c SettingChange
		var at instant
		if err := rows.Scan(&c.Version, &c.ID, &c.Name, &c.Value, &c.Before, &c.After, &c.Reason, &c.By, &at); err != nil {
			return err
		}
		c.At = at.Time
		changes = append(changes, c)
		return nil
	})
	return changes, s.translate("read the changes of the settings", err)
}
