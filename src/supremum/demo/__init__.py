"""A demonstration: a digit classifier in float32, bfloat16 and float16, with and without loss scaling."""

from supremum.extras import require

require(__name__, "jax", "optax", "rich", "safetensors", "matplotlib", "sklearn")

from supremum.demo.classifier import CASES, Report, demonstration_policy, label_of, train_classifier
from supremum.demo.digits import Digits, load_digits
from supremum.demo.figures import draw_training, draw_underflow
from supremum.demo.underflow import UNDERFLOW_WEIGHTS, Shares, Underflow, measure_underflow
from supremum.public_names import public_names

__all__ = [
    "CASES", "UNDERFLOW_WEIGHTS", "Digits", "Report", "Shares", "Underflow", "demonstration_policy", "draw_training",
    "draw_underflow", "label_of", "load_digits", "measure_underflow", "train_classifier",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
