PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INTEROP_STAMP := $(VENV)/.installed-interop
ALL_STAMP := $(VENV)/.installed-all
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DATA := $(or $(EMEA_DATA),$(firstword $(wildcard $(CURDIR)/../shared/data $(CURDIR)/data)))

.PHONY: run test test-wall test-interop test-wheel test-all docs ui report bench mutants clean

run: $(STAMP)
	$(BIN)/python run.py

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2

# whole runs with true, permuted and deleted test links, for all encoders and methods
test-wall: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow tests/run/test_wall.py tests/run/test_wall_of_files.py \
		tests/run/test_wall_of_commands.py

# exports, read with sssom-py; without it, the tests are not skipped but fail
test-interop: $(INTEROP_STAMP)
	$(BIN)/python -c "import sssom.parsers"
	$(BIN)/python -m pytest tests/answer/test_interop.py tests/answer/test_schema.py \
		tests/answer/test_alignment.py tests/data/sources/test_library_inputs.py

# builds the wheel, installs it into a new environment and uses it from another folder
test-wheel: $(STAMP)
	$(BIN)/python -m pytest -m install tests/test_wheel.py

# slow, data, browser and install tests, too; the end lists what was skipped and why
test-all: $(ALL_STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(BIN)/python -m pytest -n 2 -m "not gpu" -ra \
		--hypothesis-profile=thorough

# the site of the documentation, in the folder site
docs: $(STAMP)
	$(INSTALL) -e ".[docs]"
	$(BIN)/mkdocs build --strict

ui: $(STAMP)
	$(BIN)/emea ui

report: $(STAMP)
	$(BIN)/python -m experiments report

# ratios to former and alternative forms, graphs with hubs, and where the time of a small run goes
bench: $(STAMP)
	$(BIN)/python -m benchmarks

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

# every launcher and sweeper, and the libraries with which tests read exports
$(ALL_STAMP): $(STAMP)
	$(INSTALL) -e ".[test,docs,joblib,slurm,ray,optuna,parquet,japanese,interop,browser]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache site
