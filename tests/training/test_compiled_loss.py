"""The loss and metrics of a model with several outputs."""

import jax.numpy as jnp
import pytest

from supremum.errors import ArgumentError, UnknownNameError
from supremum.training.losses import CompiledLoss
from supremum.training.metrics import compile_metrics

TWOS, ZEROS = jnp.full((4, 1), 2.0), jnp.zeros((4, 1))


@pytest.mark.parametrize(
    ("losses", "weights", "outputs", "expected"),
    [
        ("mse", None, TWOS, 4.0),
        ("mse", 0.25, TWOS, 1.0),
        (["mse", "mae"], None, [TWOS, TWOS], 6.0),
        (["mse", "mae"], [1, 0.5], [TWOS, TWOS], 5.0),
        ({"a": "mse", "b": "mae"}, {"b": 0.5}, {"a": TWOS, "b": TWOS}, 5.0),
        ({"a": "mse", "b": None}, None, {"a": TWOS, "b": TWOS}, 4.0),
        (["mse", None], None, (TWOS, TWOS), 4.0),
        (None, None, TWOS, 0.0),
    ],
)
def test_loss_is_the_weighted_sum_over_outputs(losses, weights, outputs, expected):
    labels = type(outputs)(dict.fromkeys(outputs, ZEROS)) if isinstance(outputs, dict) else ZEROS
    labels = [ZEROS, ZEROS] if isinstance(outputs, (list, tuple)) else labels
    value = CompiledLoss(losses, weights)(labels, outputs)
    assert (float(value), value.dtype) == (expected, jnp.float32)


@pytest.mark.parametrize(
    ("losses", "names", "labels", "outputs"),
    [
        ({"a": "mse"}, None, {"a": ZEROS}, {"a": TWOS, "b": ZEROS}),
        ({"b": "mse"}, ["a", "b"], ZEROS, (ZEROS, TWOS)),
        ({"b": "mse"}, ["a", "b"], [None, ZEROS], (ZEROS, TWOS)),
        ({"b": "mse", "a": None}, None, ZEROS, {"a": ZEROS, "b": TWOS}),
        ([None, "mse"], None, [ZEROS], (ZEROS, TWOS)),
        ([None, "mse"], ["a", "b"], ZEROS, {"a": ZEROS, "b": TWOS}),
        ([None, "mse", "mae"], None, [ZEROS, TWOS], (ZEROS, TWOS, TWOS)),
    ],
)
def test_outputs_without_a_loss_need_no_labels(losses, names, labels, outputs):
    assert float(CompiledLoss(losses, None, names)(labels, outputs)) == 4


def test_sample_weights_apply_to_every_output():
    weights = jnp.asarray([1.0, 0.0, 0.0, 1.0])
    assert float(CompiledLoss(["mse", "mae"])([ZEROS, ZEROS], [TWOS, TWOS], weights)) == 3


@pytest.mark.parametrize(
    ("names", "weights", "expected"),
    [
        (["a", "b"], {"a": jnp.zeros(4)}, 2.0),
        (["a", "b"], {"a": jnp.full(4, 0.5), "b": jnp.zeros(4)}, 2.0),
        (None, [jnp.zeros(4), None], 2.0),
        (None, (jnp.ones(4), jnp.zeros(4)), 4.0),
        (None, None, 6.0),
    ],
)
def test_each_output_has_weights_of_its_own(names, weights, expected):
    assert float(CompiledLoss(["mse", "mae"], None, names)([ZEROS, ZEROS], [TWOS, TWOS], weights)) == expected


def test_weights_of_unknown_outputs_raise():
    loss = CompiledLoss({"a": "mse"})
    with pytest.raises(ArgumentError, match="sample_weight has weights for 'c', but the outputs are 'a', 'b'"):
        loss({"a": ZEROS}, {"a": TWOS, "b": TWOS}, {"c": jnp.ones(4)})


@pytest.mark.parametrize(
    ("losses", "labels", "outputs", "message"),
    [
        (["mse", "mse"], ZEROS, [TWOS, TWOS], "the loss is for 0, 1, but the labels are one array"),
        ({"a": "mse"}, {"a": ZEROS}, {"b": TWOS}, "the loss is for 'a', but the outputs are 'b'"),
        ("mse", None, TWOS, "the loss is for one array, but the labels are nothing"),
        ([None, "mse"], {"a": ZEROS}, [TWOS, TWOS], "the loss is for 1, but the labels are 'a'"),
        ({"a": "mse", "b": "mae"}, [ZEROS, ZEROS], {"a": TWOS, "b": TWOS}, "but the labels are 0, 1"),
        (["mse", "mse"], [ZEROS, None], [TWOS, TWOS], "the loss is for 0, 1, but the labels are 0"),
    ],
)
def test_mismatched_structures_raise(losses, labels, outputs, message):
    with pytest.raises(ArgumentError, match=message):
        CompiledLoss(losses)(labels, outputs)


def test_metric_names_start_with_the_output_name():
    assert [metric.name for metric in compile_metrics({"a": ["mae", "mse"], "b": "mae", "c": None})] == [
        "a_mae",
        "a_mse",
        "b_mae",
    ]
    assert [metric.name for metric in compile_metrics([["mae"], ["mae"]])] == ["0_mae", "1_mae"]
    named = compile_metrics([["mae"], "mae"], ["size_loss"], ["size", "age"])
    assert [metric.name for metric in named] == ["size_loss", "size_mae", "age_mae"]
    assert [metric.name for metric in compile_metrics("mae")] == ["mae"]
    with pytest.raises(UnknownNameError, match="unknown metric"):
        compile_metrics({"a": "maee"})
