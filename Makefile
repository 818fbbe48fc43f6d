# What a person or a CI job does with this repository. `make` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# Tests that could not run, a line each.
SKIPPED := $(abspath $(TARGET_DIR))/skipped-tests.txt
HYPERSCOPE := $(TARGET_DIR)/demo/hyperscope
XTASK := $(TARGET_DIR)/debug/xtask
NESTED := fixtures/x86-svm/nested.dat
SESSION := target/demo.hscope
DEMO_PAGE := target/demo.html

.PHONY: help
help:
	@echo 'make demo    build hyperscope, record a KVM host and its guest, and show where the time went'
	@echo 'make test    check format, lints, layers and recordings, and run all tests'
	@echo 'make web     rebuild the pages of hyperscope report and fleet after a change in web/ (needs npm)'
	@echo 'make test-web  test the page in a real browser: numbers, keyboard, dark mode, frame times'
	@echo 'make test-inputs  run the command-line tests on all inputs (make test uses a part of them): 20 minutes'
	@echo 'make test-random  run property tests 20 times on new cases: 30 minutes'
	@echo 'make test-hostile  run all tests with hostile guests, users and files, and with crashes: 1 hour'
	@echo 'make test-lab  run all tests and scenarios of the lab, including nested guests: hours'
	@echo 'make test-lockdep  test the guest module in a kernel with lockdep: 1 hour, mostly to build the kernel'
	@echo 'make test-lab-newer  test guests with a newer kernel than the usual one of the lab: 2 minutes'
	@echo 'make test-lab-aarch64  test an emulated Arm host and its guest: 15 minutes, and 10 minutes to build'
	@echo 'make agent   build the static program that records inside guests'
	@echo 'make labguest  build the program inside machines of the lab, also for other architectures'
	@echo 'make static  build hyperscope and hyperscope-lab as static programs, also for Arm'
	@echo 'make kmod    build the guest kernel module for the kernel of the lab (KERNEL=RELEASE: for another; KERNEL=arm64: for Arm)'
	@echo 'make bpf     rebuild the BPF programs of the host after a change in bpf/ (needs clang)'
	@echo 'make sql     build the program behind hyperscope sql: about 20 minutes on one CPU'
	@echo 'make test-sql  test it'
	@echo 'make lint-sql  run clippy on it: 10 minutes'
	@echo 'make test-cluster  run the same queries on Spark and Trino with several workers each: 30 minutes, 4 GB (TESTS=spark)'
	@echo 'make bless   rewrite the expected outputs of the golden tests'
	@echo 'make deny    check licences, origins and known vulnerabilities of the dependencies'
ifneq ($(wildcard benches/run),)
	@echo 'make bench   measure speed and memory'
endif
ifneq ($(wildcard fuzz/run),)
	@echo 'make fuzz    feed mutated input to every reader (MINUTES=5)'
endif
	@echo 'make clean   remove all build results'

# Records live, in a lab of a KVM host and its guest; where that can't be, looks at a bundled recording. The programs are not
# optimised: that takes more than twice as long to build, and what a demo reads is small.
.PHONY: demo
demo:
	cargo build --profile demo --locked $(addprefix --package ,hyperscope hyperscope-lab hyperscope-labguest hyperscope-agent)
	@rm -rf $(SESSION)
	@if [ '$(DEMO)' = bundled ]; then $(MAKE) --no-print-directory demo-bundled; \
	elif $(HYPERSCOPE) lab run exits -o $(SESSION); then $(MAKE) --no-print-directory demo-live; \
	else echo 'Nothing can be recorded here (see above): the demo uses the bundled recording of nested guests instead.'; \
		rm -rf $(SESSION); $(MAKE) --no-print-directory demo-bundled; fi
	@$(HYPERSCOPE) report $(SESSION) -o $(DEMO_PAGE)
	@echo
	@echo 'The whole recording as one page for a browser: $(DEMO_PAGE)'
	@echo
	@echo 'Where to go next:'
	@echo '  cargo install --locked --path crates/cli      install the optimised program: the demo used a fast, unoptimised build'
	@echo '  cargo install --locked --path crates/lab_cli  install the lab; crates/fleet_cli: lakes and SQL'
	@echo '  sudo $(HYPERSCOPE) record --for 10s  record this host'
	@echo '  $(HYPERSCOPE) exits YOUR.dat         read a recording of trace-cmd record -e kvm -e sched -e irq'
	@echo '  $(HYPERSCOPE) lab run nested -o out  record a nested guest: 1 minute'
	@echo '  $(HYPERSCOPE) --help                 list all verbs'
	@echo '  README.md                                     read the introduction; fixtures/README.md: recordings'
	@echo 'session: $(SESSION)'

.PHONY: demo-live
demo-live:
	@for verb in info exits 'exits --by cpuid_leaf,hypercall,msr,port --top 6'; do \
		echo; echo "$$ hyperscope $$verb $(SESSION)"; $(HYPERSCOPE) $$verb $(SESSION); \
	done
	@echo; echo "$$ hyperscope nested $(NESTED)"; $(HYPERSCOPE) nested $(NESTED)
	@echo
	@echo 'A KVM host and its guest ran just now, and Hyperscope found every exit that the guest program made. The last table'
	@echo 'comes from a bundled recording: one exit of a nested guest costs the host ten exits.'

.PHONY: demo-bundled
demo-bundled:
	@mkdir -p $(SESSION)
	@cp $(NESTED) $(SESSION)/host.dat
	@cp docs/formats/demo-session.json $(SESSION)/session.json
	@for verb in info exits nested; do \
		echo; echo "$$ hyperscope $$verb $(SESSION)"; $(HYPERSCOPE) $$verb $(SESSION); \
	done
	@echo
	@echo 'This host has a guest with a nested guest: "exits" shows the time of all exits, "nested" that one exit of the'
	@echo 'nested guest costs the host ten exits.'

# Clippy takes the compiler's place, as it does for cargo clippy, but in the build that is run: the code is read once for both.
xtask test: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
xtask test: export CLIPPY_ARGS := -Dwarnings
# The same for a single command, which then builds nothing that `make test` has built. A test program is named, as tests
# have features of third-party crates which programs alone have not.
AS_TESTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings

# As part of the whole workspace: for one package cargo picks other features of third-party crates and compiles them again.
.PHONY: xtask
xtask:
	cargo build --locked --quiet --workspace --bin xtask

# The order is from what fails fast to what takes long; the tests come last, and after them those that could not run here.
.PHONY: test
test: tools xtask
	@mkdir -p $(TARGET_DIR) && rm -f $(SKIPPED)
	cargo fmt --all --check
	$(XTASK) layers
	$(XTASK) fixtures
	$(XTASK) page
	$(XTASK) bpf
	$(XTASK) limits
	$(XTASK) promises
	$(XTASK) map
	.ci/deny offline
	@$(MAKE) --no-print-directory test-page
	HYPERSCOPE_SKIPPED=$(SKIPPED) $(XTASK) tests
	@touch $(SKIPPED); sort -u $(SKIPPED) | sed 's/^/skipped: /'; \
		echo "$$(sort -u $(SKIPPED) | wc -l) tests were skipped here, all others passed"

# The pages of hyperscope report and fleet. web/dist is kept in the repository, so that building
# hyperscope needs no npm.
NPM_CI := npm ci --prefix web --no-audit --no-fund --loglevel error

.PHONY: web
web: xtask
	$(NPM_CI)
	npm run --prefix web build
	$(XTASK) page

# Its functions; where npm or the packages can't be had they are left out: nothing else needs them.
.PHONY: test-page
test-page:
	@if ! command -v npm >/dev/null; then echo 'tests of the page: npm is missing' | tee -a $(SKIPPED); \
	elif ! $(NPM_CI) >/dev/null; then echo 'tests of the page: npm cannot find its packages' | tee -a $(SKIPPED); \
	else npm run --prefix web check && npm run --prefix web test; fi

# What answers hyperscope sql: a workspace of its own, for its query engine takes longer to build than all else.
SQL := sql/target/release/hyperscope-sql

.PHONY: sql
sql:
	cargo build --release --locked --package hyperscope --package hyperscope-fleet
	cargo build --release --manifest-path sql/Cargo.toml --target-dir sql/target
	@strip -o $(TARGET_DIR)/release/hyperscope-sql $(SQL) 2>/dev/null || cp $(SQL) $(TARGET_DIR)/release/hyperscope-sql
	@ls -l $(TARGET_DIR)/release/hyperscope-sql

# Of the same profile, so that the engine is compiled once. Versions are those of the lock file, which also names what crates of
# the main workspace use: that changes with them.
.PHONY: test-sql
test-sql: xtask
	$(AS_TESTED) cargo test --locked --workspace --test cli --test program --no-run
	cargo fmt --manifest-path sql/Cargo.toml --check
	HYPERSCOPE=$(abspath $(TARGET_DIR))/debug/hyperscope cargo test --release --manifest-path sql/Cargo.toml --target-dir sql/target
	$(XTASK) sql-inputs --write

# In CI: they take longer than all other tests together.
.PHONY: test-sql-if-changed
test-sql-if-changed: xtask
	@$(XTASK) sql-inputs || $(MAKE) --no-print-directory test-sql

# The query engine is checked for it once more, which takes some ten minutes of two CPUs: not with the tests.
.PHONY: lint-sql
lint-sql:
	cargo clippy --locked --manifest-path sql/Cargo.toml --target-dir sql/target --all-targets -- -D warnings

# The same questions on Spark and Trino, each with two workers on this machine; they are installed into the build folder.
.PHONY: test-cluster
test-cluster:
	cargo build --locked --package hyperscope --package hyperscope-fleet
	HYPERSCOPE=$(abspath $(TARGET_DIR))/debug/hyperscope sql/cluster/run $(TESTS)

# In a real browser. Only root can install it; without it the pages are not opened.
.PHONY: test-web
test-web: test-page
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		(apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium) >/dev/null || true; \
	fi
	cargo build --release --locked --package hyperscope --package hyperscope-fleet
	npm run --prefix web e2e

# What make test runs a sample of: mutated files, crashes at every system call, hostile peers.
.PHONY: test-hostile
test-hostile: tools
	HYPERSCOPE_DAMAGE_ROUNDS=8 cargo test --locked --workspace --test damaged_recordings
	HYPERSCOPE_HOSTILE_ALL=1 cargo test --locked --workspace --test hostile -- --nocapture

# All recordings, damages and verbs, where `make test` takes some for each test.
.PHONY: test-inputs
test-inputs: tools
	HYPERSCOPE_ALL_INPUTS=1 cargo test --locked --workspace --test cli

# Property tests on new cases in each round; one that fails prints its case. The programs are those in which
# `grep -l proptest!` finds some.
ROUNDS := 20
PROPERTY_TESTS := --lib $(addprefix --test ,analyses eventfmt module_memory packed rings testkit timeline wire written_pages)
.PHONY: test-random
test-random: tools
	for round in $$(seq $(ROUNDS)); do cargo test --locked --quiet --workspace $(PROPERTY_TESTS) || exit 1; done

# Hours of nested kernels: all scenarios of the lab, guests recorded over every channel and through faults, every test.
.PHONY: test-lab
test-lab:
	@for package in prometheus prometheus-alertmanager; do \
		if ! command -v $$package >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			(apt-get update -qq && apt-get install -y -qq --no-install-recommends $$package) >/dev/null || true; \
		fi; \
	done
	HYPERSCOPE_LAB_ALL=1 cargo test --locked --package hyperscope --test lab -- --nocapture --test-threads 1

# Programs that tests compare against. Only root can install them; without them tests are skipped.
.PHONY: tools
tools:
	@for tool in trace-cmd babeltrace2 debuginfod; do \
		if ! command -v $$tool >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			(apt-get update -qq && apt-get install -y -qq --no-install-recommends $$tool) >/dev/null || true; \
		fi; \
		command -v $$tool >/dev/null \
			|| echo "$$tool is missing: tests that compare with it are skipped (apt-get install $$tool)"; \
	done
	@command -v cc >/dev/null || { echo 'a C compiler is missing: apt-get install gcc libc6-dev'; exit 1; }

# Programs that run inside guests, static, for each architecture that can be built for here.
STATIC := x86_64 aarch64
static = for arch in $(2); do \
		target=$$arch-unknown-linux-musl; \
		if [ -d "$$(rustc --print target-libdir --target $$target)" ] || RUST_BACKTRACE=0 rustup target add $$target; then \
			:; \
		elif sysroot=$$(std/build $$target); then \
			export "CARGO_TARGET_$$(tr a-z- A-Z_ <<<$$target)_RUSTFLAGS=--sysroot=$$sysroot"; \
		else \
			echo "$(1) for $$arch is skipped: neither rustup nor Debian packages provide the target $$target"; continue; \
		fi; \
		cargo build --locked --profile labguest --package $(1) $(3) --target $$target; \
	done

# The lab samples it: its functions keep their names, and it has a build id by which those are found.
SAMPLED = --config 'profile.labguest.strip="debuginfo"' --config "target.$$target.rustflags=['-Clink-arg=--build-id']"

.PHONY: labguest
labguest:
	@$(call static,hyperscope-labguest,$(STATIC),$(SAMPLED))

# TLS has parts in C: what no compiler is found for is built without. The compiler of this machine's
# own architecture will do for it, with another C library.
X86_CC = $(shell command -v musl-gcc || { [ "$$(uname -m)" = x86_64 ] && command -v gcc; })
ARM_CC = $(shell command -v aarch64-linux-gnu-gcc || { [ "$$(uname -m)" = aarch64 ] && command -v gcc; })

.PHONY: agent
agent: export CC_x86_64_unknown_linux_musl ?= $(X86_CC)
agent: export CC_aarch64_unknown_linux_musl ?= $(ARM_CC)
agent:
	@$(call static,hyperscope-agent $$([ -n "$$(eval echo \$$CC_$${arch}_unknown_linux_musl)" ] || echo --no-default-features),$(STATIC))
	@ls -l $(TARGET_DIR)/*-unknown-linux-musl/labguest/hyperscope-agent

# Hyperscope itself and its experiments, for machines of the lab that have no C library, or another architecture. Parts of
# them are in C: they are left out where no compiler is found for these.
.PHONY: static
static: export CC_x86_64_unknown_linux_musl ?= $(X86_CC)
static: export CC_aarch64_unknown_linux_musl ?= $(ARM_CC)
static: with_compiler = $(foreach arch,$(STATIC),$(if $(CC_$(arch)_unknown_linux_musl),$(arch)))
static:
	@$(foreach arch,$(filter-out $(with_compiler),$(STATIC)),echo 'hyperscope for $(arch) is skipped: no C compiler for it was found';)
	@$(call static,hyperscope,$(with_compiler))
	@$(call static,hyperscope-lab,$(with_compiler))

# The module by which guests send events to their hosts, for the lab's kernel; its headers are fetched.
.PHONY: kmod
kmod:
	@kmod/build $(KERNEL)

# The programs in a host's kernel. They are kept in the repository,
# so that building hyperscope needs no clang.
.PHONY: bpf
bpf: xtask
	@bpf/build
	$(XTASK) bpf

# The guest's module under load in a kernel that finds faults in locking, which is built first.
.PHONY: test-lockdep
test-lockdep:
	HYPERSCOPE_LAB_ALL=1 HYPERSCOPE_LAB_MODULES="$$(kmod/lockdep)" cargo test --locked --package hyperscope --test lab -- --nocapture --test-threads 1 comes_and_goes

# What guests record where their kernel is newer than the lab's: one of Debian's backports.
.PHONY: test-lab-newer
test-lab-newer:
	HYPERSCOPE_LAB_ALL=1 HYPERSCOPE_LAB_MODULES="$$(kmod/newer)" cargo test --locked --package hyperscope --test lab -- --nocapture --test-threads 1 what_a_disk_wrote

# Arm machines in the emulator; what needs a program that can't be built for them is skipped.
.PHONY: test-lab-aarch64
test-lab-aarch64:
	@if [ -z "$(ARM_CC)" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		(apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross) >/dev/null || true; \
	fi
	@$(MAKE) --no-print-directory labguest agent static STATIC=aarch64
	HYPERSCOPE_LAB_AARCH64=1 cargo test --locked --package hyperscope --test lab -- --nocapture --test-threads 1 aarch64

.PHONY: bless
bless:
	HYPERSCOPE_BLESS=1 cargo test --locked --workspace
	@echo 'Review these changes before you commit them:'; git diff --stat

.PHONY: deny
deny:
	.ci/deny

ifneq ($(wildcard benches/run),)
.PHONY: bench
bench:
	benches/run
endif

ifneq ($(wildcard fuzz/run),)
.PHONY: fuzz
fuzz:
	fuzz/run
endif

.PHONY: clean
clean:
	cargo clean
