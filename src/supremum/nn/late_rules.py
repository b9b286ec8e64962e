"""Rules of `jax.custom_vjp` and `jax.custom_jvp` that run after a layer's `call`, in the scope they stand in.

A function with derivatives of its own that a layer calls has a forward, a backward or a tangent rule that JAX runs
when it differentiates, long after `call` has returned: `jax.grad(jax.jit(model))` runs even the forward rule then.
Those that read autocast variables would read them as they are stored, in float32, and nothing would say so. JAX keeps
nothing that tells where a rule comes from: its name stack is empty inside of them, and contexts made with
`jax.make_user_context` are those of the time. So the scope is kept where the function is called, which takes a hook
in JAX's two classes. Outside of layers they do what they always did; a test notices when they look different.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

HOOKED: tuple[tuple[type[Any], tuple[str, ...]], ...] = (
    (jax.custom_vjp, ("fun", "fwd", "bwd")),
    (jax.custom_jvp, ("fun", "jvp")),
)
"""The classes, and their attributes that hold functions of the user."""


def keep_scope_in_rules(context: Any) -> None:
    """Let rules run in the value that a context has where their function is called.

    Args:
        context: one made with `jax.make_user_context`; None is its value outside of layers.
    """
    for hooked, attributes in HOOKED:
        hooked.__call__ = _scoped(hooked.__call__, attributes, context)


def _scoped(original: Callable[..., Any], attributes: tuple[str, ...], context: Any) -> Callable[..., Any]:
    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = context.value
        if value is None:
            return original(self, *args, **kwargs)
        kept = object.__new__(type(self))
        vars(kept).update(vars(self))
        for attribute in attributes:
            function = vars(self).get(attribute)
            if function is not None:
                setattr(kept, attribute, _within(function, context, value))
        return original(kept, *args, **kwargs)

    return call


def _within(function: Callable[..., Any], context: Any, value: Any) -> Callable[..., Any]:
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with context(value):
            return function(*args, **kwargs)

    return called
