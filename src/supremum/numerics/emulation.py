"""`on`, which computes a function as another device would."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from supremum.argument_checks import function
from supremum.jaxprs import Value, evaluate
from supremum.numerics.calls import trace
from supremum.numerics.devices import Device, as_device
from supremum.numerics.product_primitives import rewriter_for

P = ParamSpec("P")
R = TypeVar("R")


def on(device: str | Device, fn: Callable[P, R]) -> Callable[P, R]:
    """Compute a function as an accelerator would by default, on this CPU.

    Matrix products, convolutions and ragged products are computed as the device does: on an A100 or H100 a float32
    product runs in TF32, on a TPU in bfloat16, unless `precision`, `jax.default_matmul_precision` or a dot algorithm
    says otherwise; see `DEVICES`. All other operations stay as they are. `products` lists the products and what the
    device makes of them, also where that is not emulated.

    The result works under `jit`, `grad`, `vmap` and all other transformations, inside and outside; backward products
    are computed as on the device too. It is traced at every call: put `jax.jit` around it. What it does not predict is
    the order of the sums, and the precision of the adders inside of the device.

    Args:
        device: the name of a device, such as `"h100"`, or a row like those of `DEVICES`.
        fn: any function of arrays that JAX can trace. Modules of Flax nnx are updated as by a call. Arguments that are
            not arrays, such as Python numbers, are passed on as they are.

    Returns:
        A function with the same arguments and results.

    Raises:
        UnknownNameError: for an unknown device; a `ValueError`.
        OperandError: if `fn` is not a function, and in a call for arguments without an array.
        ArgumentError: in a call, for a product with a dot algorithm that the device's compiler refuses.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[0.3744, 0.1656], [0.4707, 0.1663]])
    >>> y = jnp.array([[0.3946, 0.1186], [0.1569, 0.3145]])
    >>> print(on("tpu", jnp.matmul)(x, y))
    [[0.17405128 0.09669876]
     [0.21180916 0.10805416]]
    """
    row = as_device(device)
    function("fn", fn, "jnp.matmul")

    @wraps(fn, updated=())
    def emulate(*args: P.args, **kwargs: P.kwargs) -> R:
        call = trace(fn, args, kwargs, "on")
        values = [Value(None)] * len(call.program.in_avals)
        rewritten = rewriter_for(row).rewrite(call.program, values, True)
        return call.put_back(evaluate(rewritten.function, call.arrays, f"on({row.name!r})"))

    return emulate
