"""The dtypes of a policy as plain data, and the names of policies.

The names come from Keras RFC 293, mixed precision, "Dtype policies overview"; `"infer"` is the default of the Flax
FLIP, default dtypes. The text form, `"variable=float32,compute=bfloat16"`, lists the roles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError, shown
from supremum.formats import DType, Format, Kind, as_format, format_names

# The exponents of the other formats reach far enough for gradients.
_UNDERFLOWS = as_format("float16").dtype
_INFER = "infer"


class Roles(NamedTuple):
    """The dtypes of a policy.

    Args:
        variable: the dtype in which variables are stored.
        compute: the dtype of computation; None for the result type of inputs and parameters.
        output: the dtype of outputs; None for the dtype that the computation gives.
        reduce: the dtype in which gradients are summed across devices; None for the dtype of each gradient, at least
            float32.
    """

    variable: DType
    compute: DType | None
    output: DType | None
    reduce: DType | None

    @property
    def underflows(self) -> bool:
        """Whether gradients flush to zero unless the loss is scaled, though the variables could hold them."""
        return self.compute == _UNDERFLOWS and self.variable != _UNDERFLOWS


ROLES = Roles._fields


def usual_roles(variable: object, compute: object | None) -> Roles:
    """Complete the roles with the usual output dtype (the compute dtype) and the usual reduction.

    Gradients that are computed in float16 are summed in float16. Keras RFC 293, "All-reduce dtype", calls that almost
    always safe, and bfloat16 untested.
    """
    stored, computed = as_format(variable).dtype, None if compute is None else as_format(compute).dtype
    usual = Roles(stored, computed, output=computed, reduce=None)
    return usual._replace(reduce=computed) if usual.underflows else usual


NAMED: dict[str, Roles] = {
    "mixed_float16": usual_roles("float32", "float16"),
    "mixed_bfloat16": usual_roles("float32", "bfloat16"),
    _INFER: usual_roles("float32", None),
}


def policy_names() -> tuple[str, ...]:
    """List the names that `Policy` takes, without the text form."""
    return (*NAMED, *format_names())


def parse_policy(name: object) -> Roles:
    """Parse a policy name, a text form or a dtype.

    Raises:
        UnknownNameError: for an unknown name, role or dtype.
        ArgumentError: for a missing or repeated role, and other mistakes in the text form.

    >>> parse_policy("compute=float16, variable=float32").reduce
    dtype('float16')
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
        dtype = as_format(name)
    except UnknownDtypeError as error:
        if isinstance(name, str) and ("=" in name or "," in name):
            return _parse_text(name)
        raise UnknownNameError("policy", error.name, policy_names()) from None
    return usual_roles(dtype, dtype)


def _parse_text(text: str) -> Roles:
    given: dict[str, str] = {}
    for item in text.split(","):
        role, equals, dtype = (part.strip() for part in item.partition("="))
        if not equals:
            raise ArgumentError(
                f"policy {shown(text)}: {shown(item.strip())} must be role=dtype, where role is {_listed(ROLES)}"
            )
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES, f"policy {shown(text)}")
        if role in given:
            raise ArgumentError(f"policy {shown(text)} has {role} twice: keep one of them")
        given[role] = dtype
    missing = [role for role in ("variable", "compute") if role not in given]
    if missing:
        complete = ",".join(f"{role}={dtype}" for role, dtype in (given | dict.fromkeys(missing, "float32")).items())
        raise ArgumentError(f"policy {shown(text)} needs {' and '.join(missing)}: write {complete}, for instance")
    formats = {role: _format_of(role, dtype, text) for role, dtype in given.items()}
    reduced = formats.get("reduce")
    if reduced is not None and reduced not in reducible_formats():
        raise ArgumentError(f"policy {shown(text)}: reduce must be {reducible_names()}, got {reduced}")
    usual = usual_roles(formats["variable"], formats["compute"])
    stated = {role: row.dtype for role, row in formats.items() if row is not None}
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


def _format_of(role: str, dtype: str, text: str) -> Format | None:
    if role == "compute" and dtype == _INFER:
        return None
    try:
        return as_format(dtype)
    except UnknownDtypeError:
        choices = (_INFER, *format_names()) if role == "compute" else format_names()
        raise UnknownNameError(f"{role} dtype", dtype, choices, f"policy {shown(text)}") from None


def _listed(words: Iterable[str]) -> str:
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def canonical_name(roles: Roles) -> str:
    """Return the canonical name of roles, which `parse_policy` reads back.

    >>> canonical_name(parse_policy("output=bfloat16,compute=bfloat16,variable=f4"))
    'mixed_bfloat16'
    """
    for name, named in NAMED.items():
        if named == roles:
            return name
    usual = usual_roles(roles.variable, roles.compute)
    if roles == usual and roles.compute == roles.variable:
        return str(as_format(roles.variable))
    stated = {
        role: dtype
        for role, dtype in roles._asdict().items()
        if role in ("variable", "compute") or dtype != getattr(usual, role)
    }
    return ",".join(f"{role}={_INFER if dtype is None else as_format(dtype)}" for role, dtype in stated.items())
