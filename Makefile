PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INTEROP_STAMP := $(VENV)/.installed-interop
BROWSER_STAMP := $(VENV)/.installed-browser
LAUNCHERS_STAMP := $(VENV)/.installed-launchers
DOCS_VENV ?= .venv-docs
DOCS_STAMP := $(DOCS_VENV)/.installed
ALL_STAMP := $(VENV)/.installed-all
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# two processes; one that is done takes tests from the other
PYTEST = $(BIN)/python -m pytest -n 2 --dist worksteal
# data sets that tests may read; empty if there are none
DATA := $(or $(EMEA_DATA),$(firstword $(wildcard $(CURDIR)/../shared/data $(CURDIR)/data)))

RECORD_TESTS = tests/experiments/report tests/experiments/archive tests/results

.PHONY: run test test-slow test-wall test-records test-oldest test-interop test-wheel test-browser test-speed test-all nightly gpu docs ui report bench mutants clean

run: $(STAMP)
	$(BIN)/python run.py

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONDONTWRITEBYTECODE= $(PYTEST)

# what takes long, also with the public data sets if they are there: DATA=FOLDER or EMEA_DATA; the
# walls and the recorded runs are parts of their own
test-slow: $(STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(PYTEST) --durations=15 \
		$(addprefix --ignore=,$(wildcard tests/run/test_wall*.py) $(RECORD_TESTS)) \
		-m "(slow or data) and not (gpu or browser or install or nightly)"

# tests that take too long for each change; run them before a release
nightly: $(STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(PYTEST) --durations=10 -m nightly

# whole runs with true, permuted and deleted test links, for all encoders and methods; then what is
# made of runs: the service and clusters of several graphs
test-wall: $(STAMP)
	$(PYTEST) -m slow tests/run/test_wall.py tests/run/test_wall_of_files.py \
		tests/run/test_wall_of_commands.py tests/run/test_wall_of_values.py \
		tests/run/test_wall_of_ids.py
	$(PYTEST) -m "" tests/serve/test_service.py::test_test_links_change_no_answer \
		tests/cli/test_align_several.py::test_test_links_of_one_pair_do_not_reach_the_clusters

# the recorded runs, and the reports that are made from them
test-records: $(STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(PYTEST) -m "slow or data" $(RECORD_TESTS)

# small runs with the oldest allowed versions of the light dependencies
test-oldest: $(STAMP)
	$(BIN)/python .ci/oldest

# exports, read with sssom-py; without it, the tests are not skipped but fail
test-interop: $(INTEROP_STAMP)
	$(BIN)/python -c "import sssom.parsers"
	$(BIN)/python -m pytest tests/answer/test_interop.py tests/answer/test_schema.py \
		tests/answer/test_alignment.py tests/data/sources/test_library_inputs.py

# builds the wheel, installs it into a new environment and uses it from another folder
test-wheel: $(STAMP)
	$(BIN)/python -m pytest -m install tests/test_wheel.py

# pages in Chromium
test-browser: $(BROWSER_STAMP)
	$(BIN)/python -m pytest -m browser

# slow, nightly, data, browser and install tests, too; the end lists what was skipped and why
test-all: $(ALL_STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(PYTEST) -m "not gpu" -ra \
		--hypothesis-profile=thorough

# on a machine with a GPU, which needs no .venv and neither Hydra nor MLflow: what cannot be
# imported is skipped with a reason
gpu:
	$(or $(wildcard $(BIN)/python),$(PYTHON)) -m pytest -m gpu

# the site of the documentation, in the folder site; it reads the code without importing it, so that
# its environment has only the programs of the site
docs: $(DOCS_STAMP)
	$(DOCS_VENV)/bin/mkdocs build --strict

$(DOCS_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS_VENV)
	$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'], sep='\n')" > $(DOCS_VENV)/requirements.txt
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r $(DOCS_VENV)/requirements.txt
	touch $@

ui: $(STAMP)
	$(BIN)/emea ui

report: $(STAMP)
	$(BIN)/python -m experiments report

# ratios to former and alternative forms, graphs with hubs, and where the time of a small run goes
bench: $(STAMP)
	$(BIN)/python -m benchmarks

# commands and parts of runs as ratios to a floor: fails if one is much slower than recorded
test-speed: $(STAMP)
	$(BIN)/python -m benchmarks floors --check

# small changes of the critical code, which the tests must notice
mutants: $(STAMP)
	$(BIN)/python -m benchmarks mutants

# made once, and again when what it is made from changes
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[test]"
	touch $@

$(INTEROP_STAMP): $(STAMP)
	$(INSTALL) -e ".[interop]"
	touch $@

$(BROWSER_STAMP): $(STAMP)
	$(INSTALL) -e ".[browser]"
	touch $@

$(LAUNCHERS_STAMP): $(STAMP)
	$(INSTALL) -e ".[joblib,slurm,ray,optuna]"
	touch $@

# every launcher and sweeper, and the libraries with which tests read exports
$(ALL_STAMP): $(STAMP)
	$(INSTALL) -e ".[test,docs,joblib,slurm,ray,optuna,parquet,japanese,interop,browser]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache site
