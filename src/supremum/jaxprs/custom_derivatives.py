"""Rules of `jax.custom_jvp`, `jax.custom_vjp` and `custom_vmap`, rewritten together with their functions.

How JAX keeps those rules in its equations is promised by no document: those of derivatives as traced functions of one
flag per operand (whether a tangent is zero, or whether a cotangent is wanted), beside the values of their constants;
those of `custom_vmap` as functions that are called with arrays. It is the same in the versions that
`supremum.jax_compat` names, and the tests notice when it moves.
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
    """The parameters of an equation that hold its rule, rewritten.

    Args:
        rewriter: who rewrites.
        equation: a call of a function with a rule of its own.
        values: what is known of the operands that it gets.
        results: what is known of its results.
        context: handed to the rule.
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
        ends = [value.dtype for value in results]
        tangent_ends = [end for end, zero in zip(ends, zero_results, strict=True) if not zero]
        rewritten = rewriter.rewrite(
            with_constants(jaxpr, consts), [*values, *map(_computed, tangents)], context, [*ends, *tangent_ends]
        )
        return without_constants(rewritten.function), consts, zero_results

    return {"jvp_jaxpr_fun": linear_util.wrap_init(rewritten_rule, debug_info=rule.debug_info)}


def _backward_rule(rewriter: Rewrites, equation: JaxprEqn, context: Hashable) -> dict[str, Any]:
    forward, backward = parameter(equation, "fwd_jaxpr_thunk"), parameter(equation, "bwd")

    def rewritten_forward(*wanted: bool) -> Any:
        jaxpr, consts = forward.call_wrapped(*wanted)
        return without_constants(_inside(with_constants(jaxpr, consts), rewriter, context)), consts

    # Not everything that goes in and comes out is an array: a cotangent may be a symbol for zero. What comes out is a
    # list of cotangents, and from JAX 0.12 on a pair of that and of what the rule logged.
    rewritten_backward = _of_arrays(backward.call_wrapped, rewriter, context)
    return {
        "fwd_jaxpr_thunk": linear_util.wrap_init(rewritten_forward, debug_info=forward.debug_info),
        "bwd": linear_util.wrap_init(rewritten_backward, debug_info=backward.debug_info),
    }


def _inside(function: ClosedJaxpr, rewriter: Rewrites, context: Hashable) -> Any:
    """The function with everything it takes and gives in the dtypes it declares."""
    jaxpr = open_jaxpr(function)
    declared = [rewriter.rule.value(var.aval) for var in jaxpr.invars]
    ends = [rewriter.rule.value(atom.aval).dtype for atom in jaxpr.outvars]
    return rewriter.rewrite(function, declared, context, ends).function


def _of_arrays(rule: Callable[..., Any], rewriter: Rewrites, context: Hashable) -> Callable[..., Any]:
    """A rule that is called with trees of arrays and other things, with the arrays in the dtypes it declares."""

    def rewritten(*args: Any) -> Any:
        given, put = _arrays_of(args)
        out: Any = None

        def of_arrays(*arrays: Any) -> Any:
            nonlocal out
            results, out = _arrays_of(rule(*put(arrays)))
            return results

        function = _inside(jax.make_jaxpr(of_arrays)(*given), rewriter, context)
        return out(jaxpr_as_fun(function)(*given))

    return rewritten


def _arrays_of(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The arrays in a tree, and a function that puts others in their places."""
    values, structure = jax.tree.flatten(tree)
    is_array = [isinstance(value, jax.Array) for value in values]

    def put(arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        return jax.tree.unflatten(
            structure, [next(rest) if array else value for value, array in zip(values, is_array, strict=True)]
        )

    return [value for value, array in zip(values, is_array, strict=True) if array], put


def _computed(value: Value) -> Value:
    return type(value)(value.dtype)
