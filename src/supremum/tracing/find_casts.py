"""Every cast in a JAX program, and what caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from supremum.errors import UnknownDtypeError
from supremum.formats import DType, as_format
from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Liveness, Sources, aval_of, largest_first, program_of, walk
from supremum.promotion import explain
from supremum.tracing.cast import Cast
from supremum.tracing.classify import CastClassifier
from supremum.tracing.expression_operands import Functions
from supremum.tracing.origins import Origins
from supremum.tracing.report import CastReport


def casts(function: Callable[..., Any]) -> Callable[..., CastReport]:
    """Find every cast that a function makes, and what caused it. Nothing is compiled or run.

    Casts inside `scan`, `while_loop`, `cond`, `checkpoint`, `vmap`, `shard_map`, nested `jit` and functions with custom
    derivatives are found too; docs/casts.md describes the limits.

    Args:
        function: any function that JAX can trace, jitted or not.

    Returns:
        A function that takes the same arguments and returns the report. A `jax.ShapeDtypeStruct` can replace an array.

    >>> import jax.numpy as jnp
    >>> report = casts(lambda x, w: jnp.sum(x * w))(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> [(cast.kind, str(cast.source), str(cast.target), cast.expression) for cast in report]
    [('promotion', 'bfloat16', 'float32', 'x * w')]
    """

    def report(*args: Any, **kwargs: Any) -> CastReport:
        return casts_of(program_of(function, args, kwargs))

    return report


def casts_of(program: ClosedJaxpr | Jaxpr) -> CastReport:
    """Find every cast in a traced program.

    Args:
        program: the result of `jax.make_jaxpr`.

    >>> import jax, jax.numpy as jnp
    >>> len(casts_of(jax.make_jaxpr(lambda x: x.astype("float16"))(1.0)))
    1
    """
    functions, sources, liveness = Functions(), Sources(), Liveness()
    origins, classifier = Origins(functions), CastClassifier(functions, sources)
    found: list[Cast] = []
    for site in walk(program):
        used = liveness.used(site)
        for operand, source, target in _conversions(site.equation):
            origin = origins.of(site)
            classified = classifier.classify(site, origin, source, target)
            place = origin.user or origin.maker
            found.append(
                Cast(
                    source=source,
                    target=target,
                    shape=operand.shape,
                    weak=operand.weak_type,
                    times=site.trips if used else 0,
                    kind=classified.kind,
                    reason=classified.reason,
                    file="" if place is None else place.file,
                    line=0 if place is None else place.line,
                    expression="" if place is None else sources.text(place),
                    path=tuple((position, sources.text(position)) for position in origin.path),
                    operands=classified.operands,
                    scope=site.path,
                    operation=site.equation.primitive.name,
                    fix=classified.fix,
                    decision=classified.decision,
                )
            )
    # The sort is stable: casts that move as many bytes stay in program order.
    return CastReport(tuple(sorted(found, key=lambda cast: largest_first(cast.total_bytes))))


def _conversions(equation: JaxprEqn) -> Iterator[tuple[Any, DType, DType]]:
    """The operands that an equation converts, each with its dtype before and after."""
    operands = [aval_of(atom) for atom in equation.invars]
    if equation.primitive is p.convert_element_type_p:
        wanted = [(operands[0], aval_of(equation.outvars[0]).dtype)]
    elif equation.primitive is p.pow_p:
        # A power accepts an integer exponent and casts it.
        wanted = [(operands[1], operands[0].dtype)]
    elif equation.primitive is p.dot_general_p:
        # A product accepts two dtypes and casts the operands, unless it names the format to read them in.
        left, right = operands
        if isinstance(parameter(equation, "precision"), (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
            return
        met = explain(left, right, rules="jax")
        target = met.dtype if met else aval_of(equation.outvars[0]).dtype
        wanted = [(left, target), (right, target)]
    else:
        return
    for operand, target in wanted:
        if operand.dtype != target and _is_format(operand.dtype) and _is_format(target):
            yield operand, operand.dtype, target


def _is_format(dtype: Any) -> bool:
    try:
        as_format(dtype)
    except UnknownDtypeError:  # a random key, or the tangent of an integer
        return False
    return True
