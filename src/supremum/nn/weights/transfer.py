"""Load the weights of a model, its own or those of the same model in another library, and export them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, flag, mapping, text
from supremum.arrays import converted
from supremum.errors import ArgumentError, UnknownNameError, listed, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn.layer import Layer, as_layer
from supremum.nn.stateless_call import assign_variables
from supremum.nn.variables import UninitializedError, Variable
from supremum.nn.weights.conversions import TABLES
from supremum.nn.weights.fitting import dtype_problem
from supremum.nn.weights.mismatches import fitting_names, mismatch, name_problems
from supremum.nn.weights.pieces import Array, Piece, Place
from supremum.nn.weights.plans import WeightPlan, plan_for, plan_of
from supremum.nn.weights.trees import name_of, place_of, read_tree, write_tree
from supremum.typing import PyTree

# The value of a counter, which no variable holds.
_COUNTER = np.zeros((), "int64")


def load_variables(
    layer: Layer,
    values: PyTree,
    source: str | None = None,
    *,
    names: Mapping[str, str] | None = None,
    cast: bool = False,
) -> None:
    """Assign values to the variables of a built layer, all of them or none.

    Weights of another library are transposed, split and joined as each layer needs, and must all be used. The guide
    "Weights from other libraries" lists what is converted.

    Args:
        layer: the layer.
        values: without `source`, the values by path, as `layer.variables` has them, in dtypes that the rules convert to
            the stored dtypes without loss. Otherwise the weights of the library in a nested dict, a dict by name or
            path, or the path of a safetensors file: for `"flax"` the variables of a linen module or
            `nnx.state(module)`; for `"keras"` `{w.path: w.numpy() for w in model.weights}`, or the list
            `model.get_weights()`, which is taken in order; for `"torch"` `module.state_dict()`.
        source: the library that the values are from, `"flax"`, `"nnx"`, `"keras"` or `"torch"`; None for values by
            path.
        names: the names of layers in the library by their path here, such as `{"dense_1": "2"}`; the layers inside
            follow. Other layers must have the same name. A prefix that all names in the library share is ignored.
        cast: whether to round floating-point values of the library that the dtype of their variable does not hold
            exactly.

    Raises:
        UnknownNameError: for a path that the layer does not have, or an unknown library.
        ArgumentError: for a different shape or a missing path in values by path.
        WeightMismatchError: for weights of a library that do not fit; the message lists all of them with the expected
            shapes and the nearest names.

    >>> from supremum import nn
    >>> layer = nn.Dense(1)
    >>> nn.initialize(layer, jnp.ones((1, 2)))
    >>> nn.load_variables(layer, {"kernel": jnp.ones((2, 1)), "bias": jnp.ones(1)})
    >>> layer(jnp.ones((1, 2)))
    Array([[3.]], dtype=float32)
    >>> nn.load_variables(
    ...     layer, {"weight": jnp.ones((1, 2)), "bias": jnp.zeros(1)}, "torch"
    ... )
    >>> layer(jnp.ones((1, 2)))
    Array([[2.]], dtype=float32)
    """
    if source is None:
        if names is not None or flag("cast", cast):
            raise ArgumentError("names and cast need the library of the values; use source='flax'")
        assign_variables(layer, values)
        return
    library, places = _checked(layer, source, names)
    is_rounded = flag("cast", cast)
    if isinstance(values, (list, tuple)) and library == "keras":
        values = _by_name(plan_of(layer, library, places, {}), values)
    plan = plan_for(layer, library, places, read_tree(values, library))
    problems = name_problems(plan)
    if problems:
        raise mismatch(plan, problems, fitting_names(plan))
    loaded: dict[str, Any] = {}
    pieces_of: dict[str, list[Piece]] = {}
    for piece in plan.pieces:
        pieces_of.setdefault(piece.ours, []).append(piece)
    for path, variable in plan.variables.items():
        try:
            loaded[path] = _value(plan, pieces_of[path], variable, is_rounded)
        except ArgumentError as error:
            problems.append(str(error))
    if problems:
        raise mismatch(plan, problems)
    assign_variables(layer, loaded)


def built_variables(layer: Layer) -> dict[str, Variable]:
    """The variables of a layer by path.

    Raises:
        UninitializedError: if it has none yet.
    """
    if not as_layer(layer).built:
        raise UninitializedError(f"{shown(layer)} has no variables yet; create them with nn.initialize(layer, x)")
    return layer.variables


def _checked(layer: Layer, library: str, names: Any) -> tuple[str, dict[str, Place]]:
    """Check the library, that the layer is built, and the names of layers, and split these."""
    library = chosen("library", library, TABLES)
    built_variables(layer)
    paths = layer.layers_by_path()
    places: dict[str, Place] = {}
    for path, name in ({} if names is None else mapping("names", names, "{'dense': '0'}")).items():
        if path not in paths:
            raise UnknownNameError("layer", path, [each for each in paths if each], repr(layer))
        places[path] = place_of(text(f"names[{path!r}]", name), library)
    return library, places


def _by_name(plan: WeightPlan, values: Sequence[Any]) -> dict[str, Any]:
    """Name a list of arrays, which are in the order of the layers."""
    names = [name_of(place, plan.library) for place in plan.shapes()]
    if len(names) != len(values):
        raise mismatch(plan, [f"the list must have {len(names)} arrays, for {listed(names)}, got {len(values)}"])
    return dict(zip(names, values, strict=True))


def _value(plan: WeightPlan, pieces: Sequence[Piece], variable: Variable, is_rounded: bool) -> jax.Array:
    """Join the pieces of a variable, and cast the result to its dtype; sums are in at least float32.

    Raises:
        ArgumentError: if the arrays have several dtypes, or one that does not fit the variable.
    """
    wanted = as_format(variable.true_dtype)
    if pieces[0].role == "zero":
        return jnp.zeros(variable.shape, wanted.dtype)
    names = list(dict.fromkeys(shown(name_of(piece.theirs, plan.library)) for piece in pieces))
    formats = {str(as_format(plan.arrays[piece.theirs].dtype)) for piece in pieces}
    if len(formats) > 1:
        raise ArgumentError(f"{' and '.join(names)} must have one dtype, got {listed(sorted(formats))}")
    is_sum = any(piece.role == "sum" for piece in pieces)
    dtype = as_format(formats.pop()).dtype
    value = np.zeros(variable.shape, at_least_float32(dtype) if is_sum else dtype)
    for piece in pieces:
        piece.load(plan.arrays[piece.theirs], value)
    problem = dtype_problem(value, wanted, is_rounded)
    if problem:
        raise ArgumentError(f"{names[0]} is {as_format(value.dtype)} and {shown(pieces[0].ours)} {wanted}: {problem}")
    return jnp.array(converted(value, wanted.dtype, copy=False), wanted.dtype)


def export_variables(layer: Layer, to: str, *, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Convert the variables of a built layer to the weights of the same model in another library.

    `nn.load_variables` with the same library and names converts them back exactly.

    Args:
        layer: the layer.
        to: the library, `"flax"` for Flax linen, `"nnx"`, `"keras"` or `"torch"`.
        names: the names of layers in the library by their path here, as for `nn.load_variables`.

    Returns:
        The stored values in the dtypes they are stored in. For `"flax"` the variables of a linen module; for `"nnx"` a
        dict for `nnx.replace_by_pure_dict`; for `"keras"` NumPy arrays by path, in the order of
        `keras.Model.set_weights`; for `"torch"` a `state_dict` of tensors.

    Raises:
        UnknownNameError: for an unknown library, or a path that the layer does not have.
        ArgumentError: if two layers get the same name, or a value does not exist in the library.
        UninitializedError: if the layer has no weights yet.
        MissingPackageError: for `"torch"` without PyTorch.

    >>> import jax.numpy as jnp
    >>> from supremum import nn
    >>> layer = nn.BatchNorm()
    >>> nn.initialize(layer, jnp.ones((2, 3)))
    >>> tree = nn.export_variables(layer, "flax")
    >>> {collection: list(weights) for collection, weights in tree.items()}
    {'params': ['scale', 'bias'], 'batch_stats': ['mean', 'var']}
    """
    library, places = _checked(layer, to, names)
    plan = plan_of(layer, library, places, {})
    values = {path: np.asarray(variable.read_stored()) for path, variable in plan.variables.items()}
    pieces_of: dict[Place, list[Piece]] = {}
    for piece in plan.pieces:
        if piece.role != "zero":
            pieces_of.setdefault(piece.theirs, []).append(piece)
        elif np.any(values[piece.ours]):
            raise ArgumentError(
                f"the GRU cell of Flax nnx has no recurrent bias, and here it is not zero; use to='flax' for linen, "
                f"which has it, or assign zeros to {piece.ours} first"
            )
    arrays: dict[Place, Array] = {}
    for place, pieces in pieces_of.items():
        if len(pieces) != math.prod(part.of for part in pieces[0].their_parts):  # some are of another layer
            name = shown(name_of(place, library))
            raise ArgumentError(f"two weights get the name {name}; give the layers different names=")
        ours = [values.get(piece.ours, _COUNTER) for piece in pieces]
        array = np.zeros(pieces[0].their_shape(ours[0].shape), np.result_type(*ours))
        for piece, value in zip(pieces, ours, strict=True):
            piece.export(value, array)
        arrays[(pieces[0].collection, *place) if library == "flax" else place] = array
    return write_tree(arrays, library)
