"""Run the test suite of the Python array API standard for each library, with the failures that are expected of it.

    python tools/array_api_suite.py [--suite FOLDER] [--max-examples NUMBER] [numpy | jax]

The suite is https://github.com/data-apis/array-api-tests, which git clones into the folder if that is missing. The
files tests/arrays/array_api_xfails_*.txt list the tests that must fail, each with its reason; any other failure, and a
listed test that passes, is a fault. Hypothesis draws the same examples in each run, so that the faults are the same.
For this, pytest also loads this module as a plugin.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESS = "https://github.com/data-apis/array-api-tests"
COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
"""The commit whose failures are listed."""
PACKAGES = ("pytest-json-report==1.5.0", "pytest-metadata==3.1.1", "ndindex==1.10.1", "hypothesis==6.170.17")
"""What the suite needs beside the group dev, and the version of Hypothesis, which draws the examples."""
LIBRARIES = ("numpy", "jax")
RULES = "array-api"


def pytest_runtest_setup() -> None:
    """Start each test with the same random numbers, with which Hypothesis chooses one of several examples."""
    random.seed(0)


def xfails_file(library: str) -> Path:
    """Return the path of the list of tests that must fail."""
    return ROOT / f"tests/arrays/array_api_xfails_{library}.txt"


def clone(suite: Path) -> None:
    """Clone the suite and its submodule, which has the standard, into a new folder."""
    subprocess.run(["git", "init", "--quiet", suite], check=True)
    for command in (
        ("fetch", "--quiet", "--depth=1", ADDRESS, COMMIT),
        ("checkout", "--quiet", COMMIT),
        ("submodule", "--quiet", "update", "--init", "--depth=1"),
    ):
        subprocess.run(["git", *command], cwd=suite, check=True)


def install(folder: Path) -> None:
    """Install the packages into a folder of their own, since pytest would load them in all other tests, too."""
    uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable)
    subprocess.run([*uv, "--no-deps", "--target", folder, *PACKAGES], check=True)


def command(library: str, max_examples: int) -> list[str]:
    """Return the command that runs the suite, in the folder of the suite.

    Args:
        library: the name of the library.
        max_examples: how many examples Hypothesis draws for each test.
    """
    return [
        *(sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "array_api_tests", "-p", Path(__file__).stem),
        *(f"--max-examples={max_examples}", "--disable-deadline", "--derandomize"),
        # As two arguments, pytest would take the path for tests to run, and load conftest.py beside it.
        *(f"--xfails-file={xfails_file(library)}", "-o", "xfail_strict=true"),
        # The suite's conftest.py warns of listed tests that do not exist. Its other warnings are about its own cases.
        *("-W", "error::UserWarning:conftest", "--disable-warnings"),
    ]


def environment(library: str, packages: Path) -> dict[str, str]:
    """Return the variables that tell the suite what to test.

    Args:
        library: the name of the library.
        packages: the folder of the packages that the suite needs; this folder is also on the path.
    """
    module = f'import supremum; supremum.set_default_rules("{RULES}"); xp = supremum.namespace("{library}")'
    return os.environ | {
        "ARRAY_API_TESTS_MODULE": f"exec('{module}')",
        "JAX_ENABLE_X64": "1",
        "PYTHONPATH": os.pathsep.join([str(packages), str(Path(__file__).parent)]),
    }


def main() -> int:
    """Run the suite for each library, and return 1 if there are faults, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", nargs="?", choices=LIBRARIES, help="only this library")
    parser.add_argument("--suite", type=Path, default=ROOT / "out/array-api-tests", help="the folder of the suite")
    parser.add_argument("--max-examples", type=int, default=20, help="how many examples Hypothesis draws for a test")
    arguments = parser.parse_args()
    packages = ROOT / "out/array-api-packages"
    if not arguments.suite.exists():
        clone(arguments.suite)
    if not packages.exists():
        install(packages)
    failed = []
    for library in [arguments.library] if arguments.library else LIBRARIES:
        print(f"== {library}", flush=True)
        variables = environment(library, packages)
        if subprocess.run(command(library, arguments.max_examples), cwd=arguments.suite, env=variables).returncode:
            failed.append(library)
    print(f"== failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
