"""The base of all layers: dtype policy, weights, sublayers, and the casts around a call.

Keras RFC 293, mixed precision, "Layers", "A layer's compute dtype" and "Layer variables".
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self, cast, overload

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.core import Tracer

from supremum.argument_checks import flag, instance, iterable, mapping
from supremum.arrays import ArrayVariable
from supremum.errors import ArgumentError, shown
from supremum.formats import DType, Kind, argument_dtype, as_format
from supremum.mixed_precision import Policy, PolicyMap, as_policy, global_policy, is_inexact, warn_if_it_gains_nothing
from supremum.nn.call_stack import CallFrame, call_scope, name_layer_in, running_layers, running_path
from supremum.nn.constraints import ConstraintFunction, as_constraint
from supremum.nn.constructor_arguments import Configurable
from supremum.nn.dtype_checks import warn_if_not_cast, warn_of_narrowing, warn_of_output_dtype
from supremum.nn.functional import check_held, new_array
from supremum.nn.functional.shape_checks import Ints
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer, as_initializer
from supremum.nn.inputs import InputSpecs, cast_inputs, check_inputs, floating_dtypes
from supremum.nn.layer_types import Computes, R_co, S, SymbolicInput
from supremum.nn.lazy_build import build_layer, first_key, has_weights, make_weights, restore_on_error
from supremum.nn.logits_registry import copy_origin
from supremum.nn.losses import add_call_losses, add_term, loss_to_add, weight_losses
from supremum.nn.module_tree import Attributes, Module, snake_case
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.nn.scopes import OUTPUT, current_overlay, is_declaring, marks_outputs, next_random_key
from supremum.nn.summary import Summary, summary_of
from supremum.nn.symbolic import SymbolicValue, call_symbolically, is_symbolic, spec_of
from supremum.nn.variables import AutoCastVariable, Variable, checked_name, declare_variable
from supremum.typing import ArrayLike, DTypeLike, PyTree, Scalar


class Layer(Module["Layer"], Configurable, ABC):
    """A function with weights.

    Subclasses add weights in `build` and compute in `call`; call the layer to use it. `call` may take a keyword
    `training`. A layer that is called without it takes the value of the layer around it.

    Args:
        dtype: the dtype policy: a `Policy`, a name, a dtype, or None for the current global policy. A layer without
            weights that was given None takes the policy of the model that it is put into, if that model has one.
        param_dtype: the dtype weights are stored in; None for the policy's variable dtype.
        autocast: whether floating inputs are cast to the compute dtype, and outputs to the policy's output dtype if it
            differs.
        strict: whether it is an error if this layer, or a layer inside it, returns a real floating dtype other than its
            compute dtype. Otherwise each layer warns once.
        trainable: whether optimizers change its weights, and those of the layers in it.
        activity_regularizer: a penalty on the outputs, in their dtype, divided by the length of their first axis.
        name: its name in paths; None for its class name in snake case, such as `"batch_norm"`.
        input_shape: the shape of its input without the batch axis, for the first layer of a sequential model, which
            then knows the shapes of its weights before the first call; ignored elsewhere.

    Attributes:
        name: its name in paths, unless the layer that holds it gives it a different one.
        trainable: as given. It can be set at any time before `compile`. A layer that is not trainable keeps its weights
            and those of the layers inside it, and adds no penalties on them; `BatchNorm` works as outside of training.
        autocast: whether it casts its inputs.
        built: whether it has declared its weights.
        activity_regularizer: the penalty on its outputs.
        input_spec: the requirements on inputs, checked before they are cast: an `InputSpec` for the first input, a
            sequence of them for the positional inputs, or a mapping by argument name.
        build_inputs: during `build`, the cast positional inputs as `jax.ShapeDtypeStruct`s.

    Raises:
        UnknownNameError: for an unknown policy or dtype; a `ValueError`.

    >>> from supremum import nn
    >>> import numpy as np
    >>> class Scale(nn.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight(
    ...             "factor", input_shape[-1:], jax.nn.initializers.ones
    ...         )
    ...
    ...     def call(self, x):
    ...         return x * self.factor
    >>> scale = Scale(dtype="mixed_bfloat16")
    >>> nn.initialize(scale, np.ones((2, 3), "float32"))
    >>> scale(np.ones((2, 3), "float32")).dtype, scale.factor.dtype
    (dtype(bfloat16), dtype('float32'))
    """

    _takes_training: ClassVar[bool] = False
    _trains_by_default: ClassVar[bool] = False
    _has_weights = False
    input_spec: InputSpecs | None
    build_inputs: tuple[Any, ...]

    def __init__(
        self,
        *,
        dtype: Policy | PolicyMap | DTypeLike | None = None,
        param_dtype: DTypeLike | None = None,
        autocast: bool = True,
        strict: bool = False,
        trainable: bool = True,
        activity_regularizer: RegularizerFunction | str | None = None,
        name: str | None = None,
        input_shape: Sequence[int | None] | None = None,
    ) -> None:
        if isinstance(dtype, PolicyMap):
            raise ArgumentError(
                f"the dtype of {type(self).__name__} must be one policy, got PolicyMap; give it to a model, as in "
                "Sequential([...], dtype=policy_map)"
            )
        self._policy = global_policy() if dtype is None else as_policy(dtype)
        self._param_dtype = None if param_dtype is None else argument_dtype(param_dtype)
        # The global policy counts as None, even if an outer layer passes it explicitly.
        self._chose_policy: bool = self._policy is not global_policy()
        self.autocast = autocast
        self._strict = strict
        self.trainable = trainable
        self.activity_regularizer: RegularizerFunction | None = as_regularizer(activity_regularizer)
        self.name: str = snake_case(type(self).__name__) if name is None else name
        self._input_shape: tuple[int | None, ...] | None = (
            None if input_shape is None else tuple(iterable("input_shape", input_shape, "lengths"))
        )
        self.built: bool = False
        self._before_build: Attributes | None = None
        self._past_warnings: set[str] = set()
        self._loss_functions: tuple[Callable[[], Any], ...] = ()
        # The number of the last call that added losses and was not traced, and these losses.
        self._call_losses: tuple[int, tuple[jax.Array, ...]] = (0, ())
        self._last_call = 0  # number of the last call outside of `functional_call`
        self.output_spec: Any = None
        self.input_spec = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        training = inspect.signature(cls.call).parameters.get("training")
        cls._takes_training = training is not None
        cls._trains_by_default = training is not None and training.default is True

    @property
    def dtype_policy(self) -> Policy:
        """The policy; it does not change once the layer has weights."""
        return self._policy

    @property
    def compute_dtype(self) -> DType | None:
        """The dtype of inputs after the cast, and of outputs unless the policy has a different output dtype.

        None under `"infer"`.
        """
        return self._policy.compute_dtype

    @property
    def variable_dtype(self) -> DType:
        """The dtype weights are stored in by default."""
        return self._policy.variable_dtype if self._param_dtype is None else self._param_dtype

    @property
    def param_dtype(self) -> DType | None:
        """The argument `param_dtype`, which a layer passes on to inner layers; None if the policy decides."""
        return self._param_dtype

    @property
    def dtype(self) -> DType:
        """The same as `variable_dtype`."""
        return self.variable_dtype

    def _adopt_policy(self, policy: Policy) -> None:
        """Take the policy of a model before there are weights, and undo `build` if the policy changes."""
        if self.built and policy != self._policy:
            self._undo_build()
        self._policy = policy
        self._chose_policy = True

    def _trace_again(self) -> None:
        """React to new policies of the layers inside; a functional model traces its outputs again."""

    def build(self, input_shape: PyTree) -> None:
        """Add the weights; runs once, before the first call.

        Args:
            input_shape: the shape of the first input; for a nested input, the same structure of shapes.
        """

    @abstractmethod
    def call(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Compute the outputs; floating inputs and autocast variables have the compute dtype here."""

    @overload
    def __call__(
        self: Computes[jax.Array], x: SymbolicInput[S], /, *args: PyTree, training: bool | None = None, **kwargs: PyTree
    ) -> S: ...

    @overload
    def __call__(self, x: SymbolicInput[SymbolicValue], /, *args: PyTree, **kwargs: PyTree) -> Any: ...

    @overload
    def __call__(self: Computes[R_co], *args: PyTree, training: bool | None = None, **kwargs: PyTree) -> R_co: ...

    def __call__(self, *args: PyTree, training: bool | None = None, **kwargs: PyTree) -> Any:
        """Check and cast the inputs, build if needed, and compute.

        The first call makes the weights from the next key of `nn.random_key`, or from seed 0; `nn.initialize` takes a
        different seed. If the first call fails, the layer stays as it was.

        Args:
            args: inputs, arrays or nested structures of them; inputs from `nn.Input` build a functional model.
            training: whether this is a training step; None for the value of the layer around, or else the default of
                `training` in `call`, or else False.
            kwargs: more inputs.

        Raises:
            ArgumentError: for inputs that do not match `input_spec`.
            UninitializedError: if there are no weights yet, and a `functional_call` or a traced key cannot make them.
        """
        if "_policy" not in vars(self):
            raise ArgumentError(f"{type(self).__name__}.__init__ must call super().__init__() first")
        named = kwargs if training is None else {**kwargs, "training": flag("training", training)}
        if is_symbolic((args, kwargs)):
            return call_symbolically(self, args, named)
        if self._has_weights or running_layers() or is_declaring() or current_overlay() is not None:
            return self._call(args, kwargs, training)
        with restore_on_error(self):
            if not has_weights(self):
                make_weights(self, args, named, first_key())
            outputs = self._call(args, kwargs, training)
        self._has_weights = True
        return outputs

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        frame = CallFrame(self, training, self._trains_by_default, self._strict, self._autocast_dtype())
        try:
            with call_scope(frame):
                return self._prepare_and_call(args, kwargs, frame)
        except Exception as error:
            name_layer_in(error, self, args, kwargs)
            raise

    def _prepare_and_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], frame: CallFrame) -> Any:
        args, kwargs = self._prepare_inputs(args, kwargs, frame.dtype)
        if not self.built:
            build_layer(self, args, kwargs)
        if frame.dtype is not None and frame.dtype != self._policy.variable_dtype and not is_declaring():
            warn_if_it_gains_nothing(frame.dtype)
        if self._takes_training:
            kwargs = {**kwargs, "training": frame.training}
        outputs = self.call(*args, **kwargs)
        if self.autocast:
            target = self._policy.output_dtype
            others = floating_dtypes(outputs) - {frame.dtype, target}
            if others and frame.dtype is not None:
                warn_of_output_dtype(self, frame, args, kwargs, others.pop())
            if target is not None and (self.compute_dtype is None or target != self.compute_dtype):
                outputs = cast_inputs(outputs, target)
        if is_declaring():
            self.output_spec = jax.tree.map(spec_of, outputs)
        else:
            add_call_losses(self, outputs, frame.number, is_outermost=frame.is_outermost)
            if marks_outputs():
                outputs = jax.tree.map(partial(_mark, OUTPUT + running_path()), outputs)
        return outputs

    def _prepare_inputs(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: DType | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Check the inputs, and cast them if the layer does."""
        check_inputs(self.input_spec, self.call, args, kwargs)
        if not self.autocast:
            return args, kwargs
        wide = {each for each in floating_dtypes((args, kwargs)) if each.itemsize > 4}  # wider than float32
        if wide and (dtype is not None or self.compute_dtype is None):
            warn_of_narrowing(self, wide, dtype)
        check_held(dtype, f"the layer computes in {dtype}", "give the layer a different policy")
        return cast_inputs((args, kwargs), dtype)

    def _autocast_dtype(self) -> DType | None:
        dtype = self.compute_dtype
        return dtype if dtype is not None and as_format(dtype).kind is Kind.FLOAT else None

    def _undo_build(self) -> None:
        """Restore the attributes from before `build`, if it has run."""
        if self._before_build is not None:
            self._before_build.restore(self)

    def add_weight(
        self,
        name: str | None = None,
        shape: Ints = (),
        initializer: Initializer | str | None = None,
        *,
        dtype: DTypeLike | None = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: RegularizerFunction | str | None = None,
        constraint: ConstraintFunction | str | None = None,
    ) -> Any:
        """Make a weight.

        Args:
            name: its name within the layer; None for the name of the attribute that it is assigned to.
            shape: its shape.
            initializer: a function of key, shape and dtype, as in `jax.nn.initializers`, or a name, such as `"ones"`;
                None for Glorot's uniform initializer if the weight is inexact and has at least two axes, and for zeros
                otherwise.
            dtype: the dtype to store it in; None for the layer's variable dtype.
            trainable: whether optimizers change it.
            autocast: whether it is read in the compute dtype inside `call`. This applies to floating weights if the
                compute dtype differs from theirs.
            regularizer: a penalty on the stored value, in at least float32; only trainable weights have it.
            constraint: a function, or a name such as `"non_neg"`, that optimizers apply to the stored value after each
                step.

        Returns:
            The variable; assign it to an attribute, and the layer owns it. `initialize` makes its value.

        Raises:
            ArgumentError: for a name that the layer already uses.
        """
        checked_name(name)
        row = as_format(self.variable_dtype if dtype is None else argument_dtype(dtype))
        sizes = (shape,) if isinstance(shape, int) else tuple(iterable("shape", shape, "lengths"))
        if initializer is None:
            initializer = GLOROT_UNIFORM if row.is_inexact and len(sizes) > 1 else ZEROS
        if any(variable.name == name for variable in self.own_variables()):
            raise ArgumentError(f"{shown(self)} already has a variable {shown(name)}; use a different name")
        compute = self._autocast_dtype()
        casts = flag("autocast", autocast) and compute is not None and row.kind is Kind.FLOAT and row.dtype != compute
        kind = AutoCastVariable if casts else Variable
        initialize = as_initializer(initializer)
        variable = declare_variable(kind, sizes, row.dtype, initialize, name, trainable=trainable)
        variable.is_of_layer, variable.follows_policy = True, dtype is None
        variable.regularizer, variable.constraint = as_regularizer(regularizer), as_constraint(constraint)
        return variable

    def full(self, shape: Ints, fill_value: Scalar | jax.Array, dtype: DTypeLike | None = None) -> jax.Array:
        """An array filled with one number, for use in `call`.

        JAX's own functions make float32 arrays, which silently turn a layer to float32. Under the policy `"infer"` the
        array is weak and follows the dtypes it is combined with.

        Args:
            shape: its shape.
            fill_value: the number.
            dtype: its dtype; None for the compute dtype.

        Raises:
            ArgumentError: for arguments that `jax.numpy.full` refuses; a `ValueError`.
        """
        return self._new_array(jnp.full, shape, fill_value, dtype=dtype)

    def zeros(self, shape: Ints, dtype: DTypeLike | None = None) -> jax.Array:
        """An array of zeros, as from `full`."""
        return self.full(shape, 0.0, dtype)

    def ones(self, shape: Ints, dtype: DTypeLike | None = None) -> jax.Array:
        """An array of ones, as from `full`."""
        return self.full(shape, 1.0, dtype)

    def constant(self, value: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array:
        """An array from a number, nested lists or an array, in `dtype`; None for the compute dtype."""
        return self._new_array(jnp.asarray, value, dtype=dtype)

    def arange(
        self, start: float, stop: float | None = None, step: float | None = None, dtype: DTypeLike | None = None
    ) -> jax.Array:
        """Evenly spaced numbers, as from `jax.numpy.arange`, rounded once at the end."""

        def make(*limits: Any, dtype: Any) -> jax.Array:
            numbers = jnp.arange(*limits)
            return numbers if dtype is None else numbers.astype(dtype)

        return self._new_array(make, start, stop, step, dtype=dtype)

    def eye(self, rows: int, columns: int | None = None, dtype: DTypeLike | None = None) -> jax.Array:
        """A matrix with ones on its diagonal."""
        return self._new_array(jnp.eye, rows, columns, dtype=dtype)

    def random_normal(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> jax.Array:
        """Normal random numbers, from the key of the running call (`functional_call(..., random_key=)`)."""
        return self._new_array(jax.random.normal, next_random_key(), shape, dtype=dtype)

    def random_uniform(
        self, shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: DTypeLike | None = None
    ) -> jax.Array:
        """Uniform random numbers, from the key of the running call."""
        options = {"minval": minval, "maxval": maxval}
        return self._new_array(jax.random.uniform, next_random_key(), shape, dtype=dtype, **options)

    def _new_array(
        self, make: Callable[..., jax.Array], *args: Any, dtype: DTypeLike | None, **options: Any
    ) -> jax.Array:
        target = self.compute_dtype if dtype is None else argument_dtype(dtype)
        return new_array(shown(self), make, *args, dtype=target, **options)

    def add_loss(self, value: ArrayLike | Callable[[], ArrayLike]) -> None:
        """Add a term to the loss that a training step minimizes.

        Args:
            value: inside `call`, a real scalar or a function without arguments that returns one. Elsewhere, for example
                in `build`, only a function: it runs whenever the losses are read, and variables in it have their
                stored dtype, not the compute dtype.

        Raises:
            ArgumentError: for a value that is not a scalar, a scalar outside of `call`, or a loss in the step of an
                `RNN`; a `ValueError`.
        """
        if not (self.built and any(frame.layer is self for frame in running_layers())):
            if not callable(value):
                raise ArgumentError(
                    f"outside of `call`, {shown(self)}.add_loss must get a function without arguments, got "
                    f"{type(value).__name__}, which would never change"
                )
            self._loss_functions = (*self._loss_functions, value)
            return
        if not is_declaring():
            add_term(self, loss_to_add(value), running_layers()[-1].number)

    @property
    def losses(self) -> list[jax.Array]:
        """The scalars that this layer and the layers inside it add to the loss.

        The penalties on weights come first, once for each variable; they use the stored values, in at least float32.
        Then come the penalties on outputs and the added losses of the last call that was not traced. Use
        `nn.collected_losses` inside a `functional_call`, or to get the losses of one.
        """
        # Loss functions may call layers, which then have new losses.
        of_calls = [layer._call_losses for layer in self.layers_by_path().values()]
        losses = weight_losses(self)
        if current_overlay() is not None:
            return losses
        call = next((frame.number for frame in running_layers() if frame.layer is self), self._last_call)
        return losses + [term for number, terms in of_calls if number == call for term in terms]

    def summary(self) -> Summary:
        """List every layer with the shape and dtype of its outputs, its parameters, dtypes and bytes; `print` it.

        Layers that have not been called yet, for example by `initialize`, have no outputs and no parameters.
        """
        return summary_of(self)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that the constructor got, by name, for `from_config`; the weights are not part of it.

        Name, policy and `trainable` are the current ones. Inner layers are written as class and config. Functions, such
        as initializers, arrays and other objects stay as they are; the rest is data for JSON.
        """
        # These may have changed since.
        current = {"name": self.name, "dtype": self._policy_data(), "trainable": self.trainable}
        if self._param_dtype is not None:
            current["param_dtype"] = str(as_format(self._param_dtype))
        known = inspect.signature(type(self)).parameters
        return super().get_config() | {name: each for name, each in current.items() if name in known}

    def _policy_data(self) -> Any:
        # A policy may have another loss scale than its name stands for.
        return self._policy.name if self._policy == Policy(self._policy.name) else self._policy.get_config()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new layer, without weights, from the result of `get_config`.

        Args:
            config: the arguments of the constructor by name.
        """
        dtype = mapping("config", config, f"{cls.__name__}(...).get_config()").get("dtype")
        if isinstance(dtype, Mapping):
            kind = PolicyMap if "patterns" in dtype else Policy
            config = {**config, "dtype": kind.from_config(cast("Mapping[str, Any]", dtype))}
        return super().from_config(config)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Variable, ArrayVariable)) and not getattr(value, "is_of_layer", False):
            casts = "_policy" in vars(self) and self._policy.should_cast_variables
            warn_if_not_cast(self, name, value, self._autocast_dtype() if casts else None)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        if "_policy" not in vars(self):
            return object.__repr__(self)
        return f"{type(self).__name__}(dtype={self._policy.name!r})"


def _mark(name: str, leaf: Any) -> Any:
    return copy_origin(leaf, checkpoint_name(leaf, name)) if isinstance(leaf, Tracer) and is_inexact(leaf) else leaf


def as_layer(layer: object) -> Layer:
    """Return a layer as it is, or raise.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("layer", layer, Layer, "a layer, such as nn.Dense(10)")
