"""The decision in which dtype autocast runs each equation of a program, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from jax import lax
from jax.extend.core import JaxprEqn, Literal

from supremum import jaxprs
from supremum.formats import DType, as_format
from supremum.jax_compat import function_place, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import RewriteAction, Value, aval_of
from supremum.mixed_precision.autocasting import operations
from supremum.mixed_precision.autocasting.settings import CASTABLE, Settings, castable, fitting, foreign, join

_FLOAT32 = as_format("float32").dtype

WRITTEN_FOR_DTYPES: Mapping[str, str] = MappingProxyType(
    {p.custom_vjp_call_p.name: "backward function", jaxprs.CUSTOM_VMAP: "rule for vmap"}
)
"""Primitives that call a function with a user's rule for fixed dtypes; autocast enters them only on request."""


class EquationNote(NamedTuple):
    """The dtype in which an equation runs, and the reason.

    Args:
        dtype: the dtype; None if the equation has no castable floats.
        reason: the reason.
        scopes: the named scopes around the equation, within its function.
        unasked: whether the equation is left alone without a request by the user.
    """

    dtype: DType | None
    reason: str
    scopes: tuple[str, ...]
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of a function.

    Args:
        scopes: the named scopes around its call; only kept if the policy depends on the path.
        rule: the rule for all operations inside, if `ops` has one for the function's name.
    """

    scopes: tuple[str, ...] = ()
    rule: str = ""


class AutocastRule:
    """The rewrite rule for one set of autocast settings.

    Args:
        settings: the policy and the other settings.
        rows: the row of each primitive.
    """

    def __init__(self, settings: Settings, rows: Iterable[operations.Row]) -> None:
        self.settings = settings
        self.rows: MappingProxyType[str, operations.Row] = MappingProxyType({row.name: row for row in rows})

    def value(self, aval: object) -> Value:
        """Describe an input; a weak one follows the other operands as Python numbers do."""
        dtype = castable(aval)
        return Value(dtype, fits=CASTABLE if dtype is not None and getattr(aval, "weak_type", False) else None)

    def literal(self, literal: Literal) -> Value:
        """Describe a number in the program, which follows the other operands if their dtype can hold it."""
        dtype = castable(literal.aval)
        return Value(dtype) if dtype is None else Value(dtype, fits=fitting(float(literal.val)))

    def join(self, dtypes: Sequence[DType]) -> DType:
        """Return the smallest dtype that holds all of these dtypes."""
        return join(frozenset(dtypes))

    def action_for(self, equation: JaxprEqn, values: Sequence[Value], context: Context) -> RewriteAction:
        """Decide in which dtype an equation runs."""
        return _EquationDecision(self, equation, values, context).action()


class _EquationDecision:
    """The decision about one equation."""

    def __init__(self, rule: AutocastRule, equation: JaxprEqn, values: Sequence[Value], context: Context) -> None:
        self.settings = rule.settings
        self.equation = equation
        self.values = values
        self.context = context
        self.name = jaxprs.operation_of(equation)
        self.row = rule.rows.get(self.name)
        self.floats = [i for i, value in enumerate(values) if value.dtype is not None]
        self.scopes = jaxprs.scopes_of(equation)

    @property
    def unasked(self) -> bool:
        """Whether the user did not ask to leave this equation, or its function, as it is."""
        return self.settings.ops.get(self.name) != operations.DECLARED and self.context.rule != operations.FLOAT32

    @property
    def compute(self) -> DType:
        return self.settings.compute_dtype((*self.context.scopes, *self.scopes))

    def note(self, dtype: DType | None, reason: str) -> EquationNote:
        return EquationNote(dtype, reason, self.scopes)

    def action(self) -> RewriteAction:
        if operations.DISABLED_SCOPE in self.scopes:
            return self.left_alone("inside autocast.disabled()")
        if operations.DECIDED_SCOPE in self.scopes:
            return self.left_alone("decided by an inner autocast")
        if self.name == p.convert_element_type_p.name:
            return self.conversion()
        if self.name in jaxprs.ENTERED:
            return self.call()
        if not self.floats:
            return self.left_alone("has no float operands that autocast casts")
        for atom in (*self.equation.invars, *self.equation.outvars):
            if (dtype := foreign(atom.aval)) is not None:
                return self.left_alone(f"takes or returns {dtype}, which is never cast")
        return self.by_rule()

    def left_alone(self, reason: str, *, unasked: bool = False) -> RewriteAction:
        declared = tuple(castable(atom.aval) for atom in self.equation.invars)
        dtype = next((each for each in declared if each is not None), None)
        results = tuple(Value(castable(var.aval)) for var in self.equation.outvars)
        return RewriteAction(declared, results, EquationNote(dtype, reason, self.scopes, unasked))

    # Conversions

    def conversion(self) -> RewriteAction:
        """Decide about a cast in the program: a cast by hand, or a number that takes the dtype of an array."""
        (value,), (source,), (result,) = self.values, self.equation.invars, self.equation.outvars
        old, new = castable(source.aval), castable(result.aval)
        if old is None or new is None:
            return RewriteAction((None,), (Value(new),), self.note(new, "converts from or to another kind of number"))
        if aval_of(source).weak_type and aval_of(source).ndim == 0:
            return self.converted(Value(new, value.fits), "a number takes the dtype of the other operands")
        if old == new:
            return self.converted(value, "does not change the dtype")
        respects_cast = self.settings.respect_explicit_casts
        return self.converted(
            Value(new, held=respects_cast), "cast by hand" if respects_cast else "cast by hand, ignored"
        )

    def converted(self, result: Value, reason: str) -> RewriteAction:
        return RewriteAction((result.dtype,), (result,), self.note(result.dtype, reason), vanishes=True)

    # Calls of functions

    def call(self) -> RewriteAction:
        function = jaxprs.name_of_call(self.equation)
        if function == operations.KEEP_CALL:
            dtype = castable(self.equation.outvars[0].aval)
            if dtype is not None and self.floats:
                return self.converted(Value(dtype, held=True), "cast by autocast.astype")
        asked = self.settings.ops.get(function, "") if function else ""
        if asked == operations.DECLARED:
            return self.left_alone(f"ops leaves {function!r} alone")
        row = None if asked or self.context.rule else self.function_row(function)
        written_for = WRITTEN_FOR_DTYPES.get(self.name)
        if written_for and not asked:
            return self.left_alone(f"its {written_for} was written for the dtypes it declares", unasked=self.unasked)
        rule = self.context.rule or ("" if asked == operations.INSIDE else asked) or ("" if row is None else row.rule)
        scopes = (*self.context.scopes, *self.scopes) if self.settings.by_path else ()
        operands = tuple(castable(atom.aval) if written_for else None for atom in self.equation.invars)
        why = f"ops runs {function!r} in {asked}" if asked else "a function" if row is None else row.reason
        return RewriteAction(operands, (), self.note(None, why), inside=Context(scopes, rule))

    def function_row(self, name: str) -> operations.Row | None:
        """Return the row of a function that JAX jits; None for a user's function of the same name."""
        if name not in operations.FUNCTIONS:
            return None
        file = function_place(jaxprs.callees(self.equation)[0].jaxpr).rpartition(":")[0]
        return operations.FUNCTIONS[name] if jaxprs.owner_of(file) == jaxprs.BETWEEN else None

    # Everything else

    @property
    def asked(self) -> str:
        """The rule that `ops` sets in place of the row's rule; empty for none."""
        return self.context.rule or self.settings.ops.get(self.name, "")

    @property
    def rule(self) -> tuple[str, str]:
        """The rule of the equation, and the reason for it."""
        row, asked = self.row, self.asked
        # A rule for a whole function does not apply to operations in it that cannot be cast.
        if row is not None and (not asked or (row.rule == operations.DECLARED and self.context.rule)):
            return row.rule, row.reason
        return (asked, "set by ops") if asked else (operations.DECLARED, "autocast has no row for it")

    def by_rule(self) -> RewriteAction:
        rule, reason = self.rule
        if rule == operations.DECLARED:
            registered = self.row is not None and self.row not in operations.BUILT_IN
            return self.left_alone(reason, unasked=self.unasked and not registered)
        if rule == operations.EACH:
            return self.each(reason)
        if rule == operations.WIDEST:
            return self.in_widest(reason)
        dtypes = frozenset(_dtype(value) for value in self.strong if value.held)
        if dtypes and not self.asked:
            wide = self.compute if rule == operations.COMPUTE else _FLOAT32
            # An operand that was not cast by hand follows one that was, unless its dtype is wider.
            follows = all(value.held for value in self.strong) or wide.itemsize <= join(dtypes).itemsize
            return self.cast_to(join(dtypes if follows else dtypes | {wide}), "takes a value that was cast by hand")
        if isinstance(self.equation.params.get("precision"), (lax.DotAlgorithm, lax.DotAlgorithmPreset)):
            return self.left_alone("sets an algorithm, which determines the dtypes")
        if rule == operations.COMPUTE:
            return self.cast_to(self.compute, reason, Value(self.compute, sides=self.sides))
        return self.cast_to(_FLOAT32 if rule == operations.FLOAT32 else as_format(rule).dtype, reason)

    def in_widest(self, reason: str) -> RewriteAction:
        row, widest = self.row, self.widest
        if row is not None and row.moves:
            return self.cast_to(widest, reason, self.moved(widest, row))
        exception = "" if row is None or self.asked else row.exception
        is_reciprocal = exception == operations.RECIPROCAL and len(self.floats) == 2 and self.values[0].fits is not None
        is_square = exception == operations.SQUARE and self.equation.invars[0] is self.equation.invars[1]
        if is_reciprocal or is_square:
            return self.cast_to(_FLOAT32, operations.EXCEPTIONS[exception])
        bias = self.bias if exception == operations.BIAS else None
        if bias is not None:
            # Broadcast first, then cast: otherwise the gradient of the bias is summed in 16 bits, with an error of a
            # fifth after some thousand examples.
            narrow = _dtype(self.values[1 - bias])
            return replace(self.cast_to(narrow, operations.EXCEPTIONS[exception]), spread=bias)
        return self.cast_to(widest, reason)

    @property
    def sides(self) -> tuple[frozenset[int], ...]:
        """For a product: the axes of the result that come from one operand only, for each operand that is an input."""
        if self.name == p.dot_general_p.name:
            (left, right), (batch, _) = parameter(self.equation, "dimension_numbers")
            ranks = [aval_of(atom).ndim for atom in self.equation.invars[:2]]
            free = [rank - len(contracted) - len(batch) for rank, contracted in zip(ranks, (left, right), strict=True)]
            first = len(batch)
            axes = (frozenset(range(first, first + free[0])), frozenset(range(first + free[0], first + sum(free))))
        elif self.name == p.conv_general_dilated_p.name:
            axes = (frozenset[int](), frozenset([parameter(self.equation, "dimension_numbers").out_spec[1]]))
        else:
            return ()
        return tuple(side for side, value in zip(axes, self.values, strict=False) if value.given and side)

    @property
    def bias(self) -> int | None:
        """The index of a layer's bias: a wider vector that is added to a product along the axes of one operand."""
        if len(self.strong) != 2:
            return None
        for product, other in ((0, 1), (1, 0)):
            vector, (value, bias) = (
                aval_of(self.equation.invars[other]),
                (self.values[product], self.values[other]),
            )
            axes = {axis for axis, length in enumerate(vector.shape) if length != 1}
            if value.sides and bias.given and _dtype(value).itemsize < _dtype(bias).itemsize:
                return other if any(axes <= side for side in value.sides) else None
        return None

    @property
    def strong(self) -> list[Value]:
        """The float operands that determine the dtype; numbers follow them."""
        return [self.values[i] for i in self.floats if self.values[i].fits is None]

    @property
    def widest(self) -> DType:
        strong = self.strong
        if not strong:
            return join(frozenset(_dtype(self.values[i]) for i in self.floats))
        dtype = join(frozenset([_dtype(value) for value in strong]))
        # A number that the dtype cannot hold, such as an epsilon or a mask of -1e9 in float16, does not follow.
        beyond = [_dtype(v) for v in self.values if v.fits is not None and v.dtype is not None and dtype not in v.fits]
        return join(frozenset([dtype, *beyond]))

    def moved(self, dtype: DType, row: operations.Row) -> Value:
        """Describe a value that was only moved."""
        strong = self.strong
        if strong:
            alone = strong[0] if len(strong) == len(self.floats) == 1 else Value(dtype)
            is_explicit = all(value.held for value in strong)
            return Value(dtype, held=is_explicit, given=alone.given, sides=self.transposed(alone.sides))
        return Value(dtype, self.values[self.floats[0]].fits if row.fills and len(self.floats) == 1 else None)

    def transposed(self, sides: tuple[frozenset[int], ...]) -> tuple[frozenset[int], ...]:
        """Return the axes of a product after a transpose; empty after any other move."""
        if not sides or self.name != p.transpose_p.name:
            return ()
        order = list(parameter(self.equation, "permutation"))
        return tuple(frozenset(order.index(axis) for axis in side) for side in sides)

    def each(self, reason: str) -> RewriteAction:
        values = [*self.values, *[Value(None)] * len(self.equation.outvars)]
        results = tuple(
            Value(None if castable(var.aval) is None else value.dtype, held=value.held)
            for var, value in zip(self.equation.outvars, values, strict=False)
        )
        return RewriteAction((None,) * len(self.values), results, self.note(results[0].dtype, reason))

    def cast_to(self, dtype: DType, reason: str, result: Value | None = None) -> RewriteAction:
        """Run the equation with all its float operands in one dtype."""
        operands = tuple(None if value.dtype is None else dtype for value in self.values)
        declared = join(frozenset([aval_of(self.equation.invars[i]).dtype for i in self.floats]))
        # A result keeps a dtype that differs from its operands': the program set it, as a preferred element type.
        own = [castable(var.aval) for var in self.equation.outvars]
        results = tuple(Value(d) if d is None or d != declared else (result or Value(dtype)) for d in own)
        has_type = self.equation.params.get("preferred_element_type") is not None and results[0].dtype is not None
        params = {"preferred_element_type": results[0].dtype} if has_type else None
        return RewriteAction(operands, results, self.note(dtype, reason), params)


def _dtype(value: Value) -> DType:
    assert value.dtype is not None
    return value.dtype
