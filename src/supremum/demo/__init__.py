"""A demonstration: what float16 loses when a network trains in it, and what mixed precision does about it.

It is not an example to copy from: those are in `examples/`.
"""

from supremum.extras import require

require(__name__, "jax", "optax", "rich", "safetensors", "matplotlib", "sklearn")

from supremum.demo.classifier import CASES, DemoRun, Experiment, train_classifier
from supremum.demo.digits import Digits, load_digits
from supremum.demo.figures import draw_underflow, smoothed_losses, underflow_caption
from supremum.demo.underflow import first_gradients, underflowing
from supremum.public_names import public_names

__all__ = [
    "CASES",
    "DemoRun",
    "Digits",
    "Experiment",
    "draw_underflow",
    "first_gradients",
    "load_digits",
    "smoothed_losses",
    "train_classifier",
    "underflow_caption",
    "underflowing",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
