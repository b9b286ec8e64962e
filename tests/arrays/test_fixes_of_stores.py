"""Fixes of refused in-place operators, `@=` and `out=` work and give the right values."""

import itertools

import jax
import numpy as np
import pytest

import supremum
from arrays.fixes import exact_values, expected_result
from optional_packages import import_or_skip
from slowly import mostly_slow
from supremum import PromotionError, get_rules, use_rules
from supremum.arrays import ArrayVariable, RuntimeDtypeError
from supremum.arrays.wrapped import wrap
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.operations import OPERATIONS
from supremum.rules import Storing

pytestmark = [
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Casting complex values:Warning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
]
KINDS = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "complex64")
LEFT, RIGHT = np.array([[3, 2], [1, 2]]), np.array([[1, 2], [1, 1]])
OPERATORS = {
    "a += b": "add", "a -= b": "subtract", "a *= b": "multiply", "a /= b": "divide", "a //= b": "floor_divide",
    "a **= b": "pow", "a &= b": "bitwise_and", "a @= b": "matmul",
}  # fmt: skip
OUTPUTS = {f"np.{name}(a, b, out=c)": name for name in ("add", "subtract", "divide", "logical_and", "less", "maximum")}


def _made(library, value, kind):
    """An array of a dtype, or the Python number that is given instead of a dtype."""
    if not isinstance(kind, str):
        return kind
    return wrap(supremum.namespace(library).asarray(value.astype("float32").astype(kind)))


def _kinds(library):
    return [kind for kind in KINDS if library != "jax" or kind not in ("int64", "bfloat16")]


def _outcome(library, statement, name, bound, target):
    """Run a statement and describe its outcome; if it is refused with a fix, run the fixed statement."""
    kept = bound[target]
    before = {letter: exact_values(each) for letter, each in bound.items()}
    names = {"np": np} | bound
    try:
        exec(statement, names)
    except (PromotionError, RuntimeDtypeError) as error:
        fix = error.fix
        if getattr(error, "remedy", ""):
            return "remedy"  # a change of JAX's flags
        if error.decision.verdict.overflow:
            return "error about values"
    except (ValueError, ArithmeticError):
        return "error about values"
    else:
        return "done"
    if fix is None:
        return "no fix"
    written = fix.expressions()
    assert target not in written, (statement, str(fix))
    assert exact_values(bound[target]).tolist() == before[target].tolist()  # the refused statement wrote nothing
    letters = [letter for letter in bound if letter != "c"]
    kinds = {letter: str(getattr(each, "dtype", each)) for letter, each in bound.items()}
    shown = (library, statement, kinds, str(fix))
    torch = __import__("torch") if library == "torch" else None
    known = {"np": np, "torch": torch} | bound
    fixed = {letter: eval(written[letter], known) if letter in written else bound[letter] for letter in letters}
    names = {"np": np} | bound | fixed
    try:
        exec(statement, names)
    except Exception as error:
        raise AssertionError((*shown, str(error))) from error
    result = names[target]
    assert result.dtype == kept.dtype, shown
    was = [before[letter].real if ".real" in written.get(letter, "") else before[letter] for letter in letters]
    right = was[0] @ was[1] if name == "matmul" else expected_result(name, was)
    found, right = exact_values(result), np.asarray(right)
    own = right.real >= 0 if str(result.dtype) == "uint8" else True  # the user's own unsigned integers wrap
    assert np.all(np.isclose(found, right, rtol=0.02) | np.logical_not(own)), (*shown, found, right)
    return "fixed"


def _libraries(*fast):
    return pytest.mark.parametrize("library", mostly_slow(("numpy", "jax", "torch"), *fast))


@pytest.fixture(autouse=True)
def _wide_or_not(library):
    if library == "torch":
        import_or_skip("torch")
    with jax.enable_x64(False), np.errstate(all="ignore"):
        yield


RULES = ("numpy", "torch", "jax-x32", "tf-rfc-safe", "paddle", "array-api")


def _has_no_fix(rules, name, operands, into, *, is_first, storing=None):
    """Whether a refused store has no fix, for a known reason; `is_first` if the target is the first operand."""
    given = [as_operand(each) for each in operands]
    if into == "bool" and OPERATIONS[name].accepts != ("bool",):
        return True  # a fix does not turn numbers into bools
    pairs = [(as_operand(into if is_first else kind), as_operand(kind)) for kind in KINDS]
    if not any(rules.decide(name, pair, as_operand(into), storing) for pair in pairs):
        return True  # no result has the target's dtype, or the rules do not have that dtype
    if as_format(into).category == "complex" and "complex" not in OPERATIONS[name].accepts:
        return True  # some rules accept complex numbers for which libraries have no function
    if (
        any(each.is_python_scalar and each.category == "float" for each in given)
        and as_format(into).category == "integer"
    ):
        return True  # a fix does not drop the fraction of a number
    # Nor does it drop imaginary parts.
    return rules.name.startswith("tf-rfc") and any(each.category == "complex" for each in given)


@pytest.mark.one_slow_in(8)
@pytest.mark.one_in(4)
@_libraries("numpy")
@pytest.mark.parametrize("rules", mostly_slow(RULES, "numpy", "tf-rfc-safe"))
@pytest.mark.parametrize("holder", [wrap, ArrayVariable])
def test_fixes_of_in_place_operators_work(holder, rules, library):
    number, without = 0, []
    storing = Storing.KEPT if holder is ArrayVariable else None
    with use_rules(rules):
        for statement, name in OPERATORS.items():
            kinds = _kinds(library)
            for into, other in itertools.product(kinds, (*kinds, 2, 2.5)):
                if name == "matmul" and not isinstance(other, str):
                    continue
                bound = {"a": _made(library, LEFT, into), "b": _made(library, RIGHT, other)}
                bound["a"] = holder(bound["a"])
                outcome = _outcome(library, statement, name, bound, "a")
                number += outcome == "fixed"
                asked = get_rules(rules), name, (into, other), into
                if outcome == "no fix" and not _has_no_fix(*asked, is_first=True, storing=storing):
                    without.append((statement, into, other))
    assert number > 20
    assert without == []


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(2)
@_libraries("numpy")
@pytest.mark.parametrize("rules", mostly_slow(RULES, "numpy", "tf-rfc-safe"))
def test_fixes_of_functions_with_out_work(rules, library):
    if library == "jax":
        pytest.skip("JAX's arrays are immutable")
    number, without = 0, []
    with use_rules(rules):
        for statement, name in OUTPUTS.items():
            for kinds in itertools.product(KINDS[::2], (*KINDS[::2], 2, 2.5), KINDS):
                sides = zip((LEFT, RIGHT, LEFT), kinds, strict=True)
                bound = dict(zip("abc", (_made(library, *side) for side in sides), strict=True))
                outcome = _outcome(library, statement, name, bound, "c")
                number += outcome == "fixed"
                known = get_rules(rules), name, kinds[:2], kinds[2]
                if outcome == "no fix" and not _has_no_fix(*known, is_first=False):
                    without.append((statement, *kinds))
    assert number > 20
    assert without == []
