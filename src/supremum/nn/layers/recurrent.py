"""Recurrent cells, and the layers that run them over sequences, in one direction or both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional import promote_dtype
from supremum.nn.functional.recurrent import Activation, gru_step, lstm_step, simple_rnn_step
from supremum.nn.initializers import LECUN_NORMAL, GateInitializer, Initializer, orthogonal
from supremum.nn.inputs import InputSpec
from supremum.nn.layer import Layer
from supremum.nn.layers.products import KernelLayer, KernelOptions
from supremum.nn.losses import in_loop
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.nn.scopes import current_overlay, has_random_key, next_random_key, overlay, random_key


class RecurrentCell(Layer):
    """A layer with `call(x, state)`, which returns an output and the next state; `RNN` repeats it.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> class RunningSum(RecurrentCell):
    ...     def initial_state(self, batch_shape, dtype=None):
    ...         return jnp.zeros((*batch_shape, 1), dtype or self.compute_dtype)
    ...
    ...     def call(self, x, state):
    ...         return x + state, x + state
    >>> RNN(RunningSum())(jnp.ones((1, 4, 1))).ravel()
    Array([1., 2., 3., 4.], dtype=float32)
    """

    @abstractmethod
    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """The state before the first step.

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: its dtype; None for the compute dtype, or else float32. `RNN` casts it to the dtype of later states.
        """


class _DenseCell(KernelLayer, RecurrentCell):
    """The common base of all cells here: a kernel for the inputs, a kernel for the state, and a bias."""

    _gates: int

    def __init__(
        self,
        units: int,
        *,
        activation: Activation = jnp.tanh,
        use_bias: bool = True,
        recurrent_initializer: Initializer = orthogonal,
        recurrent_regularizer: RegularizerFunction | str | None = None,
        **options: Unpack[KernelOptions],
    ) -> None:
        options.setdefault("kernel_initializer", LECUN_NORMAL)
        super().__init__(**options)
        self.units = units
        self.activation = activation
        self.use_bias = use_bias
        self.recurrent_initializer = recurrent_initializer
        self.recurrent_regularizer: RegularizerFunction | None = as_regularizer(recurrent_regularizer)
        self.input_spec = InputSpec(min_ndim=1)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        wide = self._gates * self.units
        initializers = self.kernel_initializer, self.recurrent_initializer, self.bias_initializer
        kernel, recurrent, bias = (GateInitializer(each, self._gates) for each in initializers)
        self.add_kernel_and_bias((input_shape[-1], wide), (wide,) if self.use_bias else None, kernel, bias)
        self.recurrent_kernel: Any = self.add_weight(
            "recurrent_kernel", (self.units, wide), recurrent, regularizer=self.recurrent_regularizer
        )
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})

    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Zeros, shape (*batch_shape, units).

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: their dtype; None for the compute dtype, or float32 if there is none.
        """
        return jnp.zeros((*batch_shape, self.units), dtype or self.compute_dtype or "float32")

    def _weights(self) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        kernel, bias = self.kernel_and_bias()
        return kernel, self.recurrent_kernel.value, bias


class _GatedCell(_DenseCell):
    """The common base of cells with gates: an activation for the gates."""

    def __init__(self, units: int, *, recurrent_activation: Activation = jax.nn.sigmoid, **options: Any) -> None:
        super().__init__(units, **options)
        self.recurrent_activation = recurrent_activation

    def _step(self, step: Callable[..., Any], *arrays: Any) -> Any:
        activations = {"activation": self.activation, "recurrent_activation": self.recurrent_activation}
        return step(*arrays, **activations, dtype=self.compute_dtype)


class SimpleRNNCell(_DenseCell):
    """A fully connected recurrent cell: activation(x·W + h·U + b) (Elman, 1990).

    Args:
        units: the number of outputs, and of values in the state.
        activation: a function of each value.
        use_bias: whether to add a bias.
        kernel_initializer: for W, shape (inputs, units).
        recurrent_initializer: for U, shape (units, units).
        bias_initializer: for b, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = RNN(SimpleRNNCell(4, dtype="mixed_bfloat16"))
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape, layer(jnp.ones((2, 10, 3))).dtype
    ((2, 10, 4), dtype(bfloat16))
    """

    _gates = 1

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Compute the new state, which is also the output; returns it twice."""
        new = simple_rnn_step(x, state, *self._weights(), activation=self.activation, dtype=self.compute_dtype)
        return new, new


class LSTMCell(_GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); `functional.recurrent.lstm_step` has the formulas.

    Args:
        units: the number of outputs, and of values in each of hidden and cell state.
        activation: for the candidate and the cell state.
        recurrent_activation: for the gates.
        use_bias: whether to add a bias.
        kernel_initializer: for each gate's part of W, shape (inputs, units).
        recurrent_initializer: for each gate's part of U, shape (units, units).
        bias_initializer: for the bias of each gate, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = RNN(LSTMCell(4), return_sequences=False)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> layer(jnp.ones((2, 10, 3))).shape
    (2, 4)
    """

    _gates = 4

    def initial_state(self, batch_shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Zeros for hidden and cell state, each of shape (*batch_shape, units).

        Args:
            batch_shape: the shape of inputs without the last axis.
            dtype: their dtype; None for the compute dtype, or float32 if there is none.
        """
        return super().initial_state(batch_shape, dtype), super().initial_state(batch_shape, dtype)

    def call(self, x: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """Compute the new hidden state, which is also the output, and the pair of new hidden and cell state."""
        hidden, cell = self._step(lstm_step, x, state, *self._weights())
        return hidden, (hidden, cell)


class GRUCell(_GatedCell):
    """The gated recurrent unit (Cho and others, 2014); `functional.recurrent.gru_step` has the formulas.

    Args:
        units: the number of outputs, and of values in the state.
        activation: for the candidate.
        recurrent_activation: for the gates.
        use_bias: whether to add biases, one per gate, and one to the candidate inside the reset gate.
        kernel_initializer: for each gate's part of W, shape (inputs, units).
        recurrent_initializer: for each gate's part of U, shape (units, units).
        bias_initializer: for each bias, shape (units,).
        kernel_regularizer: a penalty on W, such as `"l2"` or `nn.L2(1e-4)`.
        recurrent_regularizer: a penalty on U.
        bias_regularizer: a penalty on the biases.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = RNN(GRUCell(4), return_state=True)
    >>> initialize(layer, jnp.ones((2, 10, 3)))
    >>> outputs, state = layer(jnp.ones((2, 10, 3)))
    >>> outputs.shape, state.shape
    ((2, 10, 4), (2, 4))
    """

    _gates = 3

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add kernels and biases."""
        super().build(input_shape)
        self.recurrent_bias: Any = None
        if self.use_bias:
            self.recurrent_bias = self.add_weight(
                "recurrent_bias", (self.units,), self.bias_initializer, regularizer=self.bias_regularizer
            )

    def call(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Compute the new state, which is also the output; returns it twice."""
        recurrent_bias = None if self.recurrent_bias is None else self.recurrent_bias.value
        new = self._step(gru_step, x, state, *self._weights(), recurrent_bias)
        return new, new


class RNN(Layer):
    """Run a recurrent cell over a sequence, with `jax.lax.scan`.

    The layer has the policy of its cell. The state has one dtype from the first step on, the dtype that the cell
    returns: the result type of `initial_state`, inputs and weights under the policy `"infer"`, and the compute dtype
    under other policies.

    Args:
        cell: the cell, such as `LSTMCell(64)`. It must not assign variables, since the steps of a scan do not see each
            other's assignments. Its random numbers differ from step to step. Its `activity_regularizer` applies to the
            outputs of all steps, and to the state if it is returned.
        return_sequences: whether to return the outputs of all steps, or only the last one.
        return_state: whether to return the last state too.
        reverse: whether to go from the last step to the first; outputs are then in that order.
        keep_order: whether the outputs of a reversed run are in the order of the inputs.
        time_major: whether inputs and outputs have the shape (time, *batch, n) instead of (*batch, time, n).
        unroll: the number of steps to compile into one iteration of the loop.
        name: its name.

    Raises:
        OperandError: for a cell that is not a `RecurrentCell`.

    >>> from supremum.nn import initialize
    >>> rnn = RNN(GRUCell(4, dtype="mixed_bfloat16"), return_state=True)
    >>> x = jnp.ones((2, 5, 3))
    >>> initialize(rnn, x)
    >>> outputs, state = rnn(x, sequence_lengths=jnp.asarray([5, 2]))
    >>> outputs.shape, outputs.dtype, state.shape
    ((2, 5, 4), dtype(bfloat16), (2, 4))
    """

    def __init__(
        self,
        cell: RecurrentCell,
        *,
        return_sequences: bool = True,
        return_state: bool = False,
        reverse: bool = False,
        keep_order: bool = False,
        time_major: bool = False,
        unroll: int = 1,
        name: str | None = None,
    ) -> None:
        if not isinstance(cell, RecurrentCell):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"RNN needs a RecurrentCell, such as LSTMCell(64), got {shown(cell)}")
        super().__init__(
            dtype=cell.dtype_policy,
            param_dtype=cell.param_dtype,
            activity_regularizer=cell.activity_regularizer,
            name=name,
        )
        self.chose_policy: bool = cell.chose_policy
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.reverse = reverse
        self.keep_order = keep_order
        self.time_major = time_major
        self.unroll = unroll
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, x: Any, *, initial_state: Any = None, mask: Any = None, sequence_lengths: Any = None) -> Any:
        """Run the cell over a sequence.

        Args:
            x: inputs, shape (*batch, time, n).
            initial_state: the state before the first step; None for the initial state of the cell.
            mask: booleans of shape (*batch, time); a step at False keeps the state and its output is 0.
            sequence_lengths: integers of shape (*batch), the number of first steps that count; an alternative to
                `mask`. The outputs of a reversed run then begin with the last step that counts, and end with padding.

        Returns:
            Outputs, shape (*batch, time, units). Without `return_sequences`, shape (*batch, units): the output of the
            last step that counts, or 0 if there is none. With `return_state`, a pair of the outputs and the last state.

        Raises:
            ArgumentError: for shapes that do not match, both a mask and lengths, a cell that assigns variables, or a
                state with shapes or dtypes that change.
            OperandError: for a mask that is not boolean, or lengths that are not integers.
        """
        (x,) = promote_dtype(x, inexact=False)
        time_axis = 0 if self.time_major else x.ndim - 2
        x = jnp.moveaxis(x, time_axis, 0)
        mask = self._time_major_mask(x.shape, mask, sequence_lengths)
        if mask is not None:
            x = _where(mask, x, jnp.zeros_like(x))  # or a NaN at a masked step would reach the gradient
        state = self.cell.initial_state(x.shape[1:-1], x.dtype) if initial_state is None else initial_state
        # Without a key, a cell that needs random numbers raises.
        base = next_random_key() if has_random_key() else None
        spec, state = self._traced_cell(jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state, base)

        def body(carried: tuple[Any, Any], inputs: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any], Any]:
            (state, last), (number, x, counts) = carried, inputs
            output, new = self._step(x, state, None if base is None else jax.random.fold_in(base, number))
            new = _where(counts, new, state)
            if self.return_sequences:
                return (new, last), _where(counts, output, last)
            return (new, _where(counts, output, last)), None

        steps = (jnp.arange(x.shape[0]), x, mask)
        zeros = jax.tree.map(jnp.zeros_like, spec)
        (state, output), outputs = jax.lax.scan(body, (state, zeros), steps, reverse=self.reverse, unroll=self.unroll)
        if self.return_sequences:
            if self.reverse and not self.keep_order:
                outputs = jax.tree.map(partial(_flipped, sequence_lengths), outputs)
            output = jax.tree.map(partial(jnp.moveaxis, source=0, destination=time_axis), outputs)
        return (output, state) if self.return_state else output

    def _step(self, x: jax.Array, state: Any, key: Any) -> tuple[Any, Any]:
        """Call the cell; raise if it assigns variables, since their values would belong to a trace that has ended."""
        outer = current_overlay() or {}
        inner = dict(outer)
        with nullcontext() if key is None else random_key(key), overlay(inner), in_loop():
            found = self.cell(x, state)
        variables = self.cell.variables.items()
        paths = [path for path, variable in variables if inner.get(variable) is not outer.get(variable)]
        if paths:
            raise ArgumentError(
                f"{shown(self.cell)} must not assign variables in a step of a scan, got assignments to "
                f"{listed(paths)}; put the values into the state, or move the layer that assigns them out of the cell"
            )
        return found

    def _traced_cell(self, x: jax.ShapeDtypeStruct, state: Any, base: Any) -> tuple[Any, Any]:
        """The shapes of the cell's output, and the first state in the dtypes of all later states.

        This traces the cell, which builds it, so its weights are not made inside the scan.
        """
        step = partial(self._step, key=base)
        _, new = jax.eval_shape(step, x, state)
        state = _cast_state(state, new)
        output, again = jax.eval_shape(step, x, state)
        before, after = ([leaf.dtype for leaf in jax.tree.leaves(tree)] for tree in (state, again))
        if before != after:
            raise ArgumentError(
                f"{shown(self.cell)} must keep the dtypes of its state, {before}, got {after}; return "
                "new_state.astype(state.dtype) from it"
            )
        return output, state

    def _time_major_mask(self, shape: tuple[int, ...], mask: Any, lengths: Any) -> Any:
        """The steps that count, shape (time, *batch), or None for all; `shape` is the shape of time-major inputs."""
        time, batch = shape[0], shape[1:-1]
        if lengths is not None:
            if mask is not None:
                raise ArgumentError("only one of mask and sequence_lengths can be given")
            lengths = _checked_array("sequence_lengths", lengths, "integer", batch)
            return _with_axes(jnp.arange(time), 1 + len(batch)) < lengths
        if mask is None:
            return None
        mask = _checked_array("mask", mask, "bool", (time, *batch) if self.time_major else (*batch, time))
        return jnp.moveaxis(mask, 0 if self.time_major else -1, 0)


def _cast_state(state: Any, new: Any) -> Any:
    """Cast a state to the dtypes and containers of the cell's next state."""
    given, made = jax.tree.leaves(state), jax.tree.leaves(new)
    shapes = [[jnp.shape(leaf) for leaf in leaves] for leaves in (given, made)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(f"the cell must keep the shapes of its state, {shapes[0]}, got {shapes[1]}")
    leaves = [promote_dtype(leaf, dtype=spec.dtype, inexact=False)[0] for leaf, spec in zip(given, made, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(new), leaves)


def _checked_array(name: str, array: Any, category: str, shape: tuple[int, ...]) -> jax.Array:
    array = jnp.asarray(array)
    if as_format(array.dtype).category != category:
        raise OperandError(f"{name} must be {category}, got {array.dtype}")
    if array.shape != shape:
        raise ArgumentError(f"{name} must have shape {shape} for these inputs, got {array.shape}")
    return array


def _where(counts: Any, new: Any, old: Any) -> Any:
    """Choose the new arrays for steps that count and the old ones otherwise, in the dtypes of the old ones."""

    def chosen(after: jax.Array, before: jax.Array) -> jax.Array:
        after = after.astype(before.dtype)
        return after if counts is None else jnp.where(_with_axes(counts, after.ndim), after, before)

    return jax.tree.map(chosen, new, old)


def _with_axes(array: jax.Array, ndim: int) -> jax.Array:
    """Append axes of length 1 to an array, up to a number of axes."""
    return array.reshape(*array.shape, *(1,) * (ndim - array.ndim))


def _flipped(lengths: Any, outputs: jax.Array) -> jax.Array:
    """Reverse time-major outputs; with lengths, start at the last step that counts, and end with zeros."""
    if lengths is None:
        return jnp.flip(outputs, 0)
    time = outputs.shape[0]
    ends = jnp.minimum(jnp.asarray(lengths), time) - 1
    source = _with_axes(ends - _with_axes(jnp.arange(time), ends.ndim + 1), outputs.ndim)
    found = jnp.take_along_axis(outputs, jnp.maximum(source, 0), axis=0)
    return jnp.where(source >= 0, found, jnp.zeros_like(found))


_MERGES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "concat": lambda a, b: jnp.concatenate([a, b], axis=-1),
    "sum": jnp.add,
    "mul": jnp.multiply,
    "ave": lambda a, b: (a + b) / 2,
}
_SHARED_OPTIONS = ("return_sequences", "return_state", "time_major")


class Bidirectional(Layer):
    """Run one recurrent layer forwards and one backwards, and merge their outputs (Schuster and Paliwal, 1997).

    Args:
        forward: the layer that runs from the first step to the last.
        backward: the layer that runs from the last step to the first, made with `reverse=True`, and with
            `keep_order=True` if it returns all steps; None for a copy of `forward`, which then must not have weights
            yet, so both get different weights.
        merge: how to merge outputs: `"concat"` on the last axis, `"sum"`, `"mul"`, `"ave"` (mean), or None for a pair.
        name: its name.

    Raises:
        UnknownNameError: for an unknown `merge`; a `ValueError`.
        OperandError: for a layer that is not an `RNN`.
        ArgumentError: for layers with options that do not match.

    >>> from supremum.nn import initialize
    >>> both = Bidirectional(RNN(GRUCell(4)))
    >>> x = jnp.ones((2, 5, 3))
    >>> initialize(both, x)
    >>> both(x).shape
    (2, 5, 8)
    """

    def __init__(
        self, forward: RNN, backward: RNN | None = None, *, merge: str | None = "concat", name: str | None = None
    ) -> None:
        for each in (forward,) if backward is None else (forward, backward):
            if not isinstance(each, RNN):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise OperandError(f"Bidirectional needs RNN layers, got {shown(each)}; use RNN(cell)")
        if merge is not None:
            chosen("merge", merge, _MERGES)
        if forward.reverse:
            raise ArgumentError("the forward layer must be made without reverse=True")
        super().__init__(dtype=forward.dtype_policy, param_dtype=forward.param_dtype, autocast=False, name=name)
        self.chose_policy: bool = forward.chose_policy
        self.forward = forward
        self.backward: RNN = _backward_of(forward, backward)
        self.merge = merge

    def call(self, x: Any, *, initial_state: Any = None, mask: Any = None, sequence_lengths: Any = None) -> Any:
        """Run both layers, and merge their outputs.

        Args:
            x: the inputs of both layers.
            initial_state: a pair of states, forwards and backwards; None for the initial states of the cells.
            mask: as for `RNN`.
            sequence_lengths: as for `RNN`.

        Returns:
            The merged outputs, in their result type; with `return_state` a pair of them and the pair of last states.

        Raises:
            ArgumentError: for an initial state that is not a pair.
        """
        states = (None, None) if initial_state is None else initial_state
        if not isinstance(states, (tuple, list)) or len(states) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise ArgumentError("initial_state must be a pair, for the forward and the backward layer")
        found = [
            layer(x, initial_state=state, mask=mask, sequence_lengths=sequence_lengths)
            for layer, state in zip((self.forward, self.backward), states, strict=True)
        ]
        if not self.forward.return_state:
            return self._merged(*found)
        (a, first), (b, second) = found
        return self._merged(a, b), (first, second)

    def _merged(self, a: jax.Array, b: jax.Array) -> Any:
        if self.merge is None:
            return a, b
        a, b = promote_dtype(a, b)
        wide = promote_dtype(a, b, dtype=at_least_float32(a.dtype))
        return _MERGES[self.merge](*wide).astype(a.dtype)


def _backward_of(forward: RNN, backward: RNN | None) -> RNN:
    """The layer that runs backwards: the given one, which must match, or a copy of the other layer."""
    if backward is None:
        if any(layer.built for layer in forward.layers_by_path().values()):
            raise ArgumentError(
                "the forward layer already has weights, which a copy would share; give a layer as backward="
            )
        shared = {each: getattr(forward, each) for each in (*_SHARED_OPTIONS, "unroll", "name")}
        return RNN(deepcopy(forward.cell), reverse=True, keep_order=True, **shared)
    if backward is forward:
        raise ArgumentError("backward must not be the forward layer itself; leave it out to use a copy")
    if not backward.reverse or (backward.return_sequences and not backward.keep_order):
        raise ArgumentError("the backward layer must be made with reverse=True and keep_order=True")
    for name in _SHARED_OPTIONS:
        value = getattr(forward, name)
        if getattr(backward, name) != value:
            raise ArgumentError(f"both layers must have the same {name}; make backward with {name}={value}")
    return backward
