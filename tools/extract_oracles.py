"""Measure the promotion rules of an installed framework, and write them as JSON.

    python -m venv venv
    venv/bin/pip install 'paddlepaddle==3.3.1'
    venv/bin/python tools/extract_oracles.py paddle

The program writes all documents of the framework into tests/conformance/oracles/. Each framework has one file in
tools/oracles/, whose first line names what must be installed, so that each can have a separate virtual environment.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from oracles.tables import dump

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ("keras", "mlx", "numpy-legacy", "paddle", "pandas", "polars", "pyarrow", "tensorflow", "tinygrad")


def main() -> None:
    """Measure the framework that the command line names, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("documents", nargs="*", help="only these documents, such as polars-casts")
    parser.add_argument("--folder", type=Path, default=ROOT / "tests/conformance/oracles", help="where to write")
    arguments = parser.parse_args()
    documents = importlib.import_module(f"oracles.{arguments.framework.replace('-', '_')}").DOCUMENTS
    for name in arguments.documents or documents:
        target = arguments.folder / f"{name}.json"
        document = documents[name]()
        # Numbers were first stored with one element in a line.
        text = json.dumps(document, indent=1) if name == "tensorflow-numbers" else dump(document)
        target.write_text(text + "\n", encoding="utf-8")
        print(f"{document['framework']} {document['version']}: {target}", flush=True)


if __name__ == "__main__":
    main()
