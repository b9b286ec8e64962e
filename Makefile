# make run          installs everything and runs the demonstration
# make test         installs everything, then runs lint, type checks, the layering check and the fast tests; takes four
#                   minutes on two cores
# make test-slow    runs the tests that .ci/run runs beside the fast ones
# make test-xla     repeats the tests whose results depend on XLA's optimizations, with XLA's default flags
# make test-newest  repeats the tests that depend on JAX's version, with the newest Python on this machine and the newest
#                   JAX, Flax and Equinox
# make docs         builds the documentation, out/docs/index.html; warnings are errors
# make dist         builds sdist and wheel, dist/
# make release-check  runs make dist, installs both into empty environments, runs the README, the pytest plugin and a few
#                   tests of the sdist there; with OPTIONS=--full, with each extra alone and all fast tests, too
# make exhaustive   runs what .ci/run leaves out, before a release and weekly; takes hours. CONTRIBUTING.md lists what it
#                   covers
# make test-versions  runs the fast tests with the oldest and the newest versions of all dependencies, on each Python of
#                   this machine
# make array-api    runs the test suite of the array API standard on NumPy and on JAX; ARRAY_API_TESTS=FOLDER names a
#                   checkout, which is cloned if it is missing
# make faults       plants 100 faults in src/ and counts those that the fast tests notice; takes an hour
# make torch        installs PyTorch; the tests then compare its rule set with it
# make browser      installs Debian's Chromium; the slow tests then open the generated pages in it
# make coverage     prints the line coverage of make test, and of all tests of .ci/run
# make bench        compares times with other libraries and writes them to docs/figures.md; takes 20 minutes
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
# Without files of bytecode, each of the processes that the tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# With worksteal, a worker that has no tests left takes some from another.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# The tests compare with PyTorch if it is installed. Continuous integration installs it before anything that depends on
# it, so that this version is kept. pip installs it, because pip may be configured to find a build for CPUs.
TORCH := torch==2.13.0
# test-slow leaves out what only make exhaustive runs, and prints the slowest tests: who adds a minute removes one.
SLOW := "slow and not exhaustive" --durations=20
# Several pytest runs keep each test process below 1.5 GB, because Python does not return all memory before it exits.
JAX_TESTS := tests/jaxprs tests/mixed_precision tests/nn tests/numerics tests/optimizers tests/tracing tests/training src docs README.md
ARRAY_TESTS := tests/arrays tests/conformance
OTHER_TESTS := $(filter-out $(JAX_TESTS) tests/__pycache__,$(wildcard tests/*))
# The tests that depend most on JAX's version: jaxprs, transformations, custom rules, sharding, and each layer, optimizer
# and way to train. A weekly workflow runs all tests with the newest JAX.
NEWEST_TESTS := tests/test_jax_compat.py $(addprefix tests/arrays/,test_compiled.py test_jax_flags.py \
	test_library_functions.py test_namespaces.py test_operators_jax.py test_prepared_calls.py test_pytrees.py \
	test_reductions.py test_runtime.py test_ufuncs.py test_variable.py test_weakness.py)
NEWEST_JAX_TESTS := tests/jaxprs tests/mixed_precision/autocasting tests/tracing tests/numerics/test_nonfinite_origins.py \
	$(addprefix tests/mixed_precision/,test_all_reduce.py test_gradients_of_replicas.py test_loss_scaled.py) \
	$(addprefix tests/nn/,test_attention.py test_configs.py test_layers.py test_precision.py test_recurrent.py \
	test_variables.py) $(addprefix tests/optimizers/,test_algorithms.py test_minimize.py test_narrow_weights.py) \
	$(addprefix tests/training/,test_data_and_model_axes.py test_donated_carry.py test_fit.py test_interrupted_fit.py \
	test_pickling.py test_step.py test_what_travels.py) src/supremum/jaxprs src/supremum/jax_compat.py src/supremum/tracing
# The folders with tests marked as compiled: see tests/conftest.py.
COMPILED := tests/mixed_precision tests/nn tests/optimizers tests/training

.PHONY: run install torch browser test test-slow test-xla test-newest lint types layering docs tests test-versions dist
.PHONY: release-check exhaustive array-api faults coverage bench clean

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

test-slow: $(DEVELOPED)
	$(PYTEST) -m $(SLOW) $(ARRAY_TESTS)
	$(PYTEST) -m $(SLOW) $(filter-out $(ARRAY_TESTS),$(OTHER_TESTS))
	$(PYTEST) -m $(SLOW) $(JAX_TESTS)

test-xla: $(DEVELOPED)
	SUPREMUM_XLA=default $(PYTEST) -m "compiled and not exhaustive" $(COMPILED)

# This uses a separate environment without PyTorch. CI is empty, because with CI set a missing PyTorch fails the tests.
test-newest:
	CI= $(MAKE) tests VENV=.venv-newest PYTHON="$$($(PYTHON) tools/newest_python.py)" OTHER_TESTS="$(NEWEST_TESTS)" JAX_TESTS="$(NEWEST_JAX_TESTS)"

test-versions: $(DEVELOPED)
	$(BIN)/python tools/check_versions.py $(VERSIONS)

dist: $(DEVELOPED)
	$(BIN)/python -m uv build --quiet --clear

release-check: dist
	$(BIN)/python tools/release_check.py $(OPTIONS)

exhaustive: $(DEVELOPED)
	$(PYTEST) -m exhaustive $(ARRAY_TESTS)
	$(PYTEST) -m exhaustive $(filter-out $(ARRAY_TESTS),$(OTHER_TESTS))
	$(PYTEST) -m exhaustive $(JAX_TESTS)
	SUPREMUM_XLA=default $(MAKE) tests
	$(MAKE) release-check OPTIONS=--full
	$(MAKE) array-api
	$(MAKE) test-versions

faults: $(DEVELOPED)
	$(BIN)/python tools/plant_faults.py

ARRAY_API_TESTS ?= out/array-api-tests

array-api: $(DEVELOPED)
	$(BIN)/python tools/array_api_suite.py --suite "$(ARRAY_API_TESTS)"

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
