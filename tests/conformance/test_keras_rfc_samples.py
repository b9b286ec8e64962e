"""The code samples of Keras RFC 293, "Keras Mixed Precision API", run as they are written.

Only imports differ: `tf` is a namespace with the names of this library. Where a sample leaves something out, as in
`model.compile(...)`, `run` fills it in, and every replacement is in the test. Samples that cannot run are listed at the
end with the reason, and with what to write instead.
"""

import contextlib
import inspect
import io
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import mixed_precision, nn, optimizers, training
from supremum.mixed_precision import PolicyWarning, as_loss_scale, set_floatx, set_global_policy
from supremum.nn import next_random_key

tf = SimpleNamespace(
    Variable=nn.Variable,
    cast=jnp.astype,
    clip_by_value=jnp.clip,
    constant=jnp.asarray,
    float16="float16",
    float32="float32",
    float64="float64",
    int64="int64",
    keras=SimpleNamespace(
        Model=training.Model,
        Sequential=training.Sequential,
        backend=SimpleNamespace(set_floatx=set_floatx),
        layers=SimpleNamespace(Dense=nn.Dense, Input=nn.Input, Lambda=nn.Lambda, Layer=nn.Layer),
        losses=training,
        mixed_precision=mixed_precision,
        optimizers=optimizers,
    ),
    linalg=SimpleNamespace(matmul=jnp.matmul),
    math=SimpleNamespace(add_n=sum),
    nn=SimpleNamespace(relu=jax.nn.relu),
    random=SimpleNamespace(normal=lambda shape, dtype="float32": jax.random.normal(next_random_key(), shape, dtype)),
)
_FILE = Path(__file__).parent / "oracles/keras-rfc-293-samples.md"
SAMPLES = dict(re.findall(r"^## (.+?)\n\n```python\n(.+?)\n```$", _FILE.read_text(), flags=re.DOTALL | re.MULTILINE))
"""The samples by the heading of their section, with a number from the second one of a section on."""
X, Y = np.ones((8, 3), "float32"), np.ones((8, 10), "float32")


def run(sample, fill=None, **names):
    """Run a sample.

    Args:
        sample: its heading.
        fill: texts in the sample that stand for something else, and what they stand for.
        names: names that the sample takes from the program around it.

    Returns:
        The names that the sample defines, and the lines that it prints.
    """
    program = SAMPLES[sample]
    for left_out, text in (fill or {}).items():
        assert left_out in program
        program = program.replace(left_out, text)
    names = {"tf": tf, "__name__": "__main__", **names}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "<RFC 293>", "exec"), names)
    return SimpleNamespace(**names), printed.getvalue().splitlines()


@pytest.fixture(autouse=True)
def the_global_policy_is_restored():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mixed_precision.HardwareWarning)
        yield
    set_global_policy(None)
    set_floatx("float32")


def test_policy_takes_a_name_and_a_loss_scale():
    theirs, ours = (
        inspect.signature(each) for each in (run("Dtype policies overview")[0].Policy, mixed_precision.Policy)
    )
    assert [*ours.parameters] == [*theirs.parameters] == ["name", "loss_scale"]
    assert ours.parameters["loss_scale"].default == theirs.parameters["loss_scale"].default == "auto"


def test_policies_have_the_dtypes_and_loss_scales_of_the_sample():
    sample, _ = run("Dtype policies overview 2", convert_to_loss_scale=as_loss_scale)
    for name in ("float16", "float32", "int32", "mixed_float16", "mixed_bfloat16"):
        for scale in ("auto", None, "dynamic", 8):
            ours, theirs = mixed_precision.Policy(name, scale), sample.Policy(name, scale)
            for role in ("name", "compute_dtype", "variable_dtype", "loss_scale", "should_cast_variables"):
                assert getattr(ours, role) == getattr(theirs, role)


def test_global_policy_is_set_and_read():
    run("The global policy", policy=mixed_precision.Policy("mixed_bfloat16"))
    assert mixed_precision.global_policy().name == "mixed_bfloat16"


def test_set_global_policy_takes_a_policy_or_its_name():
    run("The global policy 3", {"name = ...": "name = 'mixed_float16'"})
    assert mixed_precision.global_policy() == mixed_precision.Policy("mixed_float16")


def test_layer_keeps_the_global_policy_of_its_construction():
    """Keras' `Dense` needs a number of units, too."""
    _, printed = run("The global policy 4", {"Dense()": "Dense(1)"})
    assert printed == ["float32", "mixed_float16", "float32"]


def test_mixed_policies_are_global_policies():
    run("The global policy 5")
    assert mixed_precision.global_policy().name == "mixed_bfloat16"


def test_global_policy_tracks_floatx_until_it_is_set():
    _, printed = run("The global policy 6")
    assert printed == ["float32", "float16", "float64", "float64", "float32"]


def trained(sample, **names):
    """Run a sample that trains a model in `main`, and return the model."""
    made = []
    filled = {
        "model.compile(...)": "model.compile('sgd', 'mse'); made.append(model)",
        "dataset = ...": "dataset = data",
    }
    run(sample, filled, made=made, data=[(X, Y)], app=SimpleNamespace(run=lambda main: main(None)), **names)
    return made[0]


def test_model_of_a_function_trains():
    model = trained("Where should users set the global policy?")
    assert len(model.variables) == 20
    assert model.history.epoch == [0]


def test_global_policy_is_set_where_the_program_starts():
    flags = SimpleNamespace(FLAGS=SimpleNamespace(dtype="mixed_float16"), DEFINE_enum=lambda *_, **__: None)
    model = trained("Where should users set the global policy? 2", flags=flags)
    assert {layer.compute_dtype for layer in model} == {np.dtype("float16")}
    assert isinstance(model.optimizer, mixed_precision.LossScaleOptimizer)


def test_dtype_of_a_layer_overrides_the_global_policy():
    assert run("Layers")[0].layer(X).dtype == "float32"


def test_weight_takes_the_dtype_of_the_layer():
    layer_class = type("Product", (nn.Layer,), {
        "units": 2, "build": run("Layers 2")[0].build, "call": lambda self, x: jnp.matmul(x, self.kernel),
    })  # fmt: skip
    layer = layer_class(dtype="mixed_float16")
    assert (layer(X).dtype, layer.kernel.dtype, layer.kernel.shape) == ("float16", "float32", (3, 2))


@pytest.mark.parametrize(
    "sample",
    ["Currently, only inputs in the first argument are casted", "Difficulty in casting all Keras layer inputs"],
)
def test_every_argument_is_cast(sample):
    """The RFC calls the second float32 a bug; here it does not occur."""
    with jax.enable_x64(True):
        _, printed = run(sample)
    assert printed == ["float64", "float64"]


def test_inputs_in_a_list_are_cast():
    with jax.enable_x64(True):
        a, b = run("Currently, only inputs in the first argument are casted 2")[0].MyLayer(dtype="float64")(
            [jnp.float32(1), jnp.float32(1)]
        )
    assert (a.dtype, b.dtype) == ("float64", "float64")


def test_layer_makes_constants_in_its_compute_dtype():
    layer = run("TypeErrors")[0].MatMulWithInputBias(dtype="mixed_bfloat16", strict=True)
    with nn.random_key(jax.random.key(0)):
        assert layer(np.ones((2, 2), "float32")).dtype == "bfloat16"


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_variables_are_cast_in_functions_of_jax_numpy(jitted):
    layer = run("Layer variables")[0].SimpleDense(dtype="mixed_float16", strict=True)
    x = np.ones((2, 10), "float32")
    nn.initialize(layer, x)
    assert (jax.jit(layer) if jitted else layer)(x).dtype == "float16"
    assert layer.kernel.dtype == "float32"


def test_compile_wraps_the_optimizer_with_a_copy_of_the_loss_scale_of_the_policy():
    model = training.Sequential([nn.Dense(1)], dtype="mixed_float16")
    run(
        "A policy's loss scale",
        {"(opt, ...)": "(opt, 'mse'); made.append(model.optimizer)"},
        model=model,
        opt=optimizers.SGD(),
        made=(made := []),
    )
    made.append(model.optimizer)
    for optimizer in made:
        assert isinstance(optimizer, mixed_precision.LossScaleOptimizer)
        assert optimizer.loss_scale.settings == model.dtype_policy.loss_scale
    assert made[0].loss_scale is not made[1].loss_scale


def test_inner_layer_takes_the_policy_of_its_layer():
    layer = run("Nesting layers")[0].DenseWrapper(dtype="mixed_bfloat16")
    assert layer(X).dtype == layer.dense(X).dtype == "bfloat16"


def test_cross_entropy_of_float16_probabilities_warns_unless_it_has_the_logits():
    set_global_policy("mixed_float16")
    made = []
    compiled = {"model.compile(": "made.append(model); model.compile("}
    run("Softmax and cross entropy", compiled, made=made)
    labels = np.eye(100, dtype="float32")[:8]
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", mixed_precision.HardwareWarning)
        for model in made[:2]:
            model.evaluate(X, labels, verbose=0)
    with pytest.warns(PolicyWarning, match="gets float16 probabilities"):
        made[2].evaluate(X, labels, verbose=0)


def test_dynamic_loss_scale_has_the_defaults_of_the_sample():
    with jax.enable_x64(True):  # its counter is int64
        theirs = run("The new LossScale class", LossScale=object)[0].DynamicLossScale()
    ours = optimizers.LossScaleOptimizer(optimizers.SGD()).loss_scale
    for setting in ("initial_loss_scale", "increment_period", "multiplier"):
        assert getattr(ours.settings, setting) == getattr(theirs, setting)
    assert float(ours.loss_scale) == float(theirs.loss_scale) == float(ours()) == 2**15
    assert int(ours.num_good_steps) == int(theirs.num_good_steps) == 0


def test_minimize_takes_var_list():
    sample, _ = run("LossScaleOptimizer Overview")
    assert float(sample.var) == 0.5


def test_get_gradients_scales_as_the_sample_does():
    base = optimizers.LossScaleOptimizer
    keras = SimpleNamespace(optimizers=SimpleNamespace(Optimizer=base))
    theirs = run("LossScaleOptimizer API", tf=SimpleNamespace(keras=keras))[0].LossScaleOptimizer(optimizers.SGD())
    ours = base(optimizers.SGD())
    w = nn.Variable([1.0, 2.0])
    for optimizer in (ours, theirs):
        optimizer.build(w)
    np.testing.assert_array_equal(
        ours.get_gradients(lambda: jnp.sum(w**2), w)[0], theirs.get_gradients(lambda: jnp.sum(w**2), w)[0]
    )
    assert len(theirs.get_weights()) == len(theirs.inner_optimizer.get_weights()) == len(ours.get_weights())


def test_hyperparameters_are_delegated():
    opt = run("LossScaleOptimizer `__getattribute__` and `__setattr__` delegation")[0].opt
    assert float(opt.momentum) == float(opt.inner_optimizer.momentum) == np.float32(0.2)


def test_other_attributes_of_the_wrapper_cannot_be_set():
    """The RFC sets it silently, "Bug!"; here it is an error."""
    with pytest.raises(AttributeError, match="no attribute 'nesterov'"):
        run("Only hyperparameters are delegated with `__getattribute__`")


def test_other_attributes_are_set_on_the_inner_optimizer():
    for use_mixed_precision in (False, True):
        _, printed = run(
            "Only hyperparameters are delegated with `__getattribute__` 2",
            {"if use_mixed_precision": "if use_mixed_precision:"},
            use_mixed_precision=use_mixed_precision,
        )
        assert printed == ["True"]


def test_methods_of_the_inner_optimizer_are_not_delegated():
    with pytest.raises(AttributeError, match="apply_gradients_zero_min"):
        run("Why not delegate non-hyperparameters?")
    w = nn.Variable([1.0, 1.0])
    with pytest.raises(AttributeError):
        run("Why not delegate non-hyperparameters?", {"opt.apply_gradients_zero_min(...)": "opt.nothing"})
    custom = run("Why not delegate non-hyperparameters?", {"opt.apply_gradients_zero_min(...)": ""})[
        0
    ].MyCustomOptimizer(1.0)
    custom.apply_gradients_zero_min([(jnp.asarray([-1.0, 0.5]), w)])
    assert w.value.tolist() == [1.0, 0.5]


def test_gradients_are_summed_scaled_and_in_float16():
    opt = optimizers.LossScaleOptimizer(optimizers.SGD())
    w = nn.Variable([1.0, 2.0, 3.0])
    opt.build(w)
    gradient = jnp.asarray([1e-8, 1 / 3, 1.0])  # float16 holds the first only if it is scaled
    applied = []
    inner = SimpleNamespace(apply_gradients=lambda pairs, **_: applied.extend(pairs))
    theirs = run("All-reducing in float16", all_reduce=lambda gradients: None)[0].apply_gradients
    theirs(SimpleNamespace(loss_scale=opt.loss_scale, _optimizer=inner), [(gradient, w)])

    mesh = jax.make_mesh((1,), ("devices",))
    spec = jax.sharding.PartitionSpec()
    ours = jax.shard_map(
        lambda gradients, state: opt.all_reduce(gradients, state, "devices"),
        mesh=mesh, in_specs=(spec, spec), out_specs=spec, check_vma=False,
    )({"w": gradient}, opt.state)  # fmt: skip
    np.testing.assert_array_equal(ours["w"], applied[0][0])
    assert applied[0][0][0] > 0
    assert opt.aggregate_in_float16


def test_no_argument_of_the_caller_is_changed():
    """Every argument is copied, as the section asks for."""
    _, printed = run("Difficulty in casting all Keras layer inputs 2")
    assert printed == ["[1.0, 2.0]", "[3.0, 4.0]"]


def test_arguments_are_not_cast_in_place():
    _, printed = run("Difficulty in casting all Keras layer inputs 3")
    assert printed == ["float32"]


def test_symbolic_inputs_in_any_argument_build_a_model():
    model = run("Difficulty in casting all Keras layer inputs 4")[0].model
    assert model([np.ones((2, 10), "float32")] * 2).tolist() == np.full((2, 10), 3.0).tolist()


_TF_2_3 = "the names of TensorFlow 2.3, which the RFC replaces"
_PSEUDOCODE = "pseudocode, which Python cannot parse"
_TAPE = "JAX has no tape: pass the function, or differentiate it with jax.grad"
_REJECTED = "an alternative that the RFC does not adopt"
NOT_RUN = {
    "The global policy 2": _TF_2_3,
    "AutoCastVariable API": _PSEUDOCODE,
    "LossScaleOptimizer Overview 2": _TAPE,
    "LossScaleOptimizer Overview 3": _TAPE,
    "LossScaleOptimizer Overview 4": _TAPE,
    "Op-based autocasting API": _REJECTED,
    "LossScaleGradientTape": _REJECTED,
    "Dynamically creating a loss scale optimizer class": _REJECTED,
    "Dynamically creating a loss scale optimizer class 2": _REJECTED,
    "Dynamically creating a loss scale optimizer class 3": _REJECTED,
}


@pytest.mark.parametrize("sample", [sample for sample, reason in NOT_RUN.items() if reason != _REJECTED])
def test_samples_that_do_not_run_name_what_does_not_exist(sample):
    """A sample that begins to run belongs into a test of its own."""
    variable, optimizer = nn.Variable(1.0), mixed_precision.LossScaleOptimizer(optimizers.SGD())
    with pytest.raises((AttributeError, NameError, SyntaxError)):
        run(sample, policy="float32", opt=optimizer, var=variable, loss_fn=lambda: variable**2)


def test_function_takes_the_place_of_a_tape():
    """What to write for the samples with `tf.GradientTape`."""
    by_minimize, by_hand = nn.Variable(1.0), nn.Variable(1.0)
    opt = mixed_precision.LossScaleOptimizer(optimizers.SGD(0.25), "dynamic")
    opt.minimize(lambda: by_minimize**2, var_list=by_minimize)

    opt = mixed_precision.LossScaleOptimizer(optimizers.SGD(0.25), "dynamic")
    grad = jax.grad(lambda value: opt.get_scaled_loss(value**2))(by_hand.value)
    (grad,) = opt.get_unscaled_gradients([grad])
    opt.apply_gradients(zip([grad], [by_hand], strict=True))
    assert float(by_minimize) == float(by_hand) == 0.5
    with pytest.raises(TypeError, match="JAX has no tape"):
        opt.minimize(by_hand**2, var_list=by_hand)


def test_every_sample_is_run_or_has_a_reason():
    source = Path(__file__).read_text()
    assert len(SAMPLES) == 40
    assert [name for name in SAMPLES if f'"{name}"' not in source] == []
