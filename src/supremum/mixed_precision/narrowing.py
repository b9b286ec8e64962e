"""Narrow the arrays of a checkpoint for inference, and report what that changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, shown
from supremum.formats import DType, as_format, at_least_float32
from supremum.mixed_precision.policy.policy import Policy, PolicyLike, as_policy
from supremum.mixed_precision.policy.policy_map import PolicyMap
from supremum.mixed_precision.pytrees import is_floating, path_text
from supremum.render import aligned
from supremum.typing import PyTree, SupportsArray


@dataclass(frozen=True, slots=True)
class NarrowedArray:
    """What narrowing changed in one array.

    Args:
        path: its path, such as `"dense/kernel"`.
        before: the name of its dtype before.
        after: the name of its dtype now.
        relative_error: the largest relative error of an element that is finite and not zero: 1 if an element became
            zero, inf if one is no longer finite.
        bytes_before: its bytes before.
        bytes_after: its bytes now.

    >>> import jax.numpy as jnp
    >>> _, report = narrow({"kernel": jnp.asarray([1.0, 1e-9])}, "float16")
    >>> report.rows[0].path, report.rows[0].after, report.rows[0].relative_error
    ('kernel', 'float16', 1.0)
    """

    path: str
    before: str
    after: str
    relative_error: float
    bytes_before: int
    bytes_after: int


_TITLES = ("path", "before", "after", "largest relative error", "bytes")


@dataclass(frozen=True, slots=True)
class NarrowingReport:
    """What narrowing changed in each array of a tree; `print` it.

    Args:
        rows: the narrowed arrays; arrays that stayed as they were have no row.
        bytes_before: the bytes of all arrays of the tree before.
        bytes_after: the bytes of all arrays of the tree now.

    >>> import jax.numpy as jnp
    >>> _, report = narrow({"kernel": jnp.ones(4), "steps": jnp.arange(4)}, "bfloat16")
    >>> len(report.rows), report.bytes_before, report.bytes_after
    (1, 32, 24)
    """

    rows: tuple[NarrowedArray, ...]
    bytes_before: int
    bytes_after: int

    @property
    def relative_error(self) -> float:
        """The largest relative error of all arrays; 0 if no array was narrowed."""
        return max((row.relative_error for row in self.rows), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        arrays = [asdict(row) for row in self.rows]
        return {"arrays": arrays, "bytes_before": self.bytes_before, "bytes_after": self.bytes_after}

    def __str__(self) -> str:
        lines = [
            (row.path, row.before, row.after, f"{row.relative_error:.2g}", f"{row.bytes_after:,}") for row in self.rows
        ]
        table = aligned([_TITLES, *lines], right=frozenset({3, 4})) + "\n\n" if lines else ""
        counted = "1 array" if len(lines) == 1 else f"{len(lines)} arrays"
        return f"{table}{counted} narrowed, {self.bytes_before:,} bytes became {self.bytes_after:,}"

    __repr__ = __str__


class Narrowed(NamedTuple):
    """The result of `narrow`.

    Args:
        tree: the tree with narrow arrays.
        report: what changed.

    >>> import jax.numpy as jnp
    >>> tree, report = narrow({"kernel": jnp.ones((2, 2))}, "bfloat16")
    >>> tree["kernel"].dtype, report.relative_error
    (dtype(bfloat16), 0.0)
    """

    tree: Any
    report: NarrowingReport


def narrow(tree: PyTree, policy: PolicyLike | PolicyMap) -> Narrowed:
    """Narrow the real floating arrays of a checkpoint to the variable dtypes of policies, for inference.

    An array is never widened, and never changes between two dtypes of one width. Integers, bools, complex numbers and
    Python numbers stay as they are.

    Args:
        tree: any pytree of arrays, with values that are not traced; it does not change.
        policy: a dtype such as `"bfloat16"`, a `Policy`, or a `PolicyMap`, which chooses by path.

    Returns:
        The narrowed tree, and a report with the largest relative error of each array.

    Raises:
        ArgumentError: for a mixed policy, which stores variables in float32, and for traced arrays; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> by_path = PolicyMap({"norm": "float32"}, default="bfloat16")
    >>> weights = {
    ...     "norm": {"scale": jnp.full(3, 1.1)},
    ...     "dense": {"kernel": jnp.full((3, 4), 1.1)},
    ... }
    >>> narrowed, report = narrow(weights, by_path)
    >>> narrowed["norm"]["scale"].dtype, narrowed["dense"]["kernel"].dtype
    (dtype('float32'), dtype(bfloat16))
    >>> print(report)
    path          before   after     largest relative error  bytes
    dense/kernel  float32  bfloat16                  0.0014     24
    <BLANKLINE>
    1 array narrowed, 60 bytes became 36
    """
    by_path = policy if isinstance(policy, PolicyMap) else PolicyMap({}, _for_storage(as_policy(policy)))
    entries, structure = jax.tree_util.tree_flatten_with_path(pytree("tree", tree))
    paths = [path_text(path) for path, _ in entries]
    by_path.check(paths)
    leaves: list[Any] = []
    rows: list[NarrowedArray] = []
    for path, (_, leaf) in zip(paths, entries, strict=True):
        new = _narrowed(path, leaf, by_path.for_path(path).variable_dtype)
        leaves.append(new)
        if new is not leaf:
            before, after = (as_format(each.dtype).name for each in (leaf, new))
            rows.append(NarrowedArray(path, before, after, _relative_error(leaf, new), leaf.nbytes, new.nbytes))
    report = NarrowingReport(tuple(rows), _bytes([leaf for _, leaf in entries]), _bytes(leaves))
    return Narrowed(jax.tree.unflatten(structure, leaves), report)


def _bytes(leaves: list[Any]) -> int:
    return sum(getattr(leaf, "nbytes", 0) for leaf in leaves)


def _for_storage(policy: Policy) -> Policy:
    if policy.compute_dtype is not None and policy.should_cast_variables:
        compute = as_format(policy.compute_dtype)
        raise ArgumentError(
            f"narrow() needs a policy with narrow variables, got {shown(policy.name)}, which stores them in "
            f"{as_format(policy.variable_dtype)}; use {shown(compute.name)}"
        )
    return policy


def _narrowed(path: str, leaf: Any, dtype: DType) -> Any:
    if not is_floating(leaf):
        return leaf
    if isinstance(leaf, Tracer):
        raise ArgumentError(
            f"narrow() reports the values it changes, but {shown(path)} is traced; call it outside of jax.jit"
        )
    target = as_format(dtype)
    if target.bits >= as_format(leaf.dtype).bits:
        return leaf
    with np.errstate(over="ignore"):  # the report has an infinite error
        return leaf.astype(dtype)


def _relative_error(before: SupportsArray, after: SupportsArray) -> float:
    errors = [0.0]
    for old, new in zip(_blocks(before), _blocks(after), strict=True):
        wide = at_least_float32(old.dtype)
        x, y = old.astype(wide), new.astype(wide)
        with np.errstate(all="ignore"):
            error = np.abs(y - x) / np.abs(x)
        error = np.where(np.isfinite(y), error, np.inf)[np.isfinite(x) & (x != 0)]
        errors.append(float(error.max(initial=0.0)))
    return max(errors)


def _blocks(array: SupportsArray) -> Iterator[np.ndarray[Any, Any]]:
    """The values on the host; of an array that other processes hold too, those of this process."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        yield from (np.asarray(shard.data) for shard in array.addressable_shards)
    else:
        yield np.asarray(array)
