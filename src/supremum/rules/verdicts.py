"""Parts of verdicts that several rule sets share.

Among them: the dtypes that frameworks store in an existing array, with in-place operators, `out=` and assignment to
elements.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from supremum.decisions import ResultType, Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, DType, Format, as_format
from supremum.number_conversion import converts, fits
from supremum.operands import Operand, Operands
from supremum.operations import Operation, Result

_BOOL = as_format("bool").dtype
LOSSES_AS_DIVISION: dict[str, str] = dict.fromkeys(("huber_loss", "poisson_nll_loss", "l1_loss", "mse_loss"), "divide")
"""The stand-in for losses that a framework lacks; like division, they convert integers to floats."""

_NAMES = """
    add subtract multiply divide floor_divide remainder pow maximum minimum fmax fmin where atan2 hypot copysign
    nextafter logaddexp huber_loss poisson_nll_loss l1_loss mse_loss equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift positive negative square round sign conj ceil floor trunc abs real imag isfinite isinf isnan
    signbit bitwise_invert logical_not exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh sum prod cumulative_sum cumulative_prod mean var std any all min max concat
    stack clip diff matmul tensordot vecdot outer cross solve
"""
MEASURED: frozenset[str] = frozenset(_NAMES.split())
"""The operations that every framework was asked for. They are literal names, so that a new row is not among them."""

ALREADY = "the operands already have this dtype"


def climb(met: str, paths: Iterable[Sequence[str]]) -> str:
    """Explain a join of a lattice.

    Args:
        met: the join.
        paths: the way from each operand up to the join.
    """
    climbs = dict.fromkeys(" -> ".join(path) for path in paths if len(path) > 1)
    return f"{met} is the least upper bound: {', '.join(climbs)}" if climbs else ALREADY


def with_result_of(operation: Operation, verdict: Verdict) -> Verdict:
    """The verdict on a call, with the result dtype of the operation instead of the dtype that it computes in.

    Args:
        operation: its row.
        verdict: the verdict with the dtype that it computes in as its result.
    """
    if verdict.result is None or operation.result not in (Result.BOOL, Result.REAL):
        return verdict
    computed = as_format(verdict.result.dtype)
    if operation.result is Result.BOOL:
        return verdict.resulting_in(_BOOL, f"{operation.name} always gives bool")
    if computed.component is computed:
        return verdict
    component = computed.component
    why = f"{operation.name} of {computed} is {component}"
    return verdict.resulting_in(component.dtype, why, weak=verdict.result.weak)


def disagreement(operation: Operation, operands: Operands) -> str:
    """Why an operation that needs arrays of one dtype refuses these; empty if they have one dtype."""
    names = list(dict.fromkeys(str(operand.dtype) for operand in operands if not operand.is_python_scalar))
    return "" if len(names) < 2 else f"{operation.name} needs arrays of one dtype, got {' and '.join(names)}"


def ints_beyond(operands: Operands, row: Format) -> str:
    """The Python ints out of range of a format, for a message; empty if there are none."""
    return " and ".join(letter(i) for i, o in enumerate(operands) if type(o.value) is int and not fits(o.value, row))


def checked_ints(verdict: Verdict, operands: Operands, note: str = "") -> Verdict:
    """The verdict, or a refusal where a Python int does not fit the dtype it would take.

    Args:
        verdict: the verdict without regard to values.
        operands: the operands.
        note: what to add to the reason.
    """
    for position, (operand, target) in enumerate(zip(operands, verdict.compute, strict=False)):
        if isinstance(operand.value, int) and not converts(operand.value, as_format(target)):
            why = f"the Python int {letter(position)} is out of range for {target}{note}"
            return Verdict.refuse(*verdict.reason, why, overflow=True)
    return verdict


def refuse_category(operation: Operation, met: Verdict, dtype: DType) -> Verdict:
    """The refusal of an operation that is not defined for the category of the common type of its operands.

    Args:
        operation: its row.
        met: the verdict with the common type.
        dtype: the common type.
    """
    category = as_format(dtype).category
    return Verdict.refuse(*met.reason, f"{operation.name} does not accept {category} operands, got {dtype}")


def of_stand_in(operation: Operation, verdict: Verdict, stand_in: str, library: str) -> Verdict:
    """The verdict on a function that a library lacks.

    Args:
        operation: the function.
        verdict: the verdict on its stand-in, which may accept more.
        stand_in: the name of the stand-in.
        library: the name of the library.
    """
    if verdict.result is not None:
        computed = verdict.compute[0]
        highest = max(map(CATEGORIES.index, operation.accepts))
        if CATEGORIES.index(as_format(computed).category) > highest:
            verdict = refuse_category(operation, verdict, computed)
    why = f"{library} has no {operation.name}, so it is decided like {stand_in}"
    return replace(verdict, reason=(why, *verdict.reason))


def capped(verdict: Verdict, arrays: Operands, caps: Mapping[str, str]) -> Verdict:
    """The verdict, with narrower formats in place of those that it would convert to.

    Args:
        verdict: the verdict.
        arrays: the operands, or the array that the result is written into. The format of a single array is kept, since
            nothing is converted to it.
        caps: the formats to replace, and those that replace them.
    """
    if verdict.result is None or (len(arrays) == 1 and str(arrays[0].dtype) in caps):
        return verdict
    given, weak = verdict.result.dtype, verdict.result.weak
    wide = [str(dtype) for dtype in dict.fromkeys((*verdict.compute, given)) if str(dtype) in caps]
    if not wide:
        return verdict
    result, *compute = (as_format(caps.get(str(dtype), dtype)).dtype for dtype in (given, *verdict.compute))
    reason = [f"{name} is capped at {as_format(caps[name]).bits} bits: {caps[name]} takes its place" for name in wide]
    return replace(verdict, result=ResultType(result, weak), compute=tuple(compute), reason=(*verdict.reason, *reason))


class Storing(enum.Enum):
    """What a framework stores in an existing array.

    >>> from supremum import explain, rules
    >>> rules.JAX_X64.in_place.name, rules.NUMPY.in_place.name, rules.NUMPY.item.name
    ('KEPT', 'SAME_KIND', 'CAST')
    >>> [
    ...     bool(explain("float64", operation="assign", into="float32", rules=each))
    ...     for each in ("jax-x64", "numpy")
    ... ]
    [False, True]
    """

    KEPT = "these rules store only results of that dtype"
    SAME_KIND = "the framework casts results within their kind and to higher kinds"
    CAST = "the framework casts every stored value"


Target: TypeAlias = tuple[Operand, Storing]
"""An array that a result is written into, and what may be stored in it."""

_LOST = {"integer": "everything except whether it is zero", "float": "the fraction", "complex": "the imaginary part"}


def is_no_higher(source: Format, target: Format) -> bool:
    """Whether one format has the same category as another or a lower one, as in PyTorch's `can_cast`.

    >>> from supremum.formats import as_format
    >>> (
    ...     is_no_higher(as_format("float64"), as_format("float16")),
    ...     is_no_higher(as_format("int8"), as_format("bool")),
    ... )
    (True, False)
    """
    return CATEGORIES.index(source.category) <= CATEGORIES.index(target.category)


def objection(how: Storing, source: Format, target: Format, is_same_kind: Callable[[Format, Format], bool]) -> str:
    """Why a result cannot be stored in an array; empty if it can.

    Supremum stores less than the frameworks: a result never loses its fraction or its imaginary part.

    Args:
        how: what the framework stores.
        source: the format of the result.
        target: the format of the array.
        is_same_kind: whether the framework casts the one to the other in place, where kinds matter to it.

    >>> from supremum.formats import as_format
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
    """Why Supremum refuses a cast that the framework makes; empty if it allows it.

    Args:
        source: the name of the value, for the message.
        category: its category.
        target: the format of the array.
    """
    if CATEGORIES.index(category) <= CATEGORIES.index(target.category):
        return ""
    lost = _LOST["integer"] if target.category == CATEGORIES[0] else _LOST[category]
    return f"{source} cannot be stored in {target}: the framework would silently drop {lost}"
