"""The arithmetic in which a device computes one product, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax import lax

from supremum.formats import Format, as_format
from supremum.numerics.devices import ALGORITHMS, Algorithm, Arithmetic, Device

PRODUCTS = frozenset({"dot_general", "conv_general_dilated", "ragged_dot_general"})
"""The primitives that `on` computes as a device does; `jax.extend` does not export the last one."""

_FLOAT32 = as_format("float32")


@dataclass(frozen=True, slots=True)
class Computation:
    """How a device computes a product.

    Args:
        arithmetic: the arithmetic; None for the formats of the operands, as on this CPU.
        reason: the reason.
        emulated: False if the device may compute something else, which is not emulated.
        refused: whether the device's compiler refuses the product.
        operands: the formats that the operands may keep; others are cast to the first one before the product.
    """

    arithmetic: Arithmetic | None
    reason: str
    emulated: bool = True
    refused: bool = False
    operands: tuple[str, ...] = ()


def computation_of(device: Device, name: str, avals: Sequence[Any], params: Mapping[str, Any]) -> Computation:
    """Decide how a device computes a product.

    Args:
        device: the device.
        name: the name of the primitive.
        avals: the types of its operands.
        params: its parameters.
    """
    if not device.emulated:
        return Computation(None, "this device computes in the formats of the operands")
    left, right = (as_format(aval.dtype) for aval in avals[:2])
    kinds = tuple(dict.fromkeys((left.name, right.name)))
    if all(not row.is_inexact for row in (left, right)):
        return Computation(None, "integers are multiplied exactly")
    precision = params["precision"]
    if isinstance(precision, lax.DotAlgorithm):
        preset = _preset_of(precision)
        if preset is None:
            return _refused("a DotAlgorithm that is not one of JAX's presets")
        precision = preset
    if isinstance(precision, lax.DotAlgorithmPreset) and precision is not lax.DotAlgorithmPreset.DEFAULT:
        return _by_algorithm(device, precision.name, kinds)
    unknown = _unknown_formats(device, left, right, params.get("preferred_element_type"))
    if unknown is not None:
        return unknown
    level, arithmetic = _by_precision(device, precision)
    if device.vectors_in_float32 and name == "dot_general" and _has_vector(avals, params["dimension_numbers"]):
        return Computation(Arithmetic("float32", _FLOAT32.exponent, _FLOAT32.mantissa), "a product with a vector")
    return Computation(arithmetic, f"{level} precision")


def _unknown_formats(device: Device, left: Format, right: Format, preferred: Any) -> Computation | None:
    """How a device computes a product whose formats it does not emulate by precision; None if it emulates them."""
    kinds, parts = tuple(dict.fromkeys((left.name, right.name))), {left.component, right.component}
    others, names = parts - {_FLOAT32}, " and ".join(kinds)
    if parts == others or any(row.bits > _FLOAT32.bits for row in others):
        if set(kinds) <= device.exact:
            return Computation(None, f"products of {names} are exact, and added in float32 or wider")
        return Computation(None, f"how it multiplies {names} is not emulated", emulated=False)
    if not {row.name for row in others} <= device.exact:
        return Computation(None, f"how it multiplies {names} is not known", emulated=False)
    if preferred is not None and as_format(preferred).component is not _FLOAT32:
        return Computation(None, f"the result is {as_format(preferred)}, and is not emulated", emulated=False)
    if {left, right} != parts and not device.complex_by_parts:
        return Computation(None, "how it splits complex products is not known", emulated=False)
    return None


def _by_precision(device: Device, precision: Any) -> tuple[str, Arithmetic]:
    """The level of a product: the higher one of those of its operands, as in XLA."""
    each = precision if isinstance(precision, tuple) else (precision,)
    levels = [one.name if isinstance(one, lax.Precision) else lax.Precision.DEFAULT.name for one in each]
    ranked = {
        lax.Precision.DEFAULT.name: device.default,
        lax.Precision.HIGH.name: device.high,
        lax.Precision.HIGHEST.name: device.highest,
    }
    order = list(ranked)
    level = max(levels, key=order.index)
    return level.lower(), ranked[level]


def _by_algorithm(device: Device, name: str, kinds: tuple[str, ...]) -> Computation:
    algorithm: Algorithm | None = ALGORITHMS.get(name)
    rows = [as_format(kind) for kind in kinds]
    if algorithm is None:
        return _refused(f"the algorithm {name} is not known and")
    if any(row.component is not row for row in rows):
        return _refused(f"{name} with {' and '.join(kinds)}")
    if device.algorithms is not None and name not in device.algorithms:
        return _refused(name)
    if not algorithm.operands:
        if not all(row.bits == 8 and row.is_inexact for row in rows):
            return _refused(f"{name} with {' and '.join(kinds)}")
        reason = f"{name}; the precision of the sum inside the device is not emulated"
        return Computation(algorithm.arithmetic, reason, emulated=False)
    known = "" if device.algorithms is not None else "; whether the compiler takes it is not known"
    return Computation(algorithm.arithmetic, f"{name}{known}", operands=algorithm.operands)


def _refused(what: str) -> Computation:
    return Computation(None, f"{what} is not supported", emulated=False, refused=True)


def _preset_of(algorithm: lax.DotAlgorithm) -> lax.DotAlgorithmPreset | None:
    """The preset with the same types and number of passes as an algorithm."""
    left, right, accumulator = (as_format(dtype).name for dtype in algorithm[:3])
    if left != right or algorithm.lhs_component_count != 1 or algorithm.rhs_component_count != 1:
        return None
    wide = as_format(left)
    asked = algorithm.num_primitive_operations, accumulator, wide.exponent, wide.mantissa
    for name, row in ALGORITHMS.items():
        of_row = row.arithmetic
        if of_row is not None and asked == (of_row.passes, of_row.accumulator, of_row.exponent, of_row.mantissa):
            return lax.DotAlgorithmPreset[name]
    return None


def _has_vector(avals: Sequence[Any], dimension_numbers: Any) -> bool:
    """Whether an operand of a product has no axis of its own that is longer than 1."""
    (contracted, batch) = dimension_numbers
    for aval, summed, shared in zip(avals, contracted, batch, strict=False):
        free = set(range(aval.ndim)) - set(summed) - set(shared)
        if all(aval.shape[axis] == 1 for axis in free):
            return True
    return False
