"""One table for each library: the pieces of each layer whose weights have other names or layouts there.

Variables and inner layers that no piece of a row mentions have the same names and layouts there. So have those of a
layer without a row, such as a layer of your own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from supremum.nn.functional.products import ELLIPSIS, Equation
from supremum.nn.layer import Layer
from supremum.nn.layers.attention import MultiHeadAttention
from supremum.nn.layers.bidirectional import Bidirectional
from supremum.nn.layers.convolution import Conv, ConvTranspose
from supremum.nn.layers.embedding import Embedding
from supremum.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from supremum.nn.layers.products import Dense, DenseGeneral, Einsum
from supremum.nn.layers.recurrent import RNN
from supremum.nn.layers.recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from supremum.nn.module_tree import snake_case
from supremum.nn.weights.pieces import Array, Part, Piece, Role
from supremum.nn.weights.trees import place_of

Forms: TypeAlias = tuple[Sequence[Piece], ...]
"""The ways in which a library stores a layer, each a list of pieces in the order of the library.

The first is written, all are read. The last one has no variables of inner layers, so that these can have any names.
"""
Row: TypeAlias = Forms | Callable[[Any], Forms]
"""The forms of a layer, or a function of the built layer."""


def forms_of(layer: Layer, library: str) -> Forms:
    """The forms of a built layer in a library, from its table; a subclass has the row of its base."""
    row = next((TABLES[library][kind] for kind in type(layer).__mro__ if kind in TABLES[library]), _SAME)
    return tuple(_complete(form, layer) for form in (row(layer) if callable(row) else row))


def _complete(form: Sequence[Piece], layer: Layer) -> Sequence[Piece]:
    """The form with the variables and inner layers of a layer that it does not mention."""
    names = [*(variable.name for variable in layer.own_variables()), *(name for name, _ in layer.sublayers())]
    mentioned = {piece.ours for piece in form}
    return (*form, *(Piece(place_of(name, ""), name) for name in names if name not in mentioned))


def _row(*pieces: Piece, **names: str) -> Forms:
    """One form: variables and layers that only have another name there, that name by the name here; then pieces."""
    return ((*(Piece((theirs,), ours) for ours, theirs in names.items()), *pieces),)


_SAME = _row()


def _channels_first(kernel: Array) -> Array:
    """Shape (filters, channels, *window) instead of (*window, channels, filters)."""
    return np.moveaxis(kernel, (-1, -2), (0, 1))


def _of_gradient(kernel: Array) -> Array:
    """The kernel of the convolution whose gradient is a transposed convolution: shape (*window, filters, channels)."""
    return np.swapaxes(np.flip(kernel, tuple(range(kernel.ndim - 2))), -1, -2)


def _as_matrix(features: int) -> Callable[[Array], Array]:
    """Shape (outputs, inputs), for a kernel whose last axes are of features."""
    return lambda kernel: kernel.reshape(math.prod(kernel.shape[:-features]), math.prod(kernel.shape[-features:])).T


def _torch_general(layer: DenseGeneral) -> Forms:
    """A `torch.nn.Linear` of all contracted axes at once; it has no batch axes."""
    if layer.batch_axis not in ((), []):
        return _SAME
    return _row(Piece(("weight",), "kernel", _as_matrix(len(layer.features))), Piece(("bias",), "bias", np.ravel))


def _keras_bias(*shape: int) -> Forms:
    """A `keras.layers.EinsumDense`, whose bias has axes of length 1."""
    return _row(Piece(("kernel",), "kernel"), Piece(("bias",), "bias", lambda bias: bias.reshape(shape)))


def _keras_general(layer: DenseGeneral) -> Forms:
    """The bias has axes of length 1 between those of batch and features."""
    kernel, features = layer.kernel.shape, layer.features
    count = 1 if isinstance(layer.batch_axis, int) else len(layer.batch_axis)
    if not count:
        return _SAME
    spec: Any = layer.input_spec  # with batch axes it has the number of axes
    return _keras_bias(*kernel[:count], *(1,) * (spec.ndim - len(kernel) + len(features)), *features)


def _keras_einsum(layer: Einsum) -> Forms:
    """The bias has axes of length 1 between those of the kernel."""
    terms = Equation.parse(layer.equation)
    sizes = dict(zip(terms.kernel, layer.shape, strict=True))
    first = next((at for at, letter in enumerate(terms.outputs) if letter in sizes), 0)
    last = terms.outputs[first:]
    return _SAME if ELLIPSIS in last else _keras_bias(*(sizes.get(letter, 1) for letter in last))


def _keras_transpose(layer: ConvTranspose) -> Forms:
    return _SAME if layer.transpose_kernel else _row(Piece(("kernel",), "kernel", _of_gradient))


def _torch_transpose(layer: ConvTranspose) -> Forms:
    """A `torch.nn.ConvTranspose`, the gradient of a convolution: shape (channels, filters / groups, *window)."""
    if layer.transpose_kernel:
        return _TORCH_CONV
    piece = Piece(("weight",), "kernel", lambda kernel: _channels_first(_of_gradient(kernel)))
    parts = [Part(at, layer.groups) for at in range(layer.groups)]
    return _row(*(replace(piece, their_parts=(part._replace(axis=0),), our_parts=(part,)) for part in parts))


def _gates(theirs: str, ours: str, names: str) -> list[Piece]:
    """An array for each gate there, joined along the last axis here."""
    gates = names.split()
    return [Piece((gate, theirs), ours, our_parts=(Part(at, len(gates)),)) for at, gate in enumerate(gates)]


def _flax_cell(inputs: str, states: str, biases: str, *others: Piece) -> Forms:
    of_inputs = (*_gates("kernel", "kernel", inputs), *_gates("bias", "bias", biases))
    return _row(*of_inputs, *_gates("kernel", "recurrent_kernel", states), *others)


def _keras_gates(name: str, row: Sequence[Part] = (), role: Role = "same") -> list[Piece]:
    """The gates of a GRU of Keras, which has the update gate first; a row is one of the two rows of its biases."""
    gates = ((_UPDATE, _RESET), (_RESET, _UPDATE), (_CANDIDATE, _CANDIDATE))
    return [Piece((name,), name, np.atleast_2d, (*row, theirs), (ours,), role) for theirs, ours in gates]


def _keras_kind(layer: RNN) -> str:
    """The name that Keras gives a recurrent layer, such as `"simple_rnn"`."""
    return snake_case(type(layer.cell).__name__.removesuffix("Cell").replace("RNN", "_RNN"))


def _keras_rnn(layer: RNN) -> Forms:
    return _row(Piece((f"{_keras_kind(layer)}_cell",), "cell", also="*"))


def _keras_bidirectional(layer: Bidirectional) -> Forms:
    kind = _keras_kind(layer.forward)
    return _row(*(Piece((f"{way}_{kind}",), way, also=f"{way}_*") for way in ("forward", "backward")))


def _torch_attention(layer: MultiHeadAttention) -> Forms:
    """A `torch.nn.MultiheadAttention`, whose projections are packed; or four of `torch.nn.Linear`.

    It is packed in one matrix if query, key and value have the same number of features, and in three otherwise.
    """
    query, key, value, output = (each.kernel.shape for each in (layer.query, layer.key, layer.value, layer.output))
    separate = _row(query="q_proj", key="k_proj", value="v_proj", output="out_proj")
    if not (query[0] == math.prod(query[1:]) == output[-1] and query[1:] == key[1:] == value[1:]):
        return separate
    thirds = {name: (Part(at, 3, 0),) for at, name in enumerate(("query", "key", "value"))}
    matrix = _as_matrix(2)
    kernels = [Piece(("in_proj_weight",), f"{name}/kernel", matrix, third) for name, third in thirds.items()]
    if not query[0] == key[0] == value[0]:
        kernels = [Piece((f"{name[0]}_proj_weight",), f"{name}/kernel", matrix) for name in thirds]
    biases = [Piece(("in_proj_bias",), f"{name}/bias", np.ravel, third) for name, third in thirds.items()]
    output = Piece(("out_proj", "weight"), "output/kernel", _as_matrix(1))
    return _row(*kernels, *biases, output, Piece(("out_proj", "bias"), "output/bias")) + separate


_TORCH_CONV = _row(Piece(("weight",), "kernel", _channels_first))
_RESET, _UPDATE, _CANDIDATE = (Part(at, 3) for at in range(3))  # the gates of a GRU
_OF_INPUTS, _OF_STATE = Part(0, 2, 0), Part(1, 2, 0)
_TORCH_CELL = (
    Piece(("weight_ih",), "kernel", np.transpose),
    Piece(("weight_hh",), "recurrent_kernel", np.transpose),
    Piece(("bias_ih",), "bias"),
)
_SECOND_BIAS = Piece(("bias_hh",), "bias", role="sum")
_COUNTER = Piece(("num_batches_tracked",), "", role="counter")
_LINEN_STATISTICS = (
    Piece(("mean",), "moving_mean", collection="batch_stats"),
    Piece(("var",), "moving_variance", collection="batch_stats"),
)
_NORMS = (LayerNorm, GroupNorm, InstanceNorm, RMSNorm)

_NNX: dict[type, Forms] = {
    **dict.fromkeys((Dense, DenseGeneral, Einsum, Conv, ConvTranspose, Embedding, RNN), _SAME),
    **dict.fromkeys(_NORMS, _row(gamma="scale", beta="bias")),
    BatchNorm: _row(gamma="scale", beta="bias", moving_mean="mean", moving_variance="var"),
    SimpleRNNCell: _flax_cell("dense_i", "dense_h", "dense_i"),
    LSTMCell: _flax_cell("ii if_ ig io", "hi hf hg ho", "hi hf hg ho") + _flax_cell("dense_i", "dense_h", "dense_h"),
    GRUCell: _flax_cell("dense_i", "dense_h", "dense_i", Piece((), "recurrent_bias", role="zero")),
    Bidirectional: _row(forward="forward_rnn", backward="backward_rnn"),
    MultiHeadAttention: _row(output="out"),
}
_FLAX: dict[type, Forms] = {
    **_NNX,
    BatchNorm: _row(*_LINEN_STATISTICS, gamma="scale", beta="bias"),
    # Weights of nnx can be read as those of linen, too.
    SimpleRNNCell: _flax_cell("i", "h", "i") + _NNX[SimpleRNNCell],
    LSTMCell: _flax_cell("ii if ig io", "hi hf hg ho", "hi hf hg ho") + _NNX[LSTMCell],
    GRUCell: _flax_cell("ir iz in", "hr hz hn", "ir iz in", Piece(("hn", "bias"), "recurrent_bias")) + _NNX[GRUCell],
}
_KERAS: dict[type, Row] = {
    **dict.fromkeys((Dense, Conv, LayerNorm, GroupNorm, BatchNorm), _SAME),
    InstanceNorm: _SAME,  # GroupNormalization(groups=-1)
    RMSNorm: _row(gamma="scale") + _SAME,  # RMSNormalization, and LayerNormalization(rms_scaling=True)
    DenseGeneral: _keras_general,
    Einsum: _keras_einsum,
    ConvTranspose: _keras_transpose,
    Embedding: _row(embedding="embeddings"),
    **dict.fromkeys((SimpleRNNCell, LSTMCell), _row(kernel="kernel", recurrent_kernel="recurrent_kernel", bias="bias")),
    GRUCell: _row(
        *_keras_gates("kernel"),
        *_keras_gates("recurrent_kernel"),
        *_keras_gates("bias", (_OF_INPUTS,)),
        *_keras_gates("bias", (_OF_STATE,), "sum")[:2],
        Piece(("bias",), "recurrent_bias", np.atleast_2d, (_OF_STATE, _CANDIDATE)),
    ),
    RNN: _keras_rnn,
    Bidirectional: _keras_bidirectional,
    MultiHeadAttention: _row(output="attention_output"),
}
_TORCH: dict[type, Row] = {
    Dense: _row(Piece(("weight",), "kernel", np.transpose)),
    DenseGeneral: _torch_general,
    Einsum: _SAME,  # PyTorch has no such layer
    Conv: _TORCH_CONV,
    ConvTranspose: _torch_transpose,
    Embedding: _row(embedding="weight"),
    **dict.fromkeys(_NORMS, _row(gamma="weight", beta="bias")),
    BatchNorm: _row(_COUNTER, gamma="weight", beta="bias", moving_mean="running_mean", moving_variance="running_var"),
    **dict.fromkeys((SimpleRNNCell, LSTMCell), _row(*_TORCH_CELL, _SECOND_BIAS)),
    GRUCell: _row(
        *_TORCH_CELL,
        *(replace(_SECOND_BIAS, their_parts=(gate,), our_parts=(gate,)) for gate in (_RESET, _UPDATE)),
        Piece(("bias_hh",), "recurrent_bias", their_parts=(_CANDIDATE,)),
    ),
    RNN: _row(cell="l0"),
    Bidirectional: _row(
        *(Piece((), "forward"), Piece(("l0",), "forward/cell")),
        *(Piece((), "backward"), Piece(("l0_reverse",), "backward/cell")),
    ),
    MultiHeadAttention: _torch_attention,
}
TABLES: Mapping[str, Mapping[type, Row]] = {"flax": _FLAX, "nnx": _NNX, "keras": _KERAS, "torch": _TORCH}
"""The row of each layer in Flax linen, Flax nnx, Keras 3 and PyTorch."""
