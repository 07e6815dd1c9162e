package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-sql-driver/mysql"
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

// Migrate brings the schema up to what this program needs, and goes on where an
// earlier call was interrupted. Several at once are safe on a server: one works, the
// others wait. On one new SQLite file the slower of two fails, and finds the work done
// when it is called again.
func Migrate(ctx context.Context, o Options) error {
	return withProvider(ctx, o, func(d *dialect, db *sql.DB, p *goose.Provider) error {
		if d.migrations == "mysql" {
			if err := completeVersions(ctx, db); err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return nil
	})
}

// MigrationStatus lists the steps of the schema and which are applied.
func MigrationStatus(ctx context.Context, o Options) (steps []Migration, err error) {
	err = withProvider(ctx, o, func(_ *dialect, _ *sql.DB, p *goose.Provider) error {
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

// completeVersions writes the first row of goose's table where that was made without:
// a server commits the table by itself. Each step of ours can be repeated.
func completeVersions(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied)"+
		" SELECT 0, TRUE FROM (SELECT 1 AS one) AS it WHERE NOT EXISTS (SELECT 1 FROM goose_db_version)")
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == erBadTable {
		return nil // nor is anything else
	}
	return err
}

func withProvider(ctx context.Context, o Options, do func(*dialect, *sql.DB, *goose.Provider) error) (err error) {
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
	return do(s.d, db, p)
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
