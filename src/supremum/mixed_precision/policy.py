"""Dtype policies: which dtype a layer computes in and which one its variables are stored in.

spec/keras-rfc-293-mixed-precision.md, "Dtype policies overview".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.formats import DType, as_format, format_names
from supremum.mixed_precision.casting import cast_floating
from supremum.mixed_precision.loss_scale import LossScale, as_loss_scale

# Name: compute dtype, variable dtype, default loss scale. Only float16 has so few exponents that gradients underflow.
_MIXED: dict[str, tuple[str, str, str | None]] = {
    "mixed_float16": ("float16", "float32", "dynamic"),
    "mixed_bfloat16": ("bfloat16", "float32", None),
}


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """A dtype policy: immutable, hashable, normalised when it is made.

    Args:
        name: any dtype or the name of one (variables and computation both have it), `"mixed_float16"` or
            `"mixed_bfloat16"` (variables are float32).
        loss_scale: `"auto"` for a dynamic scale with `"mixed_float16"` and none otherwise; or anything that
            `as_loss_scale` takes.

    Raises:
        UnknownNameError: for any other name; a `ValueError` with the near names.

    >>> policy = Policy("mixed_float16")
    >>> policy.compute_dtype, policy.variable_dtype, policy.should_cast_variables
    (dtype('float16'), dtype('float32'), True)
    >>> Policy("mixed_flaot16")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown policy 'mixed_flaot16': did you mean 'mixed_float16' or 'mixed_bfloat16'?
    """

    name: str
    compute_dtype: DType
    variable_dtype: DType
    loss_scale: LossScale | None

    def __init__(self, name: Any, loss_scale: LossScale | str | float | None = "auto") -> None:
        if isinstance(name, str) and name in _MIXED:
            compute, variable, scale = _MIXED[name]
        else:
            compute = variable = _dtype_name(name)
            scale = None
        object.__setattr__(self, "name", name if isinstance(name, str) and name in _MIXED else compute)
        object.__setattr__(self, "compute_dtype", as_format(compute).dtype)
        object.__setattr__(self, "variable_dtype", as_format(variable).dtype)
        object.__setattr__(self, "loss_scale", as_loss_scale(scale if loss_scale == "auto" else loss_scale))

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables are cast when a layer computes with them."""
        return self.compute_dtype != self.variable_dtype

    def cast_to_compute(self, tree: Any) -> Any:
        """A pytree with its floating leaves in the compute dtype; see `cast_floating`."""
        return cast_floating(tree, self.compute_dtype)

    def __str__(self) -> str:
        return self.name


def _dtype_name(name: Any) -> str:
    try:
        return as_format(name).name
    except UnknownDtypeError as error:
        raise UnknownNameError("policy", error.name, policy_names()) from None


def policy_names() -> tuple[str, ...]:
    """The names `Policy` takes."""
    return (*_MIXED, *format_names())


def as_policy(policy: Any) -> Policy:
    """A policy as it is, anything else through `Policy`; None is float32.

    >>> as_policy(None).name, as_policy("mixed_bfloat16").name
    ('float32', 'mixed_bfloat16')
    """
    return policy if isinstance(policy, Policy) else Policy("float32" if policy is None else policy)
