"""Layers that run recurrent cells over sequences."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import as_format
from supremum.mixed_precision import Policy, as_policy
from supremum.nn.functional.dtype_promotion import as_array, promote_arrays
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layer import Layer
from supremum.nn.layers.recurrent_cells import RecurrentCell
from supremum.nn.losses import in_loop
from supremum.nn.scopes import current_overlay, has_random_key, next_random_key, overlay, random_key
from supremum.typing import ArrayLike, DTypeLike, PyTree


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
        unroll: the number of steps to compile into one iteration of the loop.
        dtype: the policy, also of the cell, if that was given none; None for the policy of the cell.
        name: its name.

    Raises:
        OperandError: for a cell that is not a `RecurrentCell`.
        ArgumentError: for a `dtype` that differs from the policy that the cell was given or has weights of; a
            `ValueError`.

    >>> from supremum.nn import GRUCell, initialize
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
        unroll: int = 1,
        dtype: Policy | DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(cell, RecurrentCell):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"RNN needs a RecurrentCell, such as LSTMCell(64), got {shown(cell)}")
        if dtype is not None:
            self._give_policy(cell, as_policy(dtype))
        super().__init__(
            dtype=cell.dtype_policy,
            param_dtype=cell.param_dtype,
            trainable=cell.trainable,
            activity_regularizer=cell.activity_regularizer,
            name=name,
        )
        self._chose_policy = cell._chose_policy
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.reverse = reverse
        self.keep_order = keep_order
        self.unroll = unroll
        self.input_spec: InputSpecs | None = InputSpec(min_ndim=2)

    @staticmethod
    def _give_policy(cell: RecurrentCell, policy: Policy) -> None:
        """Give a policy to a cell, and to the layers inside it that were given none."""
        is_fixed = cell._chose_policy or any(variable.is_initialized for variable in cell.variables.values())
        if is_fixed and cell.dtype_policy != policy:
            raise ArgumentError(
                f"dtype must be the policy of the cell, {cell.dtype_policy.name!r}, got {policy.name!r}; "
                f"make the cell with dtype={policy.name!r}"
            )
        for layer in cell.layers_by_path().values():
            if not layer._chose_policy:
                layer._adopt_policy(policy)

    def call(
        self,
        x: jax.Array,
        *,
        initial_state: PyTree = None,
        mask: ArrayLike | None = None,
        sequence_lengths: ArrayLike | None = None,
    ) -> Any:
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
        (x,) = promote_arrays(x, inexact=False)
        time_axis = x.ndim - 2
        x = jnp.moveaxis(x, time_axis, 0)
        mask = _time_major_mask(x.shape, mask, sequence_lengths)
        if mask is not None:
            x = _where(mask, x, jnp.zeros_like(x))  # or a NaN at a masked step would reach the gradient
        if initial_state is None:
            initial_state = self.cell.initial_state(x.shape[1:-1], x.dtype)
        state = jax.tree.map(_check_number, pytree("initial_state", initial_state))
        # Without a key, a cell that needs random numbers raises.
        base = next_random_key() if has_random_key() else None
        spec, state = self._trace_cell(jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state, base)

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
                outputs = jax.tree.map(partial(_flip, sequence_lengths), outputs)
            output = jax.tree.map(partial(jnp.moveaxis, source=0, destination=time_axis), outputs)
        return self._with_state(output, state) if self.return_state else output

    def _with_state(self, output: PyTree, state: PyTree) -> tuple[Any, ...]:
        """The outputs with `return_state`."""
        return output, state

    def _step(self, x: jax.Array, state: Any, key: Any) -> tuple[Any, Any]:
        """Call the cell; raise if it assigns variables, since their values would belong to a trace that has ended."""
        outer = current_overlay() or {}
        inner = dict(outer)
        with nullcontext() if key is None else random_key(key), overlay(inner), in_loop():
            result = self.cell(x, state)
        variables = self.cell.variables.items()
        paths = [path for path, variable in variables if inner.get(variable) is not outer.get(variable)]
        if paths:
            raise ArgumentError(
                f"{shown(self.cell)} must not assign variables in a step of a scan, got assignments to "
                f"{listed(paths)}; put the values into the state, or move the layer that assigns them out of the cell"
            )
        return result

    def _trace_cell(self, x: jax.ShapeDtypeStruct, state: Any, base: Any) -> tuple[Any, Any]:
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


def _time_major_mask(shape: tuple[int, ...], mask: Any, lengths: Any) -> Any:
    """The steps that count, shape (time, *batch), or None for all; `shape` is the shape of time-major inputs."""
    time, batch = shape[0], shape[1:-1]
    if lengths is not None:
        if mask is not None:
            raise ArgumentError("only one of mask and sequence_lengths can be given")
        lengths = _check_array("sequence_lengths", lengths, "integer", batch)
        return _with_axes(jnp.arange(time), 1 + len(batch)) < lengths
    if mask is None:
        return None
    return jnp.moveaxis(_check_array("mask", mask, "bool", (*batch, time)), -1, 0)


def _cast_state(state: Any, new: Any) -> Any:
    """Cast a state to the dtypes and containers of the cell's next state."""
    before, after = jax.tree.leaves(state), jax.tree.leaves(new)
    shapes = [[jnp.shape(leaf) for leaf in leaves] for leaves in (before, after)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(f"the cell must keep the shapes of its state, {shapes[0]}, got {shapes[1]}")
    leaves = [
        promote_arrays(leaf, dtype=spec.dtype, inexact=False)[0] for leaf, spec in zip(before, after, strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(new), leaves)


def _check_number(leaf: Any) -> Any:
    as_array("initial_state", leaf)
    return leaf


def _check_array(name: str, array: Any, category: str, shape: tuple[int, ...]) -> jax.Array:
    array = as_array(name, array)
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


def _flip(lengths: Any, outputs: jax.Array) -> jax.Array:
    """Reverse time-major outputs; with lengths, start at the last step that counts, and end with zeros."""
    if lengths is None:
        return jnp.flip(outputs, 0)
    time = outputs.shape[0]
    ends = jnp.minimum(jnp.asarray(lengths), time) - 1
    source = _with_axes(ends - _with_axes(jnp.arange(time), ends.ndim + 1), outputs.ndim)
    result = jnp.take_along_axis(outputs, jnp.maximum(source, 0), axis=0)
    return jnp.where(source >= 0, result, jnp.zeros_like(result))
