package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/loadtest"
	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/identity"
	"github.com/oncegate/oncegate/loadtest/mark"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// The environment variables that hold what must not stand on a command line.
const (
	envTokenSecret   = "LOADTEST_TOKEN_SECRET"
	envWebhookSecret = "LOADTEST_WEBHOOK_SECRET"
	envDSN           = "LOADTEST_AUDIT_DSN"
)

// settings turns the flags into a run. Everything that can be wrong with them is
// found here, before the first request.
func (f *runFlags) settings(now time.Time) (loadtest.Config, error) {
	c := loadtest.Config{
		Run: f.run, Label: f.label, Version: version(), Seed: f.seed,
		Timeout: f.timeout, Drain: f.drain, Settle: f.settle, MaxInFlight: f.maxInFlight, MaxLag: f.maxLag,
		AuditTimeout: f.auditTimeout, CheckTime: f.checkTime, DSN: cmp.Or(f.dsn, os.Getenv(envDSN)),
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64() >> 11 // exact in JSON readers that know only floating point
	}
	if c.Run == "" {
		c.Run = strconv.FormatUint(rand.Uint64()>>24, 36)
	}
	for _, step := range []func(*loadtest.Config, time.Time) error{f.where, f.what, f.when, f.who, f.verdict} {
		if err := step(&c, now); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (f *runFlags) where(c *loadtest.Config, _ time.Time) (err error) {
	if c.Target, err = address(f.target); err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	if f.adminURL != "" {
		if c.Create.Admin, err = address(f.adminURL); err != nil {
			return fmt.Errorf("--admin-url: %w", err)
		}
	}
	if f.caFile == "" && !f.insecure {
		return nil
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.insecure} //nolint:gosec // G402: asked for by --insecure
	if f.caFile != "" {
		pem, err := os.ReadFile(f.caFile)
		if err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return errors.New("--ca-file: no certificate in it")
		}
	}
	return nil
}

// address reads where something listens: a path may be part of it, nothing else.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Opaque != "" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080", text)
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("%q: a user, a query or a fragment would not be sent", u.Redacted())
	}
	return u, nil
}

func (f *runFlags) what(c *loadtest.Config, _ time.Time) (err error) {
	if c.Scenario, err = scenario.Load(f.scenario); err != nil {
		return err
	}
	for _, set := range []struct {
		flag  string
		apply func() error
	}{
		{"repeat-after", func() error { return c.Scenario.SetRepeatAfter(f.repeatAfter) }},
		{"copies", func() error { return c.Scenario.SetCopies(f.copies) }},
		{"users", func() error { return c.Scenario.SetUsers(f.users) }},
	} {
		if !f.given(set.flag) {
			continue
		}
		if err := set.apply(); err != nil {
			return fmt.Errorf("--%s: %w", set.flag, err)
		}
	}
	secret, err := secretFrom(f.webhookSecretFile, envWebhookSecret)
	if err != nil || len(secret) == 0 {
		return err
	}
	c.Webhook, err = drive.NewSigner(string(secret))
	return err
}

func (f *runFlags) when(c *loadtest.Config, _ time.Time) (err error) {
	c.Shape = pace.Shape{Length: f.duration, Ramp: f.ramp}
	if c.Shape.Rate, err = pace.ParseRate(f.rate); err != nil {
		return err
	}
	for _, text := range f.spikes {
		k, err := pace.ParseSpike(text)
		if err != nil {
			return err
		}
		c.Shape.Spikes = append(c.Shape.Spikes, k)
	}
	switch f.arrivals {
	case "poisson":
		c.Poisson = true
	case "even":
	default:
		return errors.New("--arrivals: want poisson or even")
	}
	if f.closed {
		for _, flag := range []string{"rate", "arrivals", "ramp", "spike", "max-lag"} {
			if f.given(flag) {
				return fmt.Errorf("--closed: clients that are as fast as they are answered know no --%s", flag)
			}
		}
		if f.concurrency < 1 {
			return errors.New("--concurrency: it takes one client at least")
		}
		c.Clients = f.concurrency
	} else if f.given("concurrency") {
		return errors.New("--concurrency: only the closed model (--closed) has a number of clients")
	}
	_, err = c.Shape.Plan()
	return err
}

func (f *runFlags) who(c *loadtest.Config, now time.Time) error {
	issuer, err := f.tokenIssuer(c)
	if err != nil {
		return err
	}
	if c.Create.Balance, err = decimal.Hundredths(f.balance); err != nil {
		return fmt.Errorf("--balance: %w", err)
	}
	c.Create.Enabled = f.createUsers
	if !f.createUsers {
		for _, flag := range []string{"admin-url", "balance"} {
			if f.given(flag) {
				return fmt.Errorf("--%s: it is for users that are created, with --create-users", flag)
			}
		}
	}
	if c.Create.Enabled && c.Create.Admin != nil && issuer != nil {
		if c.Create.Token, err = issuer.Token("loadtest", "admin", now); err != nil {
			return err
		}
	}
	if f.usersFile != "" {
		if f.given("users") {
			return errors.New("--users: no users are made where --users-file has them")
		}
		file, err := os.Open(f.usersFile)
		if err != nil {
			return fmt.Errorf("--users-file: %w", err)
		}
		defer func() { _ = file.Close() }() // only read
		if c.Users, err = identity.Read(file, issuer, now); err != nil {
			return fmt.Errorf("--users-file: %s: %w", f.usersFile, err)
		}
		until := now.Add(c.Shape.Length + c.Settle) // the audit comes then, and asks with them
		for _, u := range c.Users {
			if err := identity.Check(u, until); err != nil {
				return fmt.Errorf("--users-file: %s: %w", f.usersFile, err)
			}
		}
		return nil
	}
	if issuer == nil {
		return fmt.Errorf("tokens: give --token-secret-file, %s, --token-key-file or --users-file", envTokenSecret)
	}
	c.OwnUsers = true
	c.Users, err = issuer.Make(c.Run, c.Scenario.Users.Count, now)
	return err
}

// tokenIssuer returns nil when there is nothing to sign with.
func (f *runFlags) tokenIssuer(c *loadtest.Config) (*identity.Issuer, error) {
	i := &identity.Issuer{
		Audience: f.audience, Issuer: f.issuer, KeyID: f.kid, Scope: "orders",
		Lifetime: c.Shape.Length + c.Drain + c.Settle + c.AuditTimeout + time.Hour,
	}
	if f.keyFile != "" {
		if f.secretFile != "" {
			return nil, errors.New("--token-secret-file, --token-key-file: tokens are signed with one of them")
		}
		text, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--token-key-file: %w", err)
		}
		return i, i.UsePEM(text)
	}
	secret, err := secretFrom(f.secretFile, envTokenSecret)
	if err != nil || len(secret) == 0 {
		return nil, err
	}
	return i, i.UseSecret(secret)
}

func (f *runFlags) verdict(c *loadtest.Config, _ time.Time) (err error) {
	c.Audit = loadtest.AuditMode(f.audit)
	switch c.Audit {
	case loadtest.AuditHTTP, loadtest.AuditSQL, loadtest.AuditOff:
	case "":
		c.Audit = loadtest.AuditHTTP
		if c.DSN != "" {
			c.Audit = loadtest.AuditSQL
		}
	default:
		return errors.New("--audit: want sql, http or off")
	}
	if f.given("audit-dsn") && c.Audit != loadtest.AuditSQL && !(c.Create.Enabled && c.Create.Admin == nil) {
		return fmt.Errorf("--audit-dsn: with --audit %s nothing reads the database", c.Audit)
	}
	if c.Thresholds, err = result.ParseThresholds(append(c.Scenario.Thresholds, f.thresholds...)); err != nil {
		return err
	}
	if c.MarksFile = f.marks; c.MarksFile == "" {
		c.MarksFile, err = mark.DefaultPath()
	}
	return err
}

// secretFrom reads a file, or the environment when there is none. A line end at
// the end of a file is not part of the secret.
func secretFrom(file, env string) ([]byte, error) {
	if file == "" {
		return []byte(os.Getenv(env)), nil
	}
	b, err := os.ReadFile(file) //nolint:gosec // G304: the path is the operator's own
	if err != nil {
		return nil, fmt.Errorf("read a secret: %w", err)
	}
	return bytes.TrimRight(b, "\r\n"), nil
}
