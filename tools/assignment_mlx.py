"""Measure what MLX stores in existing arrays, for extract_assignments."""

from __future__ import annotations

from typing import Any

from assignment_cells import IN_PLACE, document, measured, numbers, set_at
from extract_oracles import SCALARS
from oracle_mlx import CODES, cpu, name_of, ones


def mlx() -> dict[str, Any]:
    """Measure MLX's CPU build, in which `a += b` and `a[...] = b` change the dtype of `a` to that of the result."""
    mx = cpu()
    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *SCALARS]

    def make(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else ones(mx, CODES[key])

    def code(array: Any) -> str:
        mx.eval(array)
        return code_of[name_of(array)]

    assignments = {
        "assign item": set_at(0),
        "assign slice": set_at(slice(None)),
        "assign indices": set_at(mx.array([0])),
        "assign mask": set_at(mx.array([True])),
        "assign ellipsis": set_at(Ellipsis),
    }
    writes = {f"{name} in_place": write for name, write in IN_PLACE.items()} | assignments
    cells = measured(writes, keys, make, make, code)
    values = numbers(
        {name: assignments[name] for name in ("assign item", "assign ellipsis")},
        lambda name: ones(mx, name),
        lambda array: f"{name_of(array)} {array.tolist()[0]}",
    )
    return document("mlx", mx.__version__, CODES, cells, keys, values)
