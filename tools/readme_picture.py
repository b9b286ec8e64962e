"""Train what the README's picture shows, and draw the picture.

    .venv/bin/python tools/readme_picture.py

The program writes docs/pictures/readme.json, readme-light.svg and readme-dark.svg. With `--draw`, it does not
train, but draws the losses of readme.json again.

The document:

    steps   the steps at which the losses are given
    runs    for each run of the case "underflow" of `supremum demo`:
      losses         the running mean of the losses at these steps, without the weight of the loss
      test_accuracy  the share of test digits that are classified correctly
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from supremum import demo

DOCS = Path(__file__).parent.parent / "docs"
TARGET = DOCS / "pictures"
ORDER = ("float32", "bfloat16", "float16, loss scaled", "float16, not scaled", "float16 weights too")
"""The runs from the first drawn to the last; later ones are thinner, because the first three coincide."""
_POINTS = 80


def document(epochs: int) -> dict[str, Any]:
    """Return the document that the module's docstring describes.

    Args:
        epochs: the length of each training.
    """
    case, digits = demo.CASES["underflow"], demo.load_digits()
    found: dict[str, Any] = {"steps": [], "runs": {}}
    for label in ORDER:
        report = demo.train_classifier(digits, case, label, seed=0, epochs=epochs)
        steps, weighted = demo.smoothed_losses(report.history.loss)
        losses = weighted / case.weight
        chosen = np.linspace(0, len(steps) - 1, _POINTS).astype(int)
        found["steps"] = [int(step) for step in steps[chosen]]
        found["runs"][label] = {
            "losses": [round(float(loss), 4) for loss in losses[chosen]],
            "test_accuracy": report.test_accuracy,
        }
    return found


def main() -> None:
    """Write the document and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="do not train, but draw the losses of readme.json again")
    if not parser.parse_args().draw:
        trained = document(demo.CASES["underflow"].epochs)
        (TARGET / "readme.json").write_text(json.dumps(trained, indent=1) + "\n", "utf-8")
    sys.path.insert(0, str(DOCS))
    from generate.readme_picture import readme_picture

    for theme, text in readme_picture(json.loads((TARGET / "readme.json").read_text("utf-8"))).items():
        (TARGET / f"readme-{theme}.svg").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
