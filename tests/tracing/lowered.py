"""The conversions in a lowered program, before any optimisation."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

_FUNCTION = re.compile(r"^  func\.func \w+ @([\w.\-\"]+)\(.*?^  }$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?:func\.)?call @([\w.\-\"]+)\(")
_CONVERT = re.compile(r"stablehlo\.convert %\S+ : \(tensor<(?:[\dx?]*x)?(\w+)>\) -> tensor<(?:[\dx?]*x)?(\w+)>")
_NAMES = {"i1": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}
_NAMES |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)} | {
    f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)
}


def converts(text: str) -> Counter[tuple[str, str]]:
    """Count the conversions between each pair of dtypes.

    A function that is lowered once and called from several places counts once for each of them; a loop counts once, and
    so does every branch. Conversions that change no dtype are left out.

    Args:
        text: the StableHLO of a program, as `jax.jit(f).lower(...).as_text()` gives it.
    """
    functions = {match.group(1): match.group(0) for match in _FUNCTION.finditer(text)}

    @cache
    def count(name: str) -> Counter[tuple[str, str]]:
        pairs = _CONVERT.findall(functions[name])
        found = Counter((_NAMES.get(a, a), _NAMES.get(b, b)) for a, b in pairs if a != b)
        for callee in _CALL.findall(functions[name].partition("\n")[2]):
            found += count(callee)
        return found

    return count("main")
