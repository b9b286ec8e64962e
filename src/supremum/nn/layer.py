"""The base of all layers: dtype policy, weights, sublayers, and the casts around a call.

spec/keras-rfc-293-mixed-precision.md, "Layers", "A layer's compute dtype" and "Layer variables".
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import instance
from supremum.arrays import Variable as EagerVariable
from supremum.errors import ArgumentError, shown
from supremum.formats import DType, Kind, as_format
from supremum.keyword_signature import KeywordSignature
from supremum.mixed_precision import (
    Policy,
    PolicyMap,
    PolicyWarning,
    as_policy,
    global_policy,
    warn_if_it_gains_nothing,
)
from supremum.nn.attributes import Snapshot, with_functions, with_names
from supremum.nn.call_stack import CallFrame, call_scope, running_layers, running_path
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.input_casting import cast_inputs_of_layer, cast_outputs, narrowed_dtypes, narrowing_fix
from supremum.nn.input_spec import InputSpecs, check_inputs
from supremum.nn.layer_errors import add_layer_to_error
from supremum.nn.layer_losses import OwnLosses, activity_losses, loss_of, loss_scalar, weight_losses
from supremum.nn.lazy_build import first_key, has_weights, make_weights, unchanged_on_error
from supremum.nn.loss_collection import current_collector, is_in_loop
from supremum.nn.module_tree import Module, snake_case
from supremum.nn.output_dtype_check import check_output_dtype
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.nn.scopes import current_overlay, is_declaring, is_declaring_again, next_random_key
from supremum.nn.summary import Summary, summary_of
from supremum.nn.symbolic import call_symbolically, common_spec, is_spec, is_symbolic, spec_of
from supremum.nn.variables import AutoCastVariable, UninitializedError, Variable, has_value, warn_if_not_cast
from supremum.user_frame import warn_user


class LayerOptions(TypedDict, total=False):
    """The keyword arguments of every layer, documented in `Layer`."""

    dtype: Any
    param_dtype: Any
    autocast: bool
    strict: bool
    trainable: bool
    activity_regularizer: RegularizerFunction | str | None
    name: str | None


class Layer(Module["Layer"], ABC):
    """A function with weights.

    Subclasses add weights in `build`, compute in `call`, and are used by calling them. `call` may take a keyword
    `training`, which a layer that is not told gets from the layer around it.

    Args:
        dtype: the dtype policy: a `Policy`, a name, a dtype, or None for the global policy as it is now. A layer that
            is given None takes the policy of the model that it is put into, if that is given one before the layer has
            weights.
        param_dtype: the dtype weights are stored in; None for the policy's.
        autocast: whether floating inputs are cast to the compute dtype, and outputs to the policy's output dtype if
            that differs.
        strict: whether a call, of this layer or one inside it, that returns a real floating dtype other than its
            compute dtype is an error; otherwise it is a warning, once for each layer.
        trainable: whether optimizers change its weights, and those of the layers in it.
        activity_regularizer: a penalty on the outputs, divided by the length of their first axis, in their dtype.
        name: its name in paths; None for that of its class in snake case, as in `"batch_norm"`.

    Attributes:
        name: its name in paths, unless the layer that holds it gives it a different one.
        trainable: as given. It may be set at any time before `compile`: a layer that is not trainable, and all that it
            holds, keeps its weights, and adds no penalties on them; `BatchNorm` then works as outside of training.
        autocast: whether it casts its inputs.
        built: whether it knows its weights.
        chose_policy: whether it was given a policy, by itself or by the model it is in, and not the one in force.
        activity_regularizer: the penalty on its outputs.
        input_spec: what inputs must be, checked before they are cast: an `InputSpec` for the first one, a sequence
            of them for the positional ones, or a mapping of them by the names of arguments.
        build_inputs: during `build`, the positional inputs, cast, as `jax.ShapeDtypeStruct`s.
        policy_map: the policies of the layers inside, for a model that was given any; None for other layers.

    Raises:
        UnknownNameError: for an unknown policy or dtype; a `ValueError`.

    >>> from supremum import nn
    >>> class Scale(nn.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight("factor", input_shape[-1:], jax.nn.initializers.ones)
    ...
    ...     def call(self, x):
    ...         return x * self.factor
    >>> scale = Scale(dtype="mixed_bfloat16")
    >>> nn.initialize(scale, np.ones((2, 3), "float32"))
    >>> scale(np.ones((2, 3), "float32")).dtype, scale.factor.dtype
    (dtype(bfloat16), dtype('float32'))
    """

    __signature__ = KeywordSignature()
    _takes_training: ClassVar[bool] = False
    _trains_by_default: ClassVar[bool] = False
    _has_weights = False
    policy_map: PolicyMap | None = None
    input_spec: InputSpecs | None
    build_inputs: tuple[Any, ...]

    def __init__(
        self,
        *,
        dtype: Any = None,
        param_dtype: Any = None,
        autocast: bool = True,
        strict: bool = False,
        trainable: bool = True,
        activity_regularizer: RegularizerFunction | str | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(dtype, PolicyMap):
            raise ArgumentError(
                f"{type(self).__name__} takes one policy; a PolicyMap is for a model, which gives each of its layers "
                "one: Sequential([...], dtype=policy_map)"
            )
        self._policy = global_policy() if dtype is None else as_policy(dtype)
        self._param_dtype = None if param_dtype is None else as_format(param_dtype).dtype
        # The policy in force says no more than None does, also where an outer layer passes it on as its own.
        self.chose_policy = self._policy is not global_policy()
        self.autocast = autocast
        self._strict = strict
        self.trainable = trainable
        self.activity_regularizer = as_regularizer(activity_regularizer)
        self.name = snake_case(type(self).__name__) if name is None else name
        self.built = False
        self._before_build: Snapshot | None = None
        self._warned: set[str] = set()
        self._losses = OwnLosses()
        self._last_call = 0  # the number of the last call outside of `functional_call`
        self.output_spec: Any = None
        self.input_spec = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        training = inspect.signature(cls.call).parameters.get("training")
        cls._takes_training = training is not None
        cls._trains_by_default = training is not None and training.default is True

    def __getstate__(self) -> dict[str, Any]:
        return with_names(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Not through `__setattr__`, which looks at a layer that is whole.
        vars(self).update(with_functions(state))

    @property
    def dtype_policy(self) -> Policy:
        """The policy, which does not change once there are weights."""
        return self._policy

    @property
    def compute_dtype(self) -> DType | None:
        """The dtype that inputs are cast to, and outputs leave in unless the policy says otherwise.

        None under `"infer"`.
        """
        return self._policy.compute_dtype

    @property
    def variable_dtype(self) -> DType:
        """The dtype weights are stored in unless they say otherwise."""
        return self._policy.variable_dtype if self._param_dtype is None else self._param_dtype

    @property
    def param_dtype(self) -> DType | None:
        """The dtype that weights were asked to be stored in, for a layer to pass on; None if the policy says it."""
        return self._param_dtype

    @property
    def dtype(self) -> DType:
        """The dtype weights are stored in, as `variable_dtype`."""
        return self.variable_dtype

    def adopt_policy(self, policy: Policy) -> None:
        """Take the policy of a model before there are weights, and be built again.

        Args:
            policy: the policy.
        """
        if self.built and policy != self._policy:
            self._unbuild()
        self._policy = policy
        self.chose_policy = True

    def trace_again(self) -> None:
        """Called when layers inside were given other policies; a functional model finds its outputs again."""

    def build(self, input_shape: Any) -> None:
        """Add the weights; called once, before the first call.

        Args:
            input_shape: the shape of the first input; of nested ones, the same structure of shapes.
        """

    @abstractmethod
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute. Floating inputs are in the compute dtype here, and so is what autocast variables read as."""

    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Check and cast the inputs, build if needed, and compute.

        The first call makes the weights, from the next key of `nn.random_key`, or from the seed 0; `nn.initialize`
        takes another seed. A first call that fails leaves nothing behind.

        Args:
            args: inputs, arrays or nested structures of them; those of `nn.Input` make a part of a functional model.
            training: whether this is a training step; None for what the layer around was told, else for the default
                that `call` has for it, which is no where it has none.
            kwargs: more inputs.

        Raises:
            ArgumentError: for inputs that do not fit `input_spec`.
            UninitializedError: if there are no weights yet, and `functional_call` or a traced key leaves none to make.
        """
        if "_policy" not in vars(self):
            raise ArgumentError(f"{type(self).__name__}.__init__ has to begin with super().__init__()")
        if is_symbolic((args, kwargs)):
            return call_symbolically(self, args, kwargs if training is None else {**kwargs, "training": training})
        outer = running_layers()
        if self._has_weights or outer or is_declaring() or current_overlay() is not None:
            return self._call(args, kwargs, training)
        with unchanged_on_error(self):
            if not has_weights(self):
                named = kwargs if training is None else {**kwargs, "training": training}
                make_weights(self, args, named, first_key())
            outputs = self._call(args, kwargs, training)
        self._has_weights = True
        return outputs

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        outer = running_layers()
        if training is None and outer:
            training = outer[-1].requested
        strict = self._strict or (bool(outer) and outer[-1].strict)
        frame = CallFrame(self, training, self._trains_by_default, strict)
        try:
            with call_scope(frame, self._autocast_dtype()):
                return self._checked_call(args, kwargs, frame)
        except Exception as error:
            add_layer_to_error(error, self, args, kwargs)
            raise

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], frame: CallFrame) -> Any:
        check_inputs(self.input_spec, self.call, args, kwargs)
        if self.autocast:
            dtype = self._autocast_dtype()
            self._warn_of_narrowing((args, kwargs), dtype)
            args, kwargs = cast_inputs_of_layer((args, kwargs), dtype)
        if not self.built:
            self._build(args, kwargs)
        if self._policy.should_cast_variables and self.compute_dtype is not None and not is_declaring():
            warn_if_it_gains_nothing(self.compute_dtype)
        if self._takes_training:
            kwargs = {**kwargs, "training": frame.training}
        outputs = self.call(*args, **kwargs)
        if self.autocast:
            check_output_dtype(self, frame, args, kwargs, outputs)
            if self._policy.output_dtype != self.compute_dtype:
                outputs = cast_outputs(outputs, self._policy)
        self._add_call_losses(outputs, frame)
        if is_declaring():
            found = jax.tree.map(spec_of, outputs)
            if is_declaring_again():
                found = jax.tree.map(common_spec, self.output_spec, found, is_leaf=is_spec)
            self.output_spec = found
        return outputs

    def _autocast_dtype(self) -> DType | None:
        dtype = self.compute_dtype
        return dtype if dtype is not None and as_format(dtype).kind is Kind.FLOAT else None

    def _warn_of_narrowing(self, inputs: Any, dtype: DType | None) -> None:
        if "narrowing" in self._warned or (dtype is None and self.compute_dtype is not None):
            return
        narrowed = narrowed_dtypes(inputs, dtype)
        if narrowed is not None:
            self._warned.add("narrowing")
            found, target = map(as_format, narrowed)
            warn_user(
                f"{running_path()} ({shown(self)}) narrows its {found} inputs to {target}: "
                f"{narrowing_fix(found.dtype, target.dtype, follows_inputs=dtype is None)}",
                PolicyWarning,
            )

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        first = args[0] if args else next(iter(kwargs.values()), None)
        self._before_build = Snapshot(self)
        try:
            self.build_inputs = jax.tree.map(_spec, args)
            self.build(jax.tree.map(np.shape, first))
            del self.build_inputs
            if not is_declaring() and not all(map(has_value, self.own_variables())):
                raise UninitializedError("there are no weights yet: nn.initialize(model, *inputs, seed=0) makes them")
        except BaseException:
            self._unbuild()
            raise
        self.built = True

    def _unbuild(self) -> None:
        """Be again as before `build`."""
        if self._before_build is not None:
            self._before_build.restore(self)

    def add_weight(
        self,
        name: str,
        shape: Any = (),
        initializer: Initializer | None = None,
        *,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: RegularizerFunction | str | None = None,
    ) -> Any:
        """Make a weight.

        Args:
            name: its name within the layer.
            shape: its shape.
            initializer: a function of key, shape and dtype, as those of `jax.nn.initializers`; None for Glorot's
                uniform one, and for zeros where that has no meaning.
            dtype: the dtype to store it in; None for the layer's variable dtype.
            trainable: whether optimizers change it.
            autocast: whether it is read in the compute dtype inside `call`; only floating weights of layers whose
                compute and variable dtypes differ are.
            regularizer: a penalty on it, of the stored value in at least float32; for what is trainable.

        Returns:
            The variable; assign it to an attribute for the layer to own it. Its value is made by `initialize`.

        Raises:
            ArgumentError: for a name that another variable of the layer has.
        """
        row = as_format(self.variable_dtype if dtype is None else dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if initializer is None:
            initializer = GLOROT_UNIFORM if row.is_inexact and len(sizes) > 1 else ZEROS
        if any(variable.name == name for variable in self.own_variables()):
            raise ArgumentError(f"{shown(self)} has a variable {shown(name)} already: give the new one another name")
        compute = self._autocast_dtype()
        casts = autocast and compute is not None and row.kind is Kind.FLOAT and row.dtype != compute
        made = AutoCastVariable if casts else Variable
        variable = made.declared(sizes, row.dtype, initializer, name, trainable=trainable)
        variable.is_of_layer = True
        variable.regularizer = as_regularizer(regularizer)
        return variable

    def full(self, shape: Any, fill_value: Any, dtype: Any = None) -> jax.Array:
        """An array of one number, for use in `call`.

        JAX's own functions make float32 arrays, which turn a layer to float32 in silence. Under the policy `"infer"`
        an array of one number is weak, and follows what it meets.

        Args:
            shape: its shape.
            fill_value: the number.
            dtype: its dtype; None for the compute dtype.
        """
        return jnp.full(shape, fill_value, self._created_in(dtype))

    def zeros(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Zeros, as `full` makes them."""
        return self.full(shape, 0.0, dtype)

    def ones(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Ones, as `full` makes them."""
        return self.full(shape, 1.0, dtype)

    def constant(self, value: Any, dtype: Any = None) -> jax.Array:
        """An array of a number, nested lists, or an array, in `dtype`, or in the compute dtype if that is None."""
        return jnp.asarray(value, self._created_in(dtype))

    def arange(self, start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> jax.Array:
        """Evenly spaced numbers, as `jax.numpy.arange`; counted in float32 at least, and rounded once."""
        counted = jnp.arange(start, stop, step)
        created_in = self._created_in(dtype)
        return counted if created_in is None else counted.astype(created_in)

    def eye(self, rows: int, columns: int | None = None, dtype: Any = None) -> jax.Array:
        """A matrix with ones on its diagonal."""
        return jnp.eye(rows, columns, dtype=self._created_in(dtype))

    def random_normal(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Normal numbers, from the key of the running call (`functional_call(..., random_key=)`)."""
        return jax.random.normal(next_random_key(), shape, self._created_in(dtype))

    def random_uniform(self, shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None) -> jax.Array:
        """Uniform numbers, from the same key."""
        return jax.random.uniform(next_random_key(), shape, self._created_in(dtype), minval, maxval)

    def _created_in(self, dtype: Any) -> Any:
        return self.compute_dtype if dtype is None else dtype

    def add_loss(self, value: Any) -> None:
        """Add something to the loss that a training step makes small.

        Args:
            value: inside `call` a real scalar, or a function of no arguments that gives one. Elsewhere, as in `build`,
                such a function: it is called whenever the losses are asked for, and variables read there as they are
                stored, not in the compute dtype.

        Raises:
            ArgumentError: for what is not a scalar, a scalar outside of `call`, or in the step of an `RNN`; a
                `ValueError`.
        """
        if not (self.built and any(frame.layer is self for frame in running_layers())):
            if not callable(value):
                needed = "a function of no arguments, since any other loss would never change"
                raise ArgumentError(f"outside of `call` {shown(self)}.add_loss must be given {needed}")
            self._losses = self._losses.with_function(value)
            return
        if is_declaring():
            return
        if is_in_loop():
            raise ArgumentError("a loss cannot leave the step of a loop: add it in the layer around the loop")
        self._add_term(loss_of(value) if callable(value) else loss_scalar(value))

    @property
    def losses(self) -> list[jax.Array]:
        """What this layer and all it holds add to the loss, each a scalar.

        First the penalties on weights, each variable once, of the values they are stored in whatever surrounds this,
        in at least float32; then penalties on outputs and added losses of the last call that was not traced. Inside a
        `functional_call`, and for the losses of one, use `nn.collected_losses`.
        """
        losses = self._losses_of_layers()
        found = weight_losses(self.trainable_variables.values(), losses)
        if current_overlay() is not None:
            return found
        call = next((frame.number for frame in running_layers() if frame.layer is self), self._last_call)
        return found + [term for _, own in losses for term in own.terms_of(call)]

    def _losses_of_layers(self) -> list[tuple[object, OwnLosses]]:
        return [(layer, layer._losses) for layer in self.layers_by_path().values()]

    def _add_term(self, term: jax.Array) -> None:
        if (collector := current_collector()) is not None:
            collector.add(term)
        if current_overlay() is None and not isinstance(term, Tracer):
            self._losses = self._losses.with_term(term, running_layers()[-1].number)

    def _add_call_losses(self, outputs: Any, frame: CallFrame) -> None:
        """Take what a call that has just returned adds to the loss."""
        if is_declaring():
            return
        for term in activity_losses(self.activity_regularizer, outputs):
            self._add_term(term)
        if current_overlay() is None:
            vars(self)["_last_call"] = frame.number
        collector = current_collector() if frame.is_outermost else None
        if collector is not None:
            for term in weight_losses(self.trainable_variables.values(), self._losses_of_layers(), collector):
                collector.add(term)

    def summary(self) -> Summary:
        """Every layer with the shape and dtype of its outputs, its parameters, dtypes and bytes; `print` it.

        Layers that have not been called yet, with `initialize` for one, have no outputs and parameters.
        """
        return summary_of(self.layers_by_path(), self.trainable_variables.values())

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Variable, EagerVariable)) and not getattr(value, "is_of_layer", False):
            casts = "_policy" in vars(self) and self._policy.should_cast_variables
            warn_if_not_cast(shown(self), name, value, self._autocast_dtype() if casts else None)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        if "_policy" not in vars(self):
            return object.__repr__(self)
        return f"{type(self).__name__}(dtype={self._policy.name!r})"


def _spec(leaf: Any) -> Any:
    dtype = getattr(leaf, "dtype", None)
    return leaf if dtype is None else jax.ShapeDtypeStruct(np.shape(leaf), dtype)


def as_layer(layer: Any) -> Layer:
    """A layer.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("layer", layer, Layer, "a layer, such as nn.Dense(10)")
