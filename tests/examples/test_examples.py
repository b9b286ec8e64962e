"""Each pair of examples learns, computes in the right dtypes, and differs in a few lines only."""

import difflib
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
from flax import nnx

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
# How many arguments at the start of a step are its state.
STATES = {"plain_jax": 1, "flax_nnx": 2, "flax_linen": 1, "equinox": 2}
PRECISIONS = {"float32": "f32", "float16": "f16"}
# The number of epochs after which each program has learned.
EPOCHS = {"plain_jax": 6, "flax_nnx": 8, "flax_linen": 5, "equinox": 5}
SCALING = {"loss_scale", "num_good_steps", "num_skipped_steps", "num_overflows", "num_retries"}


# One worker runs all tests of a library, so each program runs once.
of_every_library = pytest.mark.parametrize("library", STATES)


class Run(NamedTuple):
    accuracy: float
    module: Any
    args: tuple[Any, ...]  # of the first step
    program: str  # that step as StableHLO


@cache
def run(library: str, precision: str) -> Run:
    path = EXAMPLES / library / f"{precision}.py"
    spec = importlib.util.spec_from_file_location(f"example_{library}_{precision}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step, first = module.step, []

    def recorded(*args: Any) -> Any:
        if not first:
            first.append((args, step.lower(*args).as_text()))
        return step(*args)

    module.step = recorded
    accuracy = module.main(seed=0, epochs=EPOCHS[library])
    module.step = step
    return Run(accuracy, module, *first[0])


def difference(library: str) -> list[str]:
    texts = [(EXAMPLES / library / f"{precision}.py").read_text("utf-8").splitlines() for precision in PRECISIONS]
    return list(difflib.unified_diff(*texts, *PRECISIONS, lineterm="", n=0))


def added_lines(library: str) -> list[str]:
    return [line for line in difference(library)[2:] if line.startswith("+") and line != "+"]


def numbers(tree: Any) -> dict[str, np.ndarray]:
    def as_numpy(leaf: Any) -> np.ndarray:
        return np.array(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)

    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): as_numpy(leaf) for path, leaf in leaves if hasattr(leaf, "dtype")}


def changes(library: str, batch: Any) -> tuple[set[str], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The paths that a step of the float16 program changes, and its state before and after."""
    made, count = run(library, "float16"), STATES[library]
    state, rest = made.args[:count], made.args[count + 1 :]
    if isinstance(state[0], nnx.Module):
        state[0].train()  # the program left it ready for evaluation
    before = numbers(state)
    result = made.module.step(*state, batch, *rest)
    # A step of nnx changes its arguments.
    after = numbers(state if result is None else result if count > 1 else (result,))
    assert before.keys() <= after.keys()  # the first TrainState.step is a Python number
    changed = {path for path in before if not np.array_equal(before[path], after[path], equal_nan=True)}
    return changed, before, after


def fields(paths: set[str]) -> set[str]:
    # In nnx a leaf may be one level below its field, because it is the value of a variable.
    return {re.findall(r"\w+", path.removesuffix(".value"))[-1] for path in paths}


def at(numbers: dict[str, np.ndarray], field: str) -> float:
    (found,) = [value for path, value in numbers.items() if fields({path}) == {field}]
    return float(found)


@of_every_library
def test_both_programs_learn_equally_well(library):
    accuracies = [run(library, precision).accuracy for precision in PRECISIONS]
    assert min(accuracies) >= 0.95, accuracies
    assert abs(accuracies[0] - accuracies[1]) <= 0.02, accuracies


@pytest.mark.parametrize("precision", PRECISIONS)
@of_every_library
def test_every_product_of_the_jitted_step_has_the_dtype_of_its_program(library, precision):
    program = run(library, precision).program
    products = [line for line in program.splitlines() if re.search(r"stablehlo\.(dot_general|convolution)", line)]
    assert len(products) >= 5, "forward and backward of two layers at least"
    for line in products:
        types = re.findall(r"tensor<[^>]*?(\w+)>", line.rpartition(" : ")[2])
        assert [name.split("x")[-1] for name in types] == [PRECISIONS[precision]] * 3, line


def of_nnx(loss, model, optimizer, x, y):
    model.train()  # the program left it ready for evaluation
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    return lambda params: loss(graphdef, params, rest, x, y)[0], params


def of_equinox(loss, model, opt_state, x, y):
    params, static = eqx.partition(model, eqx.is_inexact_array)
    return lambda params: loss(eqx.combine(params, static), x, y), params


# From a loss and the arguments of a step: the loss as a function of the parameters, and the parameters.
OBJECTIVES = {
    "plain_jax": lambda loss, state, x, y: (lambda params: loss(params, x, y), state["params"]),
    "flax_nnx": of_nnx,
    "flax_linen": lambda loss, state, x, y, key: (lambda params: loss(params, x, y, key), state.params),
    "equinox": of_equinox,
}
EPS = float(np.finfo(np.float16).eps)
# The largest relative error of a gradient, in L2 norm. After rounding, relu or a maximum may select another element.
# This happens for a fraction of eps of the elements, whose error is as large as their value, so the norm is off by the
# root of that fraction.
TOLERANCES = {"plain_jax": 2 * EPS**0.5, "flax_nnx": 2 * EPS**0.5, "flax_linen": 4 * EPS, "equinox": 2 * EPS**0.5}
# Norms below this fraction of the largest are replaced by it, because the gradient of the attention keys' bias is zero.
SHARE = 0.05


@of_every_library
def test_gradients_of_its_loss_are_those_of_the_plain_loss_within_float16(library):
    made = run(library, "float16")
    losses = (made.module.loss, made.module.loss.__wrapped__)
    (cast, params), (plain, _) = (OBJECTIVES[library](loss, *made.args) for loss in losses)
    scaled = [jax.grad(lambda params, loss=loss: 2.0**10 * loss(params)) for loss in (cast, plain)]
    got, want = map(numbers, jax.jit(lambda params: [gradient(params) for gradient in scaled])(params))
    assert got.keys() == want.keys()
    assert {leaf.dtype for leaf in (*got.values(), *want.values())} == {np.dtype("float32")}
    floor = SHARE * max(map(np.linalg.norm, want.values()))
    off = {path: np.linalg.norm(got[path] - leaf) / max(np.linalg.norm(leaf), floor) for path, leaf in want.items()}
    assert {path: error for path, error in off.items() if not error < TOLERANCES[library]} == {}
    assert max(off.values()) > EPS / 8  # it was computed in float16


@of_every_library
def test_a_step_with_gradients_that_are_not_finite_changes_nothing_but_the_scale(library):
    x = run(library, "float16").args[STATES[library]]
    good, *_ = changes(library, x)
    assert not fields(good) <= SCALING | {"step"}
    skipped, before, after = changes(library, np.full_like(x, np.nan))
    # TrainState and nnx.Optimizer count the attempts, the optimizers inside count the steps that they took.
    assert fields(skipped) <= SCALING | {"step"}, skipped
    assert at(after, "loss_scale") == at(before, "loss_scale") / 2
    assert at(after, "num_skipped_steps") == at(before, "num_skipped_steps") + 1


def test_statistics_and_random_counts_of_nnx_go_through_autocast():
    rests = []
    for precision in PRECISIONS:
        made = run("flax_nnx", precision)
        model = made.module.Network(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, made.args[1].tx, wrt=nnx.Param)
        for _ in range(2):
            made.module.step(model, optimizer, *made.args[2:])
        rests.append((np.array(model.norm.mean), np.array(model.norm.var), int(model.dropout.rngs.count[...])))
    (mean, var, count), (half_mean, half_var, half_count) = rests
    assert np.abs(mean).max() > 1e-3
    assert half_mean.dtype == half_var.dtype == np.float32
    assert count == half_count == 2
    np.testing.assert_allclose(half_mean, mean, atol=1e-3)
    np.testing.assert_allclose(half_var, var, rtol=1e-2)


@of_every_library
def test_the_guide_shows_the_lines_that_differ(library):
    guide = (EXAMPLES.parent / "docs/mixed_precision.md").read_text("utf-8")
    shown = [line for line in added_lines(library) if not re.match(r"\+from |\+ +print\(", line)]
    assert "\n".join(shown) in "\n".join(line for line in guide.splitlines() if not line.startswith("-"))
