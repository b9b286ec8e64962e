"""Draw the picture of docs/debugging.md: the gradients that a layer loses as the loss scale falls.

    .venv/bin/python tools/monitor_picture.py

The program runs the examples of the section, measures the same training more often, and writes
docs/pictures/numerics_monitor.svg.
"""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np

from supremum import nn, training
from supremum.optimizers import SGD

DOCS = Path(__file__).parent.parent / "docs"
TARGET = DOCS / "pictures/numerics_monitor.svg"


def main() -> None:
    """Write the picture."""
    before, found, _ = (DOCS / "debugging.md").read_text("utf-8").partition(f"]({TARGET.relative_to(DOCS)})")
    assert found, "the page does not show the picture"
    # The section has what it needs but for these; the examples above would take longer.
    names: dict[str, Any] = {"jax": jax, "nn": nn, "training": training, "SGD": SGD, "rng": np.random.default_rng(0)}
    _, _, section = before.rpartition("\n## ")
    for example in doctest.DocTestParser().get_examples(section):
        exec(example.source, names)
    model = names["small_outputs"]()
    model.compile(names["SGD"](0.01), "mse")
    monitor = training.NumericsMonitor(every=8, formats=["float16"])
    model.fit(names["readings"], names["wanted"], callbacks=monitor, **names["options"])
    # Text stays text, and the same numbers give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "supremum"}):
        monitor.history.plot().savefig(TARGET, metadata={"Date": None})
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
