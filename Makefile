# make test    all tests: doc tests, examples, the Python package, tests, transcripts
# make test-browser  tests of reports and of the live page in Chromium, which is installed where it may be
# make test-mpi  tests over several processes; an MPI library and libclang are installed where they may be
# make python  build the Python package in its own environment, target/python, and test it
# make check   formatting, lints and documentation without warnings, then make test
# make bench   benchmarks of kernels and whole updates on this machine
# make bench-peers   comparison with other programs, by benchmarks/run.py ARGS="…"
# make instructions  record the number of instructions per update
# make settings      write the settings page of the book from the declarations
# make fuzz    100,000 damaged inputs for everything that is read
# make fuzz-coverage  coverage-guided fuzzing of everything that is read, EACH=60 seconds each
# make deny    licences, sources and known vulnerabilities of all dependencies
# make doc     the API documentation, in target/doc
# make package       the crates as they are published, and what the registry says to them, without publishing
# make wheels        the Python wheels that this machine can build, and the source distribution, checked, in target/wheels
# make wheels-test   the wheel of this machine in a fresh environment without Rust
# make site          the documentation site, in target/site: book, Rust API, Python API, notebooks

CARGO ?= cargo
# One selection of packages and features for all builds, so that nothing is built twice. Without mpi, which needs an MPI library
# and libclang: test-mpi builds and tests that.
FEATURES := lpgnn/fetch
ALL := --workspace --features $(FEATURES) --locked
TARGET := $(or $(CARGO_TARGET_DIR),target)
EXAMPLES := $(basename $(notdir $(wildcard crates/lpgnn/examples/*.rs)))
# cargo-nextest runs the tests of all binaries side by side; cargo alone does without.
NEXTEST := $(shell $(CARGO) nextest --version 2>/dev/null)
ifdef NEXTEST
RUN_TESTS := $(CARGO) nextest run $(ALL)
else
RUN_TESTS := $(CARGO) test $(ALL) --lib --bins --tests
endif

.PHONY: test prepare build environment test-browser browser-if-there test-mpi mpi-if-there check lint doc doctest examples python bench bench-peers instructions settings fuzz fuzz-coverage deny setup package wheels wheels-test release-tools site
.DEFAULT_GOAL := test

# The tests come last, so that their summary, and what was skipped, is the last thing to be read.
SKIPPED := $(abspath $(TARGET))/skipped.txt
test: prepare doctest examples python browser-if-there
	@rm -f "$(SKIPPED)"
	LPGNN_SKIPPED="$(SKIPPED)" $(RUN_TESTS)
	@if [ -s "$(SKIPPED)" ]; then sort -u -k2,2 "$(SKIPPED)"; echo "$$(sort -u -k2,2 "$(SKIPPED)" | wc -l) tests were skipped, in whole or in part, as listed above"; fi

# Downloads go on while the compiler works.
prepare: setup
	@$(MAKE) --no-print-directory -j2 build environment

# Everything in one go, which keeps all cores busy.
build: setup
	$(CARGO) build $(ALL) --lib --bins --examples --tests

# The same build of the program as the other tests use.
BROWSER := crates/lpgnn-cli/tests/browser/run.sh "$(abspath $(TARGET))/debug/lpgnn" "$(abspath $(TARGET))/browser"
test-browser: build
	$(BROWSER)

browser-if-there: build
	$(BROWSER) --if-there

MPI := crates/lpgnn-cli/tests/mpi/run.sh "$(CARGO)"
test-mpi: setup
	$(MPI)

mpi-if-there: setup
	$(MPI) --if-there

check: lint doc test

doctest: setup
	$(CARGO) test $(ALL) --doc --quiet

examples: build
	@set -e; for example in $(EXAMPLES); do echo "example $$example"; "$(TARGET)/debug/examples/$$example"; done

# The library is compiled once for all tests, so the extension is built with the workspace, and Python finds it where its source is.
PYTHON ?= python3
ENVIRONMENT := $(abspath $(TARGET))/python
BINDINGS := crates/lpgnn-python
EXTENSION := $(if $(filter Darwin,$(shell uname)),lib_native.dylib,lib_native.so)
python: build environment
	cp "$(TARGET)/debug/$(EXTENSION)" $(BINDINGS)/python/lpgnn/_native.abi3.so
	$(ENVIRONMENT)/bin/python -m pytest -q -rs $(BINDINGS)

# What the package and its tests need, in an environment of its own.
WANTED := import importlib, sys; toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "pip._vendor.tomli"); p = toml.load(open("$(BINDINGS)/pyproject.toml", "rb"))["project"]; \
	print(*p["dependencies"], *p["optional-dependencies"]["test"], sep="\n")
environment: $(ENVIRONMENT)/ready
$(ENVIRONMENT)/ready: $(BINDINGS)/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is not here or older than 3.10: install Python, or tell make where it is by PYTHON=" >&2; exit 1; }
	@test -x $(ENVIRONMENT)/bin/python || $(PYTHON) -m venv $(ENVIRONMENT)
	$(ENVIRONMENT)/bin/python -c '$(WANTED)' > $(ENVIRONMENT)/wanted.txt
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check -r $(ENVIRONMENT)/wanted.txt
	echo "$(abspath $(BINDINGS))/python" > "$$($(ENVIRONMENT)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lpgnn.pth"
	touch $@

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml

doc: setup
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps

bench: setup
	$(CARGO) bench $(ALL) --bench kernels
	$(CARGO) bench $(ALL) --bench update -- --bound
	$(CARGO) bench $(ALL) --bench update -- --bound --tanh
	$(CARGO) bench $(ALL) --bench update -- --every --seconds 1 a b
	$(CARGO) bench $(ALL) --bench read_tu

# For instance: make bench-peers ARGS="--quick", or ARGS="program --data ~/datasets"
bench-peers: setup
	python3 benchmarks/run.py $(ARGS)

instructions: setup
	LPGNN_INSTRUCTIONS=record $(CARGO) test $(ALL) --test suite -- --nocapture instructions::
	LPGNN_INSTRUCTIONS=record $(CARGO) test $(ALL) --release --test suite -- --nocapture instructions::

settings: setup
	LPGNN_SETTINGS=record $(CARGO) test $(ALL) --test suite -- settings::

fuzz: setup
	LPGNN_FUZZ=100000 $(CARGO) test --release --locked -p lpgnn --test suite -- --nocapture fuzz::

# cargo-fuzz asks for options of the compiler that stable has as well, if told so.
# For instance: make fuzz-coverage EACH=600 TARGETS="model tables"
EACH ?= 60
TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz-coverage: setup
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is not here: run cargo install --locked cargo-fuzz, and make again" >&2; exit 1; }
	LPGNN_CORPUS="$(CURDIR)/fuzz/corpus" $(CARGO) test --locked -p lpgnn --test suite -- --quiet fuzz::
	@set -e; for target in $(TARGETS); do echo "fuzzing $$target for $(EACH) seconds"; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target -- -max_total_time=$(EACH) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1; done

# The RustSec database of advisories is fetched; ADVISORIES=FOLDER takes a clone of it instead, with a branch main, where it cannot be.
# What is ignored, and why, stands in deny.toml alone.
ADVISORIES ?=
RUSTSEC := https://github.com/RustSec/advisory-db
DENY_FROM := $(if $(ADVISORIES),GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$(abspath $(ADVISORIES)).insteadOf" GIT_CONFIG_VALUE_0=$(RUSTSEC))
AUDIT_FROM := $(if $(ADVISORIES),--db "$(ADVISORIES)" --no-fetch --stale)
IGNORED = $(shell sed -n 's/.*id = "\(RUSTSEC-[0-9-]*\)".*/--ignore \1/p' deny.toml)
UNFETCHED := { echo "a known vulnerability was found, or the database of advisories could not be fetched: see above" >&2; exit 1; }
deny: setup
	@for tool in deny audit; do $(CARGO) $$tool --version >/dev/null 2>&1 || { echo "cargo-$$tool is not here: run cargo install --locked cargo-$$tool, and make again" >&2; exit 1; }; done
	$(CARGO) deny --all-features check bans licenses sources
	$(CARGO) deny --manifest-path fuzz/Cargo.toml --config deny.toml --all-features check bans licenses sources
	$(DENY_FROM) $(CARGO) deny --all-features check advisories || $(UNFETCHED)
	$(DENY_FROM) $(CARGO) deny --manifest-path fuzz/Cargo.toml --config deny.toml --all-features check advisories || $(UNFETCHED)
	$(CARGO) audit $(AUDIT_FROM) --deny warnings $(IGNORED) || $(UNFETCHED)
	$(CARGO) audit $(AUDIT_FROM) --deny warnings $(IGNORED) --file fuzz/Cargo.lock || $(UNFETCHED)

# Every crate is built from its package alone. lpgnn-python is published as wheels.
CRATES := --workspace --exclude lpgnn-python --locked
package: setup
	$(CARGO) package $(CRATES) $(PACKAGE)
	$(CARGO) publish --dry-run --no-verify $(CRATES) $(PACKAGE)

# zig links for other processors, and against a glibc as old as wheels promise. For instance: make wheels WHEELS=x86_64-unknown-linux-gnu
RELEASE := $(abspath $(TARGET))/release-tools
release-tools:
	@test -x $(RELEASE)/bin/abi3audit || { $(PYTHON) -m venv $(RELEASE) && $(RELEASE)/bin/pip install --quiet -r release/requirements.txt; }

wheels: setup release-tools
	$(RELEASE)/bin/python release/wheels.py --out $(TARGET)/wheels $(WHEELS)

wheels-test:
	sh release/test-wheel.sh "$(TARGET)/wheels" "$(abspath $(TARGET))/wheels-test" "$(PYTHON)"

# The Python package has to be there: its documentation and the notebooks come from it.
MDBOOK := $(abspath $(TARGET))/tools/bin/mdbook
site: python
	@test -x $(MDBOOK) || $(CARGO) install mdbook --version 0.5.4 --locked --quiet --no-default-features --features search --root $(TARGET)/tools
	@test -x $(ENVIRONMENT)/bin/pdoc || $(ENVIRONMENT)/bin/pip install --quiet -r release/site-requirements.txt
	$(CARGO) doc $(ALL) --no-deps
	MDBOOK="$(MDBOOK)" $(ENVIRONMENT)/bin/python release/site.py --doc $(TARGET)/doc --out $(TARGET)/site

setup:
	@command -v $(CARGO) >/dev/null || { echo "cargo is not here: install Rust (https://rustup.rs), and run make again" >&2; exit 1; }
