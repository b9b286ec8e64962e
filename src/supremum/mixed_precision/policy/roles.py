"""What a policy decides, as plain data, and the names it goes by.

Named policies are those of spec/keras-rfc-293-mixed-precision.md, "Dtype policies overview", and `"infer"`, the default
of spec/flax-flip-default-dtypes.md. The text form, `"variable=float32,compute=bfloat16"`, names the roles one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError, shown
from supremum.formats import DType, Format, Kind, as_format, format_names

# Only float16 has so few exponents that gradients underflow.
_UNDERFLOWS = as_format("float16").dtype
_INFER = "infer"


class Roles(NamedTuple):
    """The dtypes of a policy.

    Args:
        variable: what variables are stored in.
        compute: what computation runs in; None for the result type of inputs and parameters.
        output: what leaves; None for what the computation gave.
        reduce: what gradients are summed in across devices; None for their own dtype, at least float32.
    """

    variable: DType
    compute: DType | None
    output: DType | None
    reduce: DType | None

    @property
    def underflows(self) -> bool:
        """Whether gradients flush to zero unless the loss is scaled, although variables could take them in."""
        return self.compute == _UNDERFLOWS and self.variable != _UNDERFLOWS


ROLES = Roles._fields


def usual_roles(variable: object, compute: object | None) -> Roles:
    """The roles with the usual output (the compute dtype) and reduction.

    Gradients are summed in float16 where that is what they were computed in: the RFC, "All-reduce dtype", calls it
    almost always safe, and bfloat16 untested.
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
    """The names `Policy` takes, apart from the text form."""
    return (*NAMED, *format_names())


def parse_policy(name: object) -> Roles:
    """The roles that a name, a text form or a dtype stands for.

    Raises:
        UnknownNameError: for an unknown name, role or dtype.
        ArgumentError: for a role that is missing or given twice, and other slips in the text form.

    >>> parse_policy("compute=float16, variable=float32").reduce
    dtype('float16')
    """
    if isinstance(name, str):
        if name in NAMED:
            return NAMED[name]
        if name == "_infer":
            raise ArgumentError(
                "policy '_infer' took the dtype of the weights from the first input and is not carried over: "
                "use 'infer', which takes the dtype of computation from inputs and parameters and stores float32"
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
                f"policy {shown(text)}: {shown(item.strip())} has no '=': write role=dtype, where the role is "
                f"{_listed(ROLES)}"
            )
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES, f"policy {shown(text)}")
        if role in given:
            raise ArgumentError(f"policy {shown(text)} gives {role} twice, of {_listed(ROLES)}: keep one")
        given[role] = dtype
    missing = [role for role in ("variable", "compute") if role not in given]
    if missing:
        needed = ",".join(f"{role}={dtype}" for role, dtype in given.items())
        lacking = ",".join(f"{role}=float32" for role in missing)
        raise ArgumentError(
            f"policy {shown(text)} does not say {_listed(missing)}: write for instance {needed},{lacking}"
        )
    formats = {role: _format_of(role, dtype, text) for role, dtype in given.items()}
    reduced = formats.get("reduce")
    if reduced is not None and reduced not in (choices := reducible_formats()):
        raise ArgumentError(
            f"policy {shown(text)}: gradients are reduced in {_listed(map(str, choices))}, not in {reduced}"
        )
    usual = usual_roles(formats["variable"], formats["compute"])
    stated = {role: row.dtype for role, row in formats.items() if row is not None}
    return usual._replace(**stated)


def reducible_formats() -> tuple[Format, ...]:
    """The formats that gradients can be summed in: real floating ones of 16 bits and more.

    With the three bits of significand that formats of 8 bits have, a sum of eight terms already stops growing.

    >>> [str(row) for row in reducible_formats()]
    ['bfloat16', 'float16', 'float32', 'float64']
    """
    rows = map(as_format, format_names())
    return tuple(row for row in rows if row.kind is Kind.FLOAT and row.bits >= as_format("float16").bits)


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
    """The one name of these roles, which `parse_policy` reads back.

    >>> canonical_name(parse_policy("output=bfloat16,compute=bfloat16,variable=f4"))
    'mixed_bfloat16'
    """
    for name, named in NAMED.items():
        if named == roles:
            return name
    usual = usual_roles(roles.variable, roles.compute)
    if roles == usual and roles.compute == roles.variable:
        return str(as_format(roles.variable))
    shown = {"variable": roles.variable, "compute": roles.compute}
    told = {"output": (roles.output, usual.output), "reduce": (roles.reduce, usual.reduce)}
    shown |= {role: dtype for role, (dtype, expected) in told.items() if dtype != expected}
    return ",".join(f"{role}={_INFER if dtype is None else as_format(dtype)}" for role, dtype in shown.items())
