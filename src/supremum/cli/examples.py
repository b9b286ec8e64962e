"""Command lines that the help of each command shows. Tests and `make release-check` run all of them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "explain": (
        "supremum explain int8 uint8",
        "supremum explain uint8 256 --operation add --rules all",
        "supremum explain f32 f64 --operation add --into f32",
        "supremum explain bf16 f16 --rules torch --format json",
    ),
    "table": (
        "supremum table --rules torch",
        "supremum table --rules jax-x64 --against numpy",
        "supremum table --types bf16,f16,f32,float* -o table.html",
    ),
    "diff": (
        "supremum diff jax-x64 torch",
        "supremum diff torch numpy --operation divide -o diff.html",
        "supremum diff torch jax-x64 --operation multiply --types f16,131072.0",
    ),
    "lattice": (
        "supremum lattice --rules jax-x64 -o lattice.svg",
        "supremum lattice --path i8 f16 -o path.svg",
    ),
    "rules": (
        "supremum rules",
        "supremum rules --format json",
    ),
    "explore": (
        "supremum explore",
        "supremum explore --operation add --operation divide -o explorer.html",
    ),
    "casts": (
        "supremum casts train.py -- --epochs 1",
        "supremum casts model:forward --args 'f32[8,128], bf16[128]'",
        "supremum casts train.py -o casts.html",
        "supremum casts train.py --fail-on promotion --allow tf-rfc-safe",
        "supremum casts train.py --write-baseline casts.json",
        "supremum casts train.py --baseline casts.json --format github",
    ),
    "profile": (
        "supremum profile train.py -o profile.html -- --epochs 1",
        "supremum profile model:loss --args 'f32[8,128]' --formats float16",
        "supremum profile model:loss --args model:make_args -o loss.svg",
        "supremum profile model:loss --args model:make_args --device tpu",
    ),
    "nans": (
        "supremum nans train.py -o origins.html -- --epochs 1",
        "supremum nans model:loss --args 'f32[8,128]'",
        "supremum nans model:loss --args model:make_args --format json",
    ),
    "attribute": (
        "supremum attribute model:loss --args 'f32[8,128]'",
        "supremum attribute model:loss --args model:make_args -o loss.html",
        "supremum attribute train.py --result 0 -- --epochs 1",
    ),
    "demo": (
        "supremum demo",
        "supremum demo --case underflow --epochs 2 --json figures.json",
    ),
}  # fmt: skip
"""The examples by the name of the command."""


def epilog(command: str) -> str:
    """The examples of a command as the last part of its help."""
    # A line with \b keeps the lines below it as they are.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])))
