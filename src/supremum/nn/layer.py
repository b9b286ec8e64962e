"""The base of all layers: dtype policy, weights, sublayers, and the casts around a call.

spec/keras-rfc-293-mixed-precision.md, "Layers", "A layer's compute dtype" and "Layer variables".
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import jax

from supremum.errors import ArgumentError
from supremum.formats import DType, Kind, as_format
from supremum.mixed_precision import Policy, as_policy
from supremum.nn.initializers import Initializer
from supremum.nn.scopes import autocast_dtype, next_initial_key
from supremum.nn.variables import AutoCastVariable, Variable


class Layer(ABC):
    """A function with weights.

    Subclasses add weights in `build`, compute in `call`, and are used by calling them.

    Args:
        dtype: the dtype policy: a `Policy`, a name, a dtype, or None for float32.
        autocast: whether floating inputs are cast to the compute dtype, and outputs to the policy's output dtype where
            that is another.

    Raises:
        ArgumentError: for a policy whose computation is to be inferred, which layers do not follow; a `ValueError`.
    """

    _takes_training: ClassVar[bool]

    def __init__(self, *, dtype: Any = None, autocast: bool = True) -> None:
        self._policy = as_policy(dtype)
        if self._policy.compute_dtype is None:
            raise ArgumentError(
                f"{type(self).__name__} computes in one dtype and cannot follow the policy {self._policy.name!r}: "
                "name the dtype, as in dtype='float32' or dtype='mixed_bfloat16'"
            )
        self._compute_dtype = self._policy.compute_dtype
        self._autocast = autocast
        self._built = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._takes_training = "training" in inspect.signature(cls.call).parameters

    @property
    def dtype_policy(self) -> Policy:
        """The policy, which never changes."""
        return self._policy

    @property
    def compute_dtype(self) -> DType:
        """The dtype that inputs are cast to, and outputs leave in unless the policy says otherwise."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> DType:
        """The dtype weights are stored in unless they say otherwise."""
        return self._policy.variable_dtype

    @property
    def built(self) -> bool:
        """Whether the weights exist."""
        return self._built

    def build(self, input_shape: tuple[int, ...]) -> None:  # noqa: B027 (a layer may have no weights)
        """Add the weights; called once, before the first call, with the shape of the first input."""

    @abstractmethod
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute. Floating inputs are in the compute dtype here, and so is what autocast variables read as."""

    def __call__(self, *args: Any, training: bool = False, **kwargs: Any) -> Any:
        """Build if needed, cast the inputs and compute.

        Args:
            args: inputs, arrays or nested structures of them.
            training: whether this is a training step; passed on to layers that ask for it.
            kwargs: more inputs.
        """
        if not self._built:
            leaves = [leaf for leaf in jax.tree.leaves((args, kwargs)) if hasattr(leaf, "shape")]
            self.build(tuple(leaves[0].shape) if leaves else ())
            self._built = True
        if self._autocast:
            args, kwargs = self._policy.cast_to_compute((args, kwargs))
        if self._takes_training:
            kwargs["training"] = training
        with autocast_dtype(self.compute_dtype):
            outputs = self.call(*args, **kwargs)
        casts = self._autocast and self._policy.output_dtype != self.compute_dtype
        return self._policy.cast_to_output(outputs) if casts else outputs

    def add_weight(
        self,
        name: str,
        shape: tuple[int, ...],
        initializer: Initializer,
        *,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
    ) -> Variable:
        """Make a weight.

        Args:
            name: its name within the layer.
            shape: its shape.
            initializer: a function of key, shape and dtype, as those of `jax.nn.initializers`.
            dtype: the dtype to store it in; None for the layer's variable dtype.
            trainable: whether optimizers change it.
            autocast: whether it is read in the compute dtype inside `call`; only floating weights of layers whose
                compute and variable dtypes differ are.

        Returns:
            The variable; assign it to an attribute for the layer to own it.
        """
        stored = self.variable_dtype if dtype is None else as_format(dtype).dtype
        with jax.ensure_compile_time_eval():  # a real array also while the model is being traced
            value = initializer(next_initial_key(), shape, stored)
        casts = autocast and self._policy.should_cast_variables and as_format(stored).kind is Kind.FLOAT
        return (AutoCastVariable if casts else Variable)(value, name, trainable=trainable)

    def sublayers(self) -> Iterator[tuple[str, Layer]]:
        """The layers this one holds, each with its name."""
        for name, value in vars(self).items():
            if isinstance(value, Layer):
                yield name, value

    def named_variables(self, prefix: str = "") -> dict[str, Variable]:
        """All variables of this layer and those it holds, by path, such as `"conv/kernel"`."""
        own = {prefix + value.name: value for value in vars(self).values() if isinstance(value, Variable)}
        for name, layer in self.sublayers():
            own |= layer.named_variables(f"{prefix}{name}/")
        return own

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dtype={self._policy.name!r})"


def snake_case(name: str) -> str:
    """`"BatchNorm"` as `"batch_norm"`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
