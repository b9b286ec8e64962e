"""Random chains of operations beside Polars, PyArrow, pandas, MLX and tinygrad, where they are installed: the same
dtypes, values and refusals, except for the stated differences.

Our arrays are NumPy's. What they cannot compute, such as a weak -1 in uint16, is compared by its decision alone.
"""

import cmath
import collections
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from conformance.live_libraries import (
    BINARY_OPERATORS,
    LIBRARIES,
    MASK,
    REVERSED,
    UNARY_OPERATORS,
    Result,
    array_of,
    library,
)
from slowly import for_each
from supremum import PromotionError, explain, use_rules
from supremum.arrays import RuntimeDtypeError, namespace
from supremum.arrays.errors import ComputationError, NarrowingError
from supremum.formats import as_format

CHAINS, PARTS = 5000, 20
REFUSED = "refused"
NUMBERS = [
    *(True, 0, 1, -1, 3, 127, 128, -129, 255, 1000, 2**24 + 1, 2**31, 2**40, 2**53 + 1),
    *(2**63 - 1, 2**63, -(2**63) - 1, 2**64, 0.5, -2.0, 70000.0, 1e39, 1e300),
]
xp = namespace("numpy")
DIVISIONS = ("divide", f"{REVERSED}divide", "floor_divide", "remainder")
NEVER_ROUNDED = ("add", "subtract", "multiply", "negative", "abs", "maximum", "minimum", "where", "min", "max")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a chain, and what came of it.

    Args:
        rules: the name of our rule set.
        name: the call, such as `"reversed add"`.
        operands: our operands in the order of the operation, as NumPy arrays and Python numbers.
        ours: the NumPy array of our result; None if there is none.
        dtype: the dtype that our rules decide, with `*` if it is weak; `"refused"` if they refuse.
        why: the explanation of our rules.
        fails: whether NumPy raises for the values.
        theirs: the library's result; None if it refuses.
        error: the library's exception.
    """

    rules: str
    name: str
    operands: tuple[Any, ...]
    ours: np.ndarray | None
    dtype: str
    why: str
    fails: bool
    theirs: Result | None
    error: Exception | None

    @property
    def arrays(self) -> list[np.ndarray]:
        return [each for each in self.operands if isinstance(each, np.ndarray)]

    @property
    def divides_by_zero(self) -> bool:
        return self.name in DIVISIONS and bool(np.any(np.asarray(self.operands[1]) == 0))

    def has(self, category: str) -> bool:
        return any(as_format(each.dtype).category == category for each in self.arrays)


def _refuses_by_value(step: Step) -> bool:
    said = str(step.error)
    return "divide by zero" in said or ("not in range" in said and "pyarrow raises for" in step.why)


def _is_a_null_int(step: Step) -> bool:
    """Whether Polars makes an int null, and everything that is computed of it, unless a function skips it."""
    is_null = all(value is None for value in step.theirs.values)
    return "Polars makes a Python int null" in step.why and (is_null or step.name in ("maximum", "minimum", "where"))


EXCUSES: dict[str, list[tuple[str, Callable[[Step], bool]]]] = {
    "refusals": [
        ("an int beyond 64 bits becomes null next to a column of integers", lambda step: (
            step.rules == "polars" and step.theirs is not None and _is_a_null_int(step)
        )),
        ("Polars' floor_divide refuses Booleans with floats", lambda step: (
            step.rules == "polars" and step.name == "floor_divide" and step.has("bool")
        )),
        ("PyArrow raises for values, as our explanations say", lambda step: (
            step.rules == "pyarrow" and _refuses_by_value(step)
        )),
        ("tinygrad refuses a negative int as exponent of integers; these rules decide by type", lambda step: (
            step.rules == "tinygrad" and step.name == "pow"
            and isinstance(step.operands[1], int) and step.operands[1] < 0
        )),
        ("pandas gives bool for a bool column with a float column on the right", lambda step: (
            step.rules.startswith("pandas") and step.name.startswith("bitwise") and step.theirs is not None
            and step.has("bool") and step.has("float")
        )),
    ],
    "dtypes": [
        ("pandas may give float64 for a division by zero", lambda step: (
            step.rules.startswith("pandas") and step.divides_by_zero and step.theirs.dtype == "float64"
        )),
        ("a reduction that is not a number is NA in nullable pandas, without a dtype", lambda step: (
            step.rules == "pandas-nullable" and step.theirs.shape == () and bool(np.isnan(step.ours))
            and step.theirs.dtype == "object"
        )),
    ],
    "values": [
        ("integers divided by zero are undefined, or null", lambda step: (
            step.divides_by_zero and not step.has("float")
        )),
        ("Polars and MLX round a floating quotient before they take its floor", lambda step: (
            step.rules in ("polars", "mlx") and step.name in ("floor_divide", "remainder")
            and _is_beyond_precision(step)
        )),
        ("Polars' floor and ceil return float16 as it is", lambda step: (
            step.rules == "polars" and step.name in ("floor", "ceil") and step.dtype == "float16"
        )),
        ("MLX approximates exp, in float32 for float64, too", lambda step: (
            step.rules == "mlx" and step.name in ("exp", "logaddexp")
            and _agree(_numbers(step.ours), step.theirs.values, 2**-18)
        )),
        ("MLX's sign of a NaN is 0", lambda step: (
            step.rules == "mlx" and step.name == "sign" and bool(np.any(np.isnan(step.ours)))
        )),
        ("MLX takes the logarithm of a complex base, so that 0 to the power of 0 is not a number", lambda step: (
            step.rules == "mlx" and step.name == "pow" and step.has("complex")
        )),
        ("MLX treats infinite complex numbers and complex NaNs differently", lambda step: (
            step.rules == "mlx" and step.has("complex") and not all(np.all(np.isfinite(each)) for each in step.arrays)
        )),
    ],
}  # fmt: skip
"""For each kind of difference, the known ones: a reason, and whether it applies to a step.

The excused step ends a chain, unless it is refused.
"""


def _is_beyond_precision(step: Step) -> bool:
    row = as_format(step.dtype)
    dividend, divisor = (np.asarray(each).astype(row.dtype) for each in step.operands)
    quotient = np.abs(dividend / divisor)
    return bool(np.any(np.isinf(divisor) | ~(quotient < 2.0**row.mantissa)))


def _agree(ours: Sequence[Any], theirs: Sequence[Any], tolerance: float) -> bool:
    """Whether numbers are equal within a relative tolerance; a NaN equals a missing number of the library."""
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs, strict=True):
        is_nan = isinstance(a, (float, complex)) and cmath.isnan(a)
        if b is None or (isinstance(b, (float, complex)) and cmath.isnan(b)):
            if not is_nan:
                return False
        elif is_nan or (a != b and not cmath.isclose(a, b, rel_tol=tolerance, abs_tol=0)):
            return False
    return True


def _numbers(array: np.ndarray) -> list[Any]:
    wide = array.astype(np.float32) if str(array.dtype) == "bfloat16" else array
    return wide.reshape(-1).tolist()


def _call(name: str, ndim: int) -> Callable[..., Any]:
    """Our call of a name."""
    if name == "where":
        condition = xp.asarray(np.array(MASK if ndim else True))
        return lambda a, b: xp.where(condition, a, b)
    if name.startswith(REVERSED):
        call = BINARY_OPERATORS[name.removeprefix(REVERSED)]
        return lambda a, b: call(b, a)
    return BINARY_OPERATORS.get(name) or UNARY_OPERATORS.get(name) or getattr(xp, name)


def _taken(rules: str, name: str, operands: list[Any], others: list[Any]) -> tuple[Step, Any]:
    """Take one step on both sides; return it, and our result as an array of ours."""
    live = library(rules)
    ndim = max(getattr(each, "ndim", 0) for each in operands)
    found = result = error = None
    fails = False
    try:
        found = _call(name, ndim)(*operands)
    except (PromotionError, RuntimeDtypeError, NarrowingError):
        pass
    except ComputationError:
        fails = True
    try:
        result = live.result(live.where(*others, ndim) if name == "where" else live.calls[name](*others))
    except live.errors as raised:
        error = raised
    in_order = operands[::-1] if name.startswith(REVERSED) else operands
    decision = explain(*in_order, operation=name.removeprefix(REVERSED))
    dtype = f"{decision.dtype}{'*' * decision.result.weak}" if decision else REFUSED
    if found is not None:
        assert f"{found.dtype}{'*' * found.weak_type}" == dtype
    step = Step(
        rules=rules,
        name=name,
        operands=tuple(each.unwrap() if hasattr(each, "unwrap") else each for each in in_order),
        ours=None if found is None else np.asarray(found.unwrap()),
        dtype=dtype,
        why="; ".join(decision.reason),
        fails=fails,
        theirs=result,
        error=error,
    )
    return step, found


def _outcome(step: Step) -> str:
    """`"accepted"`, `"refused"`, `"not computed"`, or the kind of the difference."""
    if step.theirs is None and (step.dtype == REFUSED or step.fails):
        return "refused"
    if step.theirs is None or step.dtype == REFUSED:
        return "refusals"
    if step.dtype != step.theirs.dtype:
        return "dtypes"
    if step.ours is None:
        return "not computed"
    if step.theirs.values is None:
        return "accepted" if step.ours.shape == step.theirs.shape else "values"
    row = as_format(step.dtype)
    tolerance = 0 if step.name in NEVER_ROUNDED or not row.is_inexact else 2.0 ** (2 - row.mantissa)
    is_equal = step.ours.shape == step.theirs.shape and _agree(_numbers(step.ours), step.theirs.values, tolerance)
    return "accepted" if is_equal else "values"


def _excuse(kind: str, step: Step) -> str:
    return next((why for why, applies in EXCUSES.get(kind, ()) if applies(step)), "")


def run(rules: str, chance: random.Random, chains: int) -> tuple[collections.Counter[str], list[Any]]:
    """Run chains; count what came of their steps, and list the differences that nothing excuses."""
    live, counts, unexplained = library(rules), collections.Counter[str](), list[Any]()

    def drawn(*shapes: tuple[int, ...]) -> np.ndarray:
        shape = chance.choice(shapes if live.has_scalars else shapes[:1])
        return array_of([chance.randint(0, 3) for _ in MASK], chance.choice(live.dtypes), shape)

    for _ in range(chains):
        live.begin()
        array = drawn((3,), (3,), ())
        theirs, ours = live.make(array), xp.asarray(array)
        for _ in range(chance.randint(3, 6)):
            if not ours.ndim and not live.has_scalars:
                break
            name = chance.choice([each for each in live.names if ours.ndim or each != "cumulative_sum"])
            operands, others = [ours], [theirs]
            if name not in live.unary:
                is_number = chance.random() < 0.4
                other = chance.choice(NUMBERS) if is_number else drawn(ours.shape, ())
                operands.append(other if is_number else xp.asarray(other))
                others.append(other if is_number else live.make(other))
            step, found = _taken(rules, name, operands, others)
            outcome = _outcome(step)
            why = _excuse(outcome, step)
            counts[why or outcome] += 1
            if outcome in EXCUSES and not why:
                unexplained.append(step)
            if outcome in ("dtypes", "values"):
                break
            if outcome != "accepted":
                continue
            ours, theirs = found, step.theirs.column
            if step.theirs.values is None:
                continue
            if rules != "mlx" and any(value is None or value != value for value in step.theirs.values):
                break  # data frames skip or order what is not a number
            if repr(_numbers(step.ours)) != repr(step.theirs.values):  # -0.0 equals 0.0
                ours = xp.asarray(np.asarray(step.theirs.values).astype(step.ours.dtype).reshape(found.shape))
    return counts, unexplained


@pytest.mark.parametrize("rules", LIBRARIES)
@for_each("part", range(PARTS), one_in=PARTS, one_slow_in=19)
def test_chains_give_the_dtypes_values_and_refusals_of_the_library(rules, part):
    with warnings.catch_warnings(), np.errstate(all="ignore"), use_rules(rules):
        warnings.simplefilter("ignore")
        counts, unexplained = run(rules, random.Random(f"{rules} {part}"), CHAINS // PARTS)
    assert unexplained == []
    assert counts["accepted"] > 500
    assert counts["refused"] > 25
