"""Dtype policies: which dtype a layer computes in and which one its variables are stored in.

spec/keras-rfc-293-mixed-precision.md, "Dtype policies overview" and "A policy's loss scale".
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
from supremum.mixed_precision.policy.roles import Roles, canonical_name, parse_policy
from supremum.mixed_precision.tree_casting import cast_floating, is_floating, is_floating_dtype
from supremum.promotion import result_type
from supremum.rules import get_rules


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Policy:
    """A dtype policy: immutable, hashable, normalised when it is made.

    Args:
        name: any dtype or the name of one (variables and computation both have it), `"mixed_float16"` or
            `"mixed_bfloat16"` (variables are float32), `"infer"` (computation follows inputs and parameters), or the
            roles one by one, `"variable=float32,compute=bfloat16,output=float32,reduce=float32"`, of which the last
            two may be left out.
        loss_scale: `"auto"` for a dynamic scale exactly where computation is float16 and variables are not; or
            anything that `as_loss_scale` takes.

    Attributes:
        name: the canonical name; equal policies have one name, which makes the policy again.
        compute_dtype: what computation runs in; None under `"infer"`.
        variable_dtype: what variables are stored in.
        output_dtype: what leaves; None for what the computation gave.
        reduce_dtype: what gradients are summed in across devices: float16 where computation is and variables are not;
            None for their own dtype, at least float32.
        loss_scale: the settings of the loss scale, or None.

    Raises:
        UnknownNameError: for any other name; a `ValueError` with the near names.
        ArgumentError: for slips in the text form; a `ValueError` too.

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
        values = {
            "name": canonical_name(roles),
            **{f"{role}_dtype": dtype for role, dtype in roles._asdict().items()},
            "loss_scale": _usual_loss_scale(roles) if _is_auto(loss_scale) else as_loss_scale(loss_scale),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables are cast when a layer computes with them; under `"infer"` they may be."""
        return self.compute_dtype != self.variable_dtype

    def cast_to_compute(self, tree: Any) -> Any:
        """A pytree with its real floating leaves in the compute dtype; see `cast_floating`.

        Under `"infer"` they meet in their common dtype by JAX's rules, in which weak leaves have no say. Where the
        compute dtype is not real floating (`"int32"`), they are left alone: casting them would truncate.

        Raises:
            PromotionError: under `"infer"`, where the leaves have no common dtype.
        """
        return _cast(tree, _common_dtype(tree) if self.compute_dtype is None else self.compute_dtype)

    def cast_to_variable(self, tree: Any) -> Any:
        """A pytree with its real floating leaves in the variable dtype, with the same exception."""
        return _cast(tree, self.variable_dtype)

    def cast_to_output(self, tree: Any) -> Any:
        """A pytree with its real floating leaves in the output dtype, likewise; as it is under `"infer"`."""
        return _cast(tree, self.output_dtype)

    def get_config(self) -> dict[str, Any]:
        """The policy as data fit for JSON; `from_config` reads it back.

        >>> Policy("mixed_float16", 128).get_config()["loss_scale"]
        {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 128.0}}
        """
        return {"name": self.name, "loss_scale": serialize_loss_scale(self.loss_scale)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Policy:
        """The policy that `get_config` described.

        Raises:
            ValueError: for an unknown or missing key, or a value that makes no sense.
        """
        keys = ("name", "loss_scale")
        entries = known_keys("policy's config", config, keys, keys)
        return cls(entries["name"], deserialize_loss_scale(entries["loss_scale"]))

    def __repr__(self) -> str:
        usual = self.loss_scale == Policy(self.name).loss_scale
        return f"Policy({self.name!r})" if usual else f"Policy({self.name!r}, loss_scale={self.loss_scale})"

    def __str__(self) -> str:
        return self.name


def _is_auto(loss_scale: Any) -> bool:
    if isinstance(loss_scale, str) and loss_scale not in ("auto", "dynamic"):
        raise UnknownNameError("loss scale", loss_scale, ["auto", "dynamic"])
    return isinstance(loss_scale, str) and loss_scale == "auto"


def _usual_loss_scale(roles: Roles) -> LossScale | None:
    return as_loss_scale("dynamic" if roles.underflows else None)


def _cast(tree: Any, dtype: DType | None) -> Any:
    return cast_floating(tree, dtype) if is_floating_dtype(dtype) else tree


def _common_dtype(tree: Any) -> DType | None:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if is_floating(leaf)]
    return result_type(*leaves, rules=get_rules("jax")) if leaves else None


def as_policy(policy: Any) -> Policy:
    """A policy as it is, anything else through `Policy`; None is float32.

    >>> as_policy(None).name, as_policy("mixed_bfloat16").name
    ('float32', 'mixed_bfloat16')
    """
    return policy if isinstance(policy, Policy) else Policy("float32" if policy is None else policy)
