"""The base of all layers: dtype policy, weights, sublayers, and the casts around a call.

spec/keras-rfc-293-mixed-precision.md, "Layers", "A layer's compute dtype" and "Layer variables".
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypedDict

import jax
import numpy as np

from supremum.argument_checks import instance
from supremum.arrays import Variable as EagerVariable
from supremum.errors import ArgumentError, OperandError, SupremumError, shown
from supremum.formats import DType, Kind, as_format
from supremum.mixed_precision import Policy, PolicyMap, PolicyWarning, as_policy, global_policy
from supremum.mixed_precision.hardware import warn_if_it_gains_nothing
from supremum.nn.array_creation import Creation
from supremum.nn.functional.dtype_promotion import check_held, is_held
from supremum.nn.initializers import GLOROT_UNIFORM, ZEROS, Initializer
from supremum.nn.input_casting import cast_inputs, cast_outputs, floating_dtypes, unmasked
from supremum.nn.input_description import described
from supremum.nn.input_spec import InputSpecs, check_inputs
from supremum.nn.layer_losses import LayerLosses
from supremum.nn.lazy_build import first_key, has_weights, make_weights, unchanged_on_error
from supremum.nn.module_tree import snake_case
from supremum.nn.output_dtype_check import check_output_dtype
from supremum.nn.pickling import with_functions, with_names
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.nn.scopes import (
    Running,
    call_scope,
    current_declaration,
    current_overlay,
    is_declaring,
    running_layers,
    running_path,
)
from supremum.nn.symbolic import call_symbolically, common_spec, is_spec, is_symbolic, spec_of
from supremum.nn.variables import AutoCastVariable, UninitializedError, Variable, has_value
from supremum.rules.jax import held_dtype
from supremum.user_frame import warn_user


class LayerOptions(TypedDict, total=False):
    """What every layer takes by name; `Layer` says what it means."""

    dtype: Any
    param_dtype: Any
    autocast: bool
    strict: bool
    trainable: bool
    activity_regularizer: RegularizerFunction | str | None
    name: str | None


class Layer(Creation, LayerLosses, ABC):
    """A function with weights.

    Subclasses add weights in `build`, compute in `call`, and are used by calling them. `call` may take a keyword
    `training`, which a layer that is not told gets from the layer around it.

    Args:
        dtype: the dtype policy: a `Policy`, a name, a dtype, or None for the global policy as it is now. A layer that
            is given None takes the policy of the model that it is put into, if that is given one before the layer has
            weights.
        param_dtype: the dtype weights are stored in; None for the policy's.
        autocast: whether floating inputs are cast to the compute dtype, and outputs to the policy's output dtype where
            that is another.
        strict: whether a call, of this layer or one inside it, that returns another real floating dtype than its
            compute dtype is an error; otherwise it is a warning, once for each layer.
        trainable: whether optimizers change its weights, and those of the layers in it.
        activity_regularizer: a penalty on the outputs, divided by the length of their first axis, in their dtype.
        name: what it is called in paths; None for its class, as in `"batch_norm"`.

    Attributes:
        trainable: as given. It may be set at any time before `compile`: a layer that is not trainable, and all that it
            holds, keeps its weights, and adds no penalties on them; `BatchNorm` then works as outside of training.
        input_spec: what inputs have to be, checked before they are cast: an `InputSpec` for the first one, a sequence
            of them for the positional ones, or a mapping of them by the names of arguments.
        build_inputs: during `build`, the positional inputs, cast, as `jax.ShapeDtypeStruct`s.
        policy_map: the policies of the layers inside, for a model that was given any; None for other layers.

    Raises:
        UnknownNameError: for a policy or dtype that nobody knows; a `ValueError`.

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

    _takes_training: ClassVar[bool] = False
    _trains_by_default: ClassVar[bool] = False
    _has_weights = False
    policy_map: PolicyMap | None = None
    trainable: bool
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
        self._set_policy(global_policy() if dtype is None else as_policy(dtype), param_dtype)
        # The policy in force says no more than None does, also where an outer layer passes it on as its own.
        self._chose_policy = self._policy is not global_policy()
        self._autocast = autocast
        self._strict = strict
        self.trainable = trainable
        self._activity_regularizer = as_regularizer(activity_regularizer)
        self._name = snake_case(type(self).__name__) if name is None else name
        self._built = False
        self._before_build: dict[str, Any] = {}
        self._warned: set[str] = set()
        self.output_spec: Any = None
        self.input_spec = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        training = inspect.signature(cls.call).parameters.get("training")
        cls._takes_training = training is not None
        cls._trains_by_default = training is not None and training.default is True

    def __getstate__(self) -> dict[str, Any]:
        return with_names({**vars(self), "_before_build": with_names(self._before_build)})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Not through `__setattr__`, which looks at a layer that is whole.
        vars(self).update(with_functions({**state, "_before_build": with_functions(state["_before_build"])}))

    def _set_policy(self, policy: Policy, param_dtype: Any) -> None:
        self._policy = policy
        self._param_dtype = None if param_dtype is None else as_format(param_dtype).dtype

    @property
    def name(self) -> str:
        """What it is called in paths, unless the layer that holds it has another name for it."""
        return self._name

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

    @property
    def chose_policy(self) -> bool:
        """Whether it was given a policy, by itself or by the model it is in, and not the one in force."""
        return self._chose_policy

    def adopt_policy(self, policy: Policy) -> None:
        """Take the policy of a model before there are weights, and be built again.

        Args:
            policy: the policy.
        """
        if self._built and policy != self._policy:
            self._unbuild()
        self._policy = policy
        self._chose_policy = True

    def trace_again(self) -> None:
        """Called when layers inside were given other policies; a functional model finds its outputs again."""

    @property
    def autocast(self) -> bool:
        """Whether it casts its inputs."""
        return self._autocast

    @property
    def built(self) -> bool:
        """Whether it knows its weights."""
        return self._built

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
            training = outer[-1].asked
        strict = self._strict or (bool(outer) and outer[-1].strict)
        running = Running(self, training, self._trains_by_default, strict)
        try:
            with call_scope(running, self._autocast_dtype()):
                return self._checked_call(args, kwargs, running)
        except (ArgumentError, OperandError, UninitializedError) as error:
            _name_layer(error, f"{running_path(self)} ({shown(self)})", described(args, kwargs))
            raise
        except Exception as error:  # of the user's own code, or of JAX: its message is not ours to change
            if getattr(error, "layer", None) is None and not isinstance(error, SupremumError):
                vars(error)["layer"] = layer = f"{running_path(self)} ({shown(self)})"
                error.add_note(f"in {layer}, given {described(args, kwargs)}")
            raise

    def _checked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], running: Running) -> Any:
        check_inputs(self.input_spec, self.call, args, kwargs)
        if self._autocast:
            self._warn_of_narrowing((args, kwargs))
            args, kwargs = self._cast_inputs((args, kwargs))
        if not self._built:
            self._build(args, kwargs)
        if self._policy.should_cast_variables and self.compute_dtype is not None and not is_declaring():
            warn_if_it_gains_nothing(self.compute_dtype)
        if self._takes_training:
            kwargs = {**kwargs, "training": running.training}
        outputs = self.call(*args, **kwargs)
        if self._autocast:
            check_output_dtype(self, running, args, kwargs, outputs)
            if self._policy.output_dtype != self.compute_dtype:
                outputs = cast_outputs(outputs, self._policy)
        self._note_losses(outputs, running)
        declaration = current_declaration()
        if declaration is not None:
            found = jax.tree.map(spec_of, outputs)
            again = declaration.again
            self.output_spec = jax.tree.map(common_spec, self.output_spec, found, is_leaf=is_spec) if again else found
        return outputs

    def _autocast_dtype(self) -> DType | None:
        dtype = self.compute_dtype
        return dtype if dtype is not None and as_format(dtype).kind is Kind.FLOAT else None

    def _cast_inputs(self, inputs: Any) -> Any:
        dtype = self._autocast_dtype()
        check_held(dtype, f"the layer computes in {dtype}", "give it another policy")
        # Containers are the layer's own in any case: what it does to them nobody else sees.
        return jax.tree.map(unmasked, inputs) if dtype is None else cast_inputs(inputs, dtype)

    def _warn_of_narrowing(self, inputs: Any) -> None:
        dtype = self._autocast_dtype()
        if "narrowing" in self._warned:
            return
        for found in floating_dtypes(inputs):
            # Under "infer" it is JAX that narrows, arrays of NumPy, and says nothing.
            target = held_dtype(found) if self.compute_dtype is None else dtype
            if target is None or not _is_narrowed(found, target):
                continue
            self._warned.add("narrowing")
            follow = "" if self.compute_dtype is None else f"dtype='infer' follows them, dtype='{as_format(found)}' "
            follow += "computes in that always, " if follow else ""
            enable = "" if is_held(found) else "with jax.config.update('jax_enable_x64', True) JAX holds them, "
            warn_user(
                f"{running_path()} ({shown(self)}) narrows its {as_format(found)} inputs to {as_format(target)}: "
                f"{follow}"
                f"{enable}and x.astype('{as_format(target)}') says that this is meant",
                PolicyWarning,
            )
            return

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        first = args[0] if args else next(iter(kwargs.values()), None)
        self._before_build = dict(vars(self))
        try:
            self.build_inputs = jax.tree.map(_spec, args)
            self.build(jax.tree.map(_shape, first))
            del self.build_inputs
            own = [child for _, child in self.children() if isinstance(child, Variable)]
            if not is_declaring() and not all(map(has_value, own)):
                raise UninitializedError("there are no weights yet: nn.initialize(model, *inputs, seed=0) makes them")
        except BaseException:
            self._unbuild()
            raise
        self._built = True

    def _unbuild(self) -> None:
        """Be again as before `build`."""
        before = self._before_build
        vars(self).clear()
        vars(self).update(before)

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
        if any(isinstance(child, Variable) and child.name == name for _, child in self.children()):
            raise ArgumentError(f"{shown(self)} has a variable {shown(name)} already: give the new one another name")
        compute = self._autocast_dtype()
        casts = autocast and compute is not None and row.kind is Kind.FLOAT and row.dtype != compute
        made = AutoCastVariable if casts else Variable
        variable = made.declared(sizes, row.dtype, initializer, name, trainable=trainable)
        variable.is_of_layer = True
        variable.regularizer = as_regularizer(regularizer)
        return variable

    def __setattr__(self, name: str, value: Any) -> None:
        self._warn_of_plain_variable(name, value)
        super().__setattr__(name, value)

    def _warn_of_plain_variable(self, name: str, value: Any) -> None:
        if not isinstance(value, (Variable, EagerVariable)) or getattr(value, "is_of_layer", False):
            return
        compute = self._autocast_dtype() if "_policy" in vars(self) else None
        row = as_format(value.dtype)
        if compute is not None and self._policy.should_cast_variables and row.kind is Kind.FLOAT:
            warn_user(
                f"{shown(self)}.{name} is a variable of {row} that is not cast to {as_format(compute)} in `call`, "
                "which "
                f"will then compute in {row}: make it with self.add_weight({shown(name)}, {tuple(value.shape)}), or "
                "cast it "
                f"there, as in self.{name}.value.astype(self.compute_dtype)",
                PolicyWarning,
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(dtype={self._policy.name!r})" if "_policy" in vars(self) else object.__repr__(self)
        )


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(np.shape(leaf))


def _spec(leaf: Any) -> Any:
    dtype = getattr(leaf, "dtype", None)
    return leaf if dtype is None else jax.ShapeDtypeStruct(np.shape(leaf), dtype)


def _is_narrowed(found: DType, target: DType) -> bool:
    row, least = as_format(found), as_format("float32")
    return row.bits > least.bits and not as_format(target).holds(row)


def _name_layer(error: Exception, layer: str, inputs: str) -> None:
    """Say in an error which layer it comes from and what came; the innermost one says it."""
    if getattr(error, "layer", None) is None and error.args:
        error.layer = layer  # pyright: ignore[reportAttributeAccessIssue]
        error.args = (f"{layer}, given {inputs}: {error.args[0]}", *error.args[1:])


def as_layer(layer: Any) -> Layer:
    """A layer.

    Raises:
        OperandError: for anything else; a `TypeError`.
    """
    return instance("layer", layer, Layer, "a layer, such as nn.Dense(10)")
