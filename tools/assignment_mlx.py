"""Measure what MLX stores in existing arrays, for extract_assignments."""

from __future__ import annotations

from typing import Any

from assignment_cells import IN_PLACE, document, measured, numbers
from extract_oracles import SCALARS
from oracle_mlx import CODES, cpu, name_of, ones


def mlx() -> dict[str, Any]:
    """Measure MLX's CPU build, in which `a += b` changes the dtype of `a` to that of the result."""
    mx = cpu()
    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *SCALARS]

    def make(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else ones(mx, CODES[key])

    def code(array: Any) -> str:
        mx.eval(array)
        return code_of[name_of(array)]

    def set_first(target: Any, value: Any) -> Any:
        target[0] = value
        return target

    writes = {f"{name} in_place": write for name, write in IN_PLACE.items()} | {"assign item": set_first}
    cells = measured(writes, keys, make, make, code)
    values = numbers(
        {"assign item": set_first},
        lambda name: ones(mx, name),
        lambda array: f"{name_of(array)} {array.tolist()[0]}",
    )
    return document("mlx", mx.__version__, CODES, cells, keys, values)
