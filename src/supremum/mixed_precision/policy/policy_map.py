"""Policies by path, for the parts of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import jax

from supremum.argument_checks import known_keys, pytree, text
from supremum.errors import OperandError, near_names, shown
from supremum.mixed_precision.path_patterns import check_pattern, matches, scopes_of
from supremum.mixed_precision.policy.policy import Policy, PolicyLike, as_policy
from supremum.mixed_precision.pytrees import path_text
from supremum.typing import PyTree
from supremum.user_frame import warn_user


class UnmatchedPatternWarning(UserWarning):
    """A pattern of a `PolicyMap` matches no path, and has no effect.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     PolicyMap({"decodr/bias": "float32"}).check(["decoder/bias"])
    >>> print(caught[0].message)
    patterns of a PolicyMap match none of the 1 paths: 'decodr/bias' (paths are 'decoder/bias')
    """


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PolicyMap:
    """Policies chosen by path; the first pattern that matches wins.

    A path consists of the names from the root of a tree to a leaf, joined by slashes: `"encoder/0/norm/scale"`. A
    pattern is a regular expression. It must match a whole path, or a whole scope that contains the path:
    `"encoder/.*/norm"` covers `"encoder/0/norm"` and `"encoder/0/norm/scale"`, but not `"encoder/0/normal"`.

    Args:
        patterns: policies, or arguments of `Policy`, by pattern, in the order in which patterns are tried.
        default: the policy of paths that no pattern matches.

    Attributes:
        patterns: pairs of pattern and `Policy`.
        default: a `Policy`.

    Raises:
        ArgumentError: for an invalid regular expression; the message has the pattern.
        OperandError: for patterns that are not a mapping from strings.
        ValueError: for an invalid policy.

    >>> by_path = PolicyMap({"encoder/.*/norm": "float32"}, default="mixed_bfloat16")
    >>> by_path.for_path("encoder/0/norm/scale"), by_path.for_path("encoder/0/normal")
    (Policy('float32'), Policy('mixed_bfloat16'))
    """

    patterns: tuple[tuple[str, Policy], ...]
    default: Policy

    def __init__(self, patterns: Mapping[str, PolicyLike], default: PolicyLike = "float32") -> None:
        if not isinstance(cast("Any", patterns), Mapping):
            raise OperandError(f"the patterns of a PolicyMap must be a mapping to policies, got {shown(patterns)}")
        for pattern in patterns:
            check_pattern(pattern, "a PolicyMap")
        object.__setattr__(self, "patterns", tuple((key, as_policy(policy)) for key, policy in patterns.items()))
        object.__setattr__(self, "default", as_policy(default))

    def pattern_for(self, path: str) -> str | None:
        """Return the first pattern that matches a path; None if no pattern does."""
        scopes = scopes_of(text("path", path))
        return next((pattern for pattern, _ in self.patterns if matches(pattern, scopes)), None)

    def for_path(self, path: str) -> Policy:
        """Return the policy of a path."""
        pattern = self.pattern_for(path)
        return self.default if pattern is None else dict(self.patterns)[pattern]

    def check(self, paths: Iterable[str]) -> None:
        """Warn about patterns that match none of the paths, which are probably misspelt.

        Args:
            paths: every path of a tree.
        """
        paths = list(paths)
        scopes = [scopes_of(path) for path in paths]
        dead = [pattern for pattern, _ in self.patterns if not any(matches(pattern, each) for each in scopes)]
        if not dead:
            return
        known = list(dict.fromkeys(scope for each in scopes for scope in each))
        described = "; ".join(repr(pattern) + _shown(near_names(pattern, known) or paths[:3]) for pattern in dead)
        message = f"patterns of a PolicyMap match none of the {len(paths)} paths: {described}"
        warn_user(message, UnmatchedPatternWarning)

    def cast_to_compute(self, tree: PyTree) -> Any:
        """Cast each leaf of a pytree by `Policy.cast_to_compute` of its path's policy, after a `check` of all paths.

        Leaves that share an `"infer"` policy are cast to their common dtype.

        >>> import jax.numpy as jnp
        >>> by_path = PolicyMap({"norm": "float32"}, default="bfloat16")
        >>> tree = by_path.cast_to_compute(
        ...     {"norm": {"scale": jnp.ones(2)}, "dense": {"kernel": jnp.ones(2)}}
        ... )
        >>> tree["norm"]["scale"].dtype, tree["dense"]["kernel"].dtype
        (dtype('float32'), dtype(bfloat16))
        """
        return self._cast(tree, Policy.cast_to_compute)

    def cast_to_variable(self, tree: PyTree) -> Any:
        """Cast each leaf of a pytree by `Policy.cast_to_variable` of its path's policy, after a `check`."""
        return self._cast(tree, Policy.cast_to_variable)

    def cast_to_output(self, tree: PyTree) -> Any:
        """Cast each leaf of a pytree by `Policy.cast_to_output` of its path's policy, after a `check`."""
        return self._cast(tree, Policy.cast_to_output)

    def _cast(self, tree: PyTree, cast_leaves: Callable[[Policy, Any], Any]) -> Any:
        entries, structure = jax.tree_util.tree_flatten_with_path(pytree("tree", tree))
        paths = [path_text(path) for path, _ in entries]
        self.check(paths)
        leaves = [leaf for _, leaf in entries]
        policies = [self.for_path(path) for path in paths]
        for policy in dict.fromkeys(policies):
            places = [place for place, chosen in enumerate(policies) if chosen == policy]
            for place, leaf in zip(places, cast_leaves(policy, [leaves[place] for place in places]), strict=True):
                leaves[place] = leaf
        return jax.tree.unflatten(structure, leaves)

    def get_config(self) -> dict[str, Any]:
        """Convert the map to data for JSON, with the patterns in order; `from_config` reads it back."""
        patterns = [[pattern, policy.get_config()] for pattern, policy in self.patterns]
        return {"patterns": patterns, "default": self.default.get_config()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PolicyMap:
        """Make the map that `get_config` described.

        Raises:
            ValueError: for an unknown or missing key, or an invalid value.
            OperandError: for a value of the wrong type.
        """
        entries = known_keys("policy map's config", config, ("patterns", "default"))
        pairs = entries["patterns"]
        if not isinstance(pairs, (list, tuple)) or not all(map(_is_entry, cast("list[Any]", pairs))):
            raise OperandError(f"patterns in a policy map's config must be (pattern, policy) pairs, got {shown(pairs)}")
        patterns = {pattern: Policy.from_config(policy) for pattern, policy in cast("list[Any]", pairs)}
        return cls(patterns, Policy.from_config(entries["default"]))

    def __repr__(self) -> str:
        return f"PolicyMap({dict(self.patterns)!r}, default={self.default!r})"


def _is_entry(pair: object) -> bool:
    if not isinstance(pair, (list, tuple)) or len(cast("list[Any]", pair)) != 2:
        return False
    return isinstance(pair[0], str) and isinstance(pair[1], Mapping)


def _shown(paths: Iterable[str]) -> str:
    listed = ", ".join(map(repr, paths))
    return f" (paths are {listed})" if listed else ""
