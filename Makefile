# make run       installs everything and shows the demonstration
# make test      installs everything, then lint, types, layering and the tests but the slow ones: five minutes on two cores
# make test-all  make test, then the documentation, the slow tests, and the tests that depend on XLA's optimizations
# make test-rest what make test-all adds to make test
# make test-newest  those of make test that JAX touches, on the newest Python there is, with the newest JAX, Flax and the like
# make torch     adds PyTorch, whose rules the tests then compare with it live
# make browser   adds Chromium (Debian's), in which the slow tests then look at the pages that are drawn
# make coverage  the share of lines that make test runs, beside that of make test-all
# make bench     ratios against the peers
# make docs      the documentation, out/docs/index.html; warnings are errors
# make conformance  gradients of layers in every combination of dtypes, and the fix of every refusal; takes hours

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Left where it is when nothing has changed: a second make installs nothing.
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
# A worker that has run out of tests takes some of another's.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# PyTorch is compared with live where it is installed; continuous integration installs it, and first, so that nothing
# that depends on it brings another build.
TORCH := torch==2.13.0
# All tests in several runs, so that no test process grows beyond 1.5 GB: what Python keeps is given back between them.
JAX_TESTS := tests/jaxprs tests/mixed_precision tests/nn tests/optimizers tests/tracing tests/training src docs README.md
ARRAY_TESTS := tests/arrays tests/conformance
OTHER_TESTS := $(filter-out $(JAX_TESTS) tests/__pycache__,$(wildcard tests/*))
# Of the other tests those that JAX's version touches most; a weekly workflow runs them all with the newest JAX.
NEWEST_TESTS := tests/arrays tests/test_jax_compat.py
# Tests whose results depend on how XLA compiles: see tests/conftest.py.
COMPILED := tests/mixed_precision tests/nn tests/optimizers tests/training tests/conformance

.PHONY: run install torch browser test test-all test-rest test-slow test-xla test-newest lint types layering docs tests
.PHONY: conformance coverage bench clean

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

test: $(DEVELOPED)
	$(MAKE) --jobs=3 --output-sync=target lint types layering
	$(MAKE) tests

test-all:
	$(MAKE) test
	$(MAKE) test-rest

test-rest: docs test-slow test-xla

lint: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_tracked_files.py .

types: $(DEVELOPED)
	$(BIN)/pyright

layering: $(DEVELOPED)
	$(BIN)/lint-imports --no-logo

docs: $(DEVELOPED)
	$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs out/docs

tests: $(DEVELOPED)
	$(PYTEST) -m "not slow" $(OTHER_TESTS)
	$(PYTEST) -m "not slow" $(JAX_TESTS)

# Slow tests share long fixtures: a worker runs all of a file. The longest files are begun first, as tests/conftest.py
# says, so that no worker waits for another in the end.
test-slow: $(DEVELOPED)
	$(PYTEST) --dist=loadfile --no-loadscope-reorder -m slow $(ARRAY_TESTS)
	$(PYTEST) --dist=loadfile -m slow $(filter-out $(ARRAY_TESTS),$(OTHER_TESTS))
	$(PYTEST) --dist=loadfile -m slow $(JAX_TESTS)

test-xla: $(DEVELOPED)
	SUPREMUM_XLA=default SUPREMUM_SHARE=3 $(PYTEST) -m "not slow" $(COMPILED)

# An environment of its own, so that the other one stays as it is. PyTorch is compared with in the other one.
test-newest:
	CI= SUPREMUM_SHARE=2 $(MAKE) tests VENV=.venv-newest PYTHON="$$($(PYTHON) tools/newest_python.py)" OTHER_TESTS="$(NEWEST_TESTS)"

# make test-all compares gradients of layers with Flax's in some combinations of dtypes, and types the fixes of some
# refusals of each kind; here it is all of them, for hours.
conformance: $(DEVELOPED)
	SUPREMUM_EVERY_GRADIENT=1 SUPREMUM_EVERY_FIX=1 $(PYTEST) tests/conformance tests/arrays/test_fixes.py

# Of all processes that tests start as well, from their first import on: pyproject.toml says so.
coverage: $(DEVELOPED)
	mkdir -p out
	rm -f out/coverage*
	COVERAGE_FILE=$(CURDIR)/out/coverage $(MAKE) tests PYTEST="$(subst -m pytest,-m coverage run -m pytest,$(PYTEST))"
	$(BIN)/python -m coverage combine --data-file=out/coverage-fast --keep out/coverage.*
	COVERAGE_FILE=$(CURDIR)/out/coverage $(MAKE) test-slow PYTEST="$(subst -m pytest,-m coverage run -m pytest,$(PYTEST))"
	$(BIN)/python -m coverage combine --data-file=out/coverage-all out/coverage.*
	for which in fast all; do $(BIN)/python -m coverage report --data-file=out/coverage-$$which --skip-covered; done

bench: $(DEVELOPED)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-disable-gc --capture=no --quiet --benchmark-columns=rounds

clean:
	rm -rf $(VENV) .venv-newest out dist docs/generated .pytest_cache .ruff_cache .hypothesis .benchmarks
