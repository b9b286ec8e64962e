"""Compute the error of a sum of gradients over many replicas for each dtype of the sum, and draw it.

    .venv/bin/python tools/reduction_error.py

The program writes docs/pictures/reduction_error.json and reduction_error.svg, which docs/distributed.md shows. The
gradients are those of a small network under mixed_float16, whose replicas get different batches of handwritten digits.
No device reduces them: this program adds them as devices would, and rounds after each addition.

The document:

    replicas    the numbers N of replicas
    parameters  the number of entries in a gradient
    batch       the number of digits that each replica gets
    figures     for the first step and a later step of the training:
      loss_scale  the scale of the gradients: the RFC's 2**15, halved until they are finite in float16
      noise       for each N, the distance of the exact mean over N replicas from its expected value, which is due to
                  the random choice of batches
      error       {DTYPE: {"divide first" or "sum first": {"ring" or "tree": values}}}: for each N, the distance of the
                  reduced mean from the exact mean; null if the reduced mean is not finite
      flushed     in the same form, the share of entries that became zero but are not

A distance is the l2 norm of the difference, divided by the norm of the exact mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from supremum.demo.digits import load_digits
from supremum.formats import as_format
from supremum.mixed_precision import DynamicLossScale, autocast

TARGET = Path(__file__).parent.parent / "docs/pictures"
SIZES = tuple(2**power for power in range(13))
DTYPES = ("float32", "float16", "bfloat16")
STEPS = (0, 999)
"""The numbers of training steps after which gradients are computed."""
_HIDDEN = 64
_BATCH = 16


# Gradients


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cross entropy of a perceptron with two hidden layers."""
    for weights in params[:-1]:
        x = jax.nn.relu(x @ weights)
    return optax.softmax_cross_entropy_with_integer_labels(x @ params[-1], y).mean()


def trained(steps: int, x: jax.Array, y: jax.Array) -> Any:
    """Return the parameters after some steps of Adam; in later steps the replicas' gradients agree less."""
    keys = jax.random.split(jax.random.key(0), 3)
    widths = (x.shape[1], _HIDDEN, _HIDDEN, 10)
    params = [jax.nn.initializers.he_normal()(key, pair) for key, pair in zip(keys, pairwise(widths), strict=True)]
    optimizer = optax.adam(1e-3)

    def step(carry: Any, key: jax.Array) -> Any:
        params, state = carry
        chosen = jax.random.choice(key, len(x), (64,))
        updates, state = optimizer.update(jax.grad(loss)(params, x[chosen], y[chosen]), state)
        return (optax.apply_updates(params, updates), state), None

    start = (params, optimizer.init(params))
    return jax.lax.scan(step, start, jax.random.split(jax.random.key(1), steps))[0][0]


def replica_gradients(count: int, steps: int) -> tuple[np.ndarray, float]:
    """Return scaled float32 gradients, one row per replica, and the scale at which all are finite in float16."""
    digits = load_digits()
    x, y = jnp.asarray(digits.x_train.reshape(len(digits.x_train), -1)), jnp.asarray(digits.y_train)
    params = trained(steps, x, y)
    batches = np.random.default_rng(0).integers(len(x), size=(count, _BATCH))
    narrow = autocast(loss, "mixed_float16")

    @jax.jit
    def scaled(scale: jax.Array, batches: jax.Array) -> jax.Array:
        def one(batch: jax.Array) -> jax.Array:
            grads = jax.grad(lambda params: narrow(params, x[batch], y[batch]) * scale)(params)
            return jnp.concatenate([leaf.ravel() for leaf in grads])

        return jax.lax.map(one, batches, batch_size=64)

    scale = DynamicLossScale().initial_loss_scale
    while True:
        gradients = np.asarray(scaled(jnp.float32(scale), batches))
        if np.all(np.abs(gradients) <= as_format("float16").max):
            return gradients, scale
        scale /= 2


# Sums


def ring(parts: np.ndarray) -> np.ndarray:
    """Add the parts one after the other, as around a ring of devices; each addition rounds."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def tree(parts: np.ndarray) -> np.ndarray:
    """Add 2**k parts in pairs, then pairs of pairs; each addition rounds."""
    while len(parts) > 1:
        parts = parts[::2] + parts[1::2]
    return parts[0]


WAYS = ("divide first", "sum first")
ORDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"ring": ring, "tree": tree}


def reduced(parts: np.ndarray, dtype: str, way: str, order: str) -> np.ndarray:
    """Return the float32 mean of float32 rows, as computed by replicas that reduce in the given dtype."""
    wide, count = as_format("float32").dtype, np.float32(len(parts))
    before, after = (count, 1) if way == "divide first" else (1, count)
    # NumPy and ml_dtypes add 16-bit numbers in float32 and round. The result is the exact sum, rounded once.
    total = ORDERS[order]((parts / before).astype(as_format(dtype).dtype))
    return total.astype(wide) / after


def figures(gradients: np.ndarray, loss_scale: float, sizes: Sequence[int]) -> dict[str, Any]:
    """Return the document's part for one step of the training."""
    everything = np.mean(gradients, axis=0, dtype=np.float64)
    spread = np.sqrt(np.sum(np.var(gradients, axis=0, dtype=np.float64)))
    noise = [float(spread / np.sqrt(size) / np.linalg.norm(everything)) for size in sizes]
    error: dict[str, Any] = {}
    flushed: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # some sums overflow, as the picture shows
        for dtype, way, order in product(DTYPES, WAYS, ORDERS):
            pairs = [_compared(gradients[:size], dtype, way, order) for size in sizes]
            for found, values in zip((error, flushed), zip(*pairs, strict=True), strict=True):
                found.setdefault(dtype, {}).setdefault(way, {})[order] = list(values)
    return {"loss_scale": loss_scale, "noise": noise, "error": error, "flushed": flushed}


def _compared(parts: np.ndarray, dtype: str, way: str, order: str) -> tuple[float | None, float]:
    exact = np.mean(parts, axis=0, dtype=np.float64)
    mean = reduced(parts, dtype, way, order)
    error = float(np.linalg.norm(mean - exact) / np.linalg.norm(exact))
    return error if np.isfinite(error) else None, float(np.mean((mean == 0) & (exact != 0)))


def document(sizes: Sequence[int]) -> dict[str, Any]:
    """Return the document that the module's docstring describes."""
    found: dict[str, Any] = {"replicas": list(sizes), "parameters": 0, "batch": _BATCH, "figures": {}}
    for steps in STEPS:
        gradients, loss_scale = replica_gradients(max(sizes), steps)
        found["parameters"] = gradients.shape[1]
        found["figures"][f"step {steps + 1:,}" if steps else "the first step"] = figures(gradients, loss_scale, sizes)
    return found


# The picture

# Okabe and Ito's colours, which colour-blind readers can tell apart. The markers differ, too.
_STYLES = {"bfloat16": ("#CC79A7", "s"), "float16": ("#0072B2", "o"), "float32": ("#009E73", "^")}
_LINES = {"ring": "-", "tree": "--"}
_OVERFLOW = "#D55E00"


def draw(path: Path, found: dict[str, Any]) -> None:
    """Draw errors over numbers of replicas, with a panel for each step."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 5.4), layout="constrained")
    panels = figure.subplots(1, len(found["figures"]), sharey=True, squeeze=False)[0]
    for axis, (moment, each) in zip(panels, found["figures"].items(), strict=True):
        _draw_panel(axis, found["replicas"], each)
        axis.set_title(f"Gradients of {moment}")
    panels[0].set_ylabel("error of the reduced mean, relative l2 norm")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    with rc_context({"svg.hashsalt": "supremum"}):
        figure.savefig(path, metadata={"Date": None})


def _draw_panel(axis: Any, sizes: Sequence[int], found: dict[str, Any]) -> None:
    # With one replica there is no sum, and an error of zero has no place on a logarithmic axis.
    for (dtype, (colour, marker)), order in product(_STYLES.items(), ORDERS):
        axis.plot(
            sizes[1:], found["error"][dtype]["divide first"][order][1:], color=colour, marker=marker, markersize=4,
            linestyle=_LINES[order], markerfacecolor=colour if order == "ring" else "white", label=f"{dtype}, {order}",
        )  # fmt: skip
    axis.plot(sizes[1:], found["noise"][1:], color="0.55", linestyle=":", linewidth=2, label="noise of the batches")
    naive = found["error"]["float16"]["sum first"]["ring"]
    if None in naive:
        where = sizes[naive.index(None)]
        is_left = sizes.index(where) < len(sizes) / 2
        axis.axvline(where, color=_OVERFLOW, linewidth=1.5)
        axis.annotate(
            f"float16 summed before\ndividing: infinite\nfrom N = {where:,}", (where, 3e-6), (6 if is_left else -6, 0),
            textcoords="offset points", color=_OVERFLOW, va="center", ha="left" if is_left else "right",
        )  # fmt: skip
    axis.set(yscale="log", xlabel="replicas N", ylim=(1e-11, 10))
    axis.set_xscale("log", base=2)
    axis.set_xticks(sizes[2::2], [f"{size:,}" for size in sizes[2::2]])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)


def main() -> None:
    """Write the document and the picture."""
    found = document(SIZES)
    (TARGET / "reduction_error.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    draw(TARGET / "reduction_error.svg", found)


if __name__ == "__main__":
    main()
