"""`help` and `inspect.signature` show every keyword argument of layers, losses and optimizers."""

import inspect
from inspect import Parameter

import jax
import pytest

from supremum import nn, optimizers, training
from supremum.keyword_signature import KeywordSignature

CLASSES = [
    each
    for package, base in (
        (nn, nn.Layer),
        (training, nn.Layer),
        (training, training.Loss),
        (optimizers, optimizers.Optimizer),
    )
    for each in (getattr(package, name) for name in package.__all__)
    if isinstance(each, type) and issubclass(each, base)
]
REQUIRED = {
    "cell": nn.GRUCell(3), "dims": (1,), "embedding_size": 3, "equation": "...a,ab->...b", "features": 4, "filters": 4,
    "forward": nn.RNN(nn.GRUCell(3)), "function": jax.nn.relu, "kernel_size": (3,), "key_size": 4,
    "layers": [nn.Dense(2)], "num_embeddings": 5, "num_heads": 2, "optimizer": optimizers.SGD(), "rate": 0.5,
    "shape": (3, 4), "target_shape": (2, 3), "units": 3, "window": (2,),
}  # fmt: skip


def test_layers_losses_and_optimizers_are_covered():
    assert len(CLASSES) > 50
    assert {nn.Conv, nn.LSTMCell, training.Model, training.Huber, optimizers.AdamW} <= set(CLASSES)


def test_every_keyword_argument_is_shown_by_name():
    for kind in CLASSES:
        shown = inspect.signature(kind).parameters
        kinds = {each.kind for each in shown.values()}
        assert Parameter.VAR_POSITIONAL not in kinds, kind
        # Optimizer takes the hyperparameters of any transformation.
        assert (Parameter.VAR_KEYWORD in kinds) == (kind is optimizers.Optimizer), kind
        if issubclass(kind, nn.Layer):
            assert {"dtype", "name"} <= shown.keys() or kind in {nn.RNN, nn.Bidirectional}, kind


def test_every_shown_argument_is_accepted_with_the_shown_default():
    without_default = {training.Model, nn.Network, optimizers.Optimizer}
    for kind in CLASSES:
        if inspect.isabstract(kind) or kind in without_default:
            continue
        shown = inspect.signature(kind).parameters.values()
        required = {each.name: REQUIRED[each.name] for each in shown if each.default is Parameter.empty}
        defaults = {each.name: each.default for each in shown if each.default is not Parameter.empty}
        assert repr(kind(**required, **defaults)) == repr(kind(**required)), kind
        with pytest.raises((TypeError, ValueError)):
            kind(**required, nothing=1)


def test_arguments_of_the_subclass_come_first_in_the_signature():
    names = list(inspect.signature(nn.Conv).parameters)
    assert names[:5] == ["filters", "kernel_size", "input_dilation", "strides", "padding"]
    assert {"use_bias", "kernel_initializer", "bias_regularizer", "dtype", "param_dtype"} <= set(names)


def test_the_signature_shows_an_overridden_default():
    assert inspect.signature(optimizers.AdamW).parameters["weight_decay"].default == 0.004
    assert inspect.signature(optimizers.Adam).parameters["weight_decay"].default is None


def test_the_signature_of_a_layer_object_is_that_of_its_call():
    assert "units" not in inspect.signature(nn.Dense(2)).parameters


class Base:
    __signature__ = KeywordSignature()

    def __init__(self, size: int, *, dtype: str | None = None, name: str = "") -> None: ...


class Named(Base):
    def __init__(self, *, name: str = "named", **kwargs) -> None: ...


class Closed(Named):
    def __init__(self, dtype: int = 3) -> None: ...


class Unknown(Base):
    def __init__(self, other: "Nowhere" = 1, **kwargs) -> None: ...  # noqa: F821


class Forwarding(Named):
    def __init__(self, *args, **kwargs) -> None: ...


class Inherited(Closed):
    pass


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Base, "(size: int, *, dtype: str | None = None, name: str = '')"),
        (Named, "(*, name: str = 'named', size: int, dtype: str | None = None)"),
        (Closed, "(dtype: int = 3)"),
        (Unknown, "(other: 'Nowhere' = 1, *, size: int, dtype: str | None = None, name: str = '')"),
        (Forwarding, "(*, name: str = 'named', size: int, dtype: str | None = None)"),
        (Inherited, "(dtype: int = 3)"),
    ],
)
def test_subclass_signatures_include_inherited_arguments(kind, expected):
    assert str(inspect.signature(kind)) == expected
