# Bootstraps from Python >= 3.11 with venv, make and git; `make help` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PATH_UV := $(shell command -v uv 2>/dev/null)
UV     := $(if $(PATH_UV),$(PATH_UV),$(BIN)/uv)
READY  := $(VENV)/.ready
NOT_INSTALLED := Packages could not be installed: is the network there? Why: $(VENV)/install.log; \
	again: make install
# Tests wait for disks, sockets and processes at times, so one more runs than there are cores. With two more
# they take as long and a tenth more CPU: each worker collects all tests, and makes what its tests share.
TEST_WORKERS ?= $(shell expr 1 + $$(nproc))
# With COVERAGE=1 the tests measure what they reach, in the processes they start as well. Of the slow
# tests those of whole pages alone are measured, which saves time: with those of tests/unit it was 98 %.
COVERAGE ?=
export COVERAGE_FILE := $(CURDIR)/.coverage
# A process that may not keep what it compiled takes three times as long to start.
unexport PYTHONDONTWRITEBYTECODE
# Each worker begins with its share of the files, so that what a file's tests share is made once.
WORKERS := -n $(TEST_WORKERS) --dist worksteal
QUICK  := -m "not slow" --hypothesis-profile quick
REST   := -m slow --hypothesis-profile short --timeout 1800
TESTS  := -m pytest $(WORKERS) --durations 20
PYTEST := $(BIN)/python $(if $(COVERAGE),-m coverage run) $(TESTS)

.DEFAULT_GOAL := help
.PHONY: help install demo check test quick test-rest test-all coverage laws kill-loop soak adversary \
	docs links docs-adversary install-judges judges install-jupyter install-bench notebooks pictures lint \
	format calibration bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY) ## an environment in .venv with exactly what requirements.lock names

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 install"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@{ test -n "$(PATH_UV)" || test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv; } \
		2> $(VENV)/install.log && \
		$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock \
		2> $(VENV)/install.log || { echo "$(NOT_INSTALLED)"; exit 1; }
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## start the local service, load a simulated market, open the dashboard
	@$(BIN)/rail demo || test $$? -eq 130

check: lint ## lint, types, and tests of what differs from main; or of one: make check PACKAGE=store
	@$(BIN)/python tests/tested_by.py $(PACKAGE) | tr '\n' '\0' | \
		xargs -0 $(BIN)/python -m pytest -q $(WORKERS) $(QUICK)

test: $(READY) ## lint, types, doctests, and all tests but the slow ones
	@$(MAKE) --no-print-directory --jobs 2 lint quick

quick: $(READY)
	$(PYTEST) $(QUICK)

test-rest: $(READY) ## what `make test` leaves out: slow tests and laws, browser, judges
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory install-judges; fi
	@$(MAKE) --no-print-directory install-jupyter
ifdef COVERAGE
	$(PYTEST) tests/unit/dashboard $(REST)
	$(BIN)/python $(TESTS) --ignore tests/unit/dashboard $(REST)
else
	$(PYTEST) $(REST)
endif

test-all: $(READY) ## every test, and how much of the toolkit they reach
	$(BIN)/python -m coverage erase
	$(MAKE) test COVERAGE=1
	$(MAKE) test-rest COVERAGE=1
	$(MAKE) coverage

coverage: $(READY) ## what tests run with COVERAGE=1 reached: lines and branches, >= 95 %
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

laws: $(READY) ## every law with all its examples
	$(BIN)/python -m pytest $(WORKERS) -m hypothesis --timeout 3000

kill-loop: $(READY) ## kill -9 at 50 random moments, a full disk at 20, Ctrl-C the demo at 15; stores stay whole
	RAIL_KILLS=50 $(BIN)/python -m pytest tests/journeys/test_kill.py tests/journeys/test_kill_store.py \
		tests/journeys/test_kill_events.py tests/journeys/test_alerts.py tests/journeys/test_disk_full.py \
		tests/journeys/test_demo.py tests/unit/test_ending.py tests/exchanges/test_kill.py --timeout 3000
	RAIL_KILLS=50 $(BIN)/python -m pytest tests/journeys/test_follow.py -k killed --timeout 3000

soak: $(READY) ## 20 captures, weeks of follow, 20 seeds of events, 100,000 deliveries under fault; pages left open; all users of one store; a cluster of 20 M rows
	RAIL_SEEDS=20 $(BIN)/python -m pytest tests/journeys/test_follow.py --timeout 3000
	RAIL_FOLLOW_DAYS=45 RAIL_POLLED_HOURS=168 $(BIN)/python -m pytest \
		tests/journeys/test_follow_weeks.py --timeout 3000 -s
	RAIL_SEEDS=20 $(BIN)/python -m pytest tests/unit/service/events/test_recovery.py --timeout 3000
	RAIL_DELIVERIES=100000 $(BIN)/python -m pytest tests/journeys/test_webhooks.py --timeout 6000
	RAIL_CLUSTER_ROWS=20000000 $(BIN)/python -m pytest tests/unit/cluster/test_dask.py -k killed_and \
		--timeout 3000
	RAIL_EVERY_MONTH=1 $(BIN)/python -m pytest tests/unit/statistics/test_common_hours.py
	RAIL_PLACEBOS=3000 $(BIN)/python -m pytest tests/unit/statistics/test_event_placebo.py \
		tests/unit/statistics/test_event_cooccurrence.py --timeout 3000
	RAIL_FLOOD_S=10 $(BIN)/python -m pytest tests/unit/loader/test_flood.py \
		tests/unit/client/test_many_values.py
	RAIL_WATCHED_S=600 $(BIN)/python -m pytest tests/browser/test_soak.py --timeout 3000 \
		--log-cli-level INFO --log-disable httpx
	RAIL_TOGETHER_S=150 $(BIN)/python -m pytest tests/journeys/test_together.py --timeout 3000 \
		--log-cli-level INFO --log-disable httpx

adversary: $(READY) ## the client against the full adversary matrix; holds the table in the docs to it
	RAIL_ADVERSARY=full $(BIN)/python -m pytest tests/laws/test_adversary_matrix.py tests/laws/test_adversary_streams.py -q

docs: $(READY) ## write the pages of docs/ that come from the code, and build the site of all into docs/_build
	$(BIN)/python -m tests.docs.store_page
	$(BIN)/python -m tests.docs.limits_table
	$(BIN)/python -m tests.docs.exchanges_table
	$(BIN)/python -m tests.docs.capacity_page
	$(BIN)/python -m tests.docs.series_stub
	$(BIN)/python -m tests.docs.statistics_page
	$(BIN)/python -m tests.docs.questions_page
	$(BIN)/python -m tests.docs.assistant_page
	$(BIN)/python -m tests.unit.service.market.simulator.stylised_page
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build
	@echo "The site: docs/_build/index.html"

links: $(READY) ## whether the links of the site to other places lead somewhere; needs the network
	$(BIN)/python -m sphinx -b linkcheck -q docs docs/_build/links

docs-adversary: $(READY) ## the same, and writes the table of docs/adversary.md
	RAIL_ADVERSARY=write $(BIN)/python -m pytest tests/laws/test_adversary_matrix.py tests/laws/test_adversary_streams.py -q

install-judges:
	@$(MAKE) --no-print-directory .judges/.ready \
		|| echo "npm could not install the judges of MCP: they are skipped"

.judges/.ready: tests/judges/package.json tests/judges/package-lock.json tests/judges/.npmrc
	mkdir -p .judges && cp $^ .judges
	npm ci --prefix .judges
	@touch $@

judges: $(READY) install-judges ## outside judges of MCP and sockets (they need npm) and of OpenAPI
	$(BIN)/python -m pytest tests/judges

install-jupyter: $(READY)
	@{ test -x .jupyter/bin/jupyter-lab || $(UV) venv --quiet --clear --python $(BIN)/python .jupyter; } && \
		$(UV) pip sync --quiet --python .jupyter/bin/python --require-hashes tests/browser/jupyter.lock \
		|| echo "Jupyter could not be installed: the tests in one's own Jupyter are skipped"

notebooks: $(READY) ## run the notebooks and keep their outputs, figures as pictures
	$(BIN)/python -m tests.docs.notebooks

pictures: $(READY) ## take README's pictures anew, of the dashboard over the simulated market
	RAIL_PICTURES=1 $(BIN)/python -m pytest tests/browser/test_pictures.py -k picture_is_taken

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

calibration: $(READY) ## how often each interval holds the truth, 2,000 runs a process; writes docs/calibration.md
	$(BIN)/python -m tests.calibration.page

install-bench: $(READY)
	@{ test -x .bench/bin/python || $(UV) venv --quiet --clear --python $(BIN)/python .bench; } && \
		$(UV) pip sync --quiet --python .bench/bin/python --require-hashes benchmarks/peers.lock \
		|| echo "The loader's peers could not be installed: they are left out"

bench: $(READY) install-bench ## ratios against peers, measured side by side in one run
	$(BIN)/python -m benchmarks

lock: $(READY) ## resolve the dependencies anew into requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
		--python-version 3.11 --custom-compile-command "make lock" \
		--extra all --group dev pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
		--python-version 3.11 --custom-compile-command "make lock" \
		--group jupyter -o tests/browser/jupyter.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
		--python-version 3.11 --custom-compile-command "make lock" \
		--group bench -o benchmarks/peers.lock

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) .judges .jupyter .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* dist
