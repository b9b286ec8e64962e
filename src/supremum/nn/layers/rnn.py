"""Recurrent cells over sequences."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import as_format
from supremum.nn.functional import promote_dtype
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer
from supremum.nn.layers.recurrent_cells import RecurrentCell
from supremum.nn.loss_collection import in_loop
from supremum.nn.scopes import current_overlay, has_random_key, next_random_key, overlay, random_key


class RNN(Layer):
    """Run a recurrent cell over a sequence, with `jax.lax.scan`.

    Its policy is that of the cell. The state has one dtype from the first step on, the one that the cell gives: that of
    `initial_state`, inputs and weights under the policy `"infer"`, and the compute dtype under others.

    Args:
        cell: the cell, such as `LSTMCell(64)`. It may not assign variables, since what is assigned in one step of a
            scan is seen by no other; its random numbers differ from step to step. Its `activity_regularizer` is of the
            outputs of all steps, and of the state where that is returned.
        return_sequences: whether to give the outputs of all steps, or the last alone.
        return_state: whether to give the last state too.
        reverse: whether to go from the last step to the first; outputs are then in that order.
        keep_order: whether the outputs of a reversed run are in the order of the inputs.
        time_major: whether inputs and outputs have the shape (time, *batch, n) instead of (*batch, time, n).
        unroll: how many steps to compile into one round of the loop.
        name: its name.

    Raises:
        OperandError: for a cell that is not a `RecurrentCell`.

    >>> from supremum.nn import initialize
    >>> from supremum.nn.layers.recurrent_cells import GRUCell
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
            raise OperandError(f"RNN takes a RecurrentCell, such as LSTMCell(64), not {shown(cell)}")
        super().__init__(
            dtype=cell.dtype_policy,
            param_dtype=cell.param_dtype,
            activity_regularizer=cell.activity_regularizer,
            name=name,
        )
        self.chose_policy = cell.chose_policy
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.reverse = reverse
        self.keep_order = keep_order
        self.time_major = time_major
        self.unroll = unroll
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, x: Any, *, initial_state: Any = None, mask: Any = None, sequence_lengths: Any = None) -> Any:
        """Outputs of the cell, and its last state if that is asked for.

        Args:
            x: inputs, shape (*batch, time, n).
            initial_state: the state before the first step; None for what the cell begins with.
            mask: bool, shape (*batch, time): where it is False the state stays as it is and the output is 0.
            sequence_lengths: integers, shape (*batch): how many steps from the first count, instead of a mask. The
                outputs of a reversed run then begin with the last step that counts, and padding stays at the end.

        Returns:
            Outputs, shape (*batch, time, units), or (*batch, units) without `return_sequences`: those of the last step
            that counts, 0 if none does. With `return_state` a pair of them and the state after that step.

        Raises:
            ArgumentError: for shapes that do not fit, a mask and lengths at once, or a cell that assigns variables or
                whose state does not keep its shapes and dtypes.
            OperandError: for a mask that is not bool, or lengths that are not integers.
        """
        (x,) = promote_dtype(x, inexact=False)
        time_axis = 0 if self.time_major else x.ndim - 2
        x = jnp.moveaxis(x, time_axis, 0)
        mask = self._time_major_mask(x.shape, mask, sequence_lengths)
        if mask is not None:
            x = _where(mask, x, jnp.zeros_like(x))  # a NaN there would be one in the gradient
        state = self.cell.initial_state(x.shape[1:-1], x.dtype) if initial_state is None else initial_state
        # A cell that needs random numbers where no key was given says so.
        base = next_random_key() if has_random_key() else None
        spec, state = self._traced_cell(jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state, base)

        def body(carried: tuple[Any, Any], inputs: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any], Any]:
            (state, last), (number, x, counts) = carried, inputs
            with nullcontext() if base is None else random_key(jax.random.fold_in(base, number)):
                output, new = self._step(x, state)
            new = _where(counts, new, state)
            if self.return_sequences:
                return (new, last), _where(counts, output, last)
            return (new, _where(counts, output, last)), None

        steps = (jnp.arange(x.shape[0]), x, mask)
        zeros = jax.tree.map(jnp.zeros_like, spec)
        (state, output), outputs = jax.lax.scan(body, (state, zeros), steps, reverse=self.reverse, unroll=self.unroll)
        if self.return_sequences:
            if self.reverse and not self.keep_order:
                outputs = _flipped(outputs, sequence_lengths)
            output = jax.tree.map(partial(jnp.moveaxis, source=0, destination=time_axis), outputs)
        return (output, state) if self.return_state else output

    def _step(self, x: jax.Array, state: Any) -> tuple[Any, Any]:
        with _refused_assignments(self.cell), in_loop():
            return self.cell(x, state)

    def _traced_cell(self, x: jax.ShapeDtypeStruct, state: Any, base: Any) -> tuple[Any, Any]:
        """What the cell's output looks like, and the first state in the dtypes that all later ones have.

        The cell is traced here, which builds it: its weights are not made inside the scan.
        """

        def probe(x: Any, state: Any) -> tuple[Any, Any]:
            with nullcontext() if base is None else random_key(jax.random.key(0)):
                return self._step(x, state)

        _, new = jax.eval_shape(probe, x, state)
        state = _cast_state(state, new)
        output, again = jax.eval_shape(probe, x, state)
        before, after = ([leaf.dtype for leaf in jax.tree.leaves(tree)] for tree in (state, again))
        if before != after:
            raise ArgumentError(
                f"{shown(self.cell)} does not keep the dtypes of its state, {before}, and made {after} of it: let it "
                "return new_state.astype(state.dtype)"
            )
        return output, state

    def _time_major_mask(self, shape: tuple[int, ...], mask: Any, lengths: Any) -> Any:
        """Which steps count, shape (time, *batch), or None for all; `shape` is that of time-major inputs."""
        time, batch = shape[0], shape[1:-1]
        if lengths is not None:
            if mask is not None:
                raise ArgumentError("a mask and sequence_lengths say the same thing: give one of them")
            _check_array("sequence_lengths", lengths, "integer", batch)
            return _with_axes(jnp.arange(time), 1 + len(batch)) < jnp.asarray(lengths)
        if mask is None:
            return None
        _check_array("mask", mask, "bool", (time, *batch) if self.time_major else (*batch, time))
        return jnp.moveaxis(jnp.asarray(mask), 0 if self.time_major else -1, 0)


@contextmanager
def _refused_assignments(cell: Layer) -> Generator[None]:
    """Refuse that a cell assigns variables, with values of a trace that ends before they are read."""
    outer = current_overlay() or {}
    inner = dict(outer)
    with overlay(inner):
        yield
    paths = [path for path, variable in cell.variables.items() if inner.get(variable) is not outer.get(variable)]
    if paths:
        raise ArgumentError(
            f"{shown(cell)} assigns {listed(paths)} in a step of a scan, where no other step sees it: put that "
            "into the state, or the layer that assigns it outside of the cell"
        )


def _cast_state(state: Any, new: Any) -> Any:
    """A state in the dtypes and containers of the one that the cell made of it."""
    given, made = jax.tree.leaves(state), jax.tree.leaves(new)
    shapes = [[jnp.shape(leaf) for leaf in leaves] for leaves in (given, made)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(f"the first state has the shapes {shapes[0]}, and the cell made {shapes[1]} of it")
    pairs = zip(given, made, strict=True)
    leaves = [promote_dtype(leaf, dtype=spec.dtype, inexact=False)[0] for leaf, spec in pairs]
    return jax.tree.unflatten(jax.tree.structure(new), leaves)


def _check_array(name: str, array: Any, category: str, shape: tuple[int, ...]) -> None:
    array = jnp.asarray(array)
    if as_format(array.dtype).category != category:
        raise OperandError(f"{name} is {category}, not {array.dtype}")
    if array.shape != shape:
        raise ArgumentError(f"{name} has shape {array.shape}, and for these inputs {shape} is expected")


def _where(counts: Any, new: Any, old: Any) -> Any:
    """The new arrays where a step counts, else the old ones, in the dtypes of those."""

    def chosen(after: jax.Array, before: jax.Array) -> jax.Array:
        after = after.astype(before.dtype)
        return after if counts is None else jnp.where(_with_axes(counts, after.ndim), after, before)

    return jax.tree.map(chosen, new, old)


def _with_axes(array: jax.Array, ndim: int) -> jax.Array:
    """An array with axes of length 1 at its end, as many as bring it to a number of axes."""
    return array.reshape(*array.shape, *(1,) * (ndim - array.ndim))


def _flipped(outputs: Any, lengths: Any) -> Any:
    """Time-major outputs from the last step to the first; with lengths from the last that counts, then zeros."""

    def flipped(leaf: jax.Array) -> jax.Array:
        if lengths is None:
            return jnp.flip(leaf, 0)
        time = leaf.shape[0]
        ends = jnp.minimum(jnp.asarray(lengths), time) - 1
        source = _with_axes(ends - _with_axes(jnp.arange(time), ends.ndim + 1), leaf.ndim)
        found = jnp.take_along_axis(leaf, jnp.maximum(source, 0), axis=0)
        return jnp.where(source >= 0, found, jnp.zeros_like(found))

    return jax.tree.map(flipped, outputs)
