"""What eager execution says about origins: a program runs equation by equation, and NumPy looks at concrete values.

This is the judge of `first_nonfinite`. Loops are loops of Python under `jax.disable_jit`.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import source_info_util

from supremum.jaxprs import Instrument, interpret, plan_of

ELEMENTWISE = {
    "add", "sub", "mul", "div", "log", "exp", "sqrt", "pow", "integer_pow", "convert_element_type", "sin", "cos",
    "tanh", "logistic", "square", "log1p", "rsqrt", "neg", "abs", "max", "min", "add_any", "mul_any",
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """An origin: its primitive, line, iterations and run of the equation."""

    primitive: str
    line: int
    iterations: tuple[int, ...]
    kind: str
    run: int


def eager_origins(function, arguments):
    """The origins of a call, in order, and whether its result is finite.

    Returns:
        A list of `Seen`, and a function that takes the index of one of them, and returns whether it alone spoils the
        result while each value that is made of finite operands elsewhere is replaced by a finite one.
    """
    plan = plan_of(jax.make_jaxpr(function)(*arguments))
    operands = [jnp.asarray(each) for each in jax.tree.leaves(arguments)]
    faithful = _Run(None, None)
    _results(plan, operands, faithful)

    def reaches(place):
        target = faithful.seen[place].run
        results = _results(plan, list(map(_replaced, operands)), _Run(target, faithful.values[target]))
        return not all(np.isfinite(_wide(value)).all() for value in results)

    return faithful.seen, reaches


def _results(plan, operands, run):
    with jax.disable_jit(), np.errstate(all="ignore"):
        return interpret(plan, operands, run)[0]


def _wide(value):
    array = np.asarray(value)
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def _is_floating(value):
    return jnp.issubdtype(getattr(value, "dtype", np.dtype(type(value))), jnp.inexact)


class _Run(Instrument):
    """A run: faithful, or one in which only the values of one run of one equation may be bad."""

    def __init__(self, target, kept):
        self.seen, self.values, self.runs = [], {}, []
        self.target, self.kept, self.iterations = target, kept, ()

    def in_iteration(self, index):
        inside = _Run(self.target, self.kept)
        inside.seen, inside.values, inside.runs = self.seen, self.values, self.runs
        inside.iterations = (*self.iterations, int(index))
        return inside

    def constant(self, variable, value):
        return value if self.kept is None else _replaced(value)

    def literal(self, literal):
        value = jnp.asarray(literal.val, literal.aval.dtype)
        return value if self.kept is None else _replaced(value)

    def compute(self, step, operands):
        results = super().compute(step, operands)
        run = len(self.runs)
        self.runs.append(step)
        given = [_wide(value) for value in operands if _is_floating(value)]
        changed = []
        for place, result in enumerate(results):
            if not _is_floating(result):
                changed.append(result)
                continue
            nans, infinities = np.isnan(_wide(result)), np.isinf(_wide(result))
            had_nan = _had(step.name, map(np.isnan, given), np.shape(result))
            had_bad = _had(step.name, (~np.isfinite(each) for each in given), np.shape(result))
            new, roots = (nans & ~had_nan) | (infinities & ~had_bad), (nans | infinities) & ~had_bad
            if self.kept is None:
                changed.append(result)
                if new.any():
                    self._see(step, "nan" if (nans & new).any() else "infinity", run)
                    self.values[run] = [(new, each) for each in results]
                continue
            changed.append(jnp.where(roots, _replaced(result), result))
            if run == self.target:
                mask, original = self.kept[place]
                changed[-1] = jnp.where(mask, original, changed[-1])
        return changed

    def _see(self, step, kind, run):
        parts = source_info_util.summarize(step.equation.source_info).split(":")
        line = int(parts[1]) if parts[1:] else 0  # "unknown"
        self.seen.append(Seen(step.name, line, self.iterations, kind, run))


def _had(name, masks, shape):
    """Which elements of a result depend on elements of operands that have some property."""
    masks = list(masks) if name in ELEMENTWISE else [each.any() for each in masks]
    return functools.reduce(np.logical_or, masks, np.zeros(shape, bool))


def _replaced(value):
    """The value with 1 for NaN and infinity, and -1 for minus infinity."""
    if not _is_floating(value):
        return value
    wide = _wide(value)
    one = np.where(wide == -np.inf, -1.0, 1.0) if wide.dtype.kind == "f" else 1.0
    return jnp.where(np.isfinite(wide), value, jnp.asarray(one).astype(jnp.asarray(value).dtype))
