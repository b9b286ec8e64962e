"""`nn.custom_vjp` and `nn.custom_jvp`: custom derivatives with rules that run in the scope of the layer's call.

JAX runs custom derivative rules when it differentiates, long after the layer's `call` has returned. Under
`jax.grad(jax.jit(model))` that includes the forward rule. JAX does not tell a rule which call it belongs to, so the
rules of a plain `jax.custom_vjp` or `jax.custom_jvp` read autocast variables as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import update_wrapper, wraps
from typing import Any, ClassVar

import jax

from supremum.argument_checks import flag, function, iterable, text, whole_number
from supremum.errors import shown
from supremum.nn.scopes import autocast_scope

Function = Callable[..., Any]


class _Differentiable:
    """A function with custom derivatives, which is made again for every scope that it is called in.

    Args:
        fun: the function.
        nondiff_argnums: as for JAX's class.
        nondiff_argnames: as for JAX's class.
    """

    _jax_class: ClassVar[Callable[..., Any]]

    def __init__(
        self, fun: Function, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        self._fun = function("fun", fun, "jnp.tanh")
        positions = iterable("nondiff_argnums", nondiff_argnums, "positions")
        names = iterable("nondiff_argnames", nondiff_argnames, "names")
        self._options = {
            "nondiff_argnums": tuple(whole_number("a position in nondiff_argnums", each, 0, 255) for each in positions),
            "nondiff_argnames": tuple(text("a name in nondiff_argnames", each) for each in names),
        }
        self._plain = self._jax_class(fun, **self._options)
        self._define: Callable[[Any, Callable[[Function], Function]], None] | None = None
        update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its derivative rules run in the scope of this call."""
        scope = autocast_scope()
        if scope is None:
            return self._plain(*args, **kwargs)
        differentiable = self._jax_class(_within(scope)(self._fun), **self._options)
        if self._define is not None:
            self._define(differentiable, _within(scope))
        return differentiable(*args, **kwargs)

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}({getattr(self._fun, '__qualname__', None) or shown(self._fun)})"

    def _define_rules(self, define: Callable[[Any, Callable[[Function], Function]], None]) -> None:
        define(self._plain, lambda rule: rule)
        self._define = define


class custom_vjp(_Differentiable):  # noqa: N801, its name in JAX
    """A `jax.custom_vjp` with rules that read variables as the layer's `call` does.

    When it is called inside a layer's `call`, its rules read autocast variables in the layer's compute dtype, whenever
    JAX runs them. Elsewhere it works as `jax.custom_vjp`.

    Args:
        fun: the function.
        nondiff_argnums: as for `jax.custom_vjp`.
        nondiff_argnames: as for `jax.custom_vjp`.

    >>> import jax, jax.numpy as jnp
    >>> @custom_vjp
    ... def with_clipped_gradient(x):
    ...     return x
    >>> with_clipped_gradient.defvjp(
    ...     lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),)
    ... )
    >>> float(jax.grad(lambda x: 5 * with_clipped_gradient(x))(2.0))
    1.0
    """

    _jax_class = jax.custom_vjp

    def defvjp(self, fwd: Function, bwd: Function, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Define the rules.

        Args:
            fwd: the forward rule, which returns the output and the residuals for the backward rule.
            bwd: the backward rule, which returns a cotangent for each argument.
            symbolic_zeros: as for `jax.custom_vjp`.
            optimize_remat: as for `jax.custom_vjp`.
        """
        options = {
            "symbolic_zeros": flag("symbolic_zeros", symbolic_zeros),
            "optimize_remat": flag("optimize_remat", optimize_remat),
        }
        for name, rule in (("fwd", fwd), ("bwd", bwd)):
            function(name, rule, "lambda ...")
        self._define_rules(lambda differentiable, within: differentiable.defvjp(within(fwd), within(bwd), **options))


class custom_jvp(_Differentiable):  # noqa: N801, its name in JAX
    """A `jax.custom_jvp` with a rule that reads variables as the layer's `call` does.

    When it is called inside a layer's `call`, its rule reads autocast variables in the layer's compute dtype, whenever
    JAX runs it. Elsewhere it works as `jax.custom_jvp`.

    Args:
        fun: the function.
        nondiff_argnums: as for `jax.custom_jvp`.
        nondiff_argnames: as for `jax.custom_jvp`.

    >>> import jax, jax.numpy as jnp
    >>> @custom_jvp
    ... def square_root(x):
    ...     return jnp.sqrt(x)
    >>> square_root.defjvps(
    ...     lambda tangent, root, x: tangent / jnp.maximum(2 * root, 0.5)
    ... )
    >>> float(jax.grad(square_root)(0.0))
    2.0
    """

    _jax_class = jax.custom_jvp

    def defjvp(self, jvp: Function, symbolic_zeros: bool = False) -> Function:
        """Define the rule.

        Args:
            jvp: a function of the arguments and their tangents, which returns the output and its tangent.
            symbolic_zeros: as for `jax.custom_jvp`.

        Returns:
            The rule, so that `defjvp` can be used as a decorator.
        """
        function("jvp", jvp, "lambda primals, tangents: ...")
        self._define_rules(
            lambda differentiable, within: differentiable.defjvp(within(jvp), symbolic_zeros=symbolic_zeros)
        )
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Define a separate rule for each argument.

        Args:
            jvps: for each argument a function of its tangent, the output and all arguments; None if the argument does
                not affect the output.
        """
        for each in jvps:
            if each is not None:
                function("a rule", each, "lambda tangent, output, *args: ...")
        self._define_rules(
            lambda differentiable, within: differentiable.defjvps(*(each and within(each) for each in jvps))
        )


def _within(scope: Callable[[], AbstractContextManager[Any]]) -> Callable[[Function], Function]:
    def in_scope(rule: Function) -> Function:
        @wraps(rule)
        def called(*args: Any, **kwargs: Any) -> Any:
            with scope():
                return rule(*args, **kwargs)

        return called

    return in_scope
