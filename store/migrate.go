package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// Migration is one step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied bool
}

// Migrate brings the schema up to what this program needs. Several at once are
// safe: one works, the others wait.
func Migrate(ctx context.Context, o Options) error {
	return withProvider(ctx, o, func(p *goose.Provider) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return nil
	})
}

// MigrationStatus lists the steps of the schema and which are applied.
func MigrationStatus(ctx context.Context, o Options) (steps []Migration, err error) {
	err = withProvider(ctx, o, func(p *goose.Provider) error {
		all, err := p.Status(ctx)
		for _, m := range all {
			steps = append(steps, Migration{
				Version: m.Source.Version,
				Name:    strings.TrimSuffix(m.Source.Path, ".sql"),
				Applied: m.State == goose.StateApplied,
			})
		}
		return err
	})
	return steps, err
}

func withProvider(ctx context.Context, o Options, do func(*goose.Provider) error) (err error) {
	if err := o.setTimes(); err != nil {
		return err
	}
	s := &Store{o: o}
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closePools()) }()
	db, err := s.unlimited()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	dialect := goose.DialectSQLite3
	var options []goose.ProviderOption
	if s.d.migrations == "mysql" {
		dialect = goose.DialectMySQL
		locker, err := lock.NewMySQLTableLocker()
		if err != nil {
			return fmt.Errorf("migration lock: %w", err)
		}
		options = append(options, goose.WithLocker(locker))
	}
	files, err := fs.Sub(migrations, "migrations/"+s.d.migrations)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, options...)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return do(p)
}

// checkSchema refuses a schema that is older than this program.
func (s *Store) checkSchema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	want, err := newestMigration(s.d.migrations)
	if err != nil {
		return err
	}
	var have sql.NullInt64
	err = s.reads.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version WHERE is_applied").Scan(&have)
	if err != nil && s.d.classify(err) != faultPermanent {
		return s.translate("read the schema version", err)
	}
	if have.Int64 < want {
		return fmt.Errorf("the schema has version %d and this program needs %d: run 'oncegate migrate up'", have.Int64, want)
	}
	return nil
}

func newestMigration(folder string) (newest int64, err error) {
	entries, err := migrations.ReadDir("migrations/" + folder)
	for _, e := range entries {
		version, verr := goose.NumericComponent(e.Name())
		err = errors.Join(err, verr)
		newest = max(newest, version)
	}
	return newest, err
}
