"""Origins that are planted in random programs are found: by name, line, iteration and whether they reach the result."""

import jax
import numpy as np
import pytest

from numerics.eager_origins import eager_origins
from numerics.planted_origins import PLANTS, STRUCTURES, planted
from supremum.numerics import first_nonfinite

PROGRAMS = 200
GROUPS = 20


def misses(seed):
    """What is wrong about the first origin of a program, by the judge of eager execution."""
    made = planted(seed)
    seen, reaches = eager_origins(made.function, made.arguments)
    found = first_nonfinite(made.function)(*made.arguments)
    expected = (made.iterations, seen[0].kind, reaches(0))
    if not found:
        return [f"{seed}: nothing was found"]
    origin = found[0]
    actual = (origin.iterations, origin.kind, origin.reached_output)
    line = made.call if origin.in_custom_rule else made.line
    wrong = [] if origin.line == line else [f"{seed}: line {origin.line} instead of {line}"]
    return wrong + ([] if actual == expected else [f"{seed} {made.kind} {made.structures}: {actual} != {expected}"])


@pytest.mark.slow
def test_the_judge_sees_the_planted_birth_first():
    for seed in range(4):
        made = planted(seed)
        seen, _ = eager_origins(made.function, made.arguments)
        assert seen[0].iterations == made.iterations
        assert seen[0].line in (made.line, made.call)


def test_without_the_origin_the_programs_are_finite():
    for seed in range(4, 8):
        made = planted(seed)
        assert np.isfinite(jax.jit(made.function)(made.arguments[0], jax.numpy.array(False))).all()


def test_the_programs_cover_kinds_structures_and_masks():
    made = [planted(seed) for seed in range(PROGRAMS)]
    assert {each.kind for each in made} == set(PLANTS)
    assert {name for each in made for name in each.structures} == {*STRUCTURES, "custom_vjp", "backward rule"}
    assert 80 < sum(each.masked for each in made) < 120


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(4))
def test_planted_origins_are_found(seed):
    assert misses(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_planted_origins_are_found_in_many_programs(group):
    wrong = [miss for seed in range(group, PROGRAMS, GROUPS) for miss in misses(seed)]
    # Of all programs, 99 % are to be right.
    assert len(wrong) == 0, wrong
