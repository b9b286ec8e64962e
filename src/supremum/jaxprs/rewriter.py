"""Rewriting a jaxpr so that its equations run in other dtypes.

Only dtypes change: shapes, shardings, effects and the order of equations stay, so an equation whose dtypes are right is
kept as it is, and nothing is traced again. A `RewriteRule` decides which dtype each equation runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, new_jaxpr_eqn

from supremum.formats import DType
from supremum.jax_compat import open_jaxpr, parameter, with_constants
from supremum.jax_compat import primitives as p
from supremum.jaxprs.custom_derivatives import with_rewritten_rule
from supremum.jaxprs.equations import CALLS, CAST_SCOPE, WITH_RULE, aval_of, loop_operands
from supremum.jaxprs.rewrite_rules import RewriteAction, RewriteRecord, RewriteRule, Rewritten, Value


class Rewriter:
    """Rewrites functions as one rule says, each of them once for as long as it lives.

    Args:
        rule: what decides.
    """

    def __init__(self, rule: RewriteRule) -> None:
        self.rule = rule
        self._known: WeakKeyDictionary[Jaxpr | ClosedJaxpr, dict[Hashable, Rewritten]] = WeakKeyDictionary()

    def rewrite(
        self,
        function: Jaxpr | ClosedJaxpr,
        values: Sequence[Value],
        context: Hashable,
        results: Sequence[DType | None] | None = None,
    ) -> Rewritten:
        """A function with its equations in the dtypes that the rule says.

        Args:
            function: the function. While it lives it is rewritten once per set of arguments, so that what JAX has
                compiled of the result serves again.
            values: what is known of its operands.
            context: handed to the rule.
            results: the dtype each result must have; None leaves it as it comes.
        """
        key = (tuple(values), context, None if results is None else tuple(results))
        known = self._known.setdefault(function, {})
        if key not in known:
            known[key] = _Writer(self, function, values, context).write(results)
        return known[key]

    def rewrite_hoisting(
        self, function: Jaxpr | ClosedJaxpr, values: Sequence[Value], context: Hashable
    ) -> tuple[Rewritten, list[Value]]:
        """As `rewrite`, with operands that the function only ever narrows narrowed by its caller instead.

        A weight that is handed to two functions is then cast once. Widening stays inside, where it costs no memory.

        Returns:
            The function, and what its operands must be.
        """
        hoisted = list(values)
        rewritten = self.rewrite(function, hoisted, context)
        for index, dtype in _narrowed_only(open_jaxpr(rewritten.function)).items():
            hoisted[index] = replace(hoisted[index], dtype=dtype)
        if hoisted == list(values):
            return rewritten, hoisted
        return self.rewrite(function, hoisted, context), hoisted


def _narrowed_only(jaxpr: Jaxpr) -> dict[int, DType]:
    inputs = {var: index for index, var in enumerate(jaxpr.invars)}
    uses: dict[int, set[DType | None]] = {}
    for equation in jaxpr.eqns:
        is_cast = equation.primitive is p.convert_element_type_p
        for atom in equation.invars:
            if isinstance(atom, Var) and atom in inputs:
                uses.setdefault(inputs[atom], set()).add(parameter(equation, "new_dtype") if is_cast else None)
    for atom in jaxpr.outvars:
        if isinstance(atom, Var) and atom in inputs:
            uses.setdefault(inputs[atom], set()).add(None)
    narrowed: dict[int, DType] = {}
    for index, dtypes in uses.items():
        (dtype, *others) = dtypes
        now = aval_of(jaxpr.invars[index]).dtype
        if not others and dtype is not None and isinstance(now, np.dtype) and dtype.itemsize < now.itemsize:
            narrowed[index] = dtype
    return narrowed


class _Writer:
    """Writes one function."""

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
        """Say what a variable of the old program is in the new one; a variable of its own unless one is given."""
        self.atoms[var] = _with_dtype(var, value.dtype) if atom is None else atom
        self.values[var] = value
        return self.atoms[var]

    def value(self, atom: Any) -> Value:
        return self.rule.literal(atom) if isinstance(atom, Literal) else self.values[atom]

    def cast(self, atom: Any, dtype: DType | None, equation: JaxprEqn | None) -> Any:
        """An operand of an old equation in a dtype; each variable is cast to it at most once."""
        if isinstance(atom, Literal):
            if dtype is None or aval_of(atom).dtype == dtype:
                return atom
            return Literal(np.asarray(atom.val).astype(dtype)[()], _in_dtype(atom.aval, dtype))
        new = self.atoms[atom]
        if dtype is None or aval_of(new).dtype == dtype:
            return new
        if (new, dtype) not in self.casts:
            self.casts[new, dtype] = Var(_in_dtype(new.aval, dtype))
            params = {"new_dtype": dtype, "weak_type": False, "sharding": None}
            self.equations.append(
                new_jaxpr_eqn(
                    [new],
                    [self.casts[new, dtype]],
                    p.convert_element_type_p,
                    params,
                    set(),
                    _marked(source_info_util.new_source_info() if equation is None else equation.source_info),
                    None if equation is None else equation.ctx,
                )
            )
        return self.casts[new, dtype]

    def write(self, results: Sequence[DType | None] | None) -> Rewritten:
        for equation in self.jaxpr.eqns:
            values = [self.value(atom) for atom in equation.invars]
            action = self.rule.action_for(equation, values, self.context)
            entered = action.inside is not None
            entry = self.enter(equation, values, action) if entered else self.emit(equation, action)
            self.record.append(entry)
        outputs = list(self.jaxpr.outvars)
        found = [self.value(atom) for atom in outputs]
        if results is not None:
            found = [
                value if dtype is None else replace(value, dtype=dtype)
                for value, dtype in zip(found, results, strict=True)
            ]
        last = self.jaxpr.eqns[-1] if self.jaxpr.eqns else None
        atoms = [self.cast(atom, value.dtype, last) for atom, value in zip(outputs, found, strict=True)]
        jaxpr = self.jaxpr.replace(
            constvars=[self.atoms[var] for var in self.jaxpr.constvars],
            invars=[self.atoms[var] for var in self.jaxpr.invars],
            outvars=atoms,
            eqns=self.equations,
        )
        function = with_constants(jaxpr, self.function.consts) if isinstance(self.function, ClosedJaxpr) else jaxpr
        return Rewritten(function, tuple(found), tuple(self.record))

    def emit(self, equation: JaxprEqn, action: RewriteAction) -> RewriteRecord:
        """Write an equation as it was treated."""
        atoms = list(equation.invars)
        if action.spread is not None:
            atoms[action.spread] = self.spread(atoms[action.spread], equation)
        operands = [self.cast(atom, dtype, equation) for atom, dtype in zip(atoms, action.operands, strict=True)]
        if action.vanishes:
            self.define(equation.outvars[0], action.results[0], operands[0])
        else:
            self.append(equation, operands, action.results, action.params)
        return RewriteRecord(equation, action)

    def spread(self, var: Any, equation: JaxprEqn) -> Var:
        """An operand brought to the shape of the result; known like a variable of the old program."""
        old, result = aval_of(self.atoms[var]), aval_of(equation.outvars[0])
        if old.shape == result.shape:
            return var
        full = Var(result.update(dtype=old.dtype, weak_type=False))
        sharded = any(axis is not None for axis in result.sharding.spec)
        params = {
            "shape": result.shape,
            "broadcast_dimensions": tuple(range(len(result.shape))),
            "sharding": result.sharding if sharded else None,
        }
        self.equations.append(
            new_jaxpr_eqn(
                [self.atoms[var]], [full], p.broadcast_in_dim_p, params, set(), equation.source_info, equation.ctx
            )
        )
        self.define(full, self.values[var], full)
        return full

    def append(
        self, equation: JaxprEqn, operands: list[Any], results: Sequence[Value], params: dict[str, Any] | None
    ) -> None:
        outvars = [self.define(var, value) for var, value in zip(equation.outvars, results, strict=True)]
        self.equations.append(
            equation.replace(
                invars=operands, outvars=outvars, params=None if params is None else {**equation.params, **params}
            )
        )

    def enter(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        """Write an equation that calls functions, and its functions."""
        return _ENTER[equation.primitive.name](self, equation, values, action)

    def enter_call(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        name = CALLS[equation.primitive.name]
        function = parameter(equation, name)
        wanted = _cast_values(values, action.operands)
        if any(equation.params.get("donated_invars", ())):
            # An operand that becomes a result can only do so in the dtype of the result.
            wanted = self.with_declared(wanted, equation.invars, range(len(wanted)))
            ends = [self.rule.value(var.aval).dtype for var in equation.outvars]
            rewritten = self.rewriter.rewrite(function, wanted, action.inside, ends)
        elif equation.primitive is p.remat_p:
            # What is cast outside of a rematerialised function would be kept for its backward pass.
            rewritten = self.rewriter.rewrite(function, wanted, action.inside)
        else:
            rewritten, wanted = self.rewriter.rewrite_hoisting(function, wanted, action.inside)
        params = {name: rewritten.function}
        return self.call(equation, wanted, rewritten.results, params, action, [rewritten])

    def call(
        self,
        equation: JaxprEqn,
        wanted: Sequence[Value],
        results: Sequence[Value],
        params: dict[str, Any],
        action: RewriteAction,
        functions: Sequence[Rewritten],
    ) -> RewriteRecord:
        operands = [self.cast(atom, value.dtype, equation) for atom, value in zip(equation.invars, wanted, strict=True)]
        self.append(equation, operands, results, params)
        return RewriteRecord(equation, action, tuple(functions))

    def enter_scan(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        """The carry keeps its dtype, or it would change between the first round and the second.

        Constants are cast inside: what their gradient sums up over the rounds is then summed in their own dtype.
        """
        body, loop = parameter(equation, "jaxpr"), loop_operands(equation)
        start = self.with_declared(values, equation.invars, range(loop.first_carry, loop.first_carry + loop.carries))
        results = open_jaxpr(body).outvars
        fixed = [self.rule.value(var.aval).dtype for var in results[: loop.carries]]
        ends = [*fixed, *[None] * (len(results) - loop.carries)]
        rewritten = self.rewriter.rewrite(body, start, action.inside, ends)
        # Fills and casts by hand are known within one round only.
        results = [Value(value.dtype) for value in rewritten.results]
        return self.call(equation, start, results, {"jaxpr": rewritten.function}, action, [rewritten])

    def enter_while(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        """As `enter_scan`; the condition sees the carry too."""
        condition, body = parameter(equation, "cond_jaxpr"), parameter(equation, "body_jaxpr")
        loop = loop_operands(equation)
        cut, first = loop.condition, loop.first_carry
        start = self.with_declared(values, equation.invars, range(first, len(values)))
        carried = [value.dtype for value in start[first:]]
        asked = self.rewriter.rewrite(condition, [*start[:cut], *start[first:]], action.inside)
        looped = self.rewriter.rewrite(body, start[cut:], action.inside, carried)
        params = {"cond_jaxpr": asked.function, "body_jaxpr": looped.function}
        return self.call(equation, start, [Value(dtype) for dtype in carried], params, action, [asked, looped])

    def with_declared(self, values: Sequence[Value], atoms: Sequence[Any], carried: range) -> list[Value]:
        return [
            Value(self.rule.value(atom.aval).dtype) if index in carried else value
            for index, (value, atom) in enumerate(zip(values, atoms, strict=True))
        ]

    def enter_cond(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        """The branches meet in the widest dtype that one of them gives."""
        branches = parameter(equation, "branches")
        alone = [self.rewriter.rewrite(branch, values[1:], action.inside) for branch in branches]
        meet = [
            Value(
                None if results[0].dtype is None else self.rule.join([r.dtype for r in results if r.dtype is not None])
            )
            for results in zip(*(rewritten.results for rewritten in alone), strict=True)
        ]
        ends = [value.dtype for value in meet]
        together = [self.rewriter.rewrite(branch, values[1:], action.inside, ends) for branch in branches]
        params = {"branches": tuple(branch.function for branch in together)}
        return self.call(equation, values, meet, params, action, together)

    def enter_custom(self, equation: JaxprEqn, values: Sequence[Value], action: RewriteAction) -> RewriteRecord:
        """A function with a rule of its own, for derivatives or `vmap`, which is rewritten when it is asked for."""
        name = WITH_RULE[equation.primitive.name]
        function = parameter(equation, name)
        start = _cast_values(values, action.operands)
        ends = None
        if equation.primitive is not p.custom_jvp_call_p:
            # Its rule was written for the dtypes that it declares.
            ends = [self.rule.value(var.aval).dtype for var in open_jaxpr(function).outvars]
        rewritten = self.rewriter.rewrite(function, start, action.inside, ends)
        params = {name: rewritten.function}
        params |= with_rewritten_rule(self.rewriter, equation, start, rewritten.results, action.inside)
        return self.call(equation, start, rewritten.results, params, action, [rewritten])


_ENTER: Mapping[str, Callable[[_Writer, JaxprEqn, Sequence[Value], RewriteAction], RewriteRecord]] = {
    **dict.fromkeys(CALLS, _Writer.enter_call),
    p.scan_p.name: _Writer.enter_scan,
    p.while_p.name: _Writer.enter_while,
    p.cond_p.name: _Writer.enter_cond,
    **dict.fromkeys(WITH_RULE, _Writer.enter_custom),
}

ENTERED: frozenset[str] = frozenset(_ENTER)
"""Primitives that call functions which can be rewritten with them: `Treatment.inside` is for these only."""


def _marked(place: source_info_util.SourceInfo) -> source_info_util.SourceInfo:
    """The place of an equation, for a cast that was put before or behind it."""
    return place.replace(name_stack=place.name_stack.extend(CAST_SCOPE))


def _cast_values(values: Sequence[Value], dtypes: Sequence[DType | None]) -> list[Value]:
    return [
        value if dtype is None else replace(value, dtype=dtype) for value, dtype in zip(values, dtypes, strict=True)
    ]


@lru_cache(maxsize=4096)
def _in_dtype(aval: Any, dtype: DType) -> Any:
    return aval.update(dtype=dtype, weak_type=False)


def _with_dtype(var: Var, dtype: DType | None) -> Var:
    """The variable itself where its dtype stays."""
    if dtype is None or aval_of(var).dtype == dtype:
        return var
    return (DropVar if isinstance(var, DropVar) else Var)(_in_dtype(var.aval, dtype))
