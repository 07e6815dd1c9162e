package loadtest

import (
	"crypto/tls"
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// AuditMode says how the deployment is asked what it has.
type AuditMode string

// The audit modes.
const (
	AuditHTTP AuditMode = "http"
	AuditSQL  AuditMode = "sql"
	AuditOff  AuditMode = "off"
)

// Config is one run.
type Config struct {
	Run      string // its name: in every key, user and file
	Label    string // for people
	Version  string // of this program
	Target   *url.URL
	TLS      *tls.Config
	Scenario *scenario.Scenario
	Seed     uint64

	Shape    pace.Shape // rate and length; the length alone when closed
	Poisson  bool
	Clients  int // above 0: the closed model with so many clients
	Users    []drive.Identity
	OwnUsers bool // the users exist for this run alone
	Create   Creation
	Webhook  *drive.Signer

	Timeout     time.Duration // of a request
	Drain       time.Duration // for what is under way, and for retries and repeats, after the last start
	Settle      time.Duration // before the audit, for what the server has not finished
	MaxInFlight int
	MaxLag      time.Duration // of the generator, p99; above it the run is not valid

	Audit        AuditMode
	DSN          string // of the database, for the audit and for creating users
	AuditTimeout time.Duration
	CheckTime    time.Duration // for the linearizability check

	Thresholds []result.Threshold
	MarksFile  string // "" for none
	Dir        string // for drawings of failing keys; "" for none

	Watch func(Snapshot) // called about five times a second, and at each new phase; nil for none
}

// Creation says how users get their accounts.
type Creation struct {
	Admin   *url.URL // the admin listener; nil: by SQL, when the DSN is there
	Token   string   // for the admin listener
	Enabled bool
	Balance int64 // hundredths
}

// Phase is what a run is at.
type Phase string

// The phases.
const (
	Sending  Phase = "sending"
	Draining Phase = "draining"
	Settling Phase = "settling"
	Auditing Phase = "auditing"
)

// Snapshot is where a run stands.
type Snapshot struct {
	Phase    Phase
	Progress drive.Progress
	Counts   measure.Counts
	Window   measure.Window // the last whole second
	Length   time.Duration  // of the sending phase
	Rate     float64        // planned for now, intents per second; 0 when closed
}

var runName = regexp.MustCompile(`^[a-z0-9]{1,24}$`)

func (c *Config) check() error {
	switch {
	case c.Scenario == nil:
		return errors.New("a scenario is missing")
	case !runName.MatchString(c.Run):
		return errors.New("the name of a run has 1 to 24 small letters and digits")
	case len(c.Users) == 0:
		return errors.New("there are no users")
	case c.Scenario.NeedsWebhookSecret() && c.Webhook == nil:
		return errors.New("this scenario sends payment callbacks: it needs the deployment's webhook secret")
	case c.Timeout <= 0 || c.Drain <= 0 || c.AuditTimeout <= 0 || c.CheckTime <= 0 || c.MaxLag <= 0:
		return errors.New("timeout, drain, audit timeout, check time and the bound of the lag must be positive")
	case c.Settle < 0:
		return errors.New("the pause before the audit must not be below zero")
	case c.MaxInFlight < 1:
		return errors.New("there must be room for one request at least")
	case c.Audit == AuditSQL && c.DSN == "":
		return errors.New("the audit by SQL needs a DSN")
	case c.Create.Enabled && c.Create.Admin == nil && c.DSN == "":
		return errors.New("creating users needs the admin listener or a DSN")
	}
	return nil
}
