"""Measure what NumPy 1 stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import warnings
from typing import Any

from assignment_cells import IN_PLACE, document, measured, numbers, set_at
from extract_oracles import SCALARS
from oracle_numpy_legacy import CODES


def numpy_legacy() -> dict[str, Any]:
    """Measure NumPy before NEP 50, which warns about Python ints that are out of range and wraps them around."""
    import numpy as np

    warnings.simplefilter("ignore")
    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *(f"{code}[]" for code in CODES), *SCALARS]

    def make(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        return np.ones(() if key.endswith("[]") else (1,), CODES[key.removesuffix("[]")])

    assignment = {"assign item": set_at(Ellipsis)}
    writes = {f"{name} in_place": write for name, write in IN_PLACE.items()} | assignment
    cells = measured(writes, keys, make, make, lambda array: code_of[array.dtype.name])
    values = numbers(assignment, lambda name: np.ones(1, name), lambda array: f"{array.dtype.name} {array[0]}")
    return document("numpy-legacy", np.__version__, CODES, cells, keys, values)
