"""The equations of a jaxpr and of the functions that it calls: their scopes, how often they run, which are used.

JAX drops equations that the results do not depend on before the program runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from typing import Any, Final

import jax
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from supremum.argument_checks import instance
from supremum.bounded_cache import Bounded
from supremum.errors import OperandError, shown
from supremum.jax_compat import CALLS, WITH_RULE, function_name, is_transposed, open_jaxpr, parameter, scope_names
from supremum.jax_compat import primitives as p

CAST_SCOPE: Final = "supremum.autocast.cast"
"""The `jax.named_scope` of the casts that autocast inserts, and of their gradients."""
ON_DEVICE: Final = "_on_device"
"""How the names of primitives end that compute a product of JAX as a device does; see `supremum.numerics.on`."""
# Calls whose function has the same results as the equation.
_SAME_RESULTS = frozenset({*CALLS, p.cond_p.name, p.custom_jvp_call_p.name, p.custom_vjp_call_p.name})


def as_equation(equation: object) -> JaxprEqn:
    """Check that the argument is an equation of a jaxpr.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("equation", equation, JaxprEqn, "an equation of jax.make_jaxpr(...)(...).eqns")


def scopes_of(equation: JaxprEqn) -> tuple[str, ...]:
    """The names of the `jax.named_scope` blocks around an equation, outermost first.

    Flax layers are named scopes. The names exclude transformations (`jvp`, `transpose`, `vmap`), so the backward pass
    of a layer has the scopes of its forward pass.

    >>> import jax
    >>> def double(x):
    ...     with jax.named_scope("encoder"), jax.named_scope("norm"):
    ...         return 2 * x
    >>> scopes_of(jax.make_jaxpr(jax.grad(double))(1.0).eqns[0])
    ('encoder', 'norm')
    """
    return scope_names(as_equation(equation).source_info.name_stack)


def is_backward(equation: JaxprEqn) -> bool:
    """Whether an equation belongs to a backward pass.

    >>> import jax
    >>> [
    ...     is_backward(equation)
    ...     for equation in jax.make_jaxpr(jax.grad(jax.numpy.sin))(1.0).eqns
    ... ]
    [False, False, True]
    """
    return is_transposed(equation.source_info.name_stack)


def operation_of(equation: JaxprEqn) -> str:
    """The name of an equation's primitive; for a product on a device, that of JAX's product.

    >>> import jax
    >>> operation_of(jax.make_jaxpr(lambda x: 2 * x)(1.0).eqns[0])
    'mul'
    """
    return as_equation(equation).primitive.name.removesuffix(ON_DEVICE)


def name_of_call(equation: JaxprEqn) -> str:
    """The name of the function that an equation calls; empty if there is no function or it has no name.

    >>> import jax
    >>> name_of_call(jax.make_jaxpr(jax.nn.relu)(1.0).eqns[0])
    'relu'
    """
    if "name" in as_equation(equation).params and equation.primitive is p.jit_p:
        return str(equation.params["name"])
    function = equation.params.get(WITH_RULE.get(equation.primitive.name, "call_jaxpr"))
    return "" if function is None else function_name(open_jaxpr(function))


def aval_of(atom: Var | Literal) -> Any:
    """The abstract value of an operand or a result. `Any`, because JAX's type lacks the shape and the dtype.

    >>> import jax
    >>> (equation,) = jax.make_jaxpr(lambda x: x.astype("bfloat16"))(
    ...     jax.numpy.ones(3)
    ... ).eqns
    >>> aval_of(equation.invars[0]).dtype, aval_of(equation.outvars[0]).dtype
    (dtype('float32'), dtype(bfloat16))
    """
    if not isinstance(atom, (Var, Literal)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OperandError(f"atom must be an operand or a result of an equation, got {shown(atom)}.")
    return atom.aval


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that an equation calls.

    Args:
        parameter: the parameter of the equation that holds the function.
        function: the function, with the values of its constants if the equation holds them.
        trips: how often one run of the equation runs the function; None if only the run can tell. Each branch of a
            `cond` counts as one run.

    >>> import jax
    >>> loop = jax.make_jaxpr(
    ...     lambda x: jax.lax.while_loop(lambda c: c < 9, lambda c: 2 * c, x)
    ... )(1.0).eqns[0]
    >>> [
    ...     (callee.parameter, callee.jaxpr.eqns[0].primitive.name, callee.trips)
    ...     for callee in callees(loop)
    ... ]
    [('cond_jaxpr', 'lt', None), ('body_jaxpr', 'mul', None)]
    """

    parameter: str
    function: Jaxpr | ClosedJaxpr
    trips: int | None

    @property
    def jaxpr(self) -> Jaxpr:
        """The function, without the values of its constants."""
        return open_jaxpr(self.function)


def callees(equation: JaxprEqn) -> tuple[Callee, ...]:
    """The functions that an equation calls, for any primitive.

    The primitives of some libraries do not have their function as a parameter, such as `linear_solve` of lineax. Their
    function is then what they run when they are not compiled.

    >>> import jax, jax.numpy as jnp
    >>> total = jax.make_jaxpr(
    ...     lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + x, x)
    ... )(1.0).eqns[-1]
    >>> [(callee.parameter, callee.trips) for callee in callees(total)]
    [('jaxpr', 3)]
    """
    functions = tuple(
        Callee(name, function, _trips(equation))
        for name, value in as_equation(equation).params.items()
        for function in (value if isinstance(value, (tuple, list)) else (value,))
        if isinstance(function, (Jaxpr, ClosedJaxpr))
    )
    package = getattr(equation.primitive.impl, "__module__", "jax").partition(".")[0]
    if functions or package in _WITHOUT_FUNCTION:
        return functions
    known = _implementations.get(id(equation))
    if known is None:
        known = _implementations[id(equation)] = equation, _implementation(equation)
    return known[1]


# Primitives of JAX compute one operation, as do ours; JAX binds theirs with a `functools.partial`.
_WITHOUT_FUNCTION = frozenset({"jax", "functools", "supremum"})
# Keyed by id; the values keep the equations alive.
_implementations: Bounded[int, tuple[JaxprEqn, tuple[Callee, ...]]] = Bounded(4096)


def _implementation(equation: JaxprEqn) -> tuple[Callee, ...]:
    """The function of a library's primitive, at the place of the equation; nothing if JAX cannot trace it."""
    impl = partial(equation.primitive.impl, **equation.params)
    try:
        avals = map(aval_of, equation.invars)
        operands = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]
        with source_info_util.user_context(equation.source_info.traceback):
            return (Callee("impl", jax.make_jaxpr(impl)(*operands), 1),)
    except Exception:  # it may be written for arrays with values, or in another language
        return ()


def _trips(equation: JaxprEqn) -> int | None:
    if equation.primitive is p.scan_p:
        return parameter(equation, "length")  # an expression if the size of the axis is symbolic
    return None if equation.primitive is p.while_p else 1


@dataclass(frozen=True, slots=True)
class LoopOperands:
    """How the operands of a `scan` or a `while` are divided.

    Args:
        condition: the number of operands that only the condition of a `while` takes; they come first.
        constants: the number of operands that the body takes unchanged in every iteration.
        carries: the number of carried operands; they are also the first results.

    >>> import jax
    >>> loop = jax.make_jaxpr(
    ...     lambda x, w: jax.lax.while_loop(lambda c: c < 9, lambda c: c + w, x)
    ... )(1.0, 2.0).eqns[-1]
    >>> loop_operands(loop)
    LoopOperands(condition=0, constants=1, carries=1)
    """

    condition: int
    constants: int
    carries: int

    @property
    def first_carry(self) -> int:
        """The index of the first carried operand."""
        return self.condition + self.constants


def loop_operands(equation: JaxprEqn) -> LoopOperands:
    """How the operands of a `scan` or a `while` are divided.

    This is read from the body: the stacked inputs and outputs of a `scan` have one axis more outside of the body, and
    the body of a `while` returns only the carries. JAX also stores the counts, but under names that change.

    Args:
        equation: a `scan` or a `while`.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(
    ...     lambda w, x: jax.lax.scan(lambda c, t: (c * w + t, c), w, x)
    ... )(1.0, jnp.ones(3))
    >>> loop_operands(looped.eqns[-1])
    LoopOperands(condition=0, constants=1, carries=1)
    """
    if as_equation(equation).primitive is p.while_p:
        body = open_jaxpr(parameter(equation, "body_jaxpr"))
        carries = len(body.outvars)
        return LoopOperands(len(equation.invars) - len(body.invars), len(body.invars) - carries, carries)
    body = open_jaxpr(parameter(equation, "jaxpr"))
    carries = _unstacked(equation.outvars, body.outvars)
    return LoopOperands(0, _unstacked(equation.invars, body.invars) - carries, carries)


def _unstacked(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    return sum(len(aval_of(out).shape) == len(aval_of(own).shape) for out, own in zip(outside, inside, strict=True))


def line_of(equation: JaxprEqn) -> str:
    """The user's line that an equation comes from, as `file:line:column (function)`.

    >>> import jax
    >>> line_of(jax.make_jaxpr(lambda x: 2 * x)(1.0).eqns[0])  # doctest: +ELLIPSIS
    '...:1:33 (<lambda>)'
    """
    return source_info_util.summarize(as_equation(equation).source_info)


@dataclass(frozen=True, slots=True)
class Site:
    """An equation and its place in the program.

    Args:
        equation: the equation.
        number: its number in the program, in the order of `walk`.
        scopes: the `jax.named_scope` blocks around it, those of the calling equations first.
        callers: the equations that call the function that contains it, outermost first.
        trips: how often it runs when the whole program runs once; None if only the run can tell.
        function: the function that contains it.
        index: its index in the equations of that function.
        caller: the site of the innermost caller; None in the program itself.
        demand: which values of the function are needed.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(
    ...     lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=5)
    ... )(1.0)
    >>> site = list(walk(looped))[1]
    >>> (
    ...     site.equation.primitive,
    ...     site.trips,
    ...     [caller.primitive for caller in site.callers],
    ... )
    (sin, 5, [scan])
    """

    equation: JaxprEqn
    number: int
    scopes: tuple[str, ...]
    callers: tuple[JaxprEqn, ...]
    trips: int | None
    function: Jaxpr = field(repr=False, compare=False)
    index: int = field(compare=False)
    caller: Site | None = field(repr=False, compare=False)
    demand: _Demand = field(repr=False, compare=False)

    @property
    def path(self) -> str:
        """The scopes as one path, such as `"encoder/0/norm"`."""
        return "/".join(scope for scope in self.scopes if scope != CAST_SCOPE)

    @property
    def chain(self) -> tuple[Site, ...]:
        """The sites of the calls that lead to it, outermost first, and the site itself."""
        chain: list[Site] = [self]
        while chain[-1].caller is not None:
            chain.append(chain[-1].caller)
        return tuple(reversed(chain))

    @property
    def is_backward(self) -> bool:
        """Whether the equation, or one that calls its function, belongs to a backward pass."""
        return any(map(is_backward, (self.equation, *self.callers)))

    @property
    def used(self) -> bool:
        """Whether the results of the program depend on the equation, or it has effects.

        False is certain. True may not be: every operand of a used call counts as used, even if the called function
        ignores it.
        """
        needed = self.demand.needed
        if needed is None:
            return False
        return bool(self.equation.effects) or any(var in needed for var in self.equation.outvars)


def walk(function: Jaxpr | ClosedJaxpr) -> Iterator[Site]:
    """Iterate over the equations of a jaxpr; the equations of a called function follow the one that calls it.

    A function that is called twice is walked twice, because its equations run twice.

    >>> import jax, jax.numpy as jnp
    >>> looped = jax.make_jaxpr(
    ...     lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=5)
    ... )(1.0)
    >>> [(site.equation.primitive.name, site.trips) for site in walk(looped)]
    [('scan', 1), ('sin', 5)]
    """
    # Not recursive, because programs nest deeper than Python recurses.
    numbers = count()
    pending = [_sites(open_jaxpr(function), None, 1, numbers)]
    while pending:
        site = next(pending[-1], None)
        if site is None:
            pending.pop()
            continue
        yield site
        for callee in reversed(callees(site.equation)):
            trips = None if site.trips is None or callee.trips is None else site.trips * callee.trips
            pending.append(_sites(callee.jaxpr, site, trips, numbers))


def _sites(jaxpr: Jaxpr, caller: Site | None, trips: int | None, numbers: Iterator[int]) -> Iterator[Site]:
    instance("program", jaxpr, Jaxpr, "a jaxpr, such as jax.make_jaxpr(function)(*args)")
    scopes, callers = ((), ()) if caller is None else (caller.scopes, (*caller.callers, caller.equation))
    demand = _Demand(jaxpr, caller)
    for index, equation in enumerate(jaxpr.eqns):
        around = (*scopes, *scopes_of(equation))
        yield Site(equation, next(numbers), around, callers, trips, jaxpr, index, caller, demand)


class _Demand:
    """Which values of a function the results of the program depend on, in one place where it is called.

    Args:
        function: the function.
        caller: the site that calls it; None for the program itself.
    """

    def __init__(self, function: Jaxpr, caller: Site | None) -> None:
        self._function, self._caller = function, caller

    @cached_property
    def needed(self) -> set[Var] | None:
        """The values; None if the call itself is unused."""
        wanted = (True,) * len(self._function.outvars)
        if self._caller is None:
            return _needed(self._function, wanted)
        outside = self._caller.demand.needed
        if outside is None or not self._caller.used:
            return None
        return _needed(self._function, _wanted(self._caller.equation, outside, wanted))


def _wanted(equation: JaxprEqn, needed: set[Var], every: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which results of the called function the equation needs."""
    results = tuple(var in needed for var in equation.outvars)
    if equation.primitive.name in _SAME_RESULTS and len(results) == len(every):
        return results
    if equation.primitive is p.scan_p:
        carries = loop_operands(equation).carries
        return (True,) * carries + results[carries:]
    return every


def _needed(function: Jaxpr, wanted: tuple[bool, ...]) -> set[Var]:
    results = zip(function.outvars, wanted, strict=True)
    needed = {atom for atom, want in results if want and isinstance(atom, Var)}
    for equation in reversed(function.eqns):
        if equation.effects or any(var in needed for var in equation.outvars):
            needed.update(atom for atom in equation.invars if isinstance(atom, Var))
    return needed
