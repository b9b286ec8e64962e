"""Set the policies of a model's layers by path."""

from __future__ import annotations

from supremum.errors import ArgumentError, shown
from supremum.mixed_precision import PolicyMap
from supremum.nn.layer import Layer


def apply_policy_map(model: Layer, policy_map: PolicyMap, *, warns: bool = True) -> bool:
    """Give each layer of a model the policy of its path.

    A matching pattern always decides. The default is for layers without a match that were given no policy, neither
    directly nor by a model inside this one. Layers that were built for a different policy are built again.

    Args:
        model: the model; its own policy is the map's default.
        policy_map: the policies.
        warns: whether to warn about patterns that match nothing.

    Returns:
        Whether the policy of any layer changed.

    Raises:
        ArgumentError: for a layer that already has weights of a different policy.
    """
    layers = {path: layer for path, layer in model.layers_by_path().items() if path}
    for layer in layers.values():
        if layer.policy_map is not None:  # an inner model decides for its own layers
            apply_policy_map(layer, layer.policy_map, warns=False)
    if warns:
        policy_map.check([*layers, *model.variables])
    changed = False
    for path, layer in layers.items():
        if layer.chose_policy and policy_map.pattern_for(path) is None:
            continue
        policy = policy_map.for_path(path)
        is_other = layer.dtype_policy != policy
        if is_other and any(variable.is_initialized for variable in layer.variables.values()):
            raise ArgumentError(
                f"layer {shown(path)} already has weights of the policy {shown(layer.dtype_policy.name)}, but the "
                f"model asks for {shown(policy.name)}; make the model before nn.initialize, or leave out its dtype"
            )
        layer.adopt_policy(policy)
        changed = changed or is_other
    if changed:
        for layer in reversed(layers.values()):  # the inner ones first
            layer.trace_again()
    return changed
