"""Products as a device computes them, as JAX primitives.

A primitive stands in for a product of JAX and has its parameters and the device. Its derivatives and batching rules
are those of the product with every product in them replaced, so backward products and those under `jax.vmap` are
computed as on the device too. How, is decided when a product is compiled, when its shapes and dtypes are final.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.jaxprs import ENTERED, ON_DEVICE, RewriteAction, Rewriter, RewriteRule, Value, aval_of, user_place
from supremum.numerics.devices import Device
from supremum.numerics.product_arithmetic import PRODUCTS, computation_of
from supremum.numerics.rounding import in_passes, round_to


@cache
def on_device(product: Primitive) -> Primitive:
    """The primitive that stands in for a product.

    Args:
        product: the primitive of the product.

    >>> on_device(jax.extend.core.primitives.dot_general_p)
    dot_general_on_device
    """
    primitive = Primitive(f"{product.name}{ON_DEVICE}")

    def abstract(*avals: Any, device: Device, **params: Any) -> Any:
        del device
        return product.abstract_eval(*avals, **params)

    def compute(*operands: Any, **params: Any) -> Any:
        return _compiled(product, tuple(params.items()))(*operands)

    primitive.def_effectful_abstract_eval(abstract)
    primitive.def_impl(compute)
    mlir.register_lowering(primitive, mlir.lower_fun(partial(_emulated, product), multiple_results=False))
    ad.primitive_jvps[primitive] = partial(_jvp, product)
    ad.primitive_transposes[primitive] = partial(_transpose, product)
    batching.primitive_batchers[primitive] = partial(_batch, product)
    return primitive


@lru_cache(maxsize=4096)
def _compiled(product: Primitive, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return jax.jit(partial(_emulated, product, **dict(params)))


def _emulated(product: Primitive, *operands: Any, device: Device, **params: Any) -> Any:
    """Compute a product as a device does."""
    avals = [jax.typeof(each) for each in operands]
    how = computation_of(device, product.name, avals, params)
    if how.arithmetic is None and not how.operands:
        return product.bind(*operands, **params)
    result = product.abstract_eval(*avals, **params)[0].dtype
    left, right, *rest = operands

    def multiplied(x: Any, y: Any, dtype: Any) -> Any:
        new = {**params, "precision": lax.Precision.HIGHEST, "preferred_element_type": np.dtype(dtype)}
        return product.bind(x, y, *rest, **new)

    if how.arithmetic is None:
        dtype = as_format(how.operands[0]).dtype
        with jax.enable_x64(True):  # the operands of an algorithm in float64 may be float32
            left, right = (lax.convert_element_type(each, dtype) for each in (left, right))
            return lax.convert_element_type(multiplied(left, right, dtype), result)
    # The cast that JAX makes for an algorithm; complex operands stay complex.
    left, right = (x if as_format(x.dtype).component.name == "float32" else x.astype("float32") for x in (left, right))
    dtype = np.result_type(left.dtype, right.dtype)
    product_of_parts = in_passes(left, right, how.arithmetic, partial(multiplied, dtype=dtype))
    row = as_format(how.arithmetic.accumulator)
    return lax.convert_element_type(round_to(product_of_parts, row.exponent, row.mantissa), result)


def _replaced(device: Device, function: Callable[..., Any], *operands: Any) -> Any:
    """Evaluate a function of arrays with its products computed as on a device."""
    program, shape = jax.make_jaxpr(function, return_shape=True)(*operands)
    rewritten = rewriter_for(device).rewrite(program, [Value(None)] * len(program.in_avals), True)
    results = jaxpr_as_fun(rewritten.function)(*jax.tree.leaves(operands))
    return jax.tree.unflatten(jax.tree.structure(shape), results)


def _jvp(product: Primitive, operands: Any, tangents: Any, *, device: Device, **params: Any) -> Any:
    moving = [place for place, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero)]
    result = on_device(product).bind(*operands, device=device, **params)

    def derivative(values: list[Any], moved: list[Any]) -> Any:
        def of_moving(*of_moving_values: Any) -> Any:
            full = list(values)
            for place, value in zip(moving, of_moving_values, strict=True):
                full[place] = value
            return product.bind(*full, **params)

        return jax.jvp(of_moving, tuple(values[place] for place in moving), tuple(moved))[1]

    return result, _replaced(device, derivative, list(operands), [tangents[place] for place in moving])


def _transpose(product: Primitive, cotangent: Any, *operands: Any, device: Device, **params: Any) -> Any:
    linear = [place for place, value in enumerate(operands) if ad.is_undefined_primal(value)]
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(value.aval) if place in linear else None for place, value in enumerate(operands)]
    (place,) = linear

    def transposed(outgoing: Any, others: list[Any]) -> Any:
        def of_linear(value: Any) -> Any:
            return product.bind(*others[:place], value, *others[place:], **params)

        return jax.linear_transpose(of_linear, operands[place].aval)(outgoing)[0]

    others = [value for index, value in enumerate(operands) if index != place]
    result = _replaced(device, transposed, cotangent, others)
    return [result if index == place else None for index in range(len(operands))]


def _batch(product: Primitive, operands: Any, axes: Any, *, device: Device, **params: Any) -> Any:
    batched = jax.vmap(partial(product.bind, **params), in_axes=tuple(axes))
    return _replaced(device, batched, *operands), 0


@lru_cache(maxsize=16)
def rewriter_for(device: Device) -> Rewriter:
    """The rewriter that computes the products of programs as a device does."""
    return Rewriter(DeviceRule(device))


@dataclass(frozen=True, slots=True)
class DeviceRule(RewriteRule):
    """Replaces each product by the primitive that computes it as a device does.

    Args:
        device: the device.
    """

    device: Device

    def action_for(self, equation: JaxprEqn, values: Sequence[Value], context: Hashable) -> RewriteAction:
        """Replace products, and go into functions."""
        del values
        operands = (None,) * len(equation.invars)
        results = (Value(None),) * len(equation.outvars)
        name = equation.primitive.name
        if name in ENTERED:
            return RewriteAction(operands, (), None, inside=context)
        if name not in PRODUCTS or not self.device.emulated:
            return RewriteAction(operands, results, None)
        how = computation_of(self.device, name, [aval_of(atom) for atom in equation.invars], equation.params)
        if how.refused:
            raise ArgumentError(
                f"{how.reason} by the {self.device.name} ({name} at {user_place(equation) or 'an unknown line'}): "
                "use precision='highest'"
            )
        primitive = on_device(equation.primitive)
        return RewriteAction(operands, results, None, {"device": self.device}, primitive=primitive)
