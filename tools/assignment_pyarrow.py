"""Measure what PyArrow stores in existing arrays, for extract_assignments."""

from __future__ import annotations

from typing import Any

from assignment_cells import IN_PLACE, TARGETS, document, measured, numbers
from extract_oracles import SCALARS
from oracle_pyarrow import CODES, make, name_of


def pyarrow() -> dict[str, Any]:
    """Measure PyArrow, whose arrays are immutable: `a += b` makes an array, and `fill_null` replaces nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *SCALARS]

    def value(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else make([1], CODES[key])

    def fill(array: Any, given: Any) -> Any:
        return pc.fill_null(pa.nulls(1, array.type), given)

    # There are no operators `//` and `%`.
    operators = {name: write for name, write in IN_PLACE.items() if name not in ("floor_divide", "remainder")}
    writes = {f"{name} in_place": write for name, write in operators.items()} | {"assign item": fill}
    cells = measured(writes, keys, value, value, lambda array: code_of[name_of(array)])
    values = numbers(
        {"assign item": fill},
        lambda name: make([1], name),
        lambda array: f"{name_of(array)} {array[0].as_py()}",
        tuple(name for name in TARGETS if name in code_of),
    )
    return document("pyarrow", pa.__version__, CODES, cells, keys, values)
