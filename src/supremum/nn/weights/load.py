"""Load the weights of a model: its own, or those of the same model in another library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from supremum.argument_checks import chosen, flag
from supremum.arrays import converted
from supremum.errors import ArgumentError, listed, shown
from supremum.formats import as_format
from supremum.nn.layer import Layer, as_layer
from supremum.nn.stateless_call import assign_variables
from supremum.nn.variables import UninitializedError, Variable
from supremum.nn.weights.conversions import LIBRARIES
from supremum.nn.weights.fitting import dtype_problem
from supremum.nn.weights.mismatches import mismatch, name_problems
from supremum.nn.weights.plans import Plan, Search, checked_names, plan_of
from supremum.nn.weights.steps import Array
from supremum.nn.weights.suggestions import fitting_names
from supremum.nn.weights.trees import Place, host_array, name_of, read_tree


def load_variables(
    layer: Layer,
    values: Any,
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
            raise ArgumentError(f"names and cast need the library of the values; use source={shown(LIBRARIES[0])}")
        assign_variables(layer, values)
        return
    library = chosen("library", source, LIBRARIES)
    is_rounded = flag("cast", cast)
    variables = built_variables(layer)
    search = Search(library, checked_names(layer, names, library))
    if isinstance(values, (list, tuple)) and library == "keras":
        given, plan = _in_order(layer, search, values)
    else:
        given, plan = _matched(layer, search, read_tree(values, library))
    problems = name_problems(plan, given, library, {path: variable.shape for path, variable in variables.items()})
    if problems:
        raise mismatch(layer, library, problems, fitting_names(layer, search, plan, given))
    found: dict[str, Any] = {}
    for placed in plan.weights:
        arrays = [given[place] for place in placed.theirs]
        formats = {str(as_format(array.dtype)) for array in arrays}
        if len(formats) > 1:
            named = " and ".join(shown(name_of(place, library)) for place in placed.theirs)
            problems.append(f"{named} must have one dtype, got {listed(sorted(formats))}")
            continue
        for path, array in zip(placed.ours, placed.weight.load(arrays), strict=True):
            wanted = as_format(variables[path].true_dtype)
            problem = dtype_problem(array, wanted, is_rounded)
            if problem:
                name = shown(name_of(placed.theirs[0], library))
                problems.append(f"{name} is {as_format(array.dtype)} and {shown(path)} {wanted}: {problem}")
            else:
                found[path] = jnp.array(converted(array, wanted.dtype, copy=False), wanted.dtype)
    if problems:
        raise mismatch(layer, library, problems, {})
    assign_variables(layer, found)


def built_variables(layer: Layer) -> dict[str, Variable]:
    """The variables of a layer by path.

    Raises:
        UninitializedError: if it has none yet.
    """
    if not as_layer(layer).built:
        raise UninitializedError(f"{shown(layer)} has no variables yet; create them with nn.initialize(layer, x)")
    return layer.variables


def _in_order(layer: Layer, search: Search, values: Sequence[Any]) -> tuple[dict[Place, Array], Plan]:
    """Take a list of arrays in the order of the layers."""
    plan = plan_of(layer, search)
    places = plan.places
    if len(places) != len(values):
        names = listed(name_of(place, search.library) for place in places)
        problem = f"the list must have {len(places)} arrays, for {names}, got {len(values)}"
        raise mismatch(layer, search.library, [problem], {})
    arrays = [host_array(value, f"weights[{number}]") for number, value in enumerate(values)]
    return dict(zip(places, arrays, strict=True)), plan


def _matched(layer: Layer, search: Search, tree: dict[Place, Array]) -> tuple[dict[Place, Array], Plan]:
    """Plan for the given arrays; if more of them match without the first parts that all names share, drop these."""
    given, best = tree, plan_of(layer, replace(search, given=tree.keys()))
    most = _count(best, tree)
    while most < len(tree) and len({place[0] for place in tree}) == 1 and all(len(place) > 1 for place in tree):
        tree = {place[1:]: array for place, array in tree.items()}
        plan = plan_of(layer, replace(search, given=tree.keys()))
        if _count(plan, tree) > most:
            given, best, most = tree, plan, _count(plan, tree)
    return given, best


def _count(plan: Plan, given: Mapping[Place, Array]) -> int:
    return sum(place in given for place in plan.places)
