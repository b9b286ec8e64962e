"""`autocast`, which runs the operations of a function in the dtypes of a policy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, overload

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr

from supremum.errors import OperandError, shown
from supremum.formats import as_format
from supremum.jaxprs import Rewriter, Rewritten, TracedCall, evaluate, traced_call
from supremum.mixed_precision.autocasting import operations, reports
from supremum.mixed_precision.autocasting.equation_rules import AutocastRule, Context
from supremum.mixed_precision.autocasting.reports import AutocastReport, ProductCounts
from supremum.mixed_precision.autocasting.settings import Settings, as_settings
from supremum.mixed_precision.policy.policy import Policy, PolicyLike
from supremum.mixed_precision.policy.policy_map import PolicyMap
from supremum.typing import ArrayLike, DTypeLike

P = ParamSpec("P")
R = TypeVar("R")


# The rows are part of the key: a primitive that is registered later takes effect.
@functools.lru_cache(maxsize=64)
def _rewriter(settings: Settings, rows: tuple[operations.Row, ...]) -> tuple[Rewriter, AutocastRule]:
    rule = AutocastRule(settings, rows)
    return Rewriter(rule), rule


class AutocastFunction(Generic[P, R]):
    """The result of `autocast`: a function with its operations in the dtypes of a policy.

    Arguments and results are the same as of the function itself, in the same dtypes. Leaves of arguments that are not
    arrays, such as Python numbers, are passed on as they are.

    >>> import jax.numpy as jnp
    >>> function = autocast(lambda x, w: jnp.exp(x @ w), "mixed_bfloat16")
    >>> function(jnp.ones((2, 3)), jnp.ones((3, 2))).dtype
    dtype('float32')
    >>> print(function.report(jnp.ones((2, 3)), jnp.ones((3, 2))).summary())
    bfloat16  1 x dot_general
    float32   1 x exp
    """

    def __init__(self, function: Callable[P, R], settings: Settings) -> None:
        if not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
            policy = settings.policy
            written = shown(policy if isinstance(policy, PolicyMap) else policy.name)
            raise OperandError(
                f"autocast needs a function, got {shown(function)}: use autocast(function, {written}), and call the "
                "result with arrays"
            )
        functools.update_wrapper(self, function)
        self._function = function
        self._settings = settings

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        if not self._settings.enabled:
            with autocast.disabled():  # under an outer autocast, too
                return self._function(*args, **kwargs)
        call, rewritten, _ = self._rewrite(args, kwargs)
        # The scope tells an outer autocast that these operations are decided.
        with jax.named_scope(operations.DECIDED_SCOPE):
            return call.put_back(evaluate(rewritten.function, call.arrays, "autocast"))

    def report(self, *args: P.args, **kwargs: P.kwargs) -> AutocastReport:
        """Report which operations run in which dtype, and why, without computing anything.

        Args:
            args: the arguments of a call; a `jax.ShapeDtypeStruct` can stand for an array.
            kwargs: the keyword arguments of a call.
        """
        _, rewritten, products = self._rewrite(args, kwargs)
        return reports.report_of(rewritten, products)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a decorated method to an instance."""
        if instance is None:
            return self
        bound: Callable[..., Any] = self._function.__get__(instance, owner)
        return AutocastFunction(bound, self._settings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AutocastFunction):
            return NotImplemented
        return (self._function, self._settings) == (other._function, other._settings)

    def __hash__(self) -> int:
        return hash((self._function, self._settings))

    def __repr__(self) -> str:
        enabled = "" if self._settings.enabled else ", enabled=False"
        return f"autocast({self._function!r}, {str(self._settings.policy)!r}{enabled})"

    def _rewrite(self, args: Any, kwargs: Any) -> tuple[TracedCall, Rewritten, ProductCounts]:
        """Trace and rewrite the function, and warn about what autocast left alone."""
        enabled = self._settings.enabled
        function: Callable[..., Any] = self._function if enabled else autocast.disabled()(self._function)
        call = traced_call(function, args, kwargs, "autocast")
        rewriter, rule = _rewriter(self._settings, tuple(operations.AUTOCAST_OPERATIONS.values()))
        rewritten = _rewrite_program(rewriter, rule, call.program)
        reports.warn_of_unmatched(self._settings, rewritten)
        products = reports.count_products(rewritten, rule)
        reports.warn_of_left(self._function, products)
        return call, rewritten, products


def _rewrite_program(rewriter: Rewriter, rule: AutocastRule, program: ClosedJaxpr) -> Rewritten:
    return rewriter.rewrite(
        program,
        [replace(rule.value(var.aval), given=True) for var in program.jaxpr.invars],
        Context(),
        [rule.value(atom.aval).dtype for atom in program.jaxpr.outvars],
    )


def autocasted(program: ClosedJaxpr, settings: Settings) -> ClosedJaxpr:
    """The program that autocast runs in place of another, with an equation for each cast, also for those of literals.

    Args:
        program: the traced function.
        settings: the policy and the other settings.
    """
    rule = AutocastRule(settings, tuple(operations.AUTOCAST_OPERATIONS.values()))
    function = _rewrite_program(Rewriter(rule, casts_literals=True), rule, program).function
    assert isinstance(function, ClosedJaxpr)
    return function


class _Autocast:
    """Run a JAX function in mixed precision, without editing it.

    Matrix products, convolutions and einsums run in the compute dtype of a policy and accumulate in float32.
    Operations that leave the range of narrow dtypes or multiply their errors (exp, log, powers, sums, means, softmax,
    statistics, ...) run in float32. All other operations run in the widest dtype of their operands. float64, complex
    and integer values are never cast. `supremum.mixed_precision.AUTOCAST_OPERATIONS` has a row with a reason for every
    primitive.

    Arguments and results are the same as of the function itself, in the same dtypes. The result works under `jit`,
    `grad`, `vmap`, `scan` and all other transformations, inside and outside. It is traced at every call, as with
    `jax.checkpoint`: put `jax.jit` around it. Functions with a `custom_vjp` or a `custom_vmap`, Pallas kernels and
    callbacks get the dtypes that they declare.

    Autocast respects casts by hand (`astype`, `dtype=`): a value keeps the dtype up to the operation that uses it, even
    if it is moved in between. A cast to the dtype that a value already has leaves no trace in a JAX program; use
    `autocast.astype` for it, or `autocast.disabled` for a whole region.

    Args:
        function: a function of pytrees; without it, or with a policy in its place, a decorator is returned.
        policy: a policy or its name, with a compute dtype that is a real float of 16 or 32 bits. A `PolicyMap` chooses
            by the `jax.named_scope` blocks around an operation, such as the layers of Flax.
        ops: rules that replace the rows, by the name of a primitive or of a jitted or custom function, for all
            operations inside: `"compute"`, `"float32"` or another dtype, `"widest"`, `"each"` or `"declared"`. For a
            `custom_vjp` or `custom_vmap` function also `"inside"`: its operations are treated one by one, while its
            arguments and results keep the dtypes that it declares. Or the name of one of `AUTOCAST_PRESETS`:
            `"torch-cuda"` or `"torch-cpu"`, for the dtypes of `torch.autocast` on these devices.
        respect_explicit_casts: whether casts in the function decide the dtype of later operations. False treats them
            like any other operation.
        enabled: False runs the function in the dtypes that it declares, as in `autocast.disabled()`.

    Returns:
        An `AutocastFunction`; its `report(*args)` lists which operations run in which dtype, and why.

    Raises:
        ValueError: for a policy with another compute dtype, and for an unknown rule.

    Warns:
        UncastProductsWarning: once for each function with products that stay in float32, because autocast rewrites them
            only on request; the warning has the argument to pass. Also once for each function without products in
            which autocast casts nothing.
        UnmatchedPatternWarning: in a call, for names in `ops` and patterns of a `PolicyMap` that match nothing.

    The rules follow PyTorch's `torch.autocast` on CUDA; rows that depart from it say why.

    >>> import jax, jax.numpy as jnp
    >>> def layer(w, x):
    ...     return jax.nn.softmax(x @ w)
    >>> w, x = jnp.ones((3, 2)), jnp.ones((1, 3))
    >>> autocast(layer, "mixed_bfloat16")(w, x).dtype
    dtype('float32')
    >>> for row in autocast(layer, "mixed_bfloat16").report(w, x).rows[1:3]:
    ...     print(f"{row.operation} in {row.dtype}: {row.why}")
    reduce_max in float32: softmax and logsumexp subtract it, and the difference must not be rounded first
    max in float32: as accurate as its operands in any dtype
    >>> @autocast("mixed_float16", enabled=True)
    ... def loss(w, x):
    ...     return jnp.mean((x @ w) ** 2)
    >>> jax.grad(loss)(w, x).dtype
    dtype('float32')
    """

    @overload
    def __call__(
        self,
        function: Callable[P, R],
        policy: PolicyLike | PolicyMap | None = ...,
        *,
        ops: Mapping[str, DTypeLike] | str | None = ...,
        respect_explicit_casts: bool = ...,
        enabled: bool = ...,
    ) -> AutocastFunction[P, R]: ...

    @overload
    def __call__(
        self,
        function: str | Policy | PolicyMap | None = ...,
        policy: PolicyLike | PolicyMap | None = ...,
        *,
        ops: Mapping[str, DTypeLike] | str | None = ...,
        respect_explicit_casts: bool = ...,
        enabled: bool = ...,
    ) -> Callable[[Callable[P, R]], AutocastFunction[P, R]]: ...

    def __call__(
        self,
        function: Any = None,
        policy: PolicyLike | PolicyMap | None = None,
        *,
        ops: Mapping[str, DTypeLike] | str | None = None,
        respect_explicit_casts: bool = True,
        enabled: bool = True,
    ) -> Any:
        """Run a function in mixed precision; see the class."""
        if isinstance(function, (str, Policy, PolicyMap)):
            if policy is not None:
                raise OperandError(
                    f"autocast needs a function first, got {shown(function)}: use autocast(function, {shown(policy)}), "
                    f"or @autocast({shown(policy)})"
                )
            function, policy = None, function
        settings = as_settings("mixed_bfloat16" if policy is None else policy, ops, respect_explicit_casts, enabled)
        decorator = functools.partial(AutocastFunction, settings=settings)
        return decorator if function is None else decorator(function)

    @staticmethod
    @contextmanager
    def disabled() -> Generator[None]:
        """Mark a region or a decorated function that autocast leaves alone, in the dtypes that it declares.

        >>> import jax, jax.numpy as jnp
        >>> def router(w, x):
        ...     with autocast.disabled():
        ...         return x @ w
        >>> print(
        ...     autocast(router, "mixed_float16")
        ...     .report(jnp.ones((2, 2)), jnp.ones((1, 2)))
        ...     .summary()
        ... )
        float32  1 x dot_general
        """
        with jax.named_scope(operations.DISABLED_SCOPE):
            yield

    @staticmethod
    def astype(x: ArrayLike, dtype: DTypeLike) -> jax.Array:
        """Cast an array as `x.astype(dtype)` does; autocast respects the cast even if `x` already has that dtype.

        Args:
            x: an array.
            dtype: the dtype that the array keeps in the operation that uses it.

        >>> import jax.numpy as jnp
        >>> def router(w, x):
        ...     return autocast.astype(x, "float32") @ w
        >>> print(
        ...     autocast(router, "mixed_float16")
        ...     .report(jnp.ones((2, 2)), jnp.ones((1, 2)))
        ...     .summary()
        ... )
        float32  1 x dot_general
        """
        return _keep(jnp.asarray(x), as_format(dtype).name)


def _kept(x: jax.Array, dtype: str) -> jax.Array:
    return x.astype(dtype)


# Autocast recognizes the call by its name, which stays in the program and costs nothing when compiled.
_kept.__name__ = operations.KEEP_CALL
_keep = jax.jit(_kept, static_argnums=1)

autocast: _Autocast = _Autocast()
