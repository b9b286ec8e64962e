"""Casts planted in random programs are found in their places, with their classes."""

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
unknown = Counter()


def load(path, name, registered):
    """The program as a module. Without one, as for a script, there are no names to look up."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    if registered:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.one_in(10)
@pytest.mark.parametrize("chunk", range(10))
def test_planted_casts_are_found(chunk, tmp_path):
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
            if cast.kind in ("promotion", "explicit")
        )
        missing, invented = program.expected - found, found - program.expected
        assert not missing, f"{path}\nmissing {missing}\ninvented {invented}"
        assert not invented, f"{path}\ninvented {invented}"
        unknown["all"] += len(report)
        unknown["unknown"] += report.by_class["unknown"].casts if "unknown" in report.by_class else 0


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(2))
def test_planted_casts_are_found_in_derivatives(chunk, tmp_path):
    """Only lines are compared, because JAX loses the calls of code that it moves out of checkpoints and loops."""
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
            if cast.file == str(path) and cast.kind in ("promotion", "explicit")
        }
        assert found <= kinds, path
        used = {(plant.path[-1], plant.kind) for plant in program.expected if plant.times != 0}
        assert used <= found, path
        unknown["all"] += len(report)
        unknown["unknown"] += report.by_class["unknown"].casts if "unknown" in report.by_class else 0


def test_few_casts_are_unknown():
    print(f"{unknown['unknown']} of {unknown['all']} casts are of unknown origin")
    assert unknown["unknown"] <= 0.05 * unknown["all"]
