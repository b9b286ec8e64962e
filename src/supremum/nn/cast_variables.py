"""Narrow the weights of a model, for inference."""

from __future__ import annotations

from supremum.mixed_precision import NarrowingReport, Policy, PolicyMap, narrow
from supremum.nn.layer import Layer, as_layer
from supremum.nn.variables import replace_value
from supremum.typing import DTypeLike


def cast_variables(layer: Layer, policy: Policy | PolicyMap | DTypeLike) -> NarrowingReport:
    """Store the weights of a model in narrower dtypes, for inference.

    Layers compute in the same dtypes as before, and cast the weights to them. Weights that a layer stores in at least
    float32 under every policy, such as the statistics of norms, stay as they are: those whose dtype `add_weight` was
    given. To train the model on, compile it again, and expect steps smaller than a unit in the last place to be lost.

    Args:
        layer: a model or layer with weights; it is changed.
        policy: a dtype such as `"bfloat16"`, a policy with narrow variables, or a `PolicyMap`, which chooses by path,
            such as `"dense/kernel"`.

    Returns:
        The report of `mixed_precision.narrow`, with the largest relative error of each weight.

    Raises:
        UninitializedError: if there are no weights yet; a `RuntimeError`.
        ArgumentError: for a mixed policy, which stores variables in float32; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> from supremum import nn
    >>> model = nn.SequentialNetwork(
    ...     [nn.Dense(4), nn.BatchNorm(), nn.Dense(2)], dtype="mixed_bfloat16"
    ... )
    >>> nn.initialize(model, jnp.ones((1, 3)))
    >>> report = cast_variables(model, "bfloat16")
    >>> (
    ...     model[0].kernel.dtype,
    ...     model[1].gamma.dtype,
    ...     report.bytes_before,
    ...     report.bytes_after,
    ... )
    (dtype(bfloat16), dtype('float32'), 104, 52)
    """
    variables = {path: each for path, each in as_layer(layer).variables.items() if each.follows_policy}
    tree, report = narrow({path: variable.read_stored() for path, variable in variables.items()}, policy)
    for path, variable in variables.items():
        replace_value(variable, tree[path])
    return report
