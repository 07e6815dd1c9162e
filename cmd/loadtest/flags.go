package main

import (
	"time"

	"github.com/spf13/cobra"
)

// runFlags are the flags of `loadtest run` as they were given.
type runFlags struct {
	target, adminURL, caFile        string
	insecure                        bool
	scenario, rate, arrivals, label string
	spikes, thresholds              []string
	duration, ramp, repeatAfter     time.Duration
	closed                          bool
	concurrency, users, copies      int
	seed                            uint64
	run                             string

	usersFile, secretFile, keyFile, kid string
	audience, issuer                    string
	createUsers                         bool
	balance                             string
	webhookSecretFile                   string

	timeout, drain, settle, maxLag time.Duration
	maxInFlight                    int
	audit, dsn                     string
	auditTimeout, checkTime        time.Duration

	out, marks         string
	json, quiet, plain bool

	given func(flag string) bool // whether it stands on the command line
}

func (f *runFlags) register(cmd *cobra.Command) {
	s := cmd.Flags()
	f.given = s.Changed
	s.SortFlags = false
	s.StringVar(&f.target, "target", "http://127.0.0.1:8080", "where the deployment listens")
	s.StringVar(&f.scenario, "scenario", "mixed", "a scenario's name, or a YAML file")
	s.StringVar(&f.rate, "rate", "100/s", "intents that start in a second (open model); /m and /h are known too")
	s.DurationVar(&f.duration, "duration", 30*time.Second, "how long intents start")
	s.StringVar(&f.arrivals, "arrivals", "poisson", "poisson: customers who do not know of each other; even: equal gaps")
	s.DurationVar(&f.ramp, "ramp", 0, "time in which the rate rises from nothing")
	s.StringArrayVar(&f.spikes, "spike", nil, "FACTORx@START+LENGTH, such as 5x@20s+10s; repeatable")
	s.BoolVar(&f.closed, "closed", false, "closed model: a fixed number of clients, each as fast as it is answered")
	s.IntVar(&f.concurrency, "concurrency", 64, "clients of the closed model")
	s.Uint64Var(&f.seed, "seed", 0, "what all chance comes from; 0: drawn, and reported")
	s.StringVar(&f.run, "run", "", "name of the run, in every key and user; default: drawn")
	s.StringVar(&f.label, "label", "", "a note for people, in the report")
	s.DurationVar(&f.repeatAfter, "repeat-after", 0, "waiting time of behaviours that repeat, such as retry-after-ttl")
	s.IntVar(&f.copies, "copies", 0, "number of copies of behaviours that have copies, such as storm")

	s.IntVar(&f.users, "users", 0, "number of users that are made; default: the scenario's")
	s.StringVar(&f.usersFile, "users-file", "", "users to take instead, one on a line: name, and a token unless one can be signed")
	s.StringVar(&f.secretFile, "token-secret-file", "", "file with the HS256 secret; or LOADTEST_TOKEN_SECRET")
	s.StringVar(&f.keyFile, "token-key-file", "", "file with a private key (PKCS #8 PEM: RSA, P-256, Ed25519)")
	s.StringVar(&f.kid, "token-kid", "", "key id in the tokens")
	s.StringVar(&f.audience, "audience", "oncegate", "audience in the tokens; empty: none")
	s.StringVar(&f.issuer, "issuer", "oncegate", "issuer in the tokens; empty: none")
	s.BoolVar(&f.createUsers, "create-users", false, "give the users accounts first: by --admin-url, else by --audit-dsn")
	s.StringVar(&f.adminURL, "admin-url", "", "the admin listener, to create users")
	s.StringVar(&f.balance, "balance", "1000000.00", "balance of users that are created")
	s.StringVar(&f.webhookSecretFile, "webhook-secret-file", "", "file with the secret of payment callbacks; or LOADTEST_WEBHOOK_SECRET")
	s.StringVar(&f.caFile, "ca-file", "", "PEM file of the authority to trust for https")
	s.BoolVar(&f.insecure, "insecure", false, "do not check the target's certificate")

	s.DurationVar(&f.timeout, "timeout", 10*time.Second, "of a request, from when it is sent")
	s.DurationVar(&f.drain, "drain", time.Minute, "for retries, repeats and late answers after the last start")
	s.IntVar(&f.maxInFlight, "max-in-flight", 10000, "requests under way at once; starts beyond it are dropped and counted")
	s.DurationVar(&f.maxLag, "max-lag", 20*time.Millisecond, "p99 of the generator's own lag above which the run is not valid")

	s.StringVar(&f.audit, "audit", "", "sql, http or off; default: sql with a DSN, else http")
	s.StringVar(&f.dsn, "audit-dsn", "", "database of the deployment (go-sql-driver form, or sqlite:PATH); or LOADTEST_AUDIT_DSN")
	s.DurationVar(&f.settle, "settle", time.Second, "pause before the audit, for what the server has not finished")
	s.DurationVar(&f.auditTimeout, "audit-timeout", 5*time.Minute, "for the audit")
	s.DurationVar(&f.checkTime, "check-time", 30*time.Second, "for the linearizability check")
	s.StringArrayVar(&f.thresholds, "threshold", nil, "such as 'p99(created)<50ms' or 'share(unavailable)<1%'; repeatable")

	s.StringVar(&f.out, "out", "", "directory for result.json and report.html; default: loadtest-results/RUN")
	s.StringVar(&f.marks, "marks", "", "file of marks, see `loadtest mark`; default: in the user's cache")
	s.BoolVar(&f.json, "json", false, "write the result to standard output as JSON")
	s.BoolVar(&f.quiet, "quiet", false, "no progress, the conclusions only")
	s.BoolVar(&f.plain, "plain", false, "plain lines even on a terminal")
}
