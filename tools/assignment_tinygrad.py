"""Measure what tinygrad stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import importlib.metadata
import operator
from typing import Any

from assignment_cells import IN_PLACE, TARGETS, Write, assign_in, document, measured, numbers, set_at
from extract_oracles import SCALARS
from oracle_tinygrad import CODES, FORMATS, is_defined, make, name_of, numbers_in, use_device


def tinygrad() -> dict[str, Any]:
    """Measure tinygrad's tensors. A row is a tensor in memory, since a weak tensor has no memory to write into."""
    use_device("PYTHON")
    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *SCALARS]

    def target(name: str) -> Any:
        return make([1, 1], name).contiguous().realize()

    def value(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else make([1, 1], CODES[key])

    set_all = set_at(slice(0, 2))
    # `%=` makes a new tensor: there is no method for it.
    operators = {name: write for name, write in IN_PLACE.items() if name != "remainder"}
    operators |= {"pow": operator.ipow, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor}
    operators |= {"bitwise_right_shift": operator.irshift}
    writes = {f"{name} in_place": write for name, write in operators.items()}
    writes |= {"assign item": set_all, "assign variable": assign_in("assign")}

    def checked(write: Write) -> Write:
        def call(tensor: Any, given: Any) -> Any:
            result = write(tensor, given)
            if not is_defined(result):
                raise TypeError("tinygrad does not compute this graph")
            return result

        return call

    cells = measured(
        {name: checked(write) for name, write in writes.items()},
        keys,
        lambda key: target(CODES[key]),
        value,
        lambda tensor: code_of[name_of(tensor)],
        [*FORMATS],
    )
    values = numbers(
        {"assign item": lambda tensor, given: set_all(tensor, given).realize()},
        target,
        lambda tensor: f"{name_of(tensor)} {numbers_in(tensor)[0]}",
        tuple(name for name in TARGETS if name in code_of),
    )
    return document("tinygrad", importlib.metadata.version("tinygrad"), CODES, cells, keys, values)
