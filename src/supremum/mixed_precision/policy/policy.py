"""Dtype policies: the dtypes of a layer's computation and of its variables, and the names of policies.

Keras RFC 293, mixed precision, "Dtype policies overview" and "A policy's loss scale"; `"infer"` is the default of the
Flax FLIP, default dtypes. The text form, `"variable=float32,compute=bfloat16"`, lists the roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax

from supremum.argument_checks import chosen, known_keys
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError, near_names, shown
from supremum.formats import DType, Format, Kind, argument_dtype, as_format, format_names
from supremum.mixed_precision import loss_scales
from supremum.mixed_precision.pytrees import cast_floating, is_floating, is_floating_dtype
from supremum.promotion import result_type
from supremum.rules import get_rules
from supremum.typing import DTypeLike, PyTree

# The exponents of the other formats reach far enough for gradients.
_UNDERFLOWS = as_format("float16")
_INFER = "infer"


class PolicyWarning(UserWarning):
    """A policy is valid, but probably not what the user wants.

    >>> import warnings
    >>> from supremum.mixed_precision import use_policy
    >>> with (
    ...     warnings.catch_warnings(record=True, action="always") as caught,
    ...     use_policy("float16"),
    ... ):
    ...     print(caught[0].message)  # doctest: +ELLIPSIS
    the policy 'float16' stores variables in float16: small updates vanish, ...
    """


class Roles(NamedTuple):
    """The formats of a policy. They are not dtypes because `np.dtype("float64") == None` is true.

    Args:
        variable: the format in which variables are stored.
        compute: the format of computation; None for the result type of inputs and parameters.
        output: the format of outputs; None for the format that the computation gives.
        reduce: the format in which gradients are summed across devices; None for the format of each gradient, at least
            float32.
    """

    variable: Format
    compute: Format | None
    output: Format | None
    reduce: Format | None

    @property
    def underflows(self) -> bool:
        """Whether gradients flush to zero unless the loss is scaled, though the variables could hold them."""
        return self.compute == _UNDERFLOWS and self.variable != _UNDERFLOWS


ROLES = Roles._fields
_REQUIRED = ("variable", "compute")


def usual_roles(variable: object, compute: object | None) -> Roles:
    """Complete the roles with the usual output dtype (the compute dtype) and the usual reduction.

    Gradients that are computed in float16 are summed in float16. Keras RFC 293, "All-reduce dtype", calls that almost
    always safe, and bfloat16 untested.
    """
    stored, computed = as_format(variable), None if compute is None else as_format(compute)
    usual = Roles(stored, computed, output=computed, reduce=None)
    return usual._replace(reduce=computed) if usual.underflows else usual


NAMED: dict[str, Roles] = {
    "mixed_float16": usual_roles("float32", "float16"),
    "mixed_bfloat16": usual_roles("float32", "bfloat16"),
    _INFER: usual_roles("float32", None),
}


def parse_policy(name: object) -> Roles:
    """Parse a policy name, a text form or a dtype.

    Raises:
        UnknownNameError: for an unknown name, role or dtype.
        ArgumentError: for a missing or repeated role, and other mistakes in the text form.

    >>> str(parse_policy("compute=float16, variable=float32").reduce)
    'float16'
    """
    if isinstance(name, str):
        if name in NAMED:
            return NAMED[name]
        if name == "_infer":
            raise ArgumentError(
                "policy '_infer', which took the dtype of weights from the first input, is not supported: use 'infer', "
                "which computes in the result type of inputs and parameters and stores float32"
            )
    try:
        dtype = as_format(argument_dtype(name))
    except UnknownDtypeError as error:
        if isinstance(name, str) and ("=" in name or "," in name):
            return _parse_text(name)
        near = (*near_names(str(error.name), NAMED), *error.near)[:3]
        raise UnknownNameError("policy", error.name, (*NAMED, *format_names()), near=near) from None
    return usual_roles(dtype, dtype)


def _parse_text(text: str) -> Roles:
    dtypes: dict[str, str] = {}
    for item in text.split(","):
        role, equals, dtype = (part.strip() for part in item.partition("="))
        if not equals:
            raise ArgumentError(
                f"policy {shown(text)}: {shown(item.strip())} must be role=dtype, where role is {_listed(ROLES)}"
            )
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES, f"policy {shown(text)}")
        if role in dtypes:
            raise ArgumentError(f"policy {shown(text)} has {role} twice: keep one of them")
        dtypes[role] = dtype
    missing = [role for role in _REQUIRED if role not in dtypes]
    if missing:
        complete = ",".join(f"{role}={dtype}" for role, dtype in (dtypes | dict.fromkeys(missing, "float32")).items())
        raise ArgumentError(f"policy {shown(text)} needs {' and '.join(missing)}: write {complete}, for instance")
    formats = {role: _format_of(role, dtype, text) for role, dtype in dtypes.items()}
    if "reduce" in formats:
        as_reducible(f"policy {shown(text)}: reduce must be", formats["reduce"])
    usual = usual_roles(formats["variable"], formats["compute"])
    stated = {role: row for role, row in formats.items() if row is not None}
    return usual._replace(**stated)


def reducible_formats() -> tuple[Format, ...]:
    """List the formats in which gradients can be summed: real floating formats of at least 16 bits.

    With the three significand bits of an 8-bit format, a sum of eight terms already stops growing.

    >>> [str(row) for row in reducible_formats()]
    ['bfloat16', 'float16', 'float32', 'float64']
    """
    rows = map(as_format, format_names())
    return tuple(row for row in rows if row.kind is Kind.FLOAT and row.bits >= as_format("float16").bits)


def reducible_names() -> str:
    """List the names of `reducible_formats` for an error message."""
    return _listed(map(str, reducible_formats()))


def as_reducible(must: str, dtype: object) -> Format:
    """Return a format of `reducible_formats`.

    Args:
        must: the start of the error message.
        dtype: the format, a dtype or its name.

    Raises:
        ArgumentError: for any other format.
        UnknownDtypeError: for anything that is not a dtype.
    """
    row = as_format(dtype)
    if row not in reducible_formats():
        raise ArgumentError(f"{must} {reducible_names()}, got {row}")
    return row


def _format_of(role: str, dtype: str, text: str) -> Format | None:
    if role == "compute" and dtype == _INFER:
        return None
    try:
        return as_format(dtype)  # the text form is not NumPy's: as in jmp, f16 has 16 bits
    except UnknownDtypeError as error:
        choices = (_INFER, *error.choices) if role == "compute" else error.choices
        raise UnknownNameError(f"{role} dtype", dtype, choices, f"policy {shown(text)}", error.near) from None


def _listed(words: Iterable[str]) -> str:
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def canonical_name(roles: Roles) -> str:
    """Return the canonical name of roles, which `parse_policy` reads back.

    >>> canonical_name(parse_policy("output=bfloat16,compute=bfloat16,variable=f32"))
    'mixed_bfloat16'
    """
    for name, named in NAMED.items():
        if named == roles:
            return name
    usual = usual_roles(roles.variable, roles.compute)
    if roles == usual and roles.compute == roles.variable:
        return str(roles.variable)
    formats = roles._asdict().items()
    stated = {role: row for role, row in formats if role in _REQUIRED or row != getattr(usual, role)}
    return ",".join(f"{role}={_INFER if row is None else row}" for role, row in stated.items())


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
        is_loss_scale_open: whether nobody chose between a loss scale and none: it was `"auto"`, and these dtypes alone
            need none. `Model.compile` then scales the loss if a layer computes in float16.

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
    loss_scale: loss_scales.LossScale | None
    is_loss_scale_open: bool

    def __init__(self, name: DTypeLike, loss_scale: loss_scales.LossScale | str | float | None = "auto") -> None:
        roles = parse_policy(name)
        is_open = isinstance(loss_scale, str) and loss_scale == "auto" and not roles.underflows
        if isinstance(loss_scale, str):
            choice = chosen("loss scale", loss_scale, ["auto", "dynamic"])
            loss_scale = "dynamic" if choice == "dynamic" or roles.underflows else None
        object.__setattr__(self, "name", canonical_name(roles))
        object.__setattr__(self, "loss_scale", loss_scales.as_loss_scale(loss_scale))
        object.__setattr__(self, "is_loss_scale_open", is_open)
        for role, row in roles._asdict().items():
            object.__setattr__(self, f"{role}_dtype", None if row is None else row.dtype)

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables are cast when a layer computes with them; True under `"infer"`, where they may be."""
        return self.compute_dtype is None or self.compute_dtype != self.variable_dtype

    def cast_to_compute(self, tree: PyTree) -> Any:
        """Cast the real floating leaves of a pytree to the compute dtype; see `cast_floating`.

        Under `"infer"` they are cast to their common dtype by JAX's rules, which ignore weak leaves. If the compute
        dtype is not real floating (`"int32"`), leaves stay as they are, because a cast would truncate them.

        Raises:
            PromotionError: under `"infer"`, if the leaves have no common dtype.
        """
        return _cast(tree, _common_dtype(tree) if self.compute_dtype is None else self.compute_dtype)

    def cast_to_variable(self, tree: PyTree) -> Any:
        """Cast the real floating leaves of a pytree to the variable dtype, if that is real floating."""
        return _cast(tree, self.variable_dtype)

    def cast_to_output(self, tree: PyTree) -> Any:
        """Cast the real floating leaves of a pytree to the output dtype, if that is real floating."""
        return _cast(tree, self.output_dtype)

    def get_config(self) -> dict[str, Any]:
        """Convert the policy to data for JSON; `from_config` reads it back.

        >>> Policy("mixed_float16", 128).get_config()["loss_scale"]
        {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 128.0}}
        """
        scale = "auto" if self.is_loss_scale_open else loss_scales.serialize_loss_scale(self.loss_scale)
        return {"name": self.name, "loss_scale": scale}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Policy:
        """Make the policy that `get_config` described.

        Raises:
            ValueError: for an unknown or missing key, or an invalid value.
        """
        entries = known_keys("policy's config", config, ("name", "loss_scale"))
        scale: Any = entries["loss_scale"]
        return cls(entries["name"], scale if scale == "auto" else loss_scales.deserialize_loss_scale(scale))

    def __repr__(self) -> str:
        usual = self == Policy(self.name)
        return f"Policy({self.name!r})" if usual else f"Policy({self.name!r}, loss_scale={self.loss_scale})"

    def __str__(self) -> str:
        return self.name


def _cast(tree: PyTree, dtype: DType | None) -> Any:
    return cast_floating(tree, dtype) if is_floating_dtype(dtype) else tree


def _common_dtype(tree: PyTree) -> DType | None:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if is_floating(leaf)]
    return result_type(*leaves, rules=get_rules("jax")) if leaves else None


PolicyLike: TypeAlias = Policy | DTypeLike
"""A policy, or what `Policy` makes one of."""


def as_policy(policy: PolicyLike | None) -> Policy:
    """Convert a value with `Policy`, and return a policy as it is; None is float32.

    >>> as_policy(None).name, as_policy("mixed_bfloat16").name
    ('float32', 'mixed_bfloat16')
    """
    return policy if isinstance(policy, Policy) else Policy("float32" if policy is None else policy)
