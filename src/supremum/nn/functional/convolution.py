"""Convolutions and their transposes, channels last, in the result type of inputs and parameters.

XLA gets the products in the dtype of their operands. It accumulates float16 and bfloat16 in float32 and rounds once,
which a test measures. With `preferred_element_type` the cotangents would be float32, and the products of the backward
pass would then be float32 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import flag
from supremum.errors import ArgumentError, UnknownNameError, shown
from supremum.nn.functional.dtype_promotion import promote_arrays, refuse_none
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.products import with_bias
from supremum.nn.functional.shape_checks import MOST, Ints, all_whole, positive_int, positive_ints
from supremum.typing import ArrayLike, DTypeLike

Padding: TypeAlias = str | int | Sequence[int | tuple[int, int]]
"""`"SAME"`, `"VALID"` and so on, or positions to add: one number, one per dimension, or pairs of before and after."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""The positions to add before and after, for each dimension of space."""


def as_padding(padding: Padding, count: int, names: Sequence[str]) -> str | Pads:
    """Convert a padding to its name, or to a pair of numbers for each dimension of space.

    Args:
        padding: a name, a number of positions on every side, one number for each dimension, or a pair of numbers,
            before and after, for each dimension.
        count: the number of spatial dimensions.
        names: the names that are allowed.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        ArgumentError: for anything else that is not a padding, or `"CAUSAL"` in more than one dimension; a
            `ValueError`.

    >>> as_padding(1, 2, ["SAME"]), as_padding([(2, 0)], 1, ["SAME"])
    (((1, 1), (1, 1)), ((2, 0),))
    """
    if isinstance(padding, str):
        if padding not in names:
            raise UnknownNameError("padding", padding, names)
        if padding == "CAUSAL" and count != 1:
            raise ArgumentError(f"padding='CAUSAL' needs one dimension of space, got {count}; use padding='SAME'")
        return padding
    items: Any = [padding] * count if isinstance(padding, int) else padding
    pads = [_pair(each) for each in items] if isinstance(items, (list, tuple)) else []  # pyright: ignore[reportUnknownVariableType]
    whole = tuple(pair for pair in pads if pair is not None)
    if isinstance(padding, bool) or len(pads) != count or len(whole) != count:
        raise ArgumentError(
            f"padding must be one of {', '.join(names)}, a number of positions, or pairs of numbers of at least 0 for "
            f"each of the {count} spatial dimensions, got {shown(padding)}; use padding={((1, 1),) * count}"
        )
    return whole


def _pair(value: Any) -> tuple[int, int] | None:
    numbers = all_whole((value, value) if isinstance(value, int) else value)
    if numbers is None or len(numbers) != 2 or not 0 <= min(numbers) <= max(numbers) <= MOST:
        return None
    return numbers[0], numbers[1]


def pads_of(padding: str | Pads, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Pads:
    """The positions to add before and after, for each dimension of space.

    Args:
        padding: the result of `as_padding`, except `"CIRCULAR"`, which adds positions that are not zero.
        sizes: the number of positions.
        window: the positions that the window spans, including gaps.
        strides: the steps of the window.

    >>> pads_of("SAME", (5,), (4,), (1,)), pads_of("CAUSAL", (5,), (4,), (1,))
    (((1, 2),), ((3, 0),))
    """
    if padding == "CAUSAL":
        return tuple((span - 1, 0) for span in window)
    if isinstance(padding, str):
        return tuple((int(low), int(high)) for low, high in lax.padtype_to_pads(sizes, window, strides, padding))
    return padding


CONV_PADDINGS = ("SAME", "VALID", "CIRCULAR", "CAUSAL")
"""The names of paddings for `conv`."""

TRANSPOSED_PADDINGS = ("SAME", "VALID", "CIRCULAR")
"""The names of paddings for `conv_transpose`."""


def conv(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    strides: Ints = 1,
    padding: Padding = "SAME",
    input_dilation: Ints = 1,
    kernel_dilation: Ints = 1,
    groups: int = 1,
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """A convolution in any number of dimensions, channels last.

    Args:
        x: inputs, shape (batch, *space, channels).
        kernel: weights, shape (*window, channels / groups, filters).
        bias: shape (filters,), or None.
        strides: the step of the window, one number or one per dimension of space.
        padding: the zeros around the inputs: `"SAME"`, for one output per stride of the (dilated) inputs; `"VALID"`,
            for no zeros; `"CAUSAL"`, in one dimension, for outputs that do not depend on later inputs; or numbers, see
            `supremum.nn.functional.convolution.Padding`. `"CIRCULAR"` repeats the inputs around themselves.
        input_dilation: the distance between neighboring inputs, with zeros between them.
        kernel_dilation: the distance between neighboring weights.
        groups: the number of groups of channels; each group has separate filters.
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array of shape (batch, *space, filters) in that dtype.

    Raises:
        ArgumentError: for shapes that do not match, or invalid options; a `ValueError`.

    >>> conv(jnp.ones((1, 5, 1), "bfloat16"), jnp.ones((3, 1, 1), "bfloat16"))[0, :, 0]
    Array([2, 3, 3, 3, 2], dtype=bfloat16)
    """
    refuse_none(x=x, kernel=kernel)
    inputs, weights, biases = promote_arrays(x, kernel, bias, dtype=dtype)
    count = _dimensions(inputs, weights)
    strides = positive_ints("strides", strides, count)
    input_dilation = positive_ints("input_dilation", input_dilation, count)
    kernel_dilation = positive_ints("kernel_dilation", kernel_dilation, count)
    groups = positive_int("groups", groups)
    named = as_padding(padding, count, CONV_PADDINGS)
    filters = weights.shape[-1]
    if weights.shape[-2] * groups != inputs.shape[-1] or filters % groups:
        raise ArgumentError(
            f"with groups={groups} and {inputs.shape[-1]} input channels, the kernel must have shape "
            f"(*window, channels / groups, filters), with filters a multiple of groups, got {weights.shape}"
        )
    spans = _spans(weights.shape[:-2], kernel_dilation)
    if named == "CIRCULAR":
        if any(distance > 1 for distance in input_dilation):
            raise ArgumentError("padding='CIRCULAR' needs input_dilation=1; use padding='SAME'")
        inputs = _wrapped(inputs, [((span - 1) // 2, span // 2) for span in spans])
        named = "VALID"
    pads = pads_of(named, _spans(inputs.shape[1:-1], input_dilation), spans, strides)
    product = lax.conv_general_dilated(
        inputs, weights, strides, pads, input_dilation, kernel_dilation, _layout(count), feature_group_count=groups,
        precision=as_precision(precision),
    )  # fmt: skip
    return with_bias(product, biases)


def conv_transpose(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    strides: Ints = 1,
    padding: Padding = "SAME",
    kernel_dilation: Ints = 1,
    groups: int = 1,
    transpose_kernel: bool = False,
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """A transposed convolution: the inputs lie `strides` apart with zeros between them, which makes space larger.

    Args:
        x: inputs, shape (batch, *space, channels).
        kernel: weights, shape (*window, channels / groups, filters), or (*window, filters / groups, channels) with
            `transpose_kernel`.
        bias: shape (filters,), or None.
        strides: the number of outputs per input, one number or one per dimension of space.
        padding: `"SAME"`, for exactly `strides` outputs per input; `"VALID"`, for all outputs that an input reaches;
            `"CIRCULAR"`, for as many as with `"SAME"`, with both ends of space joined; or the zeros to add around the
            spread inputs, as numbers, see `supremum.nn.functional.convolution.Padding`.
        kernel_dilation: the distance between neighboring weights.
        groups: the number of groups of channels; each group has separate filters.
        transpose_kernel: whether to flip the kernel in space and swap its last two axes; the function then is the
            gradient of `conv` with the same kernel.
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array of shape (batch, *space, filters) in that dtype.

    Raises:
        ArgumentError: for shapes that do not match, or invalid options; a `ValueError`.

    >>> conv_transpose(
    ...     jnp.ones((1, 2, 1)), jnp.ones((3, 1, 1)), strides=2, padding="VALID"
    ... )[0, :, 0]
    Array([1., 1., 2., 1., 1.], dtype=float32)
    """
    refuse_none(x=x, kernel=kernel)
    inputs, weights, biases = promote_arrays(x, kernel, bias, dtype=dtype)
    count = _dimensions(inputs, weights)
    strides = positive_ints("strides", strides, count)
    kernel_dilation = positive_ints("kernel_dilation", kernel_dilation, count)
    named = as_padding(padding, count, TRANSPOSED_PADDINGS)
    groups = positive_int("groups", groups)
    flag("transpose_kernel", transpose_kernel)
    channels = weights.shape[-1] if transpose_kernel else weights.shape[-2] * groups
    if channels != inputs.shape[-1] or weights.shape[-1] % groups:
        ends = "filters / groups, channels" if transpose_kernel else "channels / groups, filters"
        raise ArgumentError(
            f"with groups={groups} and {inputs.shape[-1]} input channels, the kernel must have shape "
            f"(*window, {ends}), with a last axis that is a multiple of groups, got {weights.shape}"
        )

    def transposed(inputs: jax.Array, pads: str | Pads) -> jax.Array:
        # JAX's function has no groups. Each group has its part of the last axis, whether or not kernels are transposed.
        parts = zip(jnp.split(inputs, groups, -1), jnp.split(weights, groups, -1), strict=True)
        options = strides, pads, kernel_dilation, _layout(count), transpose_kernel
        results = [lax.conv_transpose(*part, *options, precision=as_precision(precision)) for part in parts]
        return results[0] if groups == 1 else jnp.concatenate(results, -1)

    if named != "CIRCULAR":
        return with_bias(transposed(inputs, named), biases)
    # The start of a period among the outputs of "VALID": with a transposed kernel, the start of the windows of `conv`;
    # otherwise the middle of the excess outputs of "VALID", as in Flax's layer.
    spans = _spans(weights.shape[:-2], kernel_dilation)
    steps = list(zip(spans, strides, strict=True))
    first = [(span - 1) // 2 if transpose_kernel else max(span - step, 0) // 2 for span, step in steps]
    wraps = [
        (-((at - span + 1) // step), (step - 1 + at) // step) for at, (span, step) in zip(first, steps, strict=True)
    ]
    product = transposed(_wrapped(inputs, wraps), "VALID")
    starts = [before * step + at for (before, _), step, at in zip(wraps, strides, first, strict=True)]
    stops = [start + size * step for start, size, step in zip(starts, inputs.shape[1:-1], strides, strict=True)]
    product = lax.slice(product, (0, *starts, 0), (inputs.shape[0], *stops, product.shape[-1]))
    return with_bias(product, biases)


def check_space(shape: tuple[int, ...], count: int, what: str, window: tuple[int, ...]) -> None:
    """Raise if inputs do not have the spatial dimensions of a window.

    Args:
        shape: the shape of the inputs.
        count: the number of spatial dimensions.
        what: the window in the message, such as `"window="`.
        window: what follows in the message.

    Raises:
        ArgumentError: if they do not; a `ValueError`.
    """
    if len(shape) != count + 2:
        raise ArgumentError(
            f"inputs must have shape (batch, {count} spatial dimensions, channels) for {what}{window}, got {shape}"
        )


def _dimensions(x: jax.Array, kernel: jax.Array) -> int:
    count = kernel.ndim - 2
    if count < 1:
        raise ArgumentError(f"the kernel must have shape (*window, channels, filters), got {kernel.shape}")
    check_space(x.shape, count, "a kernel of shape ", kernel.shape)
    if 0 in kernel.shape[:-2]:
        raise ArgumentError(f"the window of the kernel must not be empty, got kernel shape {kernel.shape}")
    return count


def _spans(sizes: Sequence[int], distances: Sequence[int]) -> tuple[int, ...]:
    return tuple(max((size - 1) * distance + 1, 0) for size, distance in zip(sizes, distances, strict=True))


def _layout(count: int) -> lax.ConvDimensionNumbers:
    space, last = tuple(range(1, count + 1)), count + 1
    images = (0, last, *space)
    return lax.ConvDimensionNumbers(images, (last, last - 1, *range(count)), images)


def _wrapped(x: jax.Array, pads: Sequence[tuple[int, int]]) -> jax.Array:
    if 0 in x.shape[1:-1]:
        raise ArgumentError(f"padding='CIRCULAR' needs inputs that are not empty, got shape {x.shape}")
    return jnp.pad(x, [(0, 0), *pads, (0, 0)], mode="wrap")
