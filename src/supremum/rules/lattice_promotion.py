"""Where operands meet in an order on formats and weak kinds: its joins, with an account of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, DType, as_format
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, Operand, weak_name


def lattice_verdict(
    lattice: Lattice,
    operands: Sequence[Operand],
    *,
    defaults: Mapping[str, str],
    held_as: Mapping[str, str],
    held_because: str,
    joins_defaults: bool,
) -> Verdict:
    """The join of operands, with its account; a refusal where there is none.

    Args:
        lattice: the order; nodes are names of formats and of weak kinds.
        operands: what meets.
        defaults: the format a weak kind takes when nothing stronger is around.
        held_as: the format the runtime really holds where it differs from the one named.
        held_because: half a sentence on why.
        joins_defaults: whether weak operands alone meet as the formats that hold them, rather than as weak kinds.
    """
    held = [
        held_format(operand.name if operand.dtype is None else str(operand.dtype), defaults, held_as)
        for operand in operands
    ]
    narrowed = [
        f"{operand.name} is held as {name}: {held_because}"
        for operand, name in zip(operands, held, strict=True)
        if operand.dtype is not None and name != str(operand.dtype)
    ]
    all_weak = all(operand.weak for operand in operands)
    # Weak operands alone meet as the formats that hold them would, and stay weak, as in JAX unless it is strict
    # (jax/_src/dtypes.py, _lattice_result_type).
    by_format = all_weak and (joins_defaults or len(operands) == 1)
    nodes = [
        weak_name(operand.category) if operand.weak and not by_format else name
        for operand, name in zip(operands, held, strict=True)
    ]
    unknown = sorted({node for node in nodes if node not in lattice.edges})
    if unknown:
        return Verdict(None, (), (f"the lattice of these rules does not contain {', '.join(unknown)}",))
    met = lattice.join(*nodes)
    if met is None:
        return Verdict(None, (), (*narrowed, _no_join(lattice, nodes)))
    weak = all_weak or met in WEAK_NAMES
    dtype = as_format(held_format(met, defaults, held_as)).dtype
    paths = tuple(lattice.path(node, met) for node in nodes)
    reason = (*narrowed, *_account(nodes, met, dtype, paths, all_weak))
    return Verdict(ResultType(dtype, weak), (dtype,) * len(operands), reason, paths)


def held_format(name: str, defaults: Mapping[str, str], held_as: Mapping[str, str]) -> str:
    """The format that a format or weak kind is held in.

    Args:
        name: its name.
        defaults: the formats of weak kinds.
        held_as: the formats that others are held in.
    """
    default = defaults.get(name, name)
    return held_as.get(name, held_as.get(default, default))


def _account(
    nodes: list[str], met: str, dtype: DType, paths: tuple[tuple[str, ...], ...], all_weak: bool
) -> tuple[str, ...]:
    if len(set(nodes)) == 1:
        sentences = [f"the operands already have this {'kind' if met in WEAK_NAMES else 'dtype'}"]
    elif all_weak:
        sentences = [f"all operands are weak: their default dtypes meet in {met}, and the result stays weak"]
    else:
        climbs = dict.fromkeys(" -> ".join(path) for path in paths if len(path) > 1)
        sentences = [f"{met} is the least upper bound: " + ", ".join(climbs)]
    if met in WEAK_NAMES:
        sentences.append(f"{met} is a weak kind and is held as {dtype} until it meets a stronger operand")
    return tuple(sentences)


def _no_join(lattice: Lattice, nodes: list[str]) -> str:
    distinct = " and ".join(dict.fromkeys(nodes))
    common = lattice.upper_bounds(*nodes)
    if not common:
        return f"the lattice has no upper bound of {distinct}"
    candidates = ", ".join(lattice.minimal(common))
    return f"{distinct} have no least upper bound: {candidates} are all smallest upper bounds"


def weak_defaults(*formats: str) -> dict[str, str]:
    """The default formats of the weak kinds, lowest category first: `weak_defaults("int64", "float64", ...)`."""
    return {weak_name(category): name for category, name in zip(CATEGORIES[1:], formats, strict=True)}
