# Each target makes .venv and installs into it when that is needed. Nothing but Python 3.11+ and make is assumed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
DEMO ?= .demo

.PHONY: demo test test-long check bench docs catalogue clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,web]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/trainflow demo $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

test-long: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m 'long or not long'

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python scripts/screenshots.py
	$(BIN)/python scripts/reference.py

catalogue: $(STAMP)
	$(BIN)/python scripts/catalogue.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis $(DEMO)
