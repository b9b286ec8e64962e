"""Rewriting the rules of `jax.custom_jvp`, `jax.custom_vjp` and `custom_vmap` together with their functions.

JAX does not document how its equations store these rules. Derivative rules are traced functions of one flag per operand
(whether a tangent is zero, or whether a cotangent is wanted), stored beside the values of their constants. Rules of
`custom_vmap` are functions that are called with arrays. This is the same in all versions that `supremum.jax_compat`
names, and tests notice a change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
from jax.extend import linear_util
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from supremum.jax_compat import open_jaxpr, parameter, with_constants, without_constants
from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import CUSTOM_VMAP
from supremum.jaxprs.rewrite_rules import Rewrites, Value


def with_rewritten_rule(
    rewriter: Rewrites, equation: JaxprEqn, values: Sequence[Value], results: Sequence[Value], context: Hashable
) -> dict[str, Any]:
    """Rewrite the parameters of an equation that hold its rule.

    Args:
        rewriter: the rewriter.
        equation: a call of a function with a custom rule.
        values: the operands.
        results: the results.
        context: passed to the rewrite rule.
    """
    if equation.primitive is p.custom_jvp_call_p:
        return _forward_rule(rewriter, equation, values[parameter(equation, "num_consts") :], results, context)
    if equation.primitive.name == CUSTOM_VMAP:
        return {"rule": _of_arrays(parameter(equation, "rule"), rewriter, context)}
    return _backward_rule(rewriter, equation, context)


def _forward_rule(
    rewriter: Rewrites, equation: JaxprEqn, values: Sequence[Value], results: Sequence[Value], context: Hashable
) -> dict[str, Any]:
    rule = parameter(equation, "jvp_jaxpr_fun")

    def rewritten_rule(*zeros: bool) -> Any:
        jaxpr, consts, zero_results = rule.call_wrapped(*zeros)
        tangents = [value for value, zero in zip(values, zeros, strict=True) if not zero]
        given = [*values, *(Value(value.dtype) for value in tangents)]
        ends = [value.dtype for value in results]
        ends += [end for end, zero in zip(ends, zero_results, strict=True) if not zero]
        rewritten = rewriter.rewrite(with_constants(jaxpr, consts), given, context, ends)
        return without_constants(rewritten.function), consts, zero_results

    return {"jvp_jaxpr_fun": linear_util.wrap_init(rewritten_rule, debug_info=rule.debug_info)}


def _backward_rule(rewriter: Rewrites, equation: JaxprEqn, context: Hashable) -> dict[str, Any]:
    forward, backward = parameter(equation, "fwd_jaxpr_thunk"), parameter(equation, "bwd")

    def rewritten_forward(*wanted: bool) -> Any:
        jaxpr, consts = forward.call_wrapped(*wanted)
        return without_constants(_inside(with_constants(jaxpr, consts), rewriter, context)), consts

    # Inputs and outputs need not be arrays: a cotangent may be a symbolic zero. The output is a list of cotangents, or
    # from JAX 0.12 on a pair of that list and what the rule logged.
    rewritten_backward = _of_arrays(backward.call_wrapped, rewriter, context)
    return {
        "fwd_jaxpr_thunk": linear_util.wrap_init(rewritten_forward, debug_info=forward.debug_info),
        "bwd": linear_util.wrap_init(rewritten_backward, debug_info=backward.debug_info),
    }


def _inside(function: ClosedJaxpr, rewriter: Rewrites, context: Hashable) -> Any:
    """Rewrite a function so that its inputs and outputs keep their declared dtypes."""
    jaxpr = open_jaxpr(function)
    declared = [rewriter.rule.value(var.aval) for var in jaxpr.invars]
    ends = [rewriter.rule.value(atom.aval).dtype for atom in jaxpr.outvars]
    return rewriter.rewrite(function, declared, context, ends).function


def _of_arrays(rule: Callable[..., Any], rewriter: Rewrites, context: Hashable) -> Callable[..., Any]:
    """Rewrite a rule that is called with trees of arrays and other values; the arrays keep their declared dtypes."""

    def rewritten(*args: Any) -> Any:
        given, replace_arguments = _arrays_of(args)
        replace_results: Any = None

        def of_arrays(*arrays: Any) -> Any:
            nonlocal replace_results
            results, replace_results = _arrays_of(rule(*replace_arguments(arrays)))
            return results

        function = _inside(jax.make_jaxpr(of_arrays)(*given), rewriter, context)
        return replace_results(jaxpr_as_fun(function)(*given))

    return rewritten


def _arrays_of(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The arrays in a tree, and a function that returns the tree with other arrays in their place."""
    values, structure = jax.tree.flatten(tree)

    def with_arrays(arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        return structure.unflatten(next(rest) if isinstance(value, jax.Array) else value for value in values)

    return [value for value in values if isinstance(value, jax.Array)], with_arrays
