# make run    installs everything and shows the demonstration
# make test   installs everything, then lint, types, layering and all tests
# make bench  ratios against the peers

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Left where it is when nothing has changed: a second make installs nothing.
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed

.PHONY: run install test lint types layering tests bench clean

run: install
	$(BIN)/supremum demo

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $@

$(DEVELOPED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

test: lint types layering tests

lint: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEVELOPED)
	$(BIN)/pyright

layering: $(DEVELOPED)
	$(BIN)/lint-imports --no-logo

tests: $(DEVELOPED)
	$(BIN)/python -m pytest --numprocesses=auto

bench: $(DEVELOPED)
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-group-by=group

clean:
	rm -rf $(VENV) out dist .pytest_cache .ruff_cache .hypothesis .benchmarks
