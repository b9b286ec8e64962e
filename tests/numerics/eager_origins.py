"""What eager execution says about origins: programs run equation by equation, with loops as loops of Python.

This is the judge of `first_nonfinite`. It shares no code with it: values are concrete, operations run eagerly one at a
time, and NumPy looks at their operands and results.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import Literal

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
        A list of `Seen`, and a function that takes the index of one of them, and tells whether it alone spoils the
        result while each value that is made of finite operands elsewhere is replaced by a finite one.
    """
    program = jax.make_jaxpr(function)(*arguments)
    faithful = _Run(program, arguments, None, None)

    def reaches(place):
        target = faithful.seen[place]
        return not all(
            np.isfinite(_wide(value)).all()
            for value in _Run(program, arguments, target.run, faithful.values[target.run]).results
        )

    return faithful.seen, reaches


def _wide(value):
    array = np.asarray(value)
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def _is_floating(value):
    return jnp.issubdtype(getattr(value, "dtype", np.dtype(type(value))), jnp.inexact)


class _Run:
    """A run: faithful, or one in which only the values of one run of one equation may be bad."""

    def __init__(self, program, arguments, target, kept):
        self.seen, self.values = [], {}
        self._count, self._target, self._kept = 0, target, kept
        with np.errstate(all="ignore"):
            flat = [self._healed(each) for each in jax.tree.leaves(arguments)]
            self.results = self._call(program, flat, ())

    def _healed(self, value):
        if self._kept is None or not _is_floating(value):
            return value
        return _replaced(value)

    def _call(self, function, operands, iterations):
        jaxpr = getattr(function, "jaxpr", function)
        values = dict(zip(jaxpr.constvars, map(self._healed, getattr(function, "consts", ())), strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            return self._healed(np.asarray(atom.val, atom.aval.dtype)) if isinstance(atom, Literal) else values[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars], iterations)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation, operands, iterations):
        name, params = equation.primitive.name, equation.params
        if name == "scan":
            return self._scan(equation, operands, iterations)
        if name == "while":
            return self._while(params, operands, iterations)
        if name == "cond":
            branch = params["branches"][int(np.clip(operands[0], 0, len(params["branches"]) - 1))]
            return self._call(branch, operands[1:], iterations)
        for inner in ("jaxpr", "call_jaxpr"):
            if inner in params:
                return self._call(params[inner], operands, iterations)
        results = equation.primitive.bind(*map(jnp.asarray, operands), **params)
        results = list(results) if equation.primitive.multiple_results else [results]
        return self._looked_at(equation, operands, results, iterations)

    def _looked_at(self, equation, operands, results, iterations):
        run, self._count = self._count, self._count + 1
        given = [_wide(value) for value in operands if _is_floating(value)]
        changed = []
        for result in results:
            if not _is_floating(result):
                changed.append(result)
                continue
            wide = _wide(result)
            nans, infinities = np.isnan(wide), np.isinf(wide)
            if equation.primitive.name in ELEMENTWISE:
                had_nan = np.broadcast_to(
                    sum((np.isnan(each) for each in given), np.zeros(wide.shape, bool)), wide.shape
                )
                had_bad = np.broadcast_to(
                    sum((~np.isfinite(each) for each in given), np.zeros(wide.shape, bool)), wide.shape
                )
            else:
                had_nan = any(np.isnan(each).any() for each in given)
                had_bad = any((~np.isfinite(each)).any() for each in given)
            new = (nans & ~np.asarray(had_nan)) | (infinities & ~np.asarray(had_bad))
            if self._kept is None:
                if new.any():
                    kind = "nan" if (nans & new).any() else "infinity"
                    parts = source_info_util.summarize(equation.source_info).split(":")
                    line = int(parts[1]) if parts[1:] else 0  # "unknown"
                    self.seen.append(Seen(equation.primitive.name, line, iterations, kind, run))
                    self.values[run] = [(new, result) for result in results]
                changed.append(result)
            elif run == self._target:
                mask, original = self._kept[len(changed)]
                roots = (nans | infinities) & ~np.asarray(had_bad)
                changed.append(jnp.where(mask, original, jnp.where(roots, _replaced(result), result)))
            else:
                roots = (nans | infinities) & ~np.asarray(had_bad)
                changed.append(jnp.where(roots, _replaced(result), result))
        return changed

    def _scan(self, equation, operands, iterations):
        params = equation.params
        body, length = params["jaxpr"], params["length"]
        inner = getattr(body, "jaxpr", body)
        carries = sum(a.aval.ndim == b.aval.ndim for a, b in zip(equation.outvars, inner.outvars, strict=True))
        constants = (
            sum(a.aval.ndim == b.aval.ndim for a, b in zip(equation.invars, inner.invars, strict=True)) - carries
        )
        fixed, carry, slices = (
            operands[:constants], operands[constants : constants + carries], operands[constants + carries :]
        )  # fmt: skip
        stacked = [[None] * length for _ in inner.outvars[carries:]]
        for index in reversed(range(length)) if params["reverse"] else range(length):
            results = self._call(body, [*fixed, *carry, *(each[index] for each in slices)], (*iterations, index))
            carry = results[:carries]
            for into, value in zip(stacked, results[carries:], strict=True):
                into[index] = value
        empty = [jnp.zeros(var.aval.shape, var.aval.dtype) for var in equation.outvars[carries:]]
        return [*carry, *(jnp.stack(each) if each else none for each, none in zip(stacked, empty, strict=True))]

    def _while(self, params, operands, iterations):
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition, fixed, carry = operands[:first], operands[first:second], operands[second:]
        index = 0
        while True:
            (going_on,) = self._call(params["cond_jaxpr"], [*condition, *carry], (*iterations, index))
            if not np.any(going_on):
                return carry
            results = self._call(params["body_jaxpr"], [*fixed, *carry], (*iterations, index))
            if np.ndim(going_on):
                results = [
                    jnp.where(
                        np.reshape(going_on, np.shape(going_on) + (1,) * (np.ndim(new) - np.ndim(going_on))), new, old
                    )
                    for new, old in zip(results, carry, strict=True)
                ]
            carry, index = results, index + 1


def _replaced(value):
    """The value with 1 for NaN and infinity, and -1 for minus infinity."""
    wide = _wide(value)
    one = np.where(wide == -np.inf, -1.0, 1.0) if wide.dtype.kind == "f" else 1.0
    return jnp.where(np.isfinite(wide), value, jnp.asarray(one).astype(jnp.asarray(value).dtype))
