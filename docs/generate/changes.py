"""The changes between two rule sets for an operation: groups of pairs with the same change, and what to type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generate.markup import codes
from supremum.analysis.comparison import Comparison, compare
from supremum.analysis.tables import STANDARD_TYPES
from supremum.decisions import Decision
from supremum.fix import Fix, FixCast
from supremum.formats import as_format
from supremum.operands import WEAK_NAMES, as_operand
from supremum.operations import Result, as_operation
from supremum.rules import get_rules

Pair = tuple[str, str]
_RANK = {name: place for place, name in enumerate(STANDARD_TYPES)}


@dataclass(frozen=True, slots=True)
class Change:
    """Pairs for which the answer of both rule sets is the same.

    Args:
        before, after: the dtypes, or `"refused"`.
        how: as in `Comparison.differing`; `"compared"` if operands are compared in a different dtype.
        pairs: the pairs.
        to_type: casts of the first pair after which the new rule set gives the old dtype; the same casts work for all
            other pairs. Empty if the old rule set refused, or if no casts work.
    """

    before: str
    after: str
    how: str
    pairs: tuple[Pair, ...]
    to_type: str


def types_of(rules: str) -> tuple[str, ...]:
    """Return the standard types that a rule set knows: those that promote with themselves.

    >>> types_of("paddle")[:4]
    ('bool', 'uint8', 'int8', 'int16')
    """
    decide = get_rules(rules).decide
    return tuple(name for name in STANDARD_TYPES if name in WEAK_NAMES or decide(None, (as_operand(name),) * 2))


def with_number(pair: Pair) -> bool:
    """Return whether a pair is an array and a Python number."""
    return (pair[0] in WEAK_NAMES) != (pair[1] in WEAK_NAMES)


def changes(before: str, after: str, operation: str) -> list[Change]:
    """Return the groups, silent changes first, and large groups before small ones.

    Args:
        before: name of a rule set.
        after: name of the other rule set.
        operation: name of an operation of two operands, or `"result_type"`.

    >>> [
    ...     (each.before, each.after, each.how, each.to_type)
    ...     for each in changes("numpy", "jax-x64", "remainder")
    ... ][-1:]
    [('int8', 'int32', 'wider', "a.astype('int8')")]
    """
    comparison = compare(before, after, operation, types_of(before))
    found: dict[tuple[str, str, str], list[Pair]] = {}
    for pair, how in _differing(comparison).items():
        answers = (answer_of(table.decisions[pair]) for table in (comparison.left, comparison.right))
        found.setdefault((*answers, how), []).append(pair)
    groups = [
        Change(old, new, how, tuple(pairs), _to_type([comparison.right.decisions[pair] for pair in pairs], old))
        for (old, new, how), pairs in found.items()
    ]
    return sorted(groups, key=lambda group: (group.how == "accepted", group.how == "refused", -len(group.pairs)))


def answer_of(decision: Decision) -> str:
    """Return the dtype of the result (for a comparison, the dtype it is computed in), or `"refused"`.

    >>> operands = as_operand("int32"), as_operand("float16")
    >>> [
    ...     answer_of(get_rules("numpy").decide(operation, operands))
    ...     for operation in ("less", "bitwise_and")
    ... ]
    ['float64', 'refused']
    """
    if not decision:
        return "refused"
    is_comparison = as_operation(decision.operation).result is Result.BOOL
    return as_format(decision.casts[0].target if is_comparison else decision.dtype).name


def _differing(comparison: Comparison) -> dict[Pair, str]:
    compared = {
        pair: "compared"
        for pair, decision in comparison.left.decisions.items()
        if answer_of(decision) != answer_of(comparison.right.decisions[pair])
        and as_operation(comparison.left.operation).result is Result.BOOL
    }
    return {
        pair: how
        for pair, how in (compared | comparison.differing).items()
        if not set(pair) <= set(WEAK_NAMES)  # no framework promotes two Python numbers
    }


def _to_type(decisions: Sequence[Decision], wanted: str) -> str:
    """Return the fewest casts after which all decisions give a dtype; empty if none do."""
    if wanted == "refused":
        return ""
    for chosen in ((0,), (1,), (0, 1)):
        fixes = [_cast(decision, chosen, wanted) for decision in decisions]
        if all(answer_of(_redecided(*each)) == wanted for each in zip(decisions, fixes, strict=True)):
            return str(fixes[0])
    return ""


def _cast(decision: Decision, chosen: Sequence[int], wanted: str) -> Fix:
    """Return casts of the chosen operands, counted in the order in which the types are listed."""
    operands, dtype = decision.operands, as_format(wanted, columns=True).dtype
    order = sorted(range(len(operands)), key=lambda place: _RANK[operands[place].name])
    places = sorted(order[place] for place in chosen)
    return Fix(tuple(FixCast.of(place, operands[place], dtype) for place in places))


def _redecided(decision: Decision, fix: Fix) -> Decision:
    return get_rules(decision.rules).decide(decision.operation, fix.apply(decision.operands))


def written_pairs(pairs: Iterable[Pair]) -> str:
    """Return pairs as Markdown with short names; a pair in both orders is written once.

    >>> written_pairs(
    ...     [
    ...         ("int8", "float16"),
    ...         ("float16", "int8"),
    ...         ("int16", "float16"),
    ...         ("float16", "int16"),
    ...     ]
    ... )
    '`i8` `i16` with `f16`'
    >>> written_pairs([("float16", "int8")])
    '`f16` with `i8`'
    """
    given = set(pairs)
    partners: dict[str, list[str]] = {}
    for a, b in sorted(given, key=lambda pair: (_RANK[pair[0]], _RANK[pair[1]])):
        if _RANK[a] <= _RANK[b] or (b, a) not in given:
            partners.setdefault(a, []).append(b)
    rows: dict[tuple[str, ...], list[str]] = {}
    for a, others in partners.items():
        rows.setdefault(tuple(others), []).append(a)
    return "; ".join(f"{codes(' '.join(these))} with {codes(' '.join(others))}" for others, these in rows.items())
