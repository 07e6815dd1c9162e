# Run "make" for the list of targets.

GO          ?= go
FUZZTIME    ?= 5s
# Test binaries at a time. Each starts its own servers, so more of them need
# memory rather than cores.
TEST_JOBS   ?= 2
TIMEOUT     ?= 30m

GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.9.0
GORELEASER_VERSION    := v2.15.1
SYFT_VERSION          := v1.57.1

BIN           := bin
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)

# The commit goes into the binary where git knows it; a copy without history,
# or one that git does not trust, builds as well.
BUILDVCS    := $(if $(shell git rev-parse --verify --quiet HEAD 2>/dev/null),true,false)
BUILD       := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$(BUILDVCS)

# The compiler knows from it which paths are hot: a tenth less processor time a
# request. It compiles every package for it, which takes minutes the first time,
# so "make run" and the tests do without. "make profile" takes a new one.
PGO_PROFILE := cmd/gateway/release.pgo
PGO          := $(abspath $(PGO_PROFILE))

SECRETS := data/secrets
# "observe" adds Prometheus and Grafana to "make up".
PROFILE ?=
COMPOSE := SECRETS=$(abspath $(SECRETS)) COMPOSE_PROFILES=$(PROFILE) docker compose

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: PGO := off
run: $(BIN)/oncegate ## build and serve with the embedded database, on 127.0.0.1:8080
	$(BIN)/oncegate serve

.PHONY: build
build: $(BIN)/oncegate $(if $(wildcard cmd/loadtest/*.go),$(BIN)/loadtest) ## build the binaries into bin/

# Go knows best what is out of date.
.PHONY: $(BIN)/oncegate $(BIN)/loadtest
$(BIN)/oncegate:
	$(BUILD) -pgo=$(PGO) -o $@ ./cmd/gateway
$(BIN)/loadtest:
	$(BUILD) -o $@ ./cmd/loadtest

.PHONY: prepare
prepare: ## find or install the servers that the tests need
	CGO_ENABLED=0 $(GO) run ./internal/testserver/cmd/testserver prepare

.PHONY: test
test: prepare ## run every test with the race detector, and each fuzz target for a moment
	$(GO) test -race -timeout $(TIMEOUT) -p $(TEST_JOBS) ./...
	# ten thousand of them, which the race detector makes too heavy
	$(GO) test -timeout $(TIMEOUT) -run '^TestManyIdleConnectionsKeepNobodyOut$$' ./gateway
	cd deploy/kubernetes/check && $(GO) test -timeout $(TIMEOUT) ./...
	$(MAKE) --no-print-directory fuzz

CHAOS := $(GO) test -count=1 -timeout 3h -v -run '^(TestNothingIsLostOrDoubledUnderFaults|TestRandomSequencesFollowTheModel|TestAFullLogDiskIsUnknownAndThenTrue|TestAPartedGatewayLosesNothing|TestAGatewayThatSleepsLongerThanItsMarkChangesNothing|TestClocksThatJumpChangeNothing|TestAPowerCutLosesNothingAnswered|TestAPowerCutIsSeenWhereSettingsPermitIt)$$' ./internal/chaos -args

.PHONY: chaos
chaos: prepare ## faults under traffic for twenty-five minutes (CHAOS_FLAGS="-for 1h -seed 7 -engine MySQL")
	$(CHAOS) -for 10m $(CHAOS_FLAGS)

.PHONY: chaos-short
chaos-short: prepare ## the cut of it that every change has to pass
	$(CHAOS) -for 110s -rapid.checks=50 $(CHAOS_FLAGS)

.PHONY: soak
soak: prepare ## an hour of traffic at half the ceiling with faults: what grows (SOAK_FLAGS="-soak 4h -engine MariaDB")
	$(GO) test -count=1 -timeout 24h -v -run '^TestALongRunLeavesNothingBehind$$' ./internal/chaos -args -soak 1h $(SOAK_FLAGS)

.PHONY: ha
ha: prepare ## fail over a Redis Cluster, Sentinels, MySQL Group Replication and MariaDB under traffic (about five minutes)
	$(GO) test -count=1 -timeout $(TIMEOUT) -v -tags ha ./internal/hatest $(HA_FLAGS)

.PHONY: systemd
systemd: prepare ## boot machines with the systemd unit on them: start, reload, hang, stop (two minutes; as root on Debian)
	$(GO) test -count=1 -timeout $(TIMEOUT) -v -tags systemd -run '^TestTheUnitOnAMachine$$' ./internal/deploytest

.PHONY: seeded-bugs
seeded-bugs: prepare ## make each mistake of the flaws_on.go files, and demand that its test notices
	$(GO) test -count=1 -timeout $(TIMEOUT) -v -tags seededbugs -run '^(TestSeededBugsAreCaught|TestTheNemesisNoticesSeededBugs)$$' ./internal/chaos

# When its time is over on a busy machine, Go may call that a failure, without
# an input that fails (go.dev/issue/75804, mended in Go 1.27).
.PHONY: fuzz
fuzz: prepare ## run each fuzz target for FUZZTIME (5s)
	@set -e; \
	for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u); do \
		targets=$$($(GO) test -list '^Fuzz' $$dir); \
		for target in $$(printf '%s\n' "$$targets" | grep '^Fuzz'); do \
			echo "fuzz $$dir $$target"; \
			code=0; said=$$($(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x -timeout $(TIMEOUT) $$dir 2>&1) || code=$$?; \
			printf '%s\n' "$$said" | tail -n 25; \
			case "$$code $$said" in \
				0\ *) ;; \
				*'Failing input written'*) exit 1 ;; \
				*'context deadline exceeded'*) echo "out of time, nothing found" ;; \
				*) exit 1 ;; \
			esac; \
		done; \
	done

.PHONY: bench
bench: prepare ## run the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -timeout $(TIMEOUT) -p 1 ./...

.PHONY: bench-ratios
bench-ratios: prepare build ## measure the gateway against its baselines, as ratios (docs/performance.md)
	$(BIN)/loadtest bench --gateway $(BIN)/oncegate --json $(BIN)/bench.json $(BENCH_FLAGS)

.PHONY: profile
profile: PGO := off
profile: prepare build ## take the profile that release builds are compiled with
	$(BIN)/loadtest bench --gateway $(BIN)/oncegate --paths new-http,dup-redis,dup-process --rounds 1 --connections 64,256 --profiles $(BIN)/profiles
	$(GO) tool pprof -proto $(BIN)/profiles/*.pprof > $(PGO_PROFILE)

# This tree as it is, committed or not. The worktree is removed whatever happens.
.PHONY: bench-check
bench-check: prepare build ## measure this tree against the commit BASE; fails below 0.9
	@test -n "$(BASE)" || { echo 'usage: make bench-check BASE=<commit>' >&2; exit 2; }
	@tree=$$(mktemp -d) && trap 'git worktree remove --force "$$tree" 2>/dev/null || rmdir "$$tree"' EXIT && \
		git worktree add --quiet --detach "$$tree" "$(BASE)" && \
		echo "against $$(git log -1 --format='%h %s' "$(BASE)")" && \
		(cd "$$tree" && $(BUILD) -pgo=$$(ls "$$PWD/$(PGO_PROFILE)" 2>/dev/null || echo off) -o oncegate ./cmd/gateway) && \
		$(BIN)/loadtest bench --gateway $(BIN)/oncegate --against "$$tree/oncegate" --rounds 5 --connections 64 $(BENCH_FLAGS)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## check format, vet, and all that .golangci.yml asks for
	$(GOLANGCI_LINT) config verify
	$(GOLANGCI_LINT) fmt --diff
	$(GO) vet ./...
	$(GO) vet -tags seededbugs,crashpoints,ha,systemd ./...
	$(GOLANGCI_LINT) run ./...

# Asks https://vuln.go.dev, or the copy that GOVULNDB names. Where that does not
# answer, the source of the same database, which the module proxy has. The
# standard library is judged as releases have it: that of go.mod's toolchain.
.PHONY: vuln
vuln: ## look for known vulnerabilities in what the code calls
	@db='$(GOVULNDB)'; said="the database at $$db"; \
	if [ -z "$$db" ]; then \
		db=https://vuln.go.dev; said="$$db, as of today"; \
		if ! curl -fsS --max-time 20 -o /dev/null $$db/index/db.json; then \
			found=$$($(GO) mod download -json golang.org/x/vulndb@latest) || { printf '%s\n' "$$found" >&2; exit 1; }; \
			dir=$$(printf '%s\n' "$$found" | sed -n 's/^.*"Dir": "\(.*\)",*$$/\1/p'); \
			date=$$(printf '%s\n' "$$found" | sed -n 's/^.*"Version": ".*-\([0-9]\{8\}\)[0-9]*-[0-9a-f]*",*$$/\1/p'); \
			db="file://$$dir/data/osv"; said="$$db, of $$date, because vuln.go.dev does not answer"; \
		fi; \
	fi; \
	echo "asking $$said"; \
	CGO_ENABLED=0 GOTOOLCHAIN=$$(sed -n 's/^toolchain //p' go.mod) \
		$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) -db "$$db" $(VULN_FLAGS) ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## format the code
	$(GOLANGCI_LINT) fmt

# A new version gets a new name, so that a stale one is never used.
$(GOLANGCI_LINT):
	@mkdir -p $(BIN)/install
	CGO_ENABLED=0 GOBIN=$(abspath $(BIN)/install) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(BIN)/install/golangci-lint $@ && rmdir $(BIN)/install

# goreleaser calls syft by its name, so both keep theirs and the versions are in
# the directory's. Building them takes minutes, the first time.
RELEASER := $(BIN)/release-$(GORELEASER_VERSION)-$(SYFT_VERSION)
$(RELEASER):
	@rm -rf $@.making && mkdir -p $@.making
	CGO_ENABLED=0 GOBIN=$(abspath $@.making) $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	CGO_ENABLED=0 GOBIN=$(abspath $@.making) $(GO) install github.com/anchore/syft/cmd/syft@$(SYFT_VERSION)
	@mv $@.making $@

.PHONY: snapshot
snapshot: $(RELEASER) ## build what a release is made of into dist/: archives, packages, checksums, bills of materials
	PATH="$(abspath $(RELEASER)):$$PATH" goreleaser release --snapshot --clean $(SNAPSHOT_FLAGS)

.PHONY: up
up: $(SECRETS)/mysql_dsn ## start gateway, MySQL and Redis with Docker, and wait until they are healthy
	$(COMPOSE) up --build --detach --wait

.PHONY: down
down: $(SECRETS)/mysql_dsn ## stop them; their data stays (SECRETS=data/secrets docker compose down --volumes removes it)
	$(COMPOSE) --profile observe down

# Containers run as users of their own, who must be able to read the files; the
# directory, in which "make run" keeps its own secret, keeps them from everybody
# else on this machine. The DSN comes last: with it all of them are there.
$(SECRETS)/mysql_dsn:
	@mkdir -p -m 700 $(@D) && rm -rf $@.making && mkdir $@.making
	@cd $@.making && for name in mysql_password hs256_secret mac_key; do \
		od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' > $$name; \
	done && \
	printf 'oncegate:%s@tcp(mysql:3306)/oncegate' "$$(cat mysql_password)" > mysql_dsn && \
	chmod 444 *
	@cd $@.making && mv -f mysql_password hs256_secret mac_key .. && mv mysql_dsn ..
	@rmdir $@.making
