"""The casts of random programs are found on their lines, with their classes."""

import importlib.util
import random
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from supremum.tracing import casts
from tracing.planted import Plant, Program

PROGRAMS = 200
OPERANDS = (
    jax.ShapeDtypeStruct((8,), jnp.bfloat16),
    jax.ShapeDtypeStruct((8,), jnp.float32),
    jax.ShapeDtypeStruct((8,), jnp.int32),
)


def load(path, name, registered):
    """Import the program. If it is not registered as a module, as in a script, its names cannot be looked up."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    if registered:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.one_in(10)
@pytest.mark.parametrize("chunk", range(10))
def test_casts_of_random_programs_are_found_and_none_is_unknown(chunk, tmp_path):
    planted = 0
    for seed in range(chunk, PROGRAMS, 10):
        program = Program(random.Random(seed))
        path = tmp_path / f"planted_{seed}.py"
        path.write_text(program.text)
        module = load(path, f"planted_{seed}", registered=seed % 3 != 0)
        report = casts(getattr(module, program.main))(*OPERANDS)
        sys.modules.pop(module.__name__, None)
        found = Counter(
            Plant(cast.kind, str(cast.source), str(cast.target), tuple(at.line for at, _ in cast.path), cast.times)
            for cast in report
            if cast.kind in ("promotion", "conversion", "explicit")
        )
        missing, invented = program.expected - found, found - program.expected
        assert not missing, f"{path}\nmissing {missing}\ninvented {invented}"
        assert not invented, f"{path}\ninvented {invented}"
        assert "unknown" not in report.by_class, path
        planted += program.expected.total()
    assert planted > 500


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(2))
def test_casts_in_derivatives_of_random_programs_are_found_and_few_are_unknown(chunk, tmp_path):
    """Only lines are compared, because JAX loses the calls of code that it moves out of checkpoints and loops."""
    casts_found, unknown = 0, 0
    for seed in range(chunk, 60, 2):
        program = Program(random.Random(seed))
        if "while_loop" in program.text:  # has no gradient
            continue
        path = tmp_path / f"planted_{seed}.py"
        path.write_text(program.text)
        main = getattr(load(path, f"derived_{seed}", registered=False), program.main)
        report = casts(jax.grad(lambda a, b, i, main=main: main(a, b, i).astype(jnp.float32).sum()))(*OPERANDS)
        kinds = {(plant.path[-1], plant.kind) for plant in program.expected}
        found = {
            (cast.line, cast.kind)
            for cast in report
            if cast.file == str(path) and cast.kind in ("promotion", "conversion", "explicit")
        }
        assert found <= kinds, path
        used = {(plant.path[-1], plant.kind) for plant in program.expected if plant.times != 0}
        assert used <= found, path
        casts_found += len(report)
        unknown += report.by_class["unknown"].casts if "unknown" in report.by_class else 0
    assert casts_found > 500
    assert unknown <= 0.05 * casts_found
