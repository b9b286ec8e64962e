# make run    installs everything and shows the demonstration
# make test   installs everything, then lint, types, layering and all tests
# make torch  adds PyTorch, whose rules the tests then compare with it live
# make browser  adds Chromium (Debian's), in which the tests then look at the pages that are drawn
# make bench  ratios against the peers
# make conformance  gradients of layers beside Flax's in every combination of dtypes too

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Left where it is when nothing has changed: a second make installs nothing.
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed

# PyTorch is compared with live where it is installed; continuous integration installs it, and first, so that nothing
# that depends on it brings another build.
TORCH := torch==2.13.0

.PHONY: run install torch browser test lint types layering tests conformance bench clean

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

torch: $(INSTALLED)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet "$(TORCH)"

browser:
	command -v chromium || (apt-get update --quiet=2 && apt-get install --quiet=2 --yes --no-install-recommends chromium)

test: lint types layering tests

lint: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEVELOPED)
	$(BIN)/pyright

layering: $(DEVELOPED)
	$(BIN)/lint-imports --no-logo

tests: $(DEVELOPED)
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile

# make test compares outputs and dtypes of layers with Flax's in every combination of dtypes, and gradients in some.
conformance: $(DEVELOPED)
	SUPREMUM_EVERY_GRADIENT=1 $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile tests/conformance

bench: $(DEVELOPED)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-disable-gc --capture=no --quiet --benchmark-columns=rounds

clean:
	rm -rf $(VENV) out dist .pytest_cache .ruff_cache .hypothesis .benchmarks
