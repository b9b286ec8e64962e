"""The public callables that `test_junk_arguments` calls, with valid and invalid values for their arguments."""

import enum
import functools
import importlib
import inspect
import math
import re
import types
import typing
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import supremum
from supremum import formats, mixed_precision, nn, operations, optimizers, rules, training

# Packages that `supremum` does not offer in its `__all__` serve the command line, which checks what they are given.
_OFFERED = sorted(supremum._PACKAGES & {*supremum.__all__})
PACKAGES = ["supremum", *(f"supremum.{name}" for name in _OFFERED), "supremum.nn.functional"]


class Broken:
    """An object whose repr and comparison raise, and that has no hash."""

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise ArithmeticError("no comparison")


class Pretender:
    """An object that has a shape and a dtype but is not an array."""

    shape, dtype = (2,), "nonsense"

    def __init__(self, *args, **kwargs):
        pass


def recursive_list():
    loop = [1]
    loop.append(loop)
    return loop


def deep_list():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def recursive_dict():
    loop = {}
    loop["a"] = loop
    return loop


# Each value is made by a function, so that every call gets a new one: a call may change its argument.
JUNK = {
    "None": lambda: None, "True": lambda: True, "0": lambda: 0, "-1": lambda: -1, "2**100": lambda: 2**100,
    "1.5": lambda: 1.5, "nan": lambda: math.nan, "inf": lambda: math.inf, "1j": lambda: 1j, "''": lambda: "",
    "a text": lambda: "junk", "'None'": lambda: "None", "a long text": lambda: "x" * 100_000,
    "a NUL": lambda: "a\0b", "bytes": lambda: b"ab", "[]": list, "a list": lambda: [1, "a", None],
    "a long list": lambda: ["a" * 100] * 10_000,
    "a dict of long names": lambda: {f"{'k' * 300}{index}": index for index in range(300)},
    "a deep list": deep_list, "a list that contains itself": recursive_list,
    "a dict that contains itself": recursive_dict, "()": tuple,
    "{}": dict,
    "a dict of an object": lambda: {"a": object()}, "keys that cannot be sorted": lambda: {1: 2, "b": 3},
    "a set": lambda: {1, 2}, "an object": object, "a class": lambda: Pretender,
    "a function": lambda: lambda *args, **kwargs: None, "a module": lambda: math,
    "an array of texts": lambda: np.array(["a"]), "an array of objects": lambda: np.array([None, "a"], dtype=object),
    "an empty array": lambda: np.zeros((0, 3), "float32"), "records": lambda: np.zeros(2, "i4,f4"),
    "a key": lambda: jax.random.key(0), "a generator": lambda: (number for number in (1,)),
    "float16": lambda: np.ones((2, 3), "float16"), "an array of NaN": lambda: np.array([[math.nan]]),
    "a broken object": Broken, "a pretender": Pretender,
}  # fmt: skip


ENDLESS = {("Model.fit", "epochs", "2**100"), ("Model.fit", "epochs", "inf")}
"""Arguments that are valid but make the call run forever."""
LONGEST_MESSAGE = 3000
"""How many characters an error message may have: enough for a few values of 200 characters and the accepted values."""
TAKES_CODE = {("tracing.carry_mismatches", "body"), ("Optimizer.minimize", "loss_fn")}
"""Arguments that take a function, whose errors reach the caller."""
PASSED_ON = {("Optimizer.minimize", "args")}
"""Arguments that JAX passes on to the user's function; its errors about them reach the caller."""


def ones(*shape):
    return np.ones(shape, "float32")


def dense():
    layer = nn.Dense(2, name="dense")
    nn.initialize(layer, ones(1, 3), seed=0)
    return layer


def built(layer, *inputs):
    nn.initialize(layer, *inputs, seed=0)
    return layer


def called(layer):
    """Return an object whose `call` has the arguments of the layer's `call`, and calls the layer."""

    def call(*args, **kwargs):
        return layer(*args, **kwargs)

    call.__signature__ = inspect.signature(layer.call)
    return types.SimpleNamespace(call=call)


def random_numbers():
    layer = dense()

    def drawing(name):
        def draw(*args, **kwargs):
            with nn.random_key(jax.random.key(0)):
                return getattr(layer, name)(*args, **kwargs)

        draw.__signature__ = inspect.signature(getattr(layer, name))
        return draw

    return types.SimpleNamespace(random_normal=drawing("random_normal"), random_uniform=drawing("random_uniform"))


def model():
    made = training.Sequential([nn.Dense(2)])
    made.compile("sgd", "mse", seed=0)
    made.fit(ones(2, 3), ones(2, 2), verbose=0)
    return made


def equation():
    return jax.make_jaxpr(lambda x: x.astype("float16") + 1)(ones(2)).eqns[0]


def values_of(layer):
    return {path: variable.value for path, variable in layer.variables.items()}


def scan():
    return jax.make_jaxpr(lambda x: jax.lax.scan(lambda carry, y: (carry, y), x, x))(ones(2)).eqns[0]


IMAGE = ones(1, 4, 4, 3)


def good_values(folder: Path) -> dict[str, typing.Any]:
    """Return valid values by argument name, or by callable and argument name; a value that is a function is called."""

    def saved():
        training.save_arrays(folder / "saved.safetensors", {"a": ones(2)})
        return folder / "saved.safetensors"

    def saved_weights():
        training.save_weights(dense(), folder / "weights.safetensors")
        return folder / "weights.safetensors"

    def saved_state(name="state"):
        model().save_state(folder / name)
        return folder / name

    return {
        "right": "torch", "left": "numpy", "types": "int8,float32",
        "a": "int8", "b": "int8", "operands": ("int8", "int8"), "rules": "numpy", "raw": ones(2), "data": [1.0],
        "library": "numpy", "policy": "float32", "dtype": "float32", "name": "f", "x": ones(2, 3),
        "tree": {"a": ones(2)}, "arrays": (ones(2, 3),), "kernel": ones(3, 2), "kind": formats.Kind.FLOAT, "bits": 8,
        "loss_scale_value": 2.0, "patterns": {"a.*": "float32"}, "grads": {"a": ones(2)}, "axis_name": "data",
        "as_loss_scale.scale": "dynamic", "loss_scale": "dynamic",
        "serialize_loss_scale.scale": lambda: mixed_precision.FixedLossScale(2.0),
        "deserialize_loss_scale.data": {"class_name": "FixedLossScale", "config": {"loss_scale_value": 8.0}},
        "opt_state": lambda: mixed_precision.loss_scaled(optax.sgd(0.1), "dynamic").init({"a": ones(2)}),
        "narrow_weights.optimizer": lambda: optax.adam(0.1), "moments": {"mu": "bfloat16"},
        "weight_memory.params": {"a": ones(2)}, "weight_memory.state": {"mu": {"a": ones(2)}},
        "loss_scaled.optimizer": lambda: optax.sgd(0.1), "rule": "float32", "reason": "why",
        "register_operation.name": "sin", "scale_loss.loss": jnp.float32(1),
        "loss_fn": lambda: lambda p: (p["a"] ** 2).sum(), "pred": jnp.bool_(True), "on_true": {"a": ones(2)},
        "on_false": {"a": ones(2)}, "cell": lambda: nn.SimpleRNNCell(2), "function": lambda: jnp.tanh,
        "numerics.watch.step": lambda: jnp.tanh, "numerics.Watched.step": lambda: jnp.tanh, "count": 1, "every": 2,
        "on_log": lambda: print, "explain": lambda: lambda: None, "on_nonfinite": "ignore",
        "window": (2, 2), "forward": lambda: nn.RNN(nn.SimpleRNNCell(2)), "filters": 2, "kernel_size": (2, 2),
        "units": 2, "features": 2, "rate": 0.5, "Einsum.equation": "ab,bc->ac", "Einsum.shape": (3, 2),
        "num_embeddings": 4, "Input.shape": (3,), "num_heads": 2, "dims": (2, 1), "target_shape": (3, 1),
        "layers": lambda: [nn.Dense(2)], "SymbolicTensor.shape": (None, 3), "layer": dense,
        "initialize.layer": lambda: nn.Dense(2), "inputs": (ones(1, 3),), "variables": lambda: values_of(dense()),
        "load_variables.values": lambda: values_of(dense()), "to": "keras",
        "key": lambda: jax.random.key(0), "table": ones(4, 3),
        "avg_pool.x": IMAGE, "max_pool.x": IMAGE, "mean": ones(3), "variance": ones(3),
        "masks": (np.ones((1, 2), bool),), "conv.x": IMAGE, "conv.kernel": ones(2, 2, 3, 2),
        "conv_transpose.x": IMAGE, "conv_transpose.kernel": ones(2, 2, 3, 2), "global_average_pool.x": IMAGE,
        "global_max_pool.x": IMAGE, "query": ones(1, 2, 2, 4), "dot_product_attention.key": ones(1, 2, 2, 4),
        "dot_product_attention.value": ones(1, 2, 2, 4), "einsum.equation": "ab,bc->ac", "indices": np.array([1]),
        "groups": 3, "group_norm.x": IMAGE, "instance_norm.x": IMAGE,
        "query_valid": np.ones((1, 2), bool), "key_valid": np.ones((1, 2), bool), "queries": 2,
        "keys": ones(1, 2, 2, 4),
        "KeyValueCache.values": ones(1, 2, 2, 4), "KeyValueCache.length": 0,
        "axes": (0,), "epsilon": 1e-3, "rotary_embedding.x": ones(1, 2, 2, 4), "positions": np.arange(2),
        "first": ones(2), "second": ones(2), "value": 1.0, "Variable.value": ones(2), "as_operation.operation": "add",
        "arity": 2, "accepts": ("float",), "result": operations.Result.COMMON,
        "optimizer": lambda: optimizers.SGD(0.1), "as_optimizer.optimizer": "sgd",
        "transformation": lambda: optax.sgd(0.1),
        "deserialize_optimizer.data": lambda: optimizers.serialize_optimizer(optimizers.SGD(0.1)),
        "body": lambda: lambda carry, x: (carry, x), "init": ones(2), "xs": (ones(3, 2),),
        "program": lambda: jax.make_jaxpr(jnp.sin)(1.0), "kinds": (), "equation": equation,
        "loop_operands.equation": scan,
        "atom": lambda: equation().invars[0], "register_adapter.library": "mine", "adapter": None,
        "args": (), "fun": lambda: lambda x: x, "fn": lambda: lambda x: x, "f": lambda: lambda x: x,
        "batches": lambda: [(ones(2, 3), ones(2, 2))], "ArrayData.x": ones(4, 3), "batch_size": 2,
        "CSVLogger.path": folder / "log.csv", "ModelCheckpoint.path": folder / "{epoch}.safetensors",
        "folder": folder / "steps", "Checkpoint.model": {"a": ones(2)}, "model": dense,
        "load_arrays.path": saved, "save_arrays.path": folder / "a.safetensors", "save_arrays.arrays": {"a": ones(2)},
        "save_weights.path": folder / "w.safetensors", "load_weights.path": saved_weights,
        "as_loss.loss": "mse", "loss": lambda: lambda y_true, y_pred, sample_weight: jnp.float32(0), "metric": "mae",
        "k": 3, "threshold": 0.5, "FunctionLoss.function": lambda: lambda y_true, y_pred: (y_true - y_pred) ** 2,
        "FunctionMetric.function": lambda: lambda y_true, y_pred: (y_true - y_pred) ** 2,
        "summary": "s", "source": "s", "lattice": lambda: rules.get_rules("jax-x64").lattice, "defaults": {},
        "read": lambda: lambda: jnp.float32(1), "write": lambda: lambda value: None, "schedule": None,
        "y": ones(2, 2), "y_true": ones(2, 3), "y_pred": ones(2, 3), "path": folder / "path",
        "x1": ones(2, 3), "x2": ones(2, 3), "input": ones(2, 3), "target": ones(2, 3),
        "condition": np.ones((2, 3), bool),
        "min": 0.0, "max": 1.0, "shape": (3, 2), "device": "cpu",
        "state": lambda: mixed_precision.DynamicLossScale().init(),
        "finite": jnp.bool_(True), "saved": lambda: mixed_precision.DynamicLossScale().state_dict(
            mixed_precision.DynamicLossScale().init()
        ), "Mean.update.values": 1.0, "Mean.update.state": lambda: training.Mean().init(),
        "checkpoint": lambda: training.Checkpoint({"a": ones(2)}),
        "PolicyMap.for_path.path": "a/b", "step": 3, "Array.__getitem__.index": 0, "Array.dot.b": ones(3),
        "Array.searchsorted.v": 1.0, "Array.repeat.repeats": 2, "Array.take.indices": [0], "axis1": 0, "axis2": 1,
        "Array.transpose.axes": (1, 0), "steps": 3,
        "pairs": list, "Dense.__call__.args": (ones(1, 3),), "Model.__call__.args": (ones(1, 3),),
        "settings": lambda: mixed_precision.autocast(jnp.sin)._settings,
        "judge": lambda: lambda site, operands: None,
        "Profile.tallies": (), "Profile.formats": (), "run": (), "records": (), "outcomes": (), "diagnoses": (),
        "change": None, "var_list": lambda: [nn.Variable(ones(2))],
        "Optimizer.minimize.loss_fn": lambda: lambda *_: jnp.float32(1),
        "slots": (), "sites": (), "source_slots": (), "followed": (), "outputs": (),
        "RNN.call.x": ones(1, 2, 3), "config": {"units": 2}, "SequentialNetwork.from_config.config": {"layers": []},
        "fill_value": 1.0, "start": 0, "rows": 2, "max_length": 2, "batch": 1, "batch_shape": (1,),
        "heads": 2, "head_dim": 4, "append.keys": ones(1, 1, 2, 4), "append.values": ones(1, 1, 2, 4),
        "jvp": lambda: lambda primals, tangents: (primals[0], tangents[0]), "jvps": (None,),
        "fwd": lambda: lambda x: (x, None), "bwd": lambda: lambda rest, g: (g,), "w": jnp.ones((2, 2)),
        "SequentialNetwork.add.layer": lambda: nn.Dense(2), "SequentialNetwork.__getitem__.index": 0,
        "Model.load_weights.path": saved_weights, "Model.load_state.path": saved_state,
    }  # fmt: skip


def arguments_of(function):
    """Return (name, kind, is_required) of each argument, including the `**options` of layers."""
    found = []
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and _forwards_arguments(function):
            return arguments_of(next(base for base in function.__mro__ if base.__module__.startswith("supremum.nn.")))
        if each.kind is each.VAR_KEYWORD:
            options = re.search(r"(Layer|Kernel|Conv|Pool)Options", str(each.annotation))
            if options:
                options = (function.__init__ if isinstance(function, type) else function).__globals__[options[0]]
                found += [(name, each.KEYWORD_ONLY, False) for name in typing.get_type_hints(options)]
            continue
        found.append((each.name, each.kind, each.default is each.empty))
    return found


def _forwards_arguments(function):
    """Return whether a class of `training` forwards its arguments to its base class in `nn`."""
    return function in (training.Sequential, training.Model)


def _is_plain_container(thing):
    """Return whether a class stores its arguments without checking them."""
    return isinstance(thing, type) and (
        issubclass(thing, (tuple, enum.Enum, BaseException))
        or inspect.isabstract(thing)
        or getattr(thing, "_is_protocol", False)
        or (hasattr(thing, "__dataclass_fields__") and not hasattr(thing, "__post_init__"))
    )


def public_callables():
    """Return every exported function and class by name, except for classes that do not check their arguments."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]:
            thing = getattr(module, name)
            if not callable(thing) or _is_plain_container(thing) or thing in found.values():
                continue
            if not getattr(thing, "__module__", "").startswith("supremum"):
                continue
            found[f"{package.removeprefix('supremum.')}.{name}"] = thing
    return found


def objects(folder: Path) -> dict[str, tuple[typing.Callable[[], typing.Any], str]]:
    """Return, by class, a function that makes an object and the names of the methods to call."""

    def built_optimizer():
        made = optimizers.Adam(0.1)
        made.build(dense().trainable_variables)
        return made

    return {
        "Array": (
            lambda: supremum.asarray(ones(2, 3)),
            "astype item reshape squeeze sum max to_device __getitem__ mean std argmax any cumsum cumprod argsort "
            "searchsorted round nonzero dot copy ravel repeat swapaxes take conj clip flatten transpose "
            "block_until_ready",
        ),
        "arrays.ArrayVariable": (lambda: supremum.ArrayVariable(ones(2)), "assign assign_add"),
        "PolicyMap": (lambda: mixed_precision.PolicyMap({"a.*": "float32"}), "for_path from_config cast_to_compute"),
        "DynamicLossScale": (mixed_precision.DynamicLossScale, "from_config init update load_state_dict"),
        "Dense": (
            dense,
            "__call__ summary set_weights from_config add_weight full zeros ones constant arange eye add_loss",
        ),
        "RandomNumbers": (random_numbers, "random_normal random_uniform"),
        "nn.Variable": (
            lambda: dense().kernel,
            "assign assign_add assign_sub assign_mul sparse_read gather_nd",
        ),
        "RNN": (lambda: called(nn.RNN(nn.LSTMCell(2))), "call"),
        "BatchNorm": (lambda: called(nn.BatchNorm()), "call"),
        "Softmax": (lambda: called(nn.Softmax()), "call"),
        "LSTMCell": (lambda: nn.LSTMCell(2), "initial_state"),
        "Embedding": (lambda: built(nn.Embedding(4, 3), np.array([1])), "attend"),
        "MultiHeadAttention": (lambda: built(nn.MultiHeadAttention(2), ones(1, 3, 4)), "init_cache"),
        "attention": (lambda: called(nn.MultiHeadAttention(2)), "call"),
        "KeyValueCache": (lambda: nn.KeyValueCache.empty(1, 2, 2, 4, dtype="float32"), "empty append mask"),
        "SequentialNetwork": (lambda: nn.SequentialNetwork([nn.Dense(2)]), "add from_config"),
        "custom_vjp": (lambda: nn.custom_vjp(jnp.tanh), "defvjp"),
        "custom_jvp": (lambda: nn.custom_jvp(jnp.tanh), "defjvp defjvps"),
        "Optimizer": (
            built_optimizer,
            "build minimize apply_gradients value_and_grad set_weights load_variables from_config",
        ),
        "uncompiled Model": (lambda: training.Sequential([nn.Dense(2)]), "compile"),
        # One model for all calls: junk must not damage it.
        "Model": (
            functools.cache(model),
            "__call__ fit evaluate predict train_on_batch test_on_batch predict_on_batch save_weights "
            "load_weights save_state load_state summary",
        ),
        "Mean": (training.Mean, "update update_state"), "MeanSquaredError": (training.MeanSquaredError, "__call__"),
        "Checkpoint": (lambda: training.Checkpoint({"a": ones(2)}), "save load"),
        "History": (lambda: model().history, "plot"),
        **{type(each).__name__: (lambda each=each: each, "__call__") for each in (
            nn.MaxNorm(), nn.MinMaxNorm(), nn.NonNeg(), nn.UnitNorm(), nn.L1(), nn.L2(), nn.L1L2()
        )},
    }  # fmt: skip
