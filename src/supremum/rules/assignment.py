"""What frameworks store where: results of in-place operators and of `out=`, and values assigned to elements."""

from __future__ import annotations

import enum
from collections.abc import Callable

from supremum.decisions import Fix, FixCast, Verdict
from supremum.formats import CATEGORIES, Format, as_format
from supremum.operands import Operand
from supremum.operations import ASSIGN, Operation
from supremum.rules.fixes import Runtime, find_fix, gives_what_is_meant, is_computed_as_meant, targets_for


class Storing(enum.Enum):
    """What a framework stores in an array that has a dtype already."""

    KEPT = "these rules store only results of that dtype"
    SAME_KIND = "the framework casts results within their kind and to higher kinds"
    CAST = "the framework casts every stored value"


_LOST = {"integer": "all but whether it is zero", "float": "the fraction", "complex": "the imaginary part"}


def is_no_higher(source: Format, target: Format) -> bool:
    """Whether the category of a format is that of another or a lower one, as PyTorch's `can_cast` has it.

    >>> is_no_higher(as_format("float64"), as_format("float16")), is_no_higher(as_format("int8"), as_format("bool"))
    (True, False)
    """
    return CATEGORIES.index(source.category) <= CATEGORIES.index(target.category)


def objection(how: Storing, source: Format, target: Format, is_same_kind: Callable[[Format, Format], bool]) -> str:
    """Why a result is not stored in an array; empty where it is.

    Supremum stores less than the frameworks do: never what loses a fraction or an imaginary part.

    Args:
        how: what the framework stores.
        source: the format of the result.
        target: the format of the array.
        is_same_kind: whether the framework casts the one to the other in place, where kinds matter to it.

    >>> float64, float32, int8 = map(as_format, ("float64", "float32", "int8"))
    >>> objection(Storing.SAME_KIND, float64, float32, is_no_higher)
    ''
    >>> objection(Storing.KEPT, float64, float32, is_no_higher)
    'float64 cannot be stored in float32: these rules store only results of that dtype'
    >>> objection(Storing.CAST, float64, int8, is_no_higher)
    'float64 cannot be stored in int8: the framework would silently drop the fraction'
    """
    refuses = {Storing.KEPT: source is not target, Storing.SAME_KIND: not is_same_kind(source, target)}
    if refuses.get(how):
        return f"{source} cannot be stored in {target}: {how.value}"
    return objection_to_loss(str(source), source.category, target)


def objection_to_loss(source: str, category: str, target: Format) -> str:
    """Why a cast that the framework makes is refused all the same; empty where it is not.

    Args:
        source: what is cast, for the text.
        category: its category.
        target: the format of the array.
    """
    if CATEGORIES.index(category) <= CATEGORIES.index(target.category):
        return ""
    lost = _LOST["integer"] if target.category == CATEGORIES[0] else _LOST[category]
    return f"{source} cannot be stored in {target}: the framework would silently drop {lost}"


def account(how: Storing, source: Format, target: Format) -> tuple[str, ...]:
    """Why a result is stored in an array, one sentence each; none where both have one format."""
    if source is target:
        return ()
    checked = () if target.holds(source) else (f"a value outside the range of {target} is an error",)
    return (f"{source} is stored in {target}: {how.value}", *checked)


def find_fix_into(
    operation: Operation,
    operands: tuple[Operand, ...],
    into: Operand,
    may_cast: Callable[[Operand, Format, bool], bool],
    settle: Callable[[tuple[Operand, ...]], Verdict],
    runtime: Runtime,
) -> Fix | None:
    """Casts of operands, but not of what is written into, after which the result can be stored.

    Args:
        operation: its row.
        operands: of the operation.
        into: what its result is written into.
        may_cast: whether a fix may cast an operand to a format; the last argument is whether values may be cut.
        settle: the verdict on other operands.
        runtime: what has to carry it out.
    """
    row = as_format(into.dtype)
    if operation is ASSIGN or gives_what_is_meant(operation, (*operands, into), row):
        others = [i for i, each in enumerate(operands) if each.is_python_scalar or each.dtype != row.dtype]
        arrays = [i for i in others if not operands[i].is_python_scalar]
        for positions in (arrays, others):
            # Of arrays the real part is taken, which a fix spells out; nothing is cut off from a number.
            if positions and all(
                may_cast(operands[i], row, False) or _has_parts(operands[i], row, may_cast) for i in positions
            ):
                fix = Fix(tuple(FixCast.of(i, operands[i], row.dtype) for i in positions))
                verdict = settle(fix.apply(operands))
                is_right = verdict.result is not None and is_computed_as_meant(operation, verdict)
                tried = runtime.tried(operation, operands, fix, verdict) if is_right else None
                if tried is not None:
                    return tried
    if operation is ASSIGN:
        return None
    # What is computed in another format may be stored in this one, as truth values of numbers are.
    return find_fix(operation, operands, targets_for(operands), may_cast, settle, runtime, into=into)


def _has_parts(operand: Operand, row: Format, may_cast: Callable[[Operand, Format, bool], bool]) -> bool:
    return not operand.is_python_scalar and may_cast(operand, row, True)
