"""The code samples of Keras RFC 293, "Keras Mixed Precision API", quoted by section and run as they are written.

Only imports differ: `tf` is a namespace with the names of this library. Where a sample leaves something out, as in
`model.compile(...)`, `run` fills it in, and every replacement is in the test. Samples that cannot run are listed at the
end with the reason, and with what to write instead.
"""

import contextlib
import inspect
import io
import textwrap
import warnings
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
X, Y = np.ones((8, 3), "float32"), np.ones((8, 10), "float32")


def run(source, fill=None, **names):
    """Run a sample.

    Args:
        source: the sample.
        fill: texts in the sample that stand for something else, and what they stand for.
        names: names that the sample takes from the program around it.

    Returns:
        The names that the sample defines, and the lines that it prints.
    """
    program = textwrap.dedent(source)
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
    """Section "Dtype policies overview"."""
    source = '''
class Policy:

  def __init__(self, name, loss_scale='auto'):
    ...
'''  # fmt: skip

    theirs, ours = (inspect.signature(each) for each in (run(source)[0].Policy, mixed_precision.Policy))
    assert [*ours.parameters] == [*theirs.parameters] == ["name", "loss_scale"]
    assert ours.parameters["loss_scale"].default == theirs.parameters["loss_scale"].default == "auto"


def test_policies_have_the_dtypes_and_loss_scales_of_the_sample():
    """Section "Dtype policies overview"."""
    source = '''
class Policy:

  def __init__(self, name, loss_scale='auto'):
    self.name = name
    if name in ('float16', 'float32', 'int32', ...):  # List all other dtypes here
      self.compute_dtype = self.variable_dtype = name
      loss_scale = None if loss_scale == 'auto' else loss_scale
    elif name == 'mixed_float16':
      self.compute_dtype = 'float16'
      self.variable_dtype = 'float32'
      loss_scale = 'dynamic' if loss_scale == 'auto' else loss_scale
    else:
      assert name == 'mixed_bfloat16'
      self.compute_dtype = 'bfloat16'
      self.variable_dtype = 'float32'
      loss_scale = None if loss_scale == 'auto' else loss_scale
    self.loss_scale = convert_to_loss_scale(loss_scale)

  @property
  def should_cast_variables(self):
    return self.compute_dtype != self.variable_dtype
'''  # fmt: skip

    sample, _ = run(source, convert_to_loss_scale=as_loss_scale)
    for name in ("float16", "float32", "int32", "mixed_float16", "mixed_bfloat16"):
        for scale in ("auto", None, "dynamic", 8):
            ours, theirs = mixed_precision.Policy(name, scale), sample.Policy(name, scale)
            for role in ("name", "compute_dtype", "variable_dtype", "loss_scale", "should_cast_variables"):
                assert getattr(ours, role) == getattr(theirs, role)


def test_global_policy_is_set_and_read():
    """Section "The global policy"."""
    source = '''
# Proposed API
tf.keras.mixed_precision.set_global_policy(policy)
tf.keras.mixed_precision.global_policy()
'''  # fmt: skip

    run(source, policy=mixed_precision.Policy("mixed_bfloat16"))
    assert mixed_precision.global_policy().name == "mixed_bfloat16"


def test_set_global_policy_takes_a_policy_or_its_name():
    """Section "The global policy"."""
    source = '''
name = ...

# Option 1 (Both options are equivalent)
policy = tf.keras.mixed_precision.Policy(name)
tf.keras.mixed_precision.set_global_policy(policy)

# Options 2
tf.keras.mixed_precision.set_global_policy(name)
'''  # fmt: skip

    run(source, {"name = ...": "name = 'mixed_float16'"})
    assert mixed_precision.global_policy() == mixed_precision.Policy("mixed_float16")


def test_layer_keeps_the_global_policy_of_its_construction():
    """Section "The global policy". Keras' `Dense` needs a number of units, too."""
    source = '''
layer = tf.keras.layers.Dense()
print(layer.dtype_policy.name)  # float32, the default dtype policy
tf.keras.mixed_precision.set_global_policy("mixed_float16")
layer2 = tf.keras.layers.Dense()
print(layer2.dtype_policy.name)  # mixed_float16
print(layer.dtype_policy.name)  # float32. A layer dtype policy never changes.
'''  # fmt: skip

    _, printed = run(source, {"Dense()": "Dense(1)"})
    assert printed == ["float32", "mixed_float16", "float32"]


def test_mixed_policies_are_global_policies():
    """Section "The global policy"."""
    source = '''
# Use mixed precision, for Volta+ GPUs
tf.keras.mixed_precision.set_global_policy("mixed_float16")

# Use mixed precision, for Cooper Lake CPUs, Ampere GPUs, or Google TPUs
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
'''  # fmt: skip

    run(source)
    assert mixed_precision.global_policy().name == "mixed_bfloat16"


def test_global_policy_tracks_floatx_until_it_is_set():
    """Section "The global policy"."""
    source = '''
# By default, the global policy tracks floatx
print(tf.keras.mixed_precision.global_policy())  # float32
tf.keras.backend.set_floatx("float16")
print(tf.keras.mixed_precision.global_policy())  # float16

# Once set, the global policy no longer matches floatx
tf.keras.mixed_precision.set_global_policy("float64")
print(tf.keras.mixed_precision.global_policy())  # float64
tf.keras.backend.set_floatx("float32")
print(tf.keras.mixed_precision.global_policy())  # float64

# Make the global policy track floatx again
tf.keras.mixed_precision.set_global_policy(None)
print(tf.keras.mixed_precision.global_policy())  # float32
'''  # fmt: skip

    _, printed = run(source)
    assert printed == ["float32", "float16", "float64", "float64", "float32"]


def test_model_of_a_function_trains():
    """Section "Where should users set the global policy?"."""
    source = '''
def create_model(num_layers):
  return tf.keras.Sequential([tf.keras.layers.Dense(10, activation="relu")
                              for _ in range(num_layers)])

def main(_):
  model = create_model(num_layers=10)
  model.compile(...)
  dataset = ...
  model.fit(dataset)

if __name__ == "__main__":
  app.run(main)
'''  # fmt: skip

    made = []
    filled = {
        "model.compile(...)": "model.compile('sgd', 'mse'); made.append(model)",
        "dataset = ...": "dataset = data",
    }
    run(source, filled, made=made, data=[(X, Y)], app=SimpleNamespace(run=lambda main: main(None)))
    assert len(made[0].variables) == 20
    assert made[0].history.epoch == [0]


def test_global_policy_is_set_where_the_program_starts():
    """Section "Where should users set the global policy?"."""
    source = '''
flags.DEFINE_enum("dtype", "float32", ("float32", "mixed_float16"),
                  description="Dtype policy to use")

def create_model(num_layers):
  return tf.keras.Sequential([tf.keras.layers.Dense(10, activation="relu")
                              for _ in range(num_layers)])

def main(_):
  tf.keras.mixed_precision.set_global_policy(flags.FLAGS.dtype)
  model = create_model(num_layers=10)
  model.compile(...)
  dataset = ...
  model.fit(dataset)

if __name__ == "__main__":
  app.run(main)
'''  # fmt: skip

    flags = SimpleNamespace(FLAGS=SimpleNamespace(dtype="mixed_float16"), DEFINE_enum=lambda *_, **__: None)
    made = []
    filled = {
        "model.compile(...)": "model.compile('sgd', 'mse'); made.append(model)",
        "dataset = ...": "dataset = data",
    }
    run(source, filled, made=made, data=[(X, Y)], app=SimpleNamespace(run=lambda main: main(None)), flags=flags)
    assert {layer.compute_dtype for layer in made[0]} == {np.dtype("float16")}
    assert isinstance(made[0].optimizer, mixed_precision.LossScaleOptimizer)


def test_dtype_of_a_layer_overrides_the_global_policy():
    """Section "Layers"."""
    source = '''
tf.keras.mixed_precision.set_global_policy("mixed_float16")
...
layer = tf.keras.layers.Dense(10, dtype="float32")
'''  # fmt: skip

    assert run(source)[0].layer(X).dtype == "float32"


def test_weight_takes_the_dtype_of_the_layer():
    """Section "Layers"."""
    source = '''
def build(self, input_shape):
  self.kernel = self.add_weight("kernel", [input_shape[-1], self.units],
                                dtype=self.dtype)
'''  # fmt: skip

    layer_class = type("Product", (nn.Layer,), {
        "units": 2, "build": run(source)[0].build, "call": lambda self, x: jnp.matmul(x, self.kernel),
    })  # fmt: skip
    layer = layer_class(dtype="mixed_float16")
    assert (layer(X).dtype, layer.kernel.dtype, layer.kernel.shape) == ("float16", "float32", (3, 2))


def test_every_argument_is_cast():
    """Section "Currently, only inputs in the first argument are casted".

    The RFC calls the second float32 a bug; here it does not occur.
    """
    source = '''
class MyLayer(tf.keras.layers.Layer):
  # Bug! `b` will not be casted.
  def call(self, a, b):
    return a + 1., b + 1.
a = tf.constant(1., dtype="float32")
b = tf.constant(1., dtype="float32")
layer = MyLayer(dtype="float64")
x, y = layer(a, b)
print(x.dtype)  # float64
print(y.dtype)  # float32
'''  # fmt: skip

    with jax.enable_x64(True):
        _, printed = run(source)
    assert printed == ["float64", "float64"]


def test_inputs_in_a_list_are_cast():
    """Section "Currently, only inputs in the first argument are casted"."""
    source = '''
class MyLayer(tf.keras.layers.Layer):
  # Now, all tensor inputs will be casted.
  def call(self, inputs):
    a, b = inputs
    return a + 1., b + 1.
'''  # fmt: skip

    with jax.enable_x64(True):
        a, b = run(source)[0].MyLayer(dtype="float64")([jnp.float32(1), jnp.float32(1)])
    assert (a.dtype, b.dtype) == ("float64", "float64")


def test_layer_makes_constants_in_its_compute_dtype():
    """Section "TypeErrors"."""
    source = '''
def input_bias(shape, dtype):
  return tf.random.normal(shape, dtype=dtype)  # TypeError if dtype is removed

class MatMulWithInputBias(tf.keras.layers.Layer):
  def call(self, x):
    x += input_bias(x.shape, self.compute_dtype)
    return tf.linalg.matmul(x, x)
'''  # fmt: skip

    layer = run(source)[0].MatMulWithInputBias(dtype="mixed_bfloat16", strict=True)
    with nn.random_key(jax.random.key(0)):
        assert layer(np.ones((2, 2), "float32")).dtype == "bfloat16"


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_variables_are_cast_in_functions_of_jax_numpy(jitted):
    """Section "Layer variables"."""
    source = '''
class SimpleDense(tf.keras.layers.Layer):

  def build(self, _):
    # With mixed precision, self.kernel is a float32 AutoCastVariable
    self.kernel = self.add_weight('kernel', (10, 10))

  def call(self, inputs):
    # With mixed precision, self.kernel will automatically be casted to float16
    return tf.linalg.matmul(inputs, self.kernel)
'''  # fmt: skip

    layer = run(source)[0].SimpleDense(dtype="mixed_float16", strict=True)
    x = np.ones((2, 10), "float32")
    nn.initialize(layer, x)
    assert (jax.jit(layer) if jitted else layer)(x).dtype == "float16"
    assert layer.kernel.dtype == "float32"


def test_compile_wraps_the_optimizer_with_a_copy_of_the_loss_scale_of_the_policy():
    """Section "A policy's loss scale"."""
    source = '''
model.compile(opt, ...)

model.compile(tf.keras.mixed_precision.LossScaleOptimizer(
  opt, model.dtype_policy.loss_scale))
'''  # fmt: skip

    model = training.Sequential([nn.Dense(1)], dtype="mixed_float16")
    run(
        source,
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
    """Section "Nesting layers"."""
    source = '''
class DenseWrapper(tf.keras.layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.dense = tf.keras.layers.Dense(10, dtype=self.dtype_policy)

  def call(self, inputs):
    outputs = self.dense(inputs)
    ... # Maybe process outputs further
    return outputs
'''  # fmt: skip

    layer = run(source)[0].DenseWrapper(dtype="mixed_bfloat16")
    assert layer(X).dtype == layer.dense(X).dtype == "bfloat16"


def test_cross_entropy_of_float16_probabilities_warns_unless_it_has_the_logits():
    """Section "Softmax and cross entropy"."""
    source = '''
layers = [tf.keras.layers.Dense(10, activation="relu") for _ in range(10)]

# OK: Fused softmax+cross entropy is used by passing from_logits=True
model = tf.keras.Sequential(layers + [tf.keras.layers.Dense(100)])
model.compile('sgd',
              loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True))

# Ok: Softmax and cross entropy will be automatically fused by Keras
model = tf.keras.Sequential(
    layers + [tf.keras.layers.Dense(100, activation='softmax')])
model.compile('sgd', loss=tf.keras.losses.CategoricalCrossentropy())

# Not OK! Softmax and cross entropy will not be fused, since Keras only
# automatically fuse them if cross entropy immediately follows softmax.
# A warning will be issued.
model = tf.keras.Sequential(
    layers + [
        tf.keras.layers.Dense(100, activation='softmax'),
        # Clip probabilities
        tf.keras.layers.Lambda(lambda x: tf.clip_by_value(x, -1e-5, 1))
    ])
model.compile('sgd', loss=tf.keras.losses.CategoricalCrossentropy())
'''  # fmt: skip

    set_global_policy("mixed_float16")
    made = []
    compiled = {"model.compile(": "made.append(model); model.compile("}
    run(source, compiled, made=made)
    labels = np.eye(100, dtype="float32")[:8]
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", mixed_precision.HardwareWarning)
        for model in made[:2]:
            model.evaluate(X, labels, verbose=0)
    with pytest.warns(PolicyWarning, match="gets float16 probabilities"):
        made[2].evaluate(X, labels, verbose=0)


def test_dynamic_loss_scale_has_the_defaults_of_the_sample():
    """Section "The new LossScale class"."""
    source = '''
class DynamicLossScale(LossScale):
  def __init__(self,
               initial_loss_scale=2 ** 15,
               increment_period=2000,
               multiplier=2.):
    # In the actual implementation, these three fields will be read-only
    self.initial_loss_scale = initial_loss_scale
    self.increment_period = increment_period
    self.multiplier = multiplier

    # Variables. These fields will be read-only but the variables can be assigned
    self.loss_scale = tf.Variable(initial_loss_scale, dtype=tf.float32)
    self.num_good_steps = tf.Variable(0, dtype=tf.int64)

  def __call__():
    return self._loss_scale.read_value()
'''  # fmt: skip

    with jax.enable_x64(True):  # its counter is int64
        theirs = run(source, LossScale=object)[0].DynamicLossScale()
    ours = optimizers.LossScaleOptimizer(optimizers.SGD()).loss_scale
    for setting in ("initial_loss_scale", "increment_period", "multiplier"):
        assert getattr(ours.settings, setting) == getattr(theirs, setting)
    assert float(ours.loss_scale) == float(theirs.loss_scale) == float(ours()) == 2**15
    assert int(ours.num_good_steps) == int(theirs.num_good_steps) == 0


def test_minimize_takes_var_list():
    """Section "LossScaleOptimizer Overview"."""
    source = '''
 opt = tf.keras.optimizers.SGD(0.25)
 opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, "dynamic")
 var = tf.Variable(1.)
 loss_fn = lambda: var ** 2
 opt.minimize(loss_fn, var_list=var)  # Performs steps 1, 2, 3, and 4
'''  # fmt: skip

    sample, _ = run(source)
    assert float(sample.var) == 0.5


def test_get_gradients_scales_as_the_sample_does():
    """Section "LossScaleOptimizer API"."""
    source = '''
class LossScaleOptimizer(tf.keras.optimizers.Optimizer):
  
  # get_weights, like most methods, simply delegates to the inner optimizer
  def get_weights(self):
    return self.inner_optimizer.get_weights()

  # get_gradients delegates but additionally adds loss scaling
  def get_gradients(self, loss, params):
    loss = self.get_scaled_loss(loss)
    grads = self.inner_optimizer.get_gradients(loss, params)
    return self.get_unscaled_gradients(grads)

  ... # Implement all other methods
'''  # noqa: W293  # fmt: skip

    base = optimizers.LossScaleOptimizer
    keras = SimpleNamespace(optimizers=SimpleNamespace(Optimizer=base))
    theirs = run(source, tf=SimpleNamespace(keras=keras))[0].LossScaleOptimizer(optimizers.SGD())
    ours = base(optimizers.SGD())
    w = nn.Variable([1.0, 2.0])
    for optimizer in (ours, theirs):
        optimizer.build(w)
    np.testing.assert_array_equal(
        ours.get_gradients(lambda: jnp.sum(w**2), w)[0], theirs.get_gradients(lambda: jnp.sum(w**2), w)[0]
    )
    assert len(theirs.get_weights()) == len(theirs.inner_optimizer.get_weights()) == len(ours.get_weights())


def test_hyperparameters_are_delegated():
    """Section "LossScaleOptimizer `__getattribute__` and `__setattr__` delegation"."""
    source = '''
opt = tf.keras.optimizers.SGD(momentum=0.1)
opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, 'dynamic')

opt.momentum  # Equivalent to opt.inner_optimizer.momentum
opt.momentum = 0.2  # Equivalent to opt.inner_optimizer.momentum = 0.2
'''  # fmt: skip

    opt = run(source)[0].opt
    assert float(opt.momentum) == float(opt.inner_optimizer.momentum) == np.float32(0.2)


def test_other_attributes_of_the_wrapper_cannot_be_set():
    """Section "Only hyperparameters are delegated with `__getattribute__`".

    The RFC sets it silently, "Bug!"; here it is an error.
    """
    source = '''
opt = tf.keras.optimizers.SGD(momentum=0.1)
opt = tf.keras.mixed_precision.LossScaleOptimizer(opt,  'dynamic')

... # Train for some steps

opt.nesterov = True  # Bug! This does not set nesterov on the SGD optimizer, but
                     # instead only sets it on the LossScaleOptimizer itself

print(opt.nesterov)  # This prints True, but opt.inner_optimizer.nesterov is still
                     # False

... # Train for some more steps. But nesterov momentum is still disabled.
'''  # fmt: skip

    with pytest.raises(AttributeError, match="no attribute 'nesterov'"):
        run(source)


def test_other_attributes_are_set_on_the_inner_optimizer():
    """Section "Only hyperparameters are delegated with `__getattribute__`"."""
    source = '''
opt = tf.keras.optimizers.SGD(momentum=0.1)
if use_mixed_precision
  opt = tf.keras.mixed_precision.LossScaleOptimizer(opt,  'dynamic')

... # Train for some steps

inner_opt = getattr(opt, "inner_optimizer", opt)
inner_opt.nesterov = True
print(inner_opt.nesterov)

... # Train for some more steps. Now nesterov momentum is actually enabled.
'''  # fmt: skip

    for use_mixed_precision in (False, True):
        _, printed = run(
            source, {"if use_mixed_precision": "if use_mixed_precision:"}, use_mixed_precision=use_mixed_precision
        )
        assert printed == ["True"]


def test_methods_of_the_inner_optimizer_are_not_delegated():
    """Section "Why not delegate non-hyperparameters?"."""
    source = '''
class MyCustomOptimizer(tf.keras.optimizers.SGD):

  def apply_gradients_zero_min(self, grads_and_vars):
    """apply_gradients, but clip gradients to have a min value of zero."""
    grads_and_vars = [(tf.nn.relu(g), v) for g, v in grads_and_vars]
    self.apply_gradients(grads_and_vars)

opt = MyCustomOptimizer(1.)
opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
opt.apply_gradients_zero_min(...)  # Bug! Does not call LossScaleOptimizer version
                                   # of apply_gradients.
'''  # fmt: skip

    with pytest.raises(AttributeError, match="apply_gradients_zero_min"):
        run(source)
    w = nn.Variable([1.0, 1.0])
    with pytest.raises(AttributeError):
        run(source, {"opt.apply_gradients_zero_min(...)": "opt.nothing"})
    custom = run(source, {"opt.apply_gradients_zero_min(...)": ""})[0].MyCustomOptimizer(1.0)
    custom.apply_gradients_zero_min([(jnp.asarray([-1.0, 0.5]), w)])
    assert w.value.tolist() == [1.0, 0.5]


def test_gradients_are_summed_scaled_and_in_float16():
    """Section "All-reducing in float16"."""
    source = '''
  def apply_gradients(self, grads_and_vars, name=None,
                      experimental_aggregate_gradients=True):
    grads = [g for g, v in grads_and_vars]
    vars = [v for g, v in grads_and_vars]
    if experimental_aggregate_gradients:
      scale = self.loss_scale()
      grads = [g * scale for g in grads]
      grads = [tf.cast(g, tf.float16) for g in grads]
      all_reduce(grads)
      grads = [tf.cast(g, tf.float32) for g in grads]
      grads = [g / scale for g in grads]
      grads_and_vars = [(g, v) for (g, v) in zip(grads, vars)]
    return self._optimizer.apply_gradients(grads_and_vars,
                                           experimental_aggregate_gradients=False)
'''  # fmt: skip

    opt = optimizers.LossScaleOptimizer(optimizers.SGD())
    w = nn.Variable([1.0, 2.0, 3.0])
    opt.build(w)
    gradient = jnp.asarray([1e-8, 1 / 3, 1.0])  # float16 holds the first only if it is scaled
    applied = []
    inner = SimpleNamespace(apply_gradients=lambda pairs, **_: applied.extend(pairs))
    theirs = run(source, all_reduce=lambda gradients: None)[0].apply_gradients
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


def test_every_argument_is_cast_in_the_appendix_too():
    """Section "Difficulty in casting all Keras layer inputs"."""
    source = '''
class MyLayer(tf.keras.layers.Layer):
  # Bug! `b` will not be casted.
  def call(self, a, b):
    return a + 1., b + 1.
a = tf.constant(1., dtype="float32")
b = tf.constant(1., dtype="float32")
layer = MyLayer(dtype="float64")
x, y = layer(a, b)
print(x.dtype)  # float64
print(y.dtype)  # float32
'''  # fmt: skip

    with jax.enable_x64(True):
        _, printed = run(source)
    assert printed == ["float64", "float64"]


def test_no_argument_of_the_caller_is_changed():
    """Section "Difficulty in casting all Keras layer inputs". Every argument is copied, as the section asks for."""
    source = '''
class MyLayer(tf.keras.layers.Layer):
  def call(self, list1, list2):
    list1.append(10.)
    list2.append(10.)
    return list1

list1 = [1., 2.]
list2 = [3., 4.]
MyLayer()(list1, list2)  # Caller only sees mutation to list2
print(list1)  # [1., 2.]
print(list2)  # [3., 4., 10.]
'''  # fmt: skip

    _, printed = run(source)
    assert printed == ["[1.0, 2.0]", "[3.0, 4.0]"]


def test_arguments_are_not_cast_in_place():
    """Section "Difficulty in casting all Keras layer inputs"."""
    source = '''
class MyLayer(tf.keras.layers.Layer):
  def call(self, x, y):
    return x

x = tf.constant(1., dtype=tf.float32)
y = [tf.constant(1., dtype=tf.float32)]

MyLayer(dtype="mixed_float16")(x, y)
print(y[0].dtype)  # float16, if non-first arguments are casted in-place
'''  # fmt: skip

    _, printed = run(source)
    assert printed == ["float32"]


def test_symbolic_inputs_in_any_argument_build_a_model():
    """Section "Difficulty in casting all Keras layer inputs"."""
    source = '''
class MyLayer(tf.keras.layers.Layer):
  def call(self, x, y):
    return x + tf.math.add_n(y)

x = tf.constant(1.)
inputs = [tf.keras.layers.Input(10), tf.keras.layers.Input(10)]

output = MyLayer()(x, inputs)
# If MyLayer casts `inputs` in place, `inputs` will no longer contain Input tensors
# but instead contain outputs of a tf.cast op
model = tf.keras.Model(inputs, output)
'''  # fmt: skip

    model = run(source)[0].model
    assert model([np.ones((2, 10), "float32")] * 2).tolist() == np.full((2, 10), 3.0).tolist()


_TF_2_3 = "the names of TensorFlow 2.3, which the RFC replaces"
_PSEUDOCODE = "pseudocode, which Python cannot parse"
_TAPE = "JAX has no tape: pass the function, or differentiate it with jax.grad"
_REJECTED = "an alternative that the RFC does not adopt"
NOT_RUN = [
    ("The global policy", _TF_2_3, '''
# Existing API in TensorFlow 2.3
tf.keras.mixed_precision.experimental.set_policy(policy)
tf.keras.mixed_precision.experimental.global_policy()
'''),
    ("AutoCastVariable API", _PSEUDOCODE, '''
# Pseudocode for AutoCastVariable logic

_autocast_variable_dtype = None  # In the actual code, this is thread-local

class Layer:
  def __call__(self, *args, **kwargs):
    old_autocast_dtype = _autocast_variable_dtype
    try:
      _autocast_variable_dtype = self.compute_dtype
      *args, *kwargs = self._maybe_cast_inputs(*args)  # Cast to compute dtype
      return self.call(*args, **kwargs)
    finally:
      _autocast_variable_dtype = old_autocast_dtype

  ...

class AutoCastVariable(tf.Variable):

  def __init__(self, variable):
    # Note: The constructor is not a public part of the API
    self._variable = variable

  def dtype(self):
    return _autocast_variable_dtype or self.true_dtype

  def true_dtype:
    return self._variable.dtype

  def value(self):
    return tf.cast(self._variable.value(), self.dtype)

  ... # Implement all other tf.Variable methods
'''),
    ("LossScaleOptimizer Overview", _TAPE, '''
opt = tf.keras.optimizers.SGD(0.25)
opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, "dynamic")
var = tf.Variable(1.)
with tf.GradientTape() as tape:
  loss = var ** 2
opt.minimize(loss, var_list=var, tape=tape)  # Performs steps 1, 2, 3, 4
'''),
    ("LossScaleOptimizer Overview", _TAPE, '''
with tf.GradientTape() as tape:
  loss = loss_fn()
  scaled_loss = opt.get_scaled_loss(loss)  # Performs step 1
grad = tape.gradient(scaled_loss, var)
(grad,) = opt.get_unscaled_gradients([grad])  # Performs step 2
opt.apply_gradients([(grad, var)])  # Performs steps 3, 4
'''),
    ("LossScaleOptimizer Overview", _TAPE, '''
with tf.GradientTape() as tape:
  loss = loss_fn()
  if isinstance(opt, tf.keras.mixed_precision.LossScaleOptimizer):
    scaled_loss = opt.get_scaled_loss(loss)  # Performs step 1
  else:
    scaled_loss = loss
grad = tape.gradient(scaled_loss, var)
if isinstance(opt, tf.keras.mixed_precision.LossScaleOptimizer):
  (grad,) = opt.get_unscaled_gradients([scaled_grad])  # Perform step 2
opt.apply_gradients([(grad, var)])  # If opt is an LSO, performs step 3, 4
'''),
    ("Op-based autocasting API", _REJECTED, '''
tf.mixed_precision.enable()  # Enable op autocasting API

x = tf.ones((4, 4), dtype="float32")
y = tf.matmul(x, x)  # Autocasting API casts inputs to float16
print(y.dtype)  # Float16
z = tf.nn.l2_loss(x)  # Autocasting API keeps inputs in float32
print(z.dtype) # Float32
'''),
    ("LossScaleGradientTape", _REJECTED, '''
opt = tf.keras.optimizers.SGD(1.0)
loss_scale = tf.mixed_precision.experimental.DynamicLossScale()
for step in training_steps:
   with LossScaleGradientTape(loss_scale) as tape:
   loss = get_model_loss()
   vars = tape.watched_variables()
   # tape.gradient repeatedly compute gradients and lowers loss scale until
   # gradients are finite
   grads = tape.gradient(loss, vars)
   opt.apply_gradients(zip(grads, vars))
'''),
    ("Dynamically creating a loss scale optimizer class", _REJECTED, '''
def loss_scale_optimizer(optimizer, loss_scale):

  class CustomOptimizer(optimizer.__class__):
    def __init__(self, loss_scale, **kwargs):
      super().__init__(self, **kwargs)
      self.loss_scale = loss_scale

    def get_gradients(self, loss, params):
      loss = self.get_scaled_loss(loss)
      grads = super().get_gradients(loss, params)
      return self.get_unscaled_gradients(grads)

    # Define other methods below which do loss scaling, such as 'minimize' and
    # 'get_scaled_loss'.  Unlike the RFC's proposal, this alternative does not
    # require overriding all Optimizer methods or implementing
    #__getattribute__/__setattr__
    ...

  # get_config() typically returns a dict that can be passed as **kwargs to the
  # constructor
  kwargs = optimizer.get_config()
  kwargs['loss_scale'] = loss_scale
  # from_config() typically just calls the class constructor
  return CustomOptimizer.from_config(**config)
'''),
    ("Dynamically creating a loss scale optimizer class", _REJECTED, '''
opt = tf.keras.optimizers.SGD()
opt = tf.keras.mixed_precision.loss_scale_optimizer(opt, "dynamic")
var = tf.Variable(1.)
loss_fn = lambda: var ** 2
opt.minimize(loss_fn, var_list=var)
opt.nesterov = True
opt.minimize(loss_fn, var_list=var)
'''),
    ("Dynamically creating a loss scale optimizer class", _REJECTED, '''
class CustomLearningRateSchedule(
    tf.keras.optimizers.schedules.LearningRateSchedule):
  def __call__(self, step):
    return 1.
  def get_config(self):
    return {}

opt = tf.keras.optimizers.SGD(CustomLearningRateSchedule())
# The call to loss_scale_optimizer() due to the custom LearningRateSchedule
opt = tf.keras.mixed_precision.loss_scale_optimizer(opt, 'dynamic')
'''),
]  # fmt: skip


@pytest.mark.parametrize("sample", [each for each in NOT_RUN if each[1] != _REJECTED], ids=lambda sample: sample[0])
def test_samples_that_do_not_run_name_what_does_not_exist(sample):
    """A sample that begins to run belongs into a test of its own."""
    variable, optimizer = nn.Variable(1.0), mixed_precision.LossScaleOptimizer(optimizers.SGD())
    with pytest.raises((AttributeError, NameError, SyntaxError)):
        run(sample[2], policy="float32", opt=optimizer, var=variable, loss_fn=lambda: variable**2)


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


def test_every_sample_of_the_rfc_is_here():
    assert inspect.getsource(inspect.getmodule(run)).count("source = '" + "''") + len(NOT_RUN) == 40
