"""The reprs of public objects fit on one line."""

import jax.numpy as jnp
import numpy as np
import optax

import supremum
from supremum import analysis, mixed_precision, nn, optimizers, tracing, training
from supremum.lattice import Lattice

LIMIT = 250
MODEL = training.Sequential([nn.Dense(2), nn.Dense(1)])
LAYERS = {  # the arguments of the layers that need some
    "Activation": ("relu",), "Bidirectional": (nn.RNN(nn.GRUCell(2)),), "Conv": (2, (3,)), "ConvTranspose": (2, (3,)),
    "Dense": (2,), "DenseGeneral": (2,), "Dropout": (0.5,), "Einsum": ("...a,ab->...b", (2, 3)), "Embedding": (4, 2),
    "GRU": (2,), "GRUCell": (2,), "GroupNorm": (), "LSTM": (2,), "LSTMCell": (2,), "Lambda": (jnp.square,),
    "MultiHeadAttention": (2, 4), "Permute": ((2, 1),),
    "RNN": (nn.GRUCell(2),), "Reshape": ((2, 1),), "SequentialNetwork": ([nn.Dense(2)],), "SimpleRNN": (2,),
    "SimpleRNNCell": (2,),
    "AvgPool": ((2,),), "MaxPool": ((2,),),
}  # fmt: skip
ABSTRACT = {"Layer", "Network", "RecurrentCell"}


def _layers():
    for name in nn.__all__:
        kind = getattr(nn, name)
        if isinstance(kind, type) and issubclass(kind, nn.Layer) and name not in ABSTRACT:
            yield kind(*LAYERS.get(name, ()))


def _losses_and_metrics():
    for name in training.__all__:
        kind = getattr(training, name)
        if isinstance(kind, type) and issubclass(kind, (training.Loss, training.Metric)) and kind is not training.Loss:
            if kind is training.Metric:
                continue
            yield kind(lambda a, b: (a - b).mean()) if kind is training.FunctionMetric else kind()


def _objects():
    scale = mixed_precision.DynamicLossScale()
    yield from map(supremum.rules.get_rules, supremum.rules.rule_names())
    yield supremum.use_rules("torch")
    yield supremum.use_rules(supremum.rules.TORCH)
    yield from (supremum.asarray([1, 2]), supremum.ArrayVariable(1.0), supremum.asarray(np.ones(3, "float32")))
    yield from (supremum.formats.as_format("int8"), supremum.operations.as_operation("add"))
    yield Lattice({"a": ("b",)})
    yield from (analysis.order_of("jax-x64", ["int8", "int16"]), nn.InputSpec(ndim=2), nn.L1L2(0.1, 0.1))
    yield from (
        mixed_precision.Policy("mixed_float16"),
        mixed_precision.PolicyMap({"a": "float32"}),
        scale,
        scale.init(),
    )
    yield from (mixed_precision.FixedLossScale(2.0), mixed_precision.use_policy("float32"))
    yield from (mixed_precision.autocast(jnp.tanh), mixed_precision.narrow_weights(optax.sgd(1.0)))
    yield from (nn.Variable(1.0), nn.Input((3,)), nn.MaxNorm(), nn.MinMaxNorm(), nn.NonNeg(), nn.UnitNorm())
    for make in (optimizers.SGD, optimizers.Adam, optimizers.AdamW, optimizers.Lion, optimizers.RMSprop):
        yield make(1e-3)
    yield optimizers.Adagrad(1e-3)
    yield optimizers.LossScaleOptimizer(optimizers.SGD(1e-3), "dynamic")
    yield from (MODEL, training.ArrayData(jnp.ones((4, 2)), batch_size=2), training.IterableData([]))
    yield from (training.Callback(), training.EarlyStopping(), training.ModelCheckpoint("weights"))
    yield from (training.CSVLogger("log.csv"), training.LambdaCallback(print))
    yield training.History()
    yield tracing.casts(lambda x: x + jnp.ones(3, "bfloat16"))(jnp.ones(3)).casts[0].where
    yield from _layers()
    yield from _losses_and_metrics()


def test_reprs_are_one_line_and_say_more_than_an_address():
    found = list(_objects())
    wrong = {f"{type(each).__name__}: {text}" for each in found if not _is_plain(text := repr(each))}
    assert wrong == set()
    assert len(found) > 100
    assert not _is_plain(repr(object()))


def _is_plain(text):
    return "\n" not in text and " object at 0x" not in text and len(text) <= LIMIT
