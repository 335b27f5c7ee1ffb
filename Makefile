# The few commands that everybody needs. `make help` lists them.
#
#   make run ARGS="--in-memory"     options of `orrery serve` go into ARGS
#   make test                       everything that CI checks

# Steps share the cores and the target folder; side by side they would only wait for each other.
.NOTPARALLEL:

.DEFAULT_GOAL := help
.PHONY: help run build release explorer test check tidy unit unit-beside-build build-target packages sdk browser conformance-quick conformance \
        bench tools-build tools-test tools-bench

# The SDK scenarios and the outside suites run against one binary: the one that users run.
ORRERY_BIN := $(CURDIR)/target/release/orrery
export ORRERY_BIN

# How it is built.
BUILD := cargo build --release --locked --package orrery

# Where the system's Node or Go is too old, .ci/tools puts a newer one here.
export PATH := $(CURDIR)/.cache/node/node_modules/.bin:$(CURDIR)/.cache/go/bin:$(PATH)

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build the server and run it
	exec $(ORRERY_BIN) serve $(ARGS)

build: tools-build explorer ## Build the server that users run
	@echo "make: building target/release/orrery; crates come from crates.io on the first run"
	$(BUILD)

test: tools-test explorer check unit-beside-build build packages sdk browser conformance-quick ## Check everything that CI checks
	@echo "make: all checks passed"

# `make release TARGET=x86_64-unknown-linux-musl` makes a static one; `make release BINARY=… OUT=…` packs another binary than the
# one that it builds.
OUT ?= target/packages
PACKED := $(or $(BINARY),$(if $(TARGET),$(CURDIR)/target/$(TARGET)/release/orrery,$(ORRERY_BIN)))
release: $(if $(BINARY),,$(if $(TARGET),build-target,build)) ## Pack the server: an archive and a Debian package, with checksums
	@test -n "$(BINARY)" -o -f explorer/dist/index.html || { echo "make: a release has the explorer; install Node 20 with npm" >&2; exit 2; }
	packaging/archive.sh $(PACKED) $(OUT)
	packaging/deb.sh $(PACKED) $(OUT)

build-target: tools-build explorer
	packaging/cross.sh $(TARGET)

explorer: ## Build the explorer's page where Node is installed
	@explorer/build.sh

check: tools-build ## Check format, lints and the rules of the house
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	explorer/check.sh

tidy: tools-build ## Check the rules of the house only
	cargo xtask tidy

unit: tools-build ## Run the Rust tests, those with a real server included
	tests/unit.sh

# The same, while the compiler is already at the server that the steps after it need.
unit-beside-build: tools-build explorer
	BESIDE="$(BUILD)" tests/unit.sh

sdk: tools-test build ## Run a scenario with each official SDK
	tests/sdk/run.sh

packages: tools-test build ## Pack the server, and run what was packed
	tests/packages/run.sh

browser: tools-test build ## Open our pages in a real browser
	tests/browser/run.sh

conformance-quick: tools-test build ## Run the part of the outside suites that fits into CI
	conformance/run.sh quick

conformance: tools-test build ## Run the outside suites whole and print a table
	conformance/run.sh full

# `make bench ARGS="--before BINARY --only start,reads,creates,queries"` holds this build against another one.
bench: tools-bench build ## Measure this machine and print ratios
	cargo run --release --locked --package orrery-bench -- $(ARGS)

# What must be on the machine. Missing Debian packages are installed, and named, where that is allowed.
tools-build:
	@.ci/tools build

tools-test:
	@.ci/tools test

tools-bench:
	@.ci/tools bench || echo "make: going on without a peer; the lines that need it will say so"
