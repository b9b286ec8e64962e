"""Why an operation made a NaN or an infinity, and what to do about it, where its operands show it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import JaxprEqn, Literal, Var

from supremum.formats import as_format
from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Site, Step, aval_of, line_of
from supremum.numerics.dataflow import Dataflow, Value
from supremum.numerics.widening import floating_avals, is_floating

NAN, INFINITY = "nan", "infinity"


@dataclass(frozen=True, slots=True)
class OperandRange:
    """The values of an operand in the run that made the first bad value.

    Args:
        type: its type, such as `"float32[8,128]"`.
        least: the least finite value; None if there is none.
        largest: the largest finite value; None if there is none.
        smallest: the least magnitude of a finite value other than zero; None if there is none.
        zeros: the number of zeros.
        nans: the number of NaNs.
        infinities: the number of infinities.

    The parts of complex numbers count as values.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import first_nonfinite
    >>> (origin,) = first_nonfinite(jnp.log)(jnp.array([0.0, 0.5, 3.0]))
    >>> origin.operands
    (OperandRange(type='float32[3]', least=0.0, largest=3.0, smallest=0.5, zeros=1, nans=0, infinities=0),)
    """

    type: str
    least: float | None
    largest: float | None
    smallest: float | None
    zeros: int
    nans: int
    infinities: int

    def __str__(self) -> str:
        if self.least is None or self.largest is None:
            parts = ["no finite values"]
        elif self.least == self.largest:
            parts = [f"{self.least:.4g}"]
        else:
            parts = [f"{self.least:.4g} to {self.largest:.4g}"]
        counts = (self.zeros, "zero"), (self.nans, "NaN"), (self.infinities, "infinity")
        parts += [count_text(number, word) for number, word in counts if number]
        return f"{self.type}: {', '.join(parts)}"


def count_text(number: int, word: str) -> str:
    """A number of things in words, as in `3 zeros`."""
    plurals = {"infinity": "infinities"}
    return f"{number} {word if number == 1 else plurals.get(word, word + 's')}"


@dataclass(frozen=True, slots=True)
class NonfiniteCause:
    """Why an operation made a bad value.

    Args:
        text: the cause in a few words; empty if it is not certain.
        fix: what to do about it; empty if it depends on the program.
    """

    text: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known about the run that made the first bad value."""

    flow: Dataflow
    step: Step
    kind: str
    ranges: Sequence[OperandRange]

    @property
    def equation(self) -> JaxprEqn:
        return self.step.equation

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def operand(self) -> OperandRange:
        return self.ranges[0]

    @property
    def are_finite(self) -> bool:
        return not any(each.nans or each.infinities for each in self.ranges)

    def has(self, *tests: Callable[[OperandRange], Any]) -> bool:
        """Whether the operands pass a test each."""
        return len(self.ranges) == len(tests) and all(test(each) for test, each in zip(tests, self.ranges, strict=True))


def _zeros(operand: OperandRange) -> int:
    return operand.zeros


def _infinities(operand: OperandRange) -> int:
    return operand.infinities


def _anything(_: OperandRange) -> bool:
    return True


def _is_negative(operand: OperandRange) -> bool:
    return operand.least is not None and operand.least < 0


def cause_of(flow: Dataflow, site: Site, kind: str, ranges: Sequence[OperandRange]) -> NonfiniteCause:
    """The cause of a bad value.

    Args:
        flow: the makers of the values of the program.
        site: the operation.
        kind: `"nan"` or `"infinity"`.
        ranges: the ranges of its floating operands.
    """
    case = _Case(flow, flow.steps[site.number], kind, ranges)
    for find in (_edge, _logsumexp, _unchosen_branch, _masked_softmax, _infinite_derivative, _of_primitive):
        cause = find(case)
        if cause is not None:
            return cause
    return NonfiniteCause()


_POSITIVE = "keep the operand positive, as in `jnp.log(jnp.maximum(x, jnp.finfo(x.dtype).tiny))`"
_DOUBLE_WHERE = (
    "choose the operand with where too, before the operation: with `safe = jnp.where(ok, x, 1.0)`, write "
    "`jnp.where(ok, f(safe), other)` for `jnp.where(ok, f(x), other)`"
)


_EDGES: Mapping[str, tuple[str, str]] = {
    **{
        name: (
            f"the derivative of {function} is infinite at 1 and -1",
            f"keep the operand inside: with `edge = 1 - jnp.finfo(x.dtype).eps`, write `jnp.{function}(jnp.clip(x, "
            "-edge, edge))`",
        )
        for name, function in (("acos", "arccos"), ("asin", "arcsin"))
    },
    "atan2": (
        "the derivative of arctan2 of two zeros is zero divided by zero",
        "choose an operand with where: for `jnp.arctan2(y, x)` write `jnp.arctan2(y, jnp.where((x == 0) & (y == 0), "
        "1.0, x))`",
    ),
    "svd": ("the derivative of svd divides by zero: singular values are equal, or zero", ""),
    "eigh": ("the derivative of eigh divides by zero: eigenvalues are equal", ""),
}
"""Primitives whose derivative is infinite somewhere, the cause and a fix."""


def _edge(case: _Case) -> NonfiniteCause | None:
    """The derivative of a function at the edge of its domain, whose equations have the place of the function."""
    if case.name not in ("div", "integer_pow", "rsqrt") or not case.ranges[-1].zeros:
        return None
    place = line_of(case.equation)
    names = (step.name for step in case.flow.steps.values() if line_of(step.equation) == place)
    return next((NonfiniteCause(*_EDGES[name]) for name in names if name in _EDGES), None)


def _logsumexp(case: _Case) -> NonfiniteCause | None:
    """The derivative of a sum of exponentials, all of which are zero, and its product with them."""
    if case.name not in ("div", "mul") or not case.step.site.is_backward:
        return None
    for value in _floating_variables(case.flow, case.step):
        divided = _before(case.flow, value, "div", _BACKWARD) if case.name == "mul" else case.step
        if divided is not None and _is_sum_of_exponentials(case.flow, case.flow.operands(divided)[-1]):
            return NonfiniteCause(
                "all terms of a logsumexp are minus infinity",
                "mask with a large finite number, `jnp.finfo(x.dtype).min` instead of `-jnp.inf`",
            )
    return None


def _is_sum_of_exponentials(flow: Dataflow, value: Value) -> bool:
    total = _before(flow, value, "reduce_sum", _SHAPES | {"abs"})
    return total is not None and _before(flow, flow.operands(total)[0], "exp", _SHAPES) is not None


def _before(flow: Dataflow, value: Value, name: str, through: Collection[str], steps: int = 8) -> Step | None:
    """The operation of a name that a value comes from, through at most so many operations of other names."""
    maker = flow.maker(value)
    if maker is None or maker.name == name:
        return maker
    if maker.name not in through or steps == 0:
        return None
    found = (_before(flow, each, name, through, steps - 1) for each in _floating_variables(flow, maker))
    return next((each for each in found if each is not None), None)


def _unchosen_branch(case: _Case) -> NonfiniteCause | None:
    """The gradient of the branch that `where` did not choose: its cotangent is zero, and its derivative infinite."""
    if case.kind != NAN or case.name not in ("mul", "div") or not case.step.site.is_backward:
        return None
    operands = _floating_variables(case.flow, case.step)
    if not any(map(_zeros, case.ranges)) or not any(_comes_from_where(case.flow, each, _STEPS) for each in operands):
        return None
    what = "zero times infinity" if case.name == "mul" else "zero divided by zero"
    return NonfiniteCause(f"the gradient of the branch that where did not choose is {what}", _DOUBLE_WHERE)


def _masked_softmax(case: _Case) -> NonfiniteCause | None:
    """A row minus its maximum, which is minus infinity."""
    if case.kind != NAN or case.equation.primitive is not p.sub_p or not case.has(_infinities, _infinities):
        return None
    value, most = (_through_shapes(case.flow, each) for each in case.flow.operands(case.step))
    maximum = case.flow.maker(most)
    if maximum is None or maximum.equation.primitive is not p.reduce_max_p:
        return None
    if _through_shapes(case.flow, case.flow.operands(maximum)[0])[1] is not value[1]:
        return None
    sizes = [aval.size for aval in floating_avals(case.equation.invars)]
    rows = case.ranges[1].infinities * sizes[0] // sizes[1]
    if case.operand.infinities < rows:  # the maximum is plus infinity, and other elements of the row are finite
        return None
    return NonfiniteCause(
        "infinity minus infinity: a row of the softmax is masked completely",
        "mask with a large finite number, `jnp.finfo(x.dtype).min` instead of `-jnp.inf`; the row is then uniform, and "
        "a where after the softmax can drop it",
    )


def _infinite_derivative(case: _Case) -> NonfiniteCause | None:
    """A division in the derivative of a root or a logarithm at zero."""
    if case.kind != INFINITY or case.equation.primitive is not p.div_p or not case.has(_anything, _zeros):
        return None
    root = case.flow.maker(_through_shapes(case.flow, case.flow.operands(case.step)[-1]))
    if root is not None and root.equation.primitive is p.sqrt_p and line_of(root.equation) == line_of(case.equation):
        return NonfiniteCause(
            "the derivative of a square root at zero is infinite",
            "keep zeros away from the root, as in `jnp.sqrt(x + 1e-12)`, or, for single zeros, " + _DOUBLE_WHERE,
        )
    if case.step.site.is_backward and any(
        equation.primitive is p.log_p and equation.invars[0] is case.equation.invars[-1]
        for equation in case.step.site.function.eqns
    ):
        return NonfiniteCause("the derivative of a logarithm at zero is infinite", _POSITIVE)
    return None


_NOT_ZERO = "keep zeros out of the denominator: divide by `jnp.where(y == 0, 1.0, y)`, and choose the result with where"


def _of_primitive(case: _Case) -> NonfiniteCause | None:
    for kind, tests, text, fix in _CAUSES.get(case.name, ()):
        if kind == case.kind and case.has(*tests):
            return NonfiniteCause(text, fix)
    if case.name == "gather" and case.kind == NAN and case.are_finite:
        return NonfiniteCause(
            "an index is out of bounds, and mode='fill' takes NaN for it",
            "give the index, or use mode='clip' to take the last element",
        )
    if case.name == "cholesky" and case.are_finite:
        return NonfiniteCause(
            "the matrix is not positive definite", "add a small multiple of the identity, as in `a + 1e-6 * jnp.eye(n)`"
        )
    return _overflow(case) if case.are_finite else None


_Tests = tuple[Callable[[OperandRange], Any], ...]
_CAUSES: Mapping[str, tuple[tuple[str, _Tests, str, str], ...]] = {
    "log": (
        (INFINITY, (_zeros,), "the logarithm of zero", _POSITIVE),
        (NAN, (_is_negative,), "the logarithm of a negative number", _POSITIVE),
    ),
    "log1p": ((NAN, (_is_negative,), "the logarithm of a negative number", ""),),
    "sqrt": (
        (
            NAN, (_is_negative,), "the square root of a negative number",
            "keep the operand positive, as in `jnp.sqrt(jnp.maximum(x, 0.0))`",
        ),
    ),
    "rsqrt": (
        (INFINITY, (_zeros,), "the inverse square root of zero", "add a small number, as in `lax.rsqrt(x + 1e-6)`"),
        (NAN, (_is_negative,), "the inverse square root of a negative number", ""),
    ),
    "div": (
        (NAN, (_zeros, _zeros), "zero divided by zero", _NOT_ZERO),
        (NAN, (_infinities, _infinities), "infinity divided by infinity", ""),
        (INFINITY, (_anything, _zeros), "a division by zero", _NOT_ZERO),
    ),
    **dict.fromkeys(("add", "add_any", "sub"), ((NAN, (_infinities, _infinities), "infinity minus infinity", ""),)),
    **dict.fromkeys(("cumsum", "reduce_sum"), ((NAN, (_infinities,), "infinity minus infinity", ""),)),
    "mul": (
        (NAN, (_zeros, _infinities), "zero times infinity", ""),
        (NAN, (_infinities, _zeros), "zero times infinity", ""),
    ),
    "atanh": (
        (
            INFINITY, (_anything,), "arctanh is infinite at 1 and -1",
            "keep the operand inside: with `edge = 1 - jnp.finfo(x.dtype).eps`, write `jnp.arctanh(jnp.clip(x, -edge, "
            "edge))`",
        ),
    ),
    "pow": (
        (NAN, (_is_negative, _anything), "a negative number to a power that is not whole", ""),
        (INFINITY, (_zeros, _is_negative), "zero to a negative power", ""),
        (NAN, (_is_negative,), "a negative number to a power that is not whole", ""),
    ),
}  # fmt: skip
"""For each primitive: the kind of the bad value, a test of each operand, the cause and a fix."""
_EXPONENTIALS = "exp", "exp2", "expm1"
_GROWING = frozenset({
    *_EXPONENTIALS, "add", "add_any", "conv_general_dilated", "convert_element_type", "cosh", "cumprod", "cumsum",
    "div", "dot_general", "integer_pow", "mul", "pow", "reduce_precision", "reduce_prod",
    "reduce_sum", "scatter-add", "sinh",
    "square", "sub",
})  # fmt: skip
"""Primitives whose results overflow if they are bad and their operands finite, and no other cause is known."""


def _overflow(case: _Case) -> NonfiniteCause | None:
    name = case.name
    if name not in _GROWING:
        return None
    if name == "integer_pow" and parameter(case.equation, "y") < 0 and case.operand.zeros:
        return NonfiniteCause("zero to a negative power", _NOT_ZERO)
    row = as_format(floating_avals(case.equation.outvars)[0].dtype)
    if case.kind == NAN and row.inf and name not in ("dot_general", "conv_general_dilated", "reduce_sum", "cumsum"):
        return None  # it is not an overflow
    limit = f"{row.name}, whose largest value is {float(row.component.max):.6g}"
    if name in _EXPONENTIALS:
        fix = "subtract the largest value first, as `jax.nn.softmax` and `jax.nn.logsumexp` do, or bound the operand"
        return NonfiniteCause(f"the exponential of {case.operand.largest:.4g} overflows {limit}", fix)
    if name == "convert_element_type":
        largest = max(abs(case.operand.least or 0.0), abs(case.operand.largest or 0.0))
        return NonfiniteCause(
            f"{largest:.4g} overflows {limit}", f"scale the values before the cast, {_wider(row.name)}"
        )
    return NonfiniteCause(f"a result overflows {limit}", f"scale the operands, {_wider(row.name)}")


def _wider(name: str) -> str:
    return "or compute in float32" if as_format(name).component.bits < 32 else "or work with logarithms"


_SHAPES = frozenset({
    "broadcast_in_dim", "convert_element_type", "copy", "copy_p", "max", "reshape", "squeeze", "stop_gradient",
    "transpose",
})  # fmt: skip
"""Primitives that keep values; a maximum with minus infinity is one."""
_LINEAR = frozenset({*_SHAPES, "neg", "mul", "div", "reduce_sum", "dynamic_slice", "slice", "rev", "add_any"})
"""Primitives through which a zero cotangent passes."""


_BACKWARD = (_LINEAR | {"select_n"}) - {"div"}
_STEPS = 24
"""How many operations a value is followed back through at most."""


def _floating_variables(flow: Dataflow, step: Step) -> list[Value]:
    """The operands of a step that are floating variables."""
    return [each for each in flow.operands(step) if isinstance(each[1], Var) and is_floating(aval_of(each[1]))]


def _through_shapes(flow: Dataflow, value: Value) -> Value:
    """The value that some operations only reshaped and cast, if they made this one."""
    for _ in range(_STEPS):
        maker = flow.maker(value)
        if maker is None or maker.name not in _SHAPES:
            break
        value = next(iter(_floating_variables(flow, maker)), value)
    while flow.maker(value) is None and (operand := flow.operand_of_call(value)) is not None:
        value = operand
    return value


def _comes_from_where(flow: Dataflow, value: Value, steps: int) -> bool:
    """Whether a cotangent was chosen by the gradient of a `where`, which takes zero for what it did not choose."""
    maker = flow.maker(value)
    if maker is None or steps == 0 or not maker.site.is_backward:
        return False
    if maker.equation.primitive is p.select_n_p:
        return any(_is_zero(flow, each) for each in flow.operands(maker)[1:])
    if maker.name not in _LINEAR:
        return False
    return any(_comes_from_where(flow, operand, steps - 1) for operand in _floating_variables(flow, maker))


def _is_zero(flow: Dataflow, value: Value) -> bool:
    """Whether a value is a constant zero."""
    if isinstance(value[1], Literal):
        return value[1].val == 0
    maker = flow.maker(value)
    if maker is None or maker.equation.primitive is not p.broadcast_in_dim_p:
        return False
    return _is_zero(flow, flow.operands(maker)[0])
