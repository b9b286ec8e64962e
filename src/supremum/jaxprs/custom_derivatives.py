"""Rewriting the rules of `jax.custom_jvp`, `jax.custom_vjp` and `custom_vmap` together with their functions.

JAX does not document how its equations store these rules. Derivative rules are traced functions of one flag per operand
(whether a tangent is zero, or whether a cotangent is wanted), stored beside the values of their constants. Rules of
`custom_vmap` are functions that are called with arrays. This is the same in all versions that `supremum.jax_compat`
names, and tests notice a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import linear_util
from jax.extend.core import ClosedJaxpr, JaxprEqn, jaxpr_as_fun

from supremum.jax_compat import CUSTOM_VMAP, open_jaxpr, parameter, with_constants, without_constants
from supremum.jax_compat import primitives as p
from supremum.jaxprs.array_leaves import split_arrays
from supremum.jaxprs.rewrite_rules import RewriteRule, Rewritten, Value


def with_rewritten_rule(
    equation: JaxprEqn,
    values: Sequence[Value],
    results: Sequence[Value],
    rule: RewriteRule,
    rewrite: Callable[..., Rewritten],
) -> dict[str, Any]:
    """Rewrite the parameters of an equation that hold its rule.

    Args:
        equation: a call of a function with a custom rule.
        values: the operands.
        results: the results.
        rule: the rewrite rule.
        rewrite: rewrites a function by that rule, given the operands and the dtypes of the `results`.
    """

    def keeping_dtypes(function: ClosedJaxpr) -> Any:
        """Rewrite a function so that its inputs and outputs keep their declared dtypes."""
        jaxpr = open_jaxpr(function)
        declared = [rule.value(var.aval) for var in jaxpr.invars]
        return rewrite(function, declared, results=[rule.value(atom.aval).dtype for atom in jaxpr.outvars]).function

    if equation.primitive is p.custom_jvp_call_p:
        return _forward_rule(equation, values[parameter(equation, "num_consts") :], results, rewrite)
    if equation.primitive.name == CUSTOM_VMAP:
        return {"rule": _of_arrays(parameter(equation, "rule"), keeping_dtypes)}
    return _backward_rule(equation, keeping_dtypes)


def _forward_rule(
    equation: JaxprEqn, values: Sequence[Value], results: Sequence[Value], rewrite: Callable[..., Rewritten]
) -> dict[str, Any]:
    rule = parameter(equation, "jvp_jaxpr_fun")

    def rewritten_rule(*zeros: bool) -> Any:
        jaxpr, consts, zero_results = rule.call_wrapped(*zeros)
        tangents = [value for value, zero in zip(values, zeros, strict=True) if not zero]
        operands = [*values, *(Value(value.dtype) for value in tangents)]
        ends = [value.dtype for value in results]
        ends += [end for end, zero in zip(ends, zero_results, strict=True) if not zero]
        rewritten = rewrite(with_constants(jaxpr, consts), operands, results=ends)
        return without_constants(rewritten.function), consts, zero_results

    return {"jvp_jaxpr_fun": linear_util.wrap_init(rewritten_rule, debug_info=rule.debug_info)}


def _backward_rule(equation: JaxprEqn, keeping_dtypes: Callable[[ClosedJaxpr], Any]) -> dict[str, Any]:
    forward, backward = parameter(equation, "fwd_jaxpr_thunk"), parameter(equation, "bwd")

    def rewritten_forward(*wanted: bool) -> Any:
        jaxpr, consts = forward.call_wrapped(*wanted)
        return without_constants(keeping_dtypes(with_constants(jaxpr, consts))), consts

    # Inputs and outputs need not be arrays: a cotangent may be a symbolic zero. The output is a list of cotangents, or
    # from JAX 0.12 on a pair of that list and what the rule logged.
    rewritten_backward = _of_arrays(backward.call_wrapped, keeping_dtypes)
    return {
        "fwd_jaxpr_thunk": linear_util.wrap_init(rewritten_forward, debug_info=forward.debug_info),
        "bwd": linear_util.wrap_init(rewritten_backward, debug_info=backward.debug_info),
    }


def _of_arrays(rule: Callable[..., Any], keeping_dtypes: Callable[[ClosedJaxpr], Any]) -> Callable[..., Any]:
    """Rewrite a rule that is called with trees of arrays and other values; the arrays keep their declared dtypes."""

    def rewritten(*args: Any) -> Any:
        arrays, with_arrays = split_arrays(args, _is_array)
        with_results: Any = None

        def of_arrays(*arrays: Any) -> Any:
            nonlocal with_results
            results, with_results = split_arrays(rule(*with_arrays(arrays)), _is_array)
            return results

        function = keeping_dtypes(jax.make_jaxpr(of_arrays)(*arrays))
        return with_results(jaxpr_as_fun(function)(*arrays))

    return rewritten


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array)
