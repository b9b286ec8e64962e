"""pandas' rules: those of NumPy for each column, with rows for the operations in which pandas differs.

Source: pandas 3.1.1 with NumPy 2.4.6: `arithmetic_op` and `logical_op` in pandas/core/ops/array_ops.py,
`find_common_type` and `find_result_type` in pandas/core/dtypes/cast.py, pandas/core/nanops.py, and for nullable columns
pandas/core/arrays/masked.py. The conformance tests compare every cell with measurements of pandas.

Operators, functions and `pd.concat` decide by dtype. `where`, `mask`, `clip` and assignment look at the values of the
other column, and keep the dtype of the first one if it holds them all. These rules decide by dtype: `where` and `clip`
give the dtype that pandas gives for values that do not fit. A division by zero may give float64 in pandas; these rules
give the dtype for other divisors. A NumPy scalar next to a column counts as a Python number in pandas
(`maybe_prepare_scalar_for_op` in pandas/core/ops/array_ops.py); these rules treat it like a column of its dtype.

Nullable columns such as Int8 keep a mask of their missing values. Under the rules "pandas", an operand says whether it
is such a column; under "pandas-nullable", all of them are, and Int8 is written int8. Next to a column of a NumPy dtype,
a nullable column makes the result nullable. Missing values do not change a dtype; the conformance tests list the
exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from supremum.data_frames import NULLABLE_NAME_OF
from supremum.decisions import Verdict
from supremum.formats import DType, Format, as_format
from supremum.number_conversion import Steps, fits
from supremum.operands import Operand, Operands, as_operand
from supremum.operations import ASSIGN, Family, Operation
from supremum.rules.array_casts import NATIVE
from supremum.rules.columns import Columns, Settle
from supremum.rules.numpy import SHARED, NumpyRules
from supremum.rules.numpy_casts import LOOP_ORDER, common, common_of_all
from supremum.rules.numpy_loops import FUNCTIONS, listed
from supremum.rules.reductions import Reduction, to
from supremum.rules.verdicts import MEASURED, Storing, Target, objection_to_loss
from supremum.typing import Scalar

_BOOL, _COMPLEX = as_format("bool"), as_format("complex128")
_INTEGERS = [row for row in map(as_format, LOOP_ORDER) if row.category == "integer"]
_LOGICAL = ("bitwise_and", "bitwise_or", "bitwise_xor")
_REPLACING = ("where", "clip")
_JOINING = ("concat", "matmul")
"""Operations with the common type of their operands, but for bools with numbers, which give a column of objects."""
_OF_COLUMNS = (*_REPLACING, *_JOINING, "diff")
"""Functions of several columns that pandas has; the others are NumPy's, which return arrays."""
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow")
"""Functions that nullable columns compute themselves; NumPy computes the others."""
_WITHOUT_BOOLS = ("divide", "floor_divide", "pow")
"""Operations of bools alone that pandas refuses (`_BOOL_OP_NOT_ALLOWED` in pandas/core/ops/array_ops.py)."""
_KEEPING_BOOLS = ("positive", "negative", "round")
"""Functions that return a bool column, where NumPy refuses it or gives a float."""
# `Series.diff` starts with a missing value, so that integers become floats.
_DIFFERENCES = to("float32", "int8 int16") | to("float64", "uint8 uint16 uint32 uint64 int32 int64")

_REDUCTIONS = {name: replace(row, numbers=False) for name, row in SHARED["reductions"].items()}


def _giving(name: str, **gives: str) -> Reduction:
    """NumPy's row of a reduction, with other dtypes for some operands."""
    row = _REDUCTIONS[name]
    rest = {own: wide for own, wide in row.accumulates.items() if own not in gives}
    return replace(row, gives={**row.gives, **gives}, accumulates=rest, source="as measured")


_NULLABLE_LIBRARY = "nullable pandas"
_NULLABLE = frozenset(NULLABLE_NAME_OF)
_HELD_AS = {"float16": "float32"}
"""For dtypes without nullable columns, the dtype of the column that holds what NumPy computes of nullable columns."""


# `s += t` gives the name `s` to a new column if the dtype changes, and `s.iloc[0] = v` raises if `v` does not fit. Rule
# sets store only results of the dtype by default.
_SHARED: dict[str, Any] = {
    "measured": MEASURED,
    "accepts": SHARED["accepts"],
    "stands_in": SHARED["stands_in"],
    "follows": {name: other for name, other in SHARED["follows"].items() if name not in ("concat", "diff")},
}


@dataclass(frozen=True)
class PandasColumns(Columns):
    """The columns of pandas.

    Args:
        never_missing: as for all columns.
        dtypes: the dtypes of columns.
        have_masks: whether all columns have a mask, or only those of nullable operands. `where` and `clip` keep the
            dtype of such a column, and `Series.diff` keeps that of integers.
    """

    never_missing: frozenset[str] | None = frozenset(("sum", "prod", "any", "all"))
    dtypes: frozenset[str] = field(kw_only=True)
    have_masks: bool = field(default=False, kw_only=True)

    def is_nullable(self, operand: Operand) -> bool:
        """Whether an operand is a column with a mask."""
        return operand.dtype is not None and (self.have_masks or operand.nullable)

    def seen(self, operands: Operands, target: Target | None) -> tuple[Operands, Target | None]:
        """The operands and the target, with their flags unless all columns have a mask."""
        return super().seen(operands, target) if self.have_masks else (operands, target)

    def verdict(self, settle: Settle, operation: Operation, operands: Operands, target: Target | None) -> Verdict:
        """Decide a call, whose result has a mask if an operand has one and the result can."""
        if any(operand.is_missing_value for operand in operands):
            return self._verdict_on_missing_value(settle, operation, operands, target)
        verdict = super().verdict(settle, operation, operands, target)
        if verdict.result is None or not any(each.nullable for each in (*operands, *(target or ())[:1])):
            return verdict
        why = _mask_is_lost(operation, operands, verdict.result.dtype, target)
        if not why:
            return verdict
        reason = (*verdict.reason[:-1], why)
        return replace(verdict, result=replace(verdict.result, nullable=False), reason=reason)

    def _verdict_on_missing_value(
        self, settle: Settle, operation: Operation, operands: Operands, target: Target | None
    ) -> Verdict:
        """The verdict on a call with `pd.NA`, which takes the dtype of a nullable column, or replaces values as NaN."""
        columns = [each for each in (*operands, *(target or ())[:1]) if each.dtype is not None]
        replaces = operation.name in _REPLACING or operation is ASSIGN
        if not columns or not (replaces or self.is_nullable(columns[0])):
            return Verdict.refuse("pd.NA gives a column of objects, unless the other column is nullable")
        stand_in = as_operand(math.nan) if replaces else columns[0]
        others = tuple(stand_in if each.is_missing_value else each for each in operands)
        if not any(each.nullable for each in columns):
            return settle(operation, others, target)
        return self.verdict(settle, operation, others, target)


@dataclass(frozen=True, eq=False, repr=False)
class PandasRules(NumpyRules):
    """NumPy's rules for columns.

    Args:
        name, summary, source: as for every rule set.
        columns: the columns.

    >>> from supremum import explain
    >>> explain("bool", "int8", operation="concat", rules="pandas").reason
    ('concat of bools and numbers gives a column of objects',)
    >>> [
    ...     str(explain("int8", operation="exp", rules=each).dtype)
    ...     for each in ("pandas", "pandas-nullable")
    ... ]
    ['float16', 'float32']
    >>> str(explain("Int8", "float32", operation="add", rules="pandas").result)
    'float32 (nullable)'
    """

    columns: PandasColumns = field(kw_only=True)

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class."""
        return (super().key_of(operand), operand.nullable, _is_nan(operand))

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        if _is_nan(operands[position]) and not target.is_inexact:
            return ()  # it becomes a missing value
        return super()._number_steps(operation, operands, position, target)

    def _absent(self, names: Sequence[str], *, nullable: bool) -> str:
        """What refusals say of dtypes without columns."""
        return f"{_NULLABLE_LIBRARY if nullable else self.library} has no {listed(names)} columns"

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        name, arrays = operation.name, _arrays(operands)
        refusal = self._refusal_of_dtypes(arrays) or self._refusal_of_bools(operation, operands)
        if refusal is not None:
            return refusal
        if name in _KEEPING_BOOLS and arrays and _are_bools(operands):
            return Verdict.accept(_BOOL.dtype, 1, f"{name} keeps bool columns")
        if name == "diff" and len(arrays) == len(operands) == 1:
            return self._difference(arrays[0])
        if name in _REPLACING and arrays:
            return self._replace(operation, operands)
        if name in (*_JOINING, "diff"):
            return self._held(operation, operands, self._meet(operation, operands))
        verdict = super()._settle_operation(operation, operands)
        if name in _LOGICAL and _mixes_bools_with_numbers(operands):
            verdict = self._logical(verdict, operands)
        return self._held(operation, operands, verdict)

    def _refusal_of_dtypes(self, arrays: Sequence[Operand]) -> Verdict | None:
        """The refusal of dtypes without columns; None if there are none."""
        for nullable, dtypes in ((True, _NULLABLE), (False, self.columns.dtypes)):
            alike = (operand.name for operand in arrays if self.columns.is_nullable(operand) is nullable)
            if absent := [each for each in alike if each not in dtypes]:
                return Verdict.refuse(self._absent(absent, nullable=nullable))
        return None

    def _refusal_of_bools(self, operation: Operation, operands: Operands) -> Verdict | None:
        """The refusal of an operation of bools, or of bools and numbers; None if pandas has it."""
        name = operation.name
        if name in _WITHOUT_BOOLS and _are_bools(operands):
            return Verdict.refuse(f"pandas has no {name} of bools")
        keeps = name in _REPLACING and any(map(self.columns.is_nullable, _arrays(operands)[:1]))
        if name in (*_JOINING, *_REPLACING) and not keeps and _mixes_bools_with_numbers(operands):
            return Verdict.refuse(f"{name} of bools and numbers gives a column of objects")
        return None

    def _held(self, operation: Operation, operands: Operands, verdict: Verdict) -> Verdict:
        """The verdict, with a result that columns have."""
        dtypes = _NULLABLE if any(map(self.columns.is_nullable, operands)) else self.columns.dtypes
        if verdict.result is None or (own := str(verdict.result.dtype)) in dtypes:
            return verdict
        name, category = operation.name, as_format(own).category
        is_complex = any(each.category == category == _COMPLEX.category for each in operands)
        if is_complex and name in (*FUNCTIONS, *_REPLACING) and name not in _JOINING:
            return verdict
        dtype = _HELD_AS.get(own)
        if dtype is None or name not in FUNCTIONS or name in (*_ARITHMETIC, *_REPLACING):
            return Verdict.refuse(*verdict.reason, self._absent([own], nullable=True))
        return verdict.resulting_in(as_format(dtype).dtype, f"{_NULLABLE_LIBRARY} holds {own} as {dtype}")

    def _difference(self, column: Operand) -> Verdict:
        """The verdict on `Series.diff`, whose first value is missing."""
        row, nullable = column.format, self.columns.is_nullable(column)
        if row is _BOOL and not nullable:
            return Verdict.refuse("Series.diff of bools gives a column of objects")
        gives = as_format(row.name if nullable else _DIFFERENCES.get(row.name, row.name))
        first = "is missing" if nullable else "is NaN"
        return Verdict.accept(
            gives.dtype, 1, f"the first value of Series.diff {first}, and the result of {row} is {gives}"
        )

    def _logical(self, verdict: Verdict, operands: Operands) -> Verdict:
        """The verdict on a logical operator of bools and integers, whose result pandas converts to bool."""
        if verdict.result is None:
            return verdict
        if any(map(self.columns.is_nullable, operands)) and any(operand.name == "int*" for operand in operands):
            return Verdict.refuse("the logical operators of nullable bool columns do not accept a Python int")
        first = operands[0]
        if self.columns.is_nullable(first) and first.category == _BOOL.category and not first.is_python_scalar:
            return Verdict.accept(
                _BOOL.dtype, 2, "the logical operators of nullable bool columns convert integers to bool"
            )
        return verdict.resulting_in(_BOOL.dtype, "the logical operators give bool if an operand is bool")

    def _replace(self, operation: Operation, operands: Operands) -> Verdict:
        """The verdict on a function that replaces values of a column by those of another one, or by a number."""
        first, *rest = operands
        has_bounds = operation.name == "clip" and len(rest) > 1
        kept = [
            operand
            for position, operand in enumerate(rest)
            if not (has_bounds and self.ignores_bound(first, operand, is_lower=position == 0))
        ]
        column = next(operand for operand in operands if operand.dtype is not None)
        others = [operand for operand in (first, *kept) if operand is not column]
        if self.columns.is_nullable(column):
            return _kept(column, others, len(operands))
        typed = [column.name, *(_typed(other, column) for other in others)]
        join = common_of_all(typed) if all(typed) else None
        if join is None:
            return Verdict.refuse("no integer dtype of pandas holds the Python int", overflow=True)
        why = f"the common type of {listed(typed)} is {join}; pandas keeps {column.name} if it holds every value"
        return self._held(operation, operands, Verdict.accept(as_format(join).dtype, len(operands), why))

    def _assigned(self, value: Operand, into: Operand, how: Storing) -> Verdict:
        if _is_nan(value) and self.columns.is_nullable(into):
            return Verdict.accept(into.format.dtype, 1, f"a column of {into.dtype} holds NaN as a missing value")
        if _BOOL.category in (value.category, into.category) and value.category != into.category:
            return Verdict.refuse(f"pandas does not store {value} in a column of {into.dtype}")
        return super()._assigned(value, into, how)


def _arrays(operands: Operands) -> list[Operand]:
    """The operands with a dtype, Python bools included."""
    return [operand for operand in operands if operand.dtype is not None]


def _are_bools(operands: Operands) -> bool:
    """Whether all operands are bools."""
    return all(operand.category == _BOOL.category for operand in operands)


def _mixes_bools_with_numbers(operands: Operands) -> bool:
    """Whether some operands are bools, and others are not."""
    return len({operand.category == _BOOL.category for operand in operands}) > 1


def _is_nan(operand: Operand) -> bool:
    """Whether an operand is NaN as a number, which nullable columns hold as a missing value."""
    return isinstance(operand.value, float) and math.isnan(operand.value)


def _mask_is_lost(operation: Operation, operands: Operands, dtype: DType, target: Target | None) -> str:
    """Why a result has no mask although an operand has; empty if it has one."""
    if target is not None:
        return "" if target[0].nullable else f"a column of {dtype} cannot store missing values"
    if operation.family is Family.WHOLE and operation.name not in _OF_COLUMNS:
        return f"NumPy computes {operation.name}; with missing values, which become NaN, the result is float64"
    if operation.name == "clip" and operands[0].dtype == dtype and not operands[0].nullable:
        return f"a column of {dtype} keeps its dtype if that holds the bounds, and pandas raises for missing bounds"
    return "" if str(dtype) in _NULLABLE else f"a column of {dtype} has no mask, and pandas makes missing values NaN"


def _typed(operand: Operand, column: Operand) -> str:
    """The type of an operand that replaces values of a column; empty for an int that no integer dtype holds.

    An int out of range takes the narrowest integer dtype that holds it.
    """
    if operand.dtype is not None:
        return operand.name
    if operand.category == _COMPLEX.category and column.category != operand.category:
        return _COMPLEX.name  # `find_result_type` treats it as an array of its default dtype
    value = operand.value
    if type(value) is not int or column.category != operand.category or fits(value, column.format):
        return operand.name
    same_sign = [row for row in _INTEGERS if row.signed == (column.format.signed or value < 0)]
    return next((row.name for row in same_sign if fits(value, row)), "")


def _kept(column: Operand, others: Sequence[Operand], count: int) -> Verdict:
    """The verdict on a replacement that keeps the dtype of a column, and raises for values that it does not hold."""
    row = column.format
    for other in others:
        if _is_nan(other):
            continue  # it becomes a missing value
        if other.is_python_scalar and other.category == _BOOL.category != row.category:
            return Verdict.refuse(f"pandas does not store a Python bool in a column of {row}")
        if why := objection_to_loss(str(other), other.category, row):
            return Verdict.refuse(why)
        if other.dtype is not None and not row.is_inexact and common(row.name, other.name) != row.name:
            return Verdict.refuse(f"pandas keeps {row}, and raises for values of {other.name} that it does not hold")
        if type(other.value) is int and not row.is_inexact and not fits(other.value, row):
            return Verdict.refuse(f"the Python int {other.value} is out of range for {row}", overflow=True)
    missing = ["NaN becomes a missing value"] if any(map(_is_nan, others)) else []
    return Verdict.accept(row.dtype, count, f"pandas keeps the dtype of the column, {row}", *missing)


def _raises(value: Scalar, target: Format) -> bool:
    """Whether `astype` raises: for NaN and infinities as integers, and for negative floats as unsigned integers.

    Source: `astype_float_to_int_nansafe` in pandas/core/dtypes/astype.py.
    """
    if not isinstance(value, float) or target.category != "integer":
        return False
    return not math.isfinite(value) or (value < 0 and not target.signed)


_CASTS = replace(SHARED["array_casts"], library="pandas", measured="pandas 3.1.1 on x86-64", formats=NATIVE)
PANDAS = PandasRules(
    name="pandas",
    summary="pandas 3, columns of NumPy dtypes: NumPy's rules, but bools do not mix with numbers in concat and where",
    source="pandas 3.1.1, pandas/core/ops/array_ops.py and pandas/core/dtypes/cast.py",
    columns=PandasColumns(dtypes=NATIVE),
    library="pandas",
    reductions=_REDUCTIONS
    | {"sum": _giving("sum", float16="float64"), "mean": _giving("mean", float16="float64", complex64="complex128")},
    array_casts=replace(_CASTS, raises=_raises),
    **_SHARED,
)
PANDAS_NULLABLE = PandasRules(
    name="pandas-nullable",
    summary="pandas 3, nullable columns such as Int8: NumPy's rules without columns of float16 and complex numbers",
    source="pandas 3.1.1, pandas/core/arrays/masked.py",
    columns=PandasColumns(dtypes=_NULLABLE, have_masks=True),
    library=_NULLABLE_LIBRARY,
    reductions=_REDUCTIONS,
    array_casts=replace(_CASTS, formats=_NULLABLE),
    **_SHARED,
)
