"""The explorer page: its template, style, scripts and packed data."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files

from supremum.explorer.data import BINARY, explorer_data
from supremum.render import PALETTE

_SCRIPTS = ("operands.js", "conversion.js", "answers.js", "grid.js", "explorer.js")
_EXAMPLES = ("uint8, 256", "uint8 + 256", "int8 / uint8", "bfloat16[] float32", "int* float16", "1.5", "2j float64")


def explorer_page(
    on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = BINARY, processes: int = 1
) -> str:
    """Build a self-contained page to look up the decisions of every rule set; it needs no network.

    Args:
        on_step: called with the name of each rule set when all of its answers are ready, which takes a while.
        operations: the operations to offer; each must take two operands.
        processes: the number of processes to use; with more than one, the main module must be importable.

    Returns:
        The page as HTML.

    Raises:
        UnknownNameError: for an operation that is unknown or does not take two operands.
        ModuleNotFoundError: without Jinja2, which `supremum[cli]` installs.
    """
    from jinja2 import Environment  # from the extra "cli"

    data = explorer_data(on_step, operations=operations, processes=processes)
    folder = files("supremum.explorer")
    template = Environment(autoescape=True).from_string((folder / "template.html.j2").read_text("utf-8"))
    packed = zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), 9)
    kinds = (*data["categories"], "refused")
    return template.render(
        data=base64.b64encode(packed).decode(),
        examples=_EXAMPLES,
        kinds=kinds,
        operations=data["operations"],
        palette={style: PALETTE[style] for style in kinds},
        rules=data["rules"],
        script="\n".join((folder / name).read_text("utf-8") for name in _SCRIPTS),
        style=(folder / "explorer.css").read_text("utf-8"),
        version=version("supremum"),
    )
