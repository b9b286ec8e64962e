"""Refused calls, their fixes evaluated as a user would type them, and the results that mathematics gives."""

import collections
import functools
import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np

import supremum
from arrays import calls
from supremum import PromotionError
from supremum.arrays import ELEMENTWISE_OPERATIONS, RuntimeDtypeError
from supremum.arrays.backends import backend_named
from supremum.arrays.wrapped import wrap
from supremum.errors import SupremumError
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.rules.jax_flags import holds_64_bits

NUMBERS = {"True": True, "1": 1, "-1": -1, "2.5": 2.5, "1j": 1j, "300": 300, "2**40": 2**40, "1e300": 1e300}


DIVISIONS = ("floor_divide", "remainder")
"""Operations for which PyTorch raises an error if integers are divided by zero."""


def values(row, position, name=""):
    """A NumPy array of small numbers that a format can hold; the left and the right operand get different numbers."""
    left = position == 0
    if not row.zero:
        return np.array([1, 2, 4, 2] if left else [2, 1, 2, 4], "float32").astype(row.dtype)
    right = [1, 2, 1, 3] if name in DIVISIONS else [1, 2, 0, 3]
    real = np.clip(np.array([0, 1, 2, 3] if left else right, "float64"), float(row.min), float(row.max))
    if name in DIVISIONS and not left:
        real = np.where(real == 0, float(row.min), real)  # int1 holds -1 and 0, not 1
    if row.category != "complex":
        return real.astype("float32").astype(row.dtype)
    return (real + 1j * np.array([1, 0, 2, 1] if left else [0, 1, 1, 2])).astype("complex64").astype(row.dtype)


def arrays_of(library, position, *, zero_d=False, names=None, name=""):
    """Arrays of a library, by name, in every format that the library currently supports."""
    found = {}
    for row in FORMATS:
        if names is None or row.name in names:
            raw = _array_of(library, row.name, position, zero_d, name in DIVISIONS and name, holds_64_bits())
            if raw is not None:
                found[row.name + ("[]" if zero_d else "")] = raw
    return found


@functools.cache
def _array_of(library, kind, position, zero_d, name, wide):
    host = values(as_format(kind), position, name)
    try:
        return backend_named(library).asarray(np.asarray(host[2]) if zero_d else host)
    except SupremumError:
        return None


def exact_values(value):
    """The values of an array or number, as a NumPy array of float64 or complex128."""
    if isinstance(value, (bool, int, float, complex)):
        return np.asarray(value, complex if isinstance(value, complex) else float)
    array = wrap(value)
    host = np.asarray(array.backend.numpy(array.unwrap()))
    if as_format(host.dtype).category == "complex":
        return host.astype("complex64" if not as_format(host.dtype).is_builtin else host.dtype).astype("complex128")
    return (host if as_format(host.dtype).is_builtin else host.astype("float32")).astype("float64")


LOSSES = {
    "l1_loss": lambda a, b: abs(a - b),
    "mse_loss": lambda a, b: (a - b) ** 2,
    "huber_loss": lambda a, b: np.where(abs(a - b) <= 1, (a - b) ** 2 / 2, abs(a - b) - 0.5),
    "poisson_nll_loss": lambda a, b: np.exp(a) - b * a,
    "where": lambda a, b: a,
}


INTERMEDIATE = {"poisson_nll_loss": lambda a, b: np.exp(a)}
"""Intermediate results that may be out of range although the final result is not."""


def expected_result(name, operands):
    """Return the exact result of an operation; elements without a result are NaN."""
    function = LOSSES.get(name)
    if function is not None and name != "where" and any(map(np.iscomplexobj, operands)):
        return np.nan + operands[0]  # losses are defined for real numbers; libraries differ on complex ones
    if function is None:
        row = ELEMENTWISE_OPERATIONS[name].operation
        function = next(getattr(np, each) for each in (name, *row.aliases) if hasattr(np, each))
    if name.startswith("bitwise"):
        operands = [np.asarray(each.real).astype("int64") for each in operands]
    try:
        return np.asarray(function(*operands))
    except TypeError:  # NumPy has no such function, for example no order of complex numbers
        return np.nan + operands[0]


class FixedCall:
    """The operands of a call after its fix.

    Args:
        name: name of the operation.
        bound: the user's operands, by letter.
        fix: the fix.
    """

    def __init__(self, name, bound, fix):
        self.name = name
        self.bound = bound
        self.written = fix.expressions()
        torch = __import__("torch") if any(".to(torch" in text for text in self.written.values()) else None
        known = {"np": np, "jnp": jnp, "supremum": supremum, "torch": torch} | bound
        self.operands = [eval(self.written[x], known) if x in self.written else bound[x] for x in bound]

    def wrong(self, result, compute):
        """The first wrong value of a result that was computed in some dtypes, with the right one; None for none."""
        if self.name == "bitwise_right_shift" and as_format(result.dtype).bits == 2:
            return None  # XLA shifts uint2 as if it were signed: jnp.uint2(3) >> 1 is 3
        was = [
            exact_values(value).real if ".real" in self.written.get(letter, "") else exact_values(value)
            for letter, value in self.bound.items()
        ]
        row = as_format(result.dtype)
        with np.errstate(all="ignore"):
            right, found = expected_result(self.name, was), exact_values(result)
            compared = np.broadcast_to(np.isfinite(right) & self._held(was), found.shape)
            parts = (np.asarray(right, complex).real, np.asarray(right, complex).imag)
            if self.name in INTERMEDIATE:
                parts += (INTERMEDIATE[self.name](*was).real,)
            for part in parts:
                compared = compared & (abs(part) <= float(row.component.max))
            if row.category == "integer" and not row.signed and self._is_dtype_of_an_operand(row):
                compared = compared & (parts[0] >= 0)  # the user's own unsigned integers wrap below zero
            # Nullable pandas holds in float32 what NumPy computes in float16.
            rows = (each for each in (row, *map(as_format, compute)) if each.is_inexact)
            short = min((each.component.bits for each in rows), default=row.bits)
            near = 0.6 if short <= 8 else 0.15 if short <= 16 else 1e-5
            different = compared & ~(abs(found - right) <= (near * (1 + abs(right)) if row.is_inexact else 0))
        at = np.flatnonzero(different)[:1]
        return [(np.ravel(found)[i], np.broadcast_to(right, found.shape).ravel()[i]) for i in at] or None

    def _held(self, was):
        """Where the casts keep the values, and no number is so large that libraries differ in its powers."""
        if self.name.startswith("logical"):
            return True
        near = [abs(exact_values(now) - then) <= 0.1 * abs(then) for now, then in zip(self.operands, was, strict=True)]
        is_steep = self.name.endswith("_shift") or (self.name == "pow" and any(map(np.iscomplexobj, was)))
        if self.name == "pow" and any(map(np.iscomplexobj, map(exact_values, self.operands))):
            near.append(was[0] != 0)  # libraries differ in complex powers of zero
        return np.logical_and.reduce(np.broadcast_arrays(*near, abs(was[-1]) < 10 if is_steep else True))

    def _is_dtype_of_an_operand(self, row):
        return any(hasattr(each, "dtype") and as_format(each.dtype) is row for each in self.bound.values())


def _traced(call):
    """Trace a call without compiling it."""
    errors = []

    def traced():
        try:
            call()
        except Exception as error:
            errors.append(error)

    jax.eval_shape(traced)
    if errors:
        raise errors[
            0
        ]  # here, because JAX takes most of the time to filter the traceback of an error that it passes on


@functools.cache
def _computes_in(dtype):
    """Whether XLA can compile a computation in a dtype."""
    try:
        jax.jit(lambda x: jnp.real(x + x).astype("float32"))(jnp.asarray(np.ones(4, dtype))).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError, TypeError):
        return False
    return True


class Refusals:
    """Collects refused calls: how many there are, how many have a fix, and which fixes do not work.

    Calls with the same computation run only once for all rule sets, because compilation takes most of the time.

    Args:
        rules: the active rule set.
        library: the library, with its flags, such as `"jax-x32"`.
    """

    computed, cores, cast, typed = set(), set(), set(), {}

    def __init__(self, rules, library):
        self.rules = rules
        self.library = library
        self.in_jax = library.startswith("jax")
        self.number = collections.Counter()
        self.refused, self.wrong = [], {}

    def ask(self, name, call, wrapped):
        """Call an operation; if it is refused, apply its fix and call it again."""
        bound = {
            x: wrap(each) if wrapped and hasattr(each, "dtype") else each for x, each in zip("ab", call, strict=False)
        }
        function = calls.function_of(name)
        decision = self.rules.decide(name, [as_operand(each) for each in bound.values()])
        verdict = decision.verdict
        how = (self.library, name, verdict.compute, verdict.result)
        if decision and how in self.computed:
            return
        is_traced = self.in_jax and all(map(_computes_in, verdict.compute))
        try:
            _traced(lambda: function(*bound.values())) if is_traced else function(*bound.values())
        except (PromotionError, RuntimeDtypeError) as error:
            kind, fix, refusal = type(error).__name__, error.fix, error
        except (ValueError, ArithmeticError, RuntimeError):
            return  # an error about values: a negative power of integers, or a number that no dtype can hold
        else:
            self.computed.add(how)  # the library has a kernel
            return
        self.number["refused" if isinstance(refusal, PromotionError) else "lacking"] += 1
        if isinstance(refusal, PromotionError):
            self.refused.append((name, [as_operand(each) for each in call], fix))
        if fix is None:
            return
        shown = (self.rules.name, name, *(str(as_operand(each)) for each in call), str(fix), kind)
        after = self.rules.decide(name, fix.apply(refusal.decision.operands))
        if not after:
            self.wrong[shown] = f"refused: {after.reason}"
            return
        core = (self.library, name, after.verdict.compute, after.result)
        alike = (*core, wrapped, *map(str, after.operands), str(fix))
        casts = {(self.library, wrapped, str(as_operand(bound[x])), text) for x, text in fix.expressions().items()}
        if alike not in self.typed or not casts <= self.cast:
            self.typed[alike] = self.try_out(name, bound, fix, core, casts)
        if self.typed[alike]:
            self.wrong[shown] = self.typed[alike]

    def try_out(self, name, bound, fix, core, casts):
        """Apply a fix and describe what is wrong with the result; None if nothing is.

        JAX compiles each cast once, and each operation once per dtype; all other calls are only traced.
        """
        function = calls.function_of(name)
        try:
            fixed = FixedCall(name, bound, fix) if not (self.in_jax and casts <= self.cast) else None
            self.cast |= casts
            if self.in_jax and core in self.cores:
                _traced(lambda: function(*(fixed or FixedCall(name, bound, fix)).operands))
                return None
            self.cores.add(core)
            fixed = fixed or FixedCall(name, bound, fix)
            return fixed.wrong(function(*fixed.operands), core[2])
        except Exception as error:
            if name in DIVISIONS and "ZeroDivisionError" in str(error):
                return None  # the number 1j has no real part
            return f"{type(error).__name__}: {str(error)[:200]}"

    def check(self):
        """Fail if a fix does not work, and show the first ones."""
        text = "\n".join(f"{call}: {wrong}" for call, wrong in list(self.wrong.items())[:40])
        assert not self.wrong, f"{len(self.wrong)} fixes do not work:\n{text}"


def calls_of(library, name, formats=None):
    """Calls of an operation: every pair of arrays, 0-d arrays and Python numbers, except two 0-d arrays."""
    sides = [arrays_of(library, i, names=formats, name=name) for i in (0, 1)]
    zero_d = [arrays_of(library, i, zero_d=True, names=formats, name=name) for i in (0, 1)]
    numbers = NUMBERS.values()
    if ELEMENTWISE_OPERATIONS[name].operation.arity == 1:
        return [(each,) for each in (*sides[0].values(), *zero_d[0].values(), *numbers)]
    left, right = ([*each.values()] for each in sides)
    pairs = [(left, right), (left, [*zero_d[1].values()]), ([*zero_d[0].values()], right)]
    pairs += [(left, numbers), (numbers, right), (numbers, numbers)]
    return list(itertools.chain(*(itertools.product(*pair) for pair in pairs)))


def sample_calls(library, seed, count):
    """A random sample of the calls of each operation.

    Args:
        library: the library.
        seed: of the sample; other seeds select other calls.
        count: how many calls of each operation.
    """
    chance = random.Random(seed)
    for name in ELEMENTWISE_OPERATIONS:
        calls = calls_of(library, name)
        yield name, chance.sample(calls, min(count, len(calls)))
