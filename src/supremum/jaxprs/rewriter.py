"""Rewriting a jaxpr so that its equations run in other dtypes.

Only dtypes change. Shapes, shardings, effects and the order of equations stay, so nothing is traced again, and an
equation with the right dtypes is kept. A `RewriteRule` chooses the dtype of each equation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Primitive, Var

from supremum.formats import DType
from supremum.jax_compat import (
    CALLS,
    WITH_RULE,
    broadcast_equation,
    cast_equation,
    open_jaxpr,
    parameter,
    with_constants,
)
from supremum.jax_compat import primitives as p
from supremum.jaxprs.custom_derivatives import with_rewritten_rule
from supremum.jaxprs.equations import CAST_SCOPE, aval_of, loop_operands
from supremum.jaxprs.rewrite_rules import RewriteAction, RewriteRecord, RewriteRule, Rewritten, Value

_Call: TypeAlias = tuple[Sequence[Value], Sequence[Value], dict[str, Any], Sequence[Rewritten]]
"""A rewritten call: the operands, the results, the parameters that change, and the called functions."""


class Rewriter:
    """Rewrites functions by one rule and caches the results while the functions live.

    Args:
        rule: the rule that chooses the dtypes.
        casts_literals: whether literals in another dtype become equations, so that their rounding can be seen.

    >>> import jax, jax.numpy as jnp
    >>> class Following(RewriteRule):
    ...     def action_for(self, equation, values, context):
    ...         return RewriteAction(
    ...             (None,), (Value(values[0].dtype),), "follows its operand"
    ...         )
    >>> program = jax.make_jaxpr(jnp.sin)(1.0)
    >>> rewritten = Rewriter(Following()).rewrite(
    ...     program, [Value(jnp.dtype("bfloat16"))], None
    ... )
    >>> jax.extend.core.jaxpr_as_fun(rewritten.function)(jnp.bfloat16(0.5))
    [Array(0.478516, dtype=bfloat16)]
    """

    def __init__(self, rule: RewriteRule, *, casts_literals: bool = False) -> None:
        self.rule = rule
        self.casts_literals = casts_literals
        self._known: WeakKeyDictionary[Jaxpr | ClosedJaxpr, dict[Hashable, Rewritten]] = WeakKeyDictionary()

    def rewrite(
        self,
        function: Jaxpr | ClosedJaxpr,
        values: Sequence[Value],
        context: Hashable,
        results: Sequence[DType | None] | None = None,
    ) -> Rewritten:
        """Rewrite the equations of a function as the rule says.

        Args:
            function: the function. The result is cached for each set of arguments, so JAX can reuse its compiled code.
            values: what is known about the operands.
            context: passed to the rule.
            results: the dtype that each result must have; None for any.
        """
        key = (tuple(values), context, None if results is None else tuple(results))
        known = self._known.setdefault(function, {})
        if key not in known:
            known[key] = _Writer(self, function, values, context).write(results)
        return known[key]

    def rewrite_hoisting(
        self, function: Jaxpr | ClosedJaxpr, values: Sequence[Value], context: Hashable
    ) -> tuple[Rewritten, list[Value]]:
        """Like `rewrite`, but the caller narrows the operands that the function only narrows.

        A weight that two functions take is then cast once. Widening stays inside, where it costs no memory.

        Returns:
            The function, and the operands that it takes.
        """
        rewritten = self.rewrite(function, values, context)
        narrowed = _narrowed_only(open_jaxpr(rewritten.function))
        # Values without a dtype are never cast.
        dtypes = [None if value.dtype is None else narrowed.get(index) for index, value in enumerate(values)]
        hoisted = _cast_values(values, dtypes)
        return (self.rewrite(function, hoisted, context) if hoisted != list(values) else rewritten), hoisted


def _narrowed_only(jaxpr: Jaxpr) -> dict[int, DType]:
    """The operands that are only used in casts to one smaller dtype, by index, with that dtype."""
    uses: dict[Any, set[DType | None]] = {var: set() for var in jaxpr.invars}
    used: list[tuple[Any, DType | None]] = [(atom, None) for atom in jaxpr.outvars]
    for equation in jaxpr.eqns:
        dtype = parameter(equation, "new_dtype") if equation.primitive is p.convert_element_type_p else None
        used += [(atom, dtype) for atom in equation.invars]
    for atom, dtype in used:
        if isinstance(atom, Var) and atom in uses:
            uses[atom].add(dtype)
    narrowed: dict[int, DType] = {}
    for index, (var, dtypes) in enumerate(uses.items()):
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        if dtype is not None and isinstance(now := aval_of(var).dtype, np.dtype) and dtype.itemsize < now.itemsize:
            narrowed[index] = dtype
    return narrowed


class _Writer:
    """Writes the new program of one function."""

    def __init__(
        self, rewriter: Rewriter, function: Jaxpr | ClosedJaxpr, values: Sequence[Value], context: Hashable
    ) -> None:
        self.rewriter = rewriter
        self.rule = rewriter.rule
        self.function = function
        self.jaxpr = jaxpr = open_jaxpr(function)
        self.context = context
        self.equations: list[JaxprEqn] = []
        self.record: list[RewriteRecord] = []
        self.atoms: dict[Var, Any] = {}
        self.values: dict[Var, Value] = {}
        self.casts: dict[tuple[Var, DType], Var] = {}
        for var in jaxpr.constvars:
            self.define(var, replace(self.rule.value(var.aval), given=True))
        for var, value in zip(jaxpr.invars, values, strict=True):
            self.define(var, value)

    def define(self, var: Var, value: Value, atom: Any = None) -> Any:
        """Set the atom of the new program that stands for a variable of the old one; by default a new variable."""
        self.atoms[var] = _with_dtype(var, value.dtype) if atom is None else atom
        self.values[var] = value
        return self.atoms[var]

    def value(self, atom: Any) -> Value:
        return self.rule.literal(atom) if isinstance(atom, Literal) else self.values[atom]

    def cast(self, atom: Any, dtype: DType | None, equation: JaxprEqn | None) -> Any:
        """An operand of an old equation, cast to a dtype; each variable is cast to a dtype at most once."""
        if isinstance(atom, Literal):
            if dtype is None or aval_of(atom).dtype == dtype:
                return atom
            if self.rewriter.casts_literals:
                variable = Var(_in_dtype(atom.aval, dtype))
                self.equations.append(cast_equation(atom, variable, CAST_SCOPE, equation))
                return variable
            return Literal(np.asarray(atom.val).astype(dtype)[()], _in_dtype(atom.aval, dtype))
        new = self.atoms[atom]
        if dtype is None or aval_of(new).dtype == dtype:
            return new
        if (new, dtype) not in self.casts:
            self.casts[new, dtype] = Var(_in_dtype(new.aval, dtype))
            self.equations.append(cast_equation(new, self.casts[new, dtype], CAST_SCOPE, equation))
        return self.casts[new, dtype]

    def write(self, results: Sequence[DType | None] | None) -> Rewritten:
        for equation in self.jaxpr.eqns:
            values = [self.value(atom) for atom in equation.invars]
            action = self.rule.action_for(equation, values, self.context)
            functions: Sequence[Rewritten] = ()
            if action.inside is None:
                self.emit(equation, action)
            else:
                wanted, new_results, params, functions = _ENTER[equation.primitive.name](self, equation, values, action)
                pairs = zip(equation.invars, wanted, strict=True)
                self.append(
                    equation, [self.cast(atom, value.dtype, equation) for atom, value in pairs], new_results, params
                )
            self.record.append(RewriteRecord(equation, action, tuple(functions)))
        outputs = list(self.jaxpr.outvars)
        values = [self.value(atom) for atom in outputs]
        if results is not None:
            values = _cast_values(values, results)
        last = self.jaxpr.eqns[-1] if self.jaxpr.eqns else None
        atoms = [self.cast(atom, value.dtype, last) for atom, value in zip(outputs, values, strict=True)]
        jaxpr = self.jaxpr.replace(
            constvars=[self.atoms[var] for var in self.jaxpr.constvars],
            invars=[self.atoms[var] for var in self.jaxpr.invars],
            outvars=atoms,
            eqns=self.equations,
        )
        function = with_constants(jaxpr, self.function.consts) if isinstance(self.function, ClosedJaxpr) else jaxpr
        return Rewritten(function, tuple(values), tuple(self.record))

    def emit(self, equation: JaxprEqn, action: RewriteAction) -> None:
        """Write an equation that calls no functions, or whose functions stay as they are."""
        atoms = list(equation.invars)
        if action.spread is not None:
            atoms[action.spread] = self.spread(atoms[action.spread], equation)
        operands = [self.cast(atom, dtype, equation) for atom, dtype in zip(atoms, action.operands, strict=True)]
        if action.vanishes:
            self.define(equation.outvars[0], action.results[0], operands[0])
        else:
            self.append(equation, operands, action.results, action.params, action.primitive)

    def spread(self, var: Any, equation: JaxprEqn) -> Var:
        """An operand broadcast to the shape of the result, defined like a variable of the old program."""
        old, result = aval_of(self.atoms[var]), aval_of(equation.outvars[0])
        if old.shape == result.shape:
            return var
        full = Var(result.update(dtype=old.dtype, weak_type=False))
        self.equations.append(broadcast_equation(self.atoms[var], full, equation))
        self.define(full, self.values[var], full)
        return full

    def append(
        self,
        equation: JaxprEqn,
        operands: list[Any],
        results: Sequence[Value],
        params: dict[str, Any] | None,
        primitive: Primitive | None = None,
    ) -> None:
        outvars = [self.define(var, value) for var, value in zip(equation.outvars, results, strict=True)]
        merged = None if params is None else {**equation.params, **params}
        self.equations.append(
            equation.replace(invars=operands, outvars=outvars, params=merged, primitive=primitive or equation.primitive)
        )

    def enter_call(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> _Call:
        name = CALLS[equation.primitive.name]
        function = parameter(equation, name)
        operands = _cast_values(values, action.operands)
        if any(equation.params.get("donated_invars", ())):
            # A donated operand can only become a result of the same dtype.
            operands = self.with_declared(operands, equation.invars, range(len(operands)))
            ends = [self.rule.value(var.aval).dtype for var in equation.outvars]
            rewritten = self.rewriter.rewrite(function, operands, action.inside, ends)
        elif equation.primitive is p.remat_p:
            # A cast outside of a rematerialised function would be kept for its backward pass.
            rewritten = self.rewriter.rewrite(function, operands, action.inside)
        else:
            rewritten, operands = self.rewriter.rewrite_hoisting(function, operands, action.inside)
        return operands, rewritten.results, {name: rewritten.function}, [rewritten]

    def enter_scan(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> _Call:
        """Write a `scan`. The carry keeps its dtype, because it must be the same in every iteration.

        Constants are cast inside, so their gradient is summed over the iterations in the dtype of the constants.
        """
        body, loop = parameter(equation, "jaxpr"), loop_operands(equation)
        start = self.with_declared(values, equation.invars, range(loop.first_carry, loop.first_carry + loop.carries))
        results = open_jaxpr(body).outvars
        fixed = [self.rule.value(var.aval).dtype for var in results[: loop.carries]]
        ends = [*fixed, *[None] * (len(results) - loop.carries)]
        rewritten = self.rewriter.rewrite(body, start, action.inside, ends)
        # Literals and explicit casts are known only within one iteration.
        results = [Value(value.dtype) for value in rewritten.results]
        return start, results, {"jaxpr": rewritten.function}, [rewritten]

    def enter_while(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> _Call:
        """Write a `while`, like `enter_scan`; the condition takes the carry too."""
        condition, body = parameter(equation, "cond_jaxpr"), parameter(equation, "body_jaxpr")
        loop = loop_operands(equation)
        cut, first = loop.condition, loop.first_carry
        start = self.with_declared(values, equation.invars, range(first, len(values)))
        carried = [value.dtype for value in start[first:]]
        rewritten_condition = self.rewriter.rewrite(condition, [*start[:cut], *start[first:]], action.inside)
        rewritten_body = self.rewriter.rewrite(body, start[cut:], action.inside, carried)
        params = {"cond_jaxpr": rewritten_condition.function, "body_jaxpr": rewritten_body.function}
        return start, [Value(dtype) for dtype in carried], params, [rewritten_condition, rewritten_body]

    def with_declared(self, values: Sequence[Value], atoms: Sequence[Any], carried: range) -> list[Value]:
        return [
            Value(self.rule.value(atom.aval).dtype) if index in carried else value
            for index, (value, atom) in enumerate(zip(values, atoms, strict=True))
        ]

    def enter_cond(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> _Call:
        """Write a `cond`. The results of its branches are cast to the widest dtype among them."""
        branches = parameter(equation, "branches")
        separate = [self.rewriter.rewrite(branch, values[1:], action.inside).results for branch in branches]
        ends = [
            None if results[0].dtype is None else self.rule.join([r.dtype for r in results if r.dtype is not None])
            for results in zip(*separate, strict=True)
        ]
        rewritten = [self.rewriter.rewrite(branch, values[1:], action.inside, ends) for branch in branches]
        return values, list(map(Value, ends)), {"branches": tuple(branch.function for branch in rewritten)}, rewritten

    def enter_custom(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> _Call:
        """Write a call of a function with a custom rule for derivatives or `vmap`, which is rewritten when used."""
        name = WITH_RULE[equation.primitive.name]
        function = parameter(equation, name)
        start = _cast_values(values, action.operands)
        ends = None
        if equation.primitive is not p.custom_jvp_call_p:
            # The rule expects the declared dtypes.
            ends = [self.rule.value(var.aval).dtype for var in open_jaxpr(function).outvars]
        rewrite = partial(self.rewriter.rewrite, context=action.inside)
        rewritten = rewrite(function, start, results=ends)
        params = {name: rewritten.function}
        params |= with_rewritten_rule(equation, start, rewritten.results, self.rule, rewrite)
        return start, rewritten.results, params, [rewritten]


_ENTER: Mapping[str, Callable[[_Writer, JaxprEqn, Sequence[Value], RewriteAction], _Call]] = {
    **dict.fromkeys(CALLS, _Writer.enter_call),
    p.scan_p.name: _Writer.enter_scan,
    p.while_p.name: _Writer.enter_while,
    p.cond_p.name: _Writer.enter_cond,
    **dict.fromkeys(WITH_RULE, _Writer.enter_custom),
}

ENTERED: frozenset[str] = frozenset(_ENTER)
"""Primitives whose functions can be rewritten with them; `RewriteAction.inside` is only for these.

>>> "scan" in ENTERED, "while" in ENTERED, "pallas_call" in ENTERED
(True, True, False)
"""


def _cast_values(values: Sequence[Value], dtypes: Sequence[DType | None]) -> list[Value]:
    return [
        value if dtype is None else replace(value, dtype=dtype) for value, dtype in zip(values, dtypes, strict=True)
    ]


@lru_cache(maxsize=4096)
def _in_dtype(aval: Any, dtype: DType) -> Any:
    return aval.update(dtype=dtype, weak_type=False)


def _with_dtype(var: Var, dtype: DType | None) -> Var:
    """A variable with a dtype; the same variable if it has that dtype already."""
    if dtype is None or aval_of(var).dtype == dtype:
        return var
    return (DropVar if isinstance(var, DropVar) else Var)(_in_dtype(var.aval, dtype))
