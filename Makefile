# make run          installs everything and runs the demonstration
# make test         installs everything, then runs lint, type checks, the layering check and the fast tests; takes five
#                   minutes on two cores
# make test-all     runs everything: make test, make release-check, then make test-rest
# make test-rest    builds the documentation and runs the slow tests and those that depend on XLA's optimizations
# make test-newest  runs the tests of make test that depend on JAX's version, with the newest Python on this machine and
#                   the newest JAX, Flax and Equinox
# make test-versions  runs the fast tests with the oldest and the newest versions of all dependencies, on each Python of
#                   this machine
# make dist         builds sdist and wheel, dist/
# make release-check  runs make dist, installs both into empty environments, runs the README, the examples of the
#                   command and tests of the sdist there, and checks all links
# make release-check-full  runs make release-check, with each extra alone and all fast tests of the sdist
# make torch        installs PyTorch; the tests then compare its rule set with it
# make browser      installs Debian's Chromium; the slow tests then open the generated pages in it
# make coverage     prints the line coverage of make test and of make test-all
# make bench        compares times with other libraries and writes them to docs/figures.md; takes 20 minutes
# make docs         builds the documentation, out/docs/index.html; warnings are errors
# make conformance  tests gradients of layers in every combination of dtypes, and the fix of every refusal; takes hours
# make clean        removes the environments, the caches and everything that was built

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# These files say that everything is installed, so that a second make installs nothing.
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
# uv needs seconds where pip needs a minute, and all environments share the files in its cache.
INSTALL = $(BIN)/python -m uv pip install --quiet --python $(BIN)/python
# Like pip, uv is to trust the certificates that the machine trusts, also those of a proxy.
export UV_SYSTEM_CERTS := true
# With worksteal, a worker that has no tests left takes some from another.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# The tests compare with PyTorch if it is installed. Continuous integration installs it before anything that depends on
# it, so that this version is kept. pip installs it, because pip may be configured to find a build for CPUs.
TORCH := torch==2.13.0
# test-slow leaves out what only make exhaustive runs.
SLOW := "slow and not exhaustive"
# Several pytest runs keep each test process below 1.5 GB, because Python does not return all memory before it exits.
JAX_TESTS := tests/jaxprs tests/mixed_precision tests/nn tests/numerics tests/optimizers tests/tracing tests/training src docs README.md
ARRAY_TESTS := tests/arrays tests/conformance
OTHER_TESTS := $(filter-out $(JAX_TESTS) tests/__pycache__,$(wildcard tests/*))
# The tests outside of JAX_TESTS that depend most on JAX's version. A weekly workflow runs all tests with the newest JAX.
NEWEST_TESTS := tests/arrays tests/test_jax_compat.py
# Tests whose results depend on how XLA compiles: see tests/conftest.py.
COMPILED := tests/mixed_precision tests/nn tests/optimizers tests/training tests/conformance

.PHONY: run install torch browser test test-all test-rest test-slow test-xla test-newest lint types layering docs tests
.PHONY: test-versions dist release-check release-check-full conformance coverage bench clean

run: install
	$(BIN)/supremum demo

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip uv
	$(INSTALL) --editable ".[all]"
	touch $@

$(DEVELOPED): $(INSTALLED)
	$(INSTALL) --group dev
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
	$(MAKE) release-check
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

# Slow tests share long fixtures, so one worker runs all tests of a file. tests/conftest.py puts the longest files first,
# so that the workers finish at about the same time.
test-slow: $(DEVELOPED)
	$(PYTEST) --dist=loadfile --no-loadscope-reorder -m $(SLOW) $(ARRAY_TESTS)
	$(PYTEST) --dist=loadfile -m $(SLOW) $(filter-out $(ARRAY_TESTS),$(OTHER_TESTS))
	$(PYTEST) --dist=loadfile -m $(SLOW) $(JAX_TESTS)

test-xla: $(DEVELOPED)
	SUPREMUM_XLA=default $(PYTEST) -m "not slow" $(COMPILED)

# This uses a separate environment without PyTorch. CI is empty, because with CI set a missing PyTorch fails the tests.
test-newest:
	CI= $(MAKE) tests VENV=.venv-newest PYTHON="$$($(PYTHON) tools/newest_python.py)" OTHER_TESTS="$(NEWEST_TESTS)"

test-versions: $(DEVELOPED)
	$(BIN)/python tools/check_versions.py $(VERSIONS)

dist: $(DEVELOPED)
	$(BIN)/python -m uv build --quiet --clear

release-check: dist
	$(BIN)/python tools/release_check.py

release-check-full: dist
	$(BIN)/python tools/release_check.py --full

# make test-all compares gradients of layers with Flax's in some combinations of dtypes, and tries the fixes of some
# refusals of each kind. This target does so for all of them.
conformance: $(DEVELOPED)
	SUPREMUM_EVERY_GRADIENT=1 SUPREMUM_EVERY_FIX=1 $(PYTEST) tests/conformance tests/arrays/test_fixes.py

# The settings in pyproject.toml measure the processes that tests start, too, from their first import.
coverage: $(DEVELOPED)
	mkdir -p out
	rm -f out/coverage*
	COVERAGE_FILE=$(CURDIR)/out/coverage $(MAKE) tests PYTEST="$(subst -m pytest,-m coverage run -m pytest,$(PYTEST))"
	$(BIN)/python -m coverage combine --data-file=out/coverage-fast --keep out/coverage.*
	COVERAGE_FILE=$(CURDIR)/out/coverage $(MAKE) test-slow PYTEST="$(subst -m pytest,-m coverage run -m pytest,$(PYTEST))"
	$(BIN)/python -m coverage combine --data-file=out/coverage-all out/coverage.*
	for which in fast all; do $(BIN)/python -m coverage report --data-file=out/coverage-$$which --skip-covered; done

bench: $(DEVELOPED)
	$(INSTALL) --group bench
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-disable-gc --capture=no --quiet --benchmark-columns=rounds

clean:
	rm -rf $(VENV) .venv-newest out dist docs/generated .pytest_cache .ruff_cache .hypothesis .benchmarks
