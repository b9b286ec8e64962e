"""Measure NumPy 1.26's promotion, which depends on values: `pip install numpy==1.26.4 ml_dtypes==0.5.4`.

An operand is `i8` for an array with a dimension, `i8[300]` for a 0-d array with that value, and `300`, `1.5`, `1j` or
`True` for a Python number. The document has in addition:

    reversed               the cells that change when the operands are exchanged
    scalars_differ         in how many cells a NumPy scalar gives a different result than a 0-d array of its value
    scalar_pairs_differ    how many pairs of 0-d arrays or Python numbers give a different result than another pair of
                           the same dtypes
    foreign_values_differ  in how many cells the result depends on the value of a 0-d array of ml_dtypes
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from oracles import tables
from oracles.arrays import REDUCTIONS, arrays_document, functions_of_two
from oracles.assignments import IN_PLACE, Store, in_place, set_at
from oracles.casts import OWN, casts_document

CODES = tables.codes(f"{tables.INTEGERS} f2 f4 f8 c8 c16")
FOREIGN = tables.names(
    "bf:bfloat16 e3m4:float8_e3m4 e4m3:float8_e4m3 b11:float8_e4m3b11fnuz e4m3fn:float8_e4m3fn e4m3fz:float8_e4m3fnuz"
    " e5m2:float8_e5m2 e5m2fz:float8_e5m2fnuz e2m3:float6_e2m3fn e3m2:float6_e3m2fn e2m1:float4_e2m1fn"
    " e8m0:float8_e8m0fnu int2 uint2 int4 uint4"
)
"""The dtypes of ml_dtypes."""
_ENDS = (7, 8, 15, 16, 31, 32, 63, 64)
INTS = sorted(
    {-1, 0, 1, 2**64}
    | {2**bits + d for bits in _ENDS for d in (-1, 0)}
    | {-(2**bits) - d for bits in _ENDS[::2] for d in (0, 1)}
)
FLOATS = (1.0, 64999.0, 65000.0, -65000.0, 3.39e38, 3.4e38, -3.4e38, 1e39, float("inf"), float("nan"))
COMPLEXES = (1j, 65000j, 3.39e38 + 0j, 3.4e38j, 1e39 + 1j, complex("nan"))
VALUES: Mapping[str, Sequence[Any]] = {
    "b": (True, False), "u": (*INTS, 200, 300), "i": (*INTS, 200, 300), "f": FLOATS, "c": COMPLEXES
}  # fmt: skip
"""The values of 0-d arrays by the kind of their dtype."""
REFUSALS = {
    "-": ("no-loop", "^(_?UFunc|TypeError|DTypePromotionError|OverflowError|AttributeError)"),
    "o": ("object", "$^"),
    "v": ("value", "negative integer powers"),  # this error depends on values, not on types
}
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_IN_TRIPLES = "u1[1] u1[200] i1[-1] i8[300] f4[1.0] f8[1e+39] 1 300 -1 1.0 1e+39 1j True bf[1] e5m2[1] int4[1]"


def make(value: Any, name: str) -> Any:
    """Make an array of a number or lists of numbers."""
    return np.array(value, name) if name in OWN else np.array(value).astype(name)


def numbers_in(result: Any) -> Any:
    """Return the numbers in a result; ml_dtypes gives its own."""
    array = np.asarray(result)
    return (array if array.dtype.name in OWN else array.astype("float64")).tolist()


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result, or of a dtype."""
    return (result if isinstance(result, np.dtype) else np.asarray(result).dtype).name


NUMPY = tables.Framework(
    "numpy-legacy",
    np.__version__,
    CODES | FOREIGN,
    make,
    name_of,
    numbers_in,
    reductions=tables.named(np, REDUCTIONS),
    several=functions_of_two(np, "matmul outer cross concat:concatenate stack diff tensordot clip solve:linalg.solve"),
)
_outcome = tables.outcome(REFUSALS, lambda result: "o" if name_of(result) == "object" else NUMPY.code_of(result))


def cell(call: tables.Call, *arguments: Any) -> str:
    """Return the cell of a call."""
    is_comparison = getattr(call, "__name__", "") in _COMPARISONS
    if any(np.asarray(argument).dtype.hasobject for argument in arguments) and not is_comparison:
        return "o"  # Python computes with ints beyond 64 bits, and a power of them takes forever
    return _outcome(call, *arguments)


def zero_d_arrays() -> dict[str, Any]:
    """Return 0-d arrays of each dtype, with all values that it holds."""
    found = {}
    for code, name in CODES.items():
        kind = np.dtype(name).kind
        for value in VALUES[kind]:
            if kind not in "ui" or np.iinfo(name).min <= value <= np.iinfo(name).max:
                found[f"{code}[{value!r}]"] = np.array(value, name)
    return found


def numpy_legacy() -> dict[str, Any]:
    """Measure `np.result_type` and NumPy's functions before NEP 50, on 64-bit Linux."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")  # warnings take longer than the calls
    arrays = NUMPY.ones()
    zero_d = zero_d_arrays()
    numbers = {repr(value): value for value in (True, False, *INTS, 300, *FLOATS, *COMPLEXES)}
    one_of_kind = {"b": "True", "u": "1", "i": "1", "f": "1.0", "c": "1j"}
    ones = [f"{code}[{one_of_kind[np.dtype(name).kind]}]" for code, name in CODES.items()]
    foreign = {f"{code}[1]": np.array(1, name) for code, name in FOREIGN.items()}
    largest = {
        f"{code}[1]": np.array((ml_dtypes.iinfo if "int" in name else ml_dtypes.finfo)(name).max, name)
        for code, name in FOREIGN.items()
    }
    everything = arrays | zero_d | foreign | numbers
    rows = [*arrays, *ones, *foreign, "True", "1", "300", str(2**63), "1.0", "1j"]
    asked = [*itertools.product(rows, everything)]
    functions = tables.named(np, tables.NUMPY_FUNCTIONS) | {
        "result_type": np.result_type, "where": lambda left, right: np.where(np.array([True]), left, right)
    }  # fmt: skip
    cells = tables.grids(cell, "function", functions, everything, asked)

    reverse: dict[str, tables.Table] = {}
    for (name, call), (left, right) in itertools.product(functions.items(), asked):
        found = cell(call, everything[right], everything[left])
        if "v" not in (found, cells[f"{name} function"][left][right]):
            reverse.setdefault(f"{name} function", {}).setdefault(left, {})[right] = found
    values = {key: np.asarray(value) for key, value in everything.items()}
    cells["unary function"] = tables.unary_cells(cell, tables.named(np, tables.NUMPY_UNARY), values)

    def differ(rights: Mapping[str, Any]) -> int:
        """Return in how many cells these right operands give other results than those of the same keys."""
        return tables.count_differing(cell, "function", functions, cells, [(arrays, rights)])

    alone = [*zero_d.values(), *numbers.values()]
    of_dtype = {np.asarray(value).dtype.name: value for value in alone}
    pairs_differ = sum(
        cell(np.result_type, *pair) != cell(np.result_type, *(of_dtype[np.asarray(each).dtype.name] for each in pair))
        for pair in itertools.product(alone, repeat=2)
    )
    found = NUMPY.document(REFUSALS, everything, cells, {"ml_dtypes": ml_dtypes.__version__})
    third = [*arrays, *_IN_TRIPLES.split()]
    return found | {
        "reversed": tables.differing(cells, reverse, "function"),
        "scalars_differ": differ({key: value[()] for key, value in (zero_d | foreign).items()}),
        "foreign_values_differ": differ(largest),
        "scalar_pairs_differ": pairs_differ,
        "tables": found.pop("tables"),
        "triple_columns": " ".join(third),
        "triples": tables.triples(lambda *keys: cell(np.result_type, *(everything[key] for key in keys)), third),
    }


def numpy_legacy_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    return arrays_document(NUMPY)


def numpy_legacy_casts(extensions: Sequence[str] = ()) -> dict[str, Any]:
    """Measure casts of values.

    Args:
        extensions: the names of formats of ml_dtypes to measure too.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return casts_document(NUMPY._replace(name="numpy"), np.ndarray.astype, (*OWN, *extensions))


def assignment_numpy_legacy() -> dict[str, Any]:
    """Measure writes; NumPy 1 warns about Python ints that are out of range and wraps them around."""
    warnings.simplefilter("ignore")
    of_own = NUMPY._replace(codes=CODES)
    store = Store(of_own, of_own.one, of_own.one, lambda array: array[0], [f"{code}[]" for code in CODES])
    assignment = {"assign item": set_at(Ellipsis)}
    return store.document(store.cells(in_place(IN_PLACE) | assignment), store.numbers(assignment))


DOCUMENTS = tables.by_name(numpy_legacy, numpy_legacy_arrays, numpy_legacy_casts, assignment_numpy_legacy)
