PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DATA := $(or $(EMEA_DATA),$(firstword $(wildcard $(CURDIR)/../shared/data $(CURDIR)/data)))

.PHONY: run test test-wheel test-all ui report bench clean

run: $(STAMP)
	$(BIN)/python run.py

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2

# builds the wheel, installs it into a new environment and uses it from another folder
test-wheel: $(STAMP)
	$(BIN)/python -m pytest -m install tests/test_wheel.py

# slow, data, browser and install tests, too; the end lists what was skipped and why
test-all: $(STAMP)
	$(if $(DATA),EMEA_DATA=$(DATA)) $(BIN)/python -m pytest -n 2 -m "not gpu" -ra \
		--hypothesis-profile=thorough

ui: $(STAMP)
	$(BIN)/emea ui

report: $(STAMP)
	$(BIN)/python -m experiments report

# ratios to former and alternative forms, graphs with hubs, and where the time of a small run goes
bench: $(STAMP)
	$(BIN)/python -m benchmarks

# made once, and again when what it is made from changes
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
