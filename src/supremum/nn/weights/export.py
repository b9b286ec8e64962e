"""Export the weights of a model to another library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, shown
from supremum.nn.layer import Layer
from supremum.nn.weights.conversions import LIBRARIES
from supremum.nn.weights.load import built_variables
from supremum.nn.weights.plans import Search, checked_names, plan_of
from supremum.nn.weights.steps import Array
from supremum.nn.weights.trees import Place, name_of, write_tree


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
    library = chosen("library", to, LIBRARIES)
    variables = built_variables(layer)
    plan = plan_of(layer, Search(library, checked_names(layer, names, library)))
    found: dict[Place, tuple[Array, str]] = {}
    for placed in plan.weights:
        arrays = placed.weight.export([np.asarray(variables[path].read_stored()) for path in placed.ours])
        for place, array in zip(placed.theirs, arrays, strict=True):
            _add(found, place, array, placed.weight.collection, library)
    for place, value in plan.buffers:
        _add(found, place, np.asarray(value), "", library)
    return write_tree(found, library)


def _add(found: dict[Place, tuple[Array, str]], place: Place, array: Array, collection: str, library: str) -> None:
    if place in found:
        raise ArgumentError(
            f"two weights get the name {shown(name_of(place, library))}; give the layers different names="
        )
    found[place] = (array, collection)
