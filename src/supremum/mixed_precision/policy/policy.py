"""Dtype policies: the dtypes of a layer's computation and of its variables.

Keras RFC 293, mixed precision, "Dtype policies overview" and "A policy's loss scale".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from supremum.argument_checks import known_keys
from supremum.errors import UnknownNameError
from supremum.formats import DType
from supremum.mixed_precision.loss_scale.loss_scales import (
    LossScale,
    as_loss_scale,
    deserialize_loss_scale,
    serialize_loss_scale,
)
from supremum.mixed_precision.policy.roles import canonical_name, parse_policy
from supremum.mixed_precision.tree_casting import cast_floating, is_floating, is_floating_dtype
from supremum.promotion import result_type
from supremum.rules import get_rules


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Policy:
    """A dtype policy: immutable, hashable, normalised at construction.

    Args:
        name: a dtype or its name (for variables and computation), `"mixed_float16"` or `"mixed_bfloat16"` (variables
            are float32), `"infer"` (computation follows inputs and parameters), or a text that lists the roles,
            `"variable=float32,compute=bfloat16,output=float32,reduce=float32"`, where the last two are optional.
        loss_scale: `"auto"` for a dynamic scale if computation is float16 and variables are not, else none; or
            anything that `as_loss_scale` takes.

    Attributes:
        name: the canonical name, the same for equal policies; `Policy(name)` makes the policy again.
        compute_dtype: the dtype of computation; None under `"infer"`.
        variable_dtype: the dtype in which variables are stored.
        output_dtype: the dtype of outputs; None for the dtype that the computation gives.
        reduce_dtype: the dtype in which gradients are summed across devices: float16 if computation is float16 and
            variables are not; None for the dtype of each gradient, at least float32.
        loss_scale: the loss scale, or None.

    Raises:
        UnknownNameError: for any other name, with similar names; a `ValueError`.
        ArgumentError: for mistakes in the text form; a `ValueError`.

    >>> policy = Policy("mixed_float16")
    >>> policy.compute_dtype, policy.variable_dtype, policy.should_cast_variables
    (dtype('float16'), dtype('float32'), True)
    >>> Policy("output = float32, compute = bfloat16, variable = float32")
    Policy('variable=float32,compute=bfloat16,output=float32')
    >>> Policy("mixed_flaot16")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown policy 'mixed_flaot16': did you mean 'mixed_float16' or 'mixed_bfloat16'?
    """

    name: str
    compute_dtype: DType | None
    variable_dtype: DType
    output_dtype: DType | None
    reduce_dtype: DType | None
    loss_scale: LossScale | None

    def __init__(self, name: Any, loss_scale: LossScale | str | float | None = "auto") -> None:
        roles = parse_policy(name)
        if isinstance(loss_scale, str):
            if loss_scale not in ("auto", "dynamic"):
                raise UnknownNameError("loss scale", loss_scale, ["auto", "dynamic"])
            loss_scale = "dynamic" if loss_scale == "dynamic" or roles.underflows else None
        object.__setattr__(self, "name", canonical_name(roles))
        object.__setattr__(self, "loss_scale", as_loss_scale(loss_scale))
        for role, dtype in roles._asdict().items():
            object.__setattr__(self, f"{role}_dtype", dtype)

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables are cast when a layer computes with them; True under `"infer"`, where they may be."""
        return self.compute_dtype != self.variable_dtype

    def cast_to_compute(self, tree: Any) -> Any:
        """Cast the real floating leaves of a pytree to the compute dtype; see `cast_floating`.

        Under `"infer"` they are cast to their common dtype by JAX's rules, which ignore weak leaves. If the compute
        dtype is not real floating (`"int32"`), leaves stay as they are, because a cast would truncate them.

        Raises:
            PromotionError: under `"infer"`, if the leaves have no common dtype.
        """
        return _cast(tree, _common_dtype(tree) if self.compute_dtype is None else self.compute_dtype)

    def cast_to_variable(self, tree: Any) -> Any:
        """Cast the real floating leaves of a pytree to the variable dtype, if that is real floating."""
        return _cast(tree, self.variable_dtype)

    def cast_to_output(self, tree: Any) -> Any:
        """Cast the real floating leaves of a pytree to the output dtype, if that is real floating."""
        return _cast(tree, self.output_dtype)

    def get_config(self) -> dict[str, Any]:
        """Convert the policy to data for JSON; `from_config` reads it back.

        >>> Policy("mixed_float16", 128).get_config()["loss_scale"]
        {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 128.0}}
        """
        return {"name": self.name, "loss_scale": serialize_loss_scale(self.loss_scale)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Policy:
        """Make the policy that `get_config` described.

        Raises:
            ValueError: for an unknown or missing key, or an invalid value.
        """
        keys = ("name", "loss_scale")
        entries = known_keys("policy's config", config, keys, keys)
        return cls(entries["name"], deserialize_loss_scale(entries["loss_scale"]))

    def __repr__(self) -> str:
        usual = self.loss_scale == Policy(self.name).loss_scale
        return f"Policy({self.name!r})" if usual else f"Policy({self.name!r}, loss_scale={self.loss_scale})"

    def __str__(self) -> str:
        return self.name


def _cast(tree: Any, dtype: DType | None) -> Any:
    return cast_floating(tree, dtype) if is_floating_dtype(dtype) else tree


def _common_dtype(tree: Any) -> DType | None:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if is_floating(leaf)]
    return result_type(*leaves, rules=get_rules("jax")) if leaves else None


def as_policy(policy: Any) -> Policy:
    """Convert a value with `Policy`, and return a policy as it is; None is float32.

    >>> as_policy(None).name, as_policy("mixed_bfloat16").name
    ('float32', 'mixed_bfloat16')
    """
    return policy if isinstance(policy, Policy) else Policy("float32" if policy is None else policy)
