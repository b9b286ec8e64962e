"""Rule sets that are lattices: edges in a dict, joins computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, DType, as_format
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, Operand, weak_name
from supremum.operations import Operation
from supremum.rules.rule_set import RuleSet


@dataclass(frozen=True, eq=False)
class LatticeRuleSet(RuleSet):
    """Rules that are the joins of an order on formats and weak kinds.

    Args:
        name, summary, source: as for every rule set.
        lattice: the order; nodes are names of formats and of weak kinds.
        defaults: the format a weak kind takes when nothing stronger is around.
        held_as: the format the runtime really holds where it differs from the one named, such as int32 for int64 in
            JAX with x64 off; under the name of a weak kind where only its default differs. Questions about types alone
            ignore it.
        held_because: half a sentence on why, for explanations.
        joins_defaults: whether weak operands alone meet as the formats that hold them, rather than as weak kinds.
    """

    weak_arrays: ClassVar[bool] = True

    lattice: Lattice
    defaults: Mapping[str, str]
    held_as: Mapping[str, str] = field(default_factory=dict[str, str])
    held_because: str = ""
    joins_defaults: bool = True

    def _meet(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        held_as: Mapping[str, str] = {} if operation.types_only else self.held_as
        held = [
            self._as_held(operand.name if operand.dtype is None else str(operand.dtype), held_as)
            for operand in operands
        ]
        narrowed = [
            f"{operand.name} is held as {name}: {self.held_because}"
            for operand, name in zip(operands, held, strict=True)
            if operand.dtype is not None and name != str(operand.dtype)
        ]
        all_weak = all(operand.weak for operand in operands)
        # Weak operands alone meet as the formats that hold them would, and stay weak, as in JAX unless it is strict
        # (jax/_src/dtypes.py, _lattice_result_type).
        by_format = all_weak and (self.joins_defaults or len(operands) == 1)
        nodes = [
            weak_name(operand.category) if operand.weak and not by_format else name
            for operand, name in zip(operands, held, strict=True)
        ]
        unknown = sorted({node for node in nodes if node not in self.lattice.edges})
        if unknown:
            return Verdict(None, (), (f"{', '.join(unknown)} is not in the lattice of these rules",))
        met = self.lattice.join(*nodes)
        if met is None:
            return Verdict(None, (), (*narrowed, self._no_join(nodes)))
        weak = all_weak or met in WEAK_NAMES
        dtype = as_format(self._as_held(met, held_as)).dtype
        paths = tuple(self.lattice.path(node, met) for node in nodes)
        reason = (*narrowed, *self._account(nodes, met, dtype, paths, all_weak))
        return Verdict(ResultType(dtype, weak), (dtype,) * len(operands), reason, paths)

    def _as_held(self, name: str, held_as: Mapping[str, str]) -> str:
        """The format that a format or weak kind is held in."""
        default = self.defaults.get(name, name)
        return held_as.get(name, held_as.get(default, default))

    def _account(
        self, nodes: list[str], met: str, dtype: DType, paths: tuple[tuple[str, ...], ...], all_weak: bool
    ) -> tuple[str, ...]:
        if len(set(nodes)) == 1:
            sentences = ["a dtype meets itself in itself"]
        elif all_weak:
            sentences = [f"all operands are weak: their default dtypes meet in {met}, and the result stays weak"]
        else:
            climbs = dict.fromkeys(" -> ".join(path) for path in paths if len(path) > 1)
            sentences = [f"{met} is the least upper bound: " + ", ".join(climbs)]
        if met in WEAK_NAMES:
            sentences.append(f"{met} has no dtype of its own and is held as {dtype} until a stronger operand comes")
        return tuple(sentences)

    def _no_join(self, nodes: list[str]) -> str:
        distinct = " and ".join(dict.fromkeys(nodes))
        common = self.lattice.upper_bounds(*nodes)
        if not common:
            return f"nothing in the lattice is above both {distinct}"
        candidates = ", ".join(self.lattice.minimal(common))
        return f"{distinct} have no least upper bound: {candidates} are above both and not comparable"


def weak_defaults(*formats: str) -> dict[str, str]:
    """The default formats of the weak kinds, lowest category first: `weak_defaults("int64", "float64", ...)`."""
    return {weak_name(category): name for category, name in zip(CATEGORIES[1:], formats, strict=True)}
