"""Any rule set without conversions to double precision.

TensorFlow RFC 431, "Alternatives Considered: Capping the promotion system at float32": the flag `allow_float64` of
TF-NumPy "caps the converted floating numbers to 32 bits, and complex numbers to 64 bits".
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from supremum.formats import IN_32_BITS, as_format
from supremum.rules.rule_set import RuleSet
from supremum.rules.scope import RulesLike, get_rules

_CAPS: Mapping[str, str] = {
    wide: narrow for wide, narrow in IN_32_BITS.items() if as_format(wide).category in ("float", "complex")
}


def cap_at_32_bits(rules: RulesLike) -> RuleSet:
    """Make rules from others that never convert to float64 or complex128, but to float32 or complex64.

    As in TF-NumPy (`canonicalize_dtype` in `np_dtypes.py` of TensorFlow 2.21), this holds for every promotion of two or
    more operands, of two float64 arrays too, and for the floats that integers and Python numbers become. A function of
    one float64 array, such as `sin` or `sum`, keeps float64, and so does an array that is written into.

    Args:
        rules: a rule set or its name.

    Returns:
        The rule set; it has the name of the other one with `[32-bit]` behind it.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.

    >>> import supremum
    >>> capped = cap_at_32_bits("numpy")
    >>> print(supremum.explain("int32", "int32", operation="divide", rules=capped))
    divide(int32, int32) -> float32   [rules numpy[32-bit]]
      a    int32 -> float32, not every value survives
      b    int32 -> float32, not every value survives
      why  divide computes integers and bools in float64
           float64 is capped at 32 bits: float32 takes its place
    """
    base = get_rules(rules)
    if base.caps == _CAPS:
        return base
    made = copy(base)
    changes = {"name": f"{base.name}[32-bit]", "summary": f"{base.summary}; conversions stop at 32 bits", "caps": _CAPS}
    for name, value in changes.items():
        object.__setattr__(made, name, value)  # a subclass may have a constructor of its own
    return made
