"""What NumPy says about the values that a program made: the reference for the counts of a profile."""

import jax
import numpy as np

from supremum.formats import FORMATS, Kind
from supremum.jaxprs import interpret, plan_of
from supremum.numerics.packed_tallies import Packing
from supremum.numerics.plans import steps_with_values
from supremum.numerics.report import Profile
from supremum.numerics.tallied_results import Counting, CountingLater, slots_of
from supremum.numerics.tallies import Tally

FLOATS = tuple(row for row in FORMATS if row.kind is Kind.FLOAT)


def outcomes_of_casts(values, target):
    """What becomes of finite values in a format, by casting them."""
    with np.errstate(all="ignore"):
        given = np.abs(values.astype("float64"))
        # Not every pair of narrow formats has a cast of its own; float32 holds all of their values.
        wide = values if values.itemsize > 2 else values.astype("float32")
        cast = np.abs(wide.astype(target.dtype).astype("float64"))
    step = 2.0 ** (target.max_exponent - target.mantissa)
    has_no_room = not target.inf and np.isfinite(target.dtype.type(np.inf))
    saturates = has_no_room & (given >= target.max + step / 2)
    lost = ~np.isfinite(cast) | saturates
    return np.select([lost, cast == 0, cast < target.smallest_normal], ["overflow", "zero", "subnormal"], "normal")


def counts_of(runs, formats, histogram=False):
    """The counts of the values of all runs of an operation, as `ValueCounts.to_dict` has them."""
    values = np.concatenate([np.ravel(each) for each in runs]) if runs else np.zeros(0, "float32")
    if np.iscomplexobj(values):
        values = np.concatenate([values.real, values.imag])
    with np.errstate(all="ignore"):  # ml_dtypes warns of NaNs
        wide = values.astype("float64")
    numbers = values[np.isfinite(wide) & (wide != 0)]
    zeros = int((wide == 0).sum())
    found = {}
    for target in formats:
        outcomes = outcomes_of_casts(numbers, target)
        found[target.name] = {
            "overflow": int((outcomes == "overflow").sum()) + (0 if target.zero else zeros),
            "flushed": int((outcomes == "zero").sum()),
            "subnormal": int((outcomes == "subnormal").sum()),
        }
    magnitudes = np.abs(numbers.astype("float64"))
    return {
        "runs": len(runs),
        "values": values.size,
        "least": magnitudes.min() if magnitudes.size else None,
        "largest": magnitudes.max() if magnitudes.size else None,
        "zeros": zeros,
        "nans": int(np.isnan(wide).sum()),
        "infinities": int(np.isinf(wide).sum()),
        "formats": found,
        "exponents": exponents_of(magnitudes) if histogram else None,
    }


def exponents_of(magnitudes):
    """How many magnitudes have each binary exponent, as `ValueCounts.to_dict` has it."""
    exponents, counts = np.unique(np.frexp(magnitudes)[1] - 1, return_counts=True)
    return dict(zip(map(str, exponents.tolist()), counts.tolist(), strict=True))


def profile_with_values(function, arguments, formats=FLOATS, histogram=False, jitted=False):
    """Profile a function, and fetch the values that its operations made from the same compiled program.

    Returns:
        The profile, and the values of the runs of each of its slots.
    """
    plan = plan_of(jax.make_jaxpr(function)(*arguments))
    slots = slots_of(steps_with_values(plan, "profile"), formats, histogram)
    values = {id(slot): [] for slot in slots}

    class Recording(Counting):
        def tally(self, value, slot):
            jax.debug.callback(values[id(slot)].append, value)
            return super().tally(value, slot)

    counting = Recording(slots)

    def count(counted):
        packing = Packing()
        for slot, each in zip(slots, counted, strict=True):
            packing.add(slot, each)
        return packing.tallies(slots)

    def run(*given):
        outputs, records = interpret(plan, given, CountingLater(counting))
        counted = counting.in_order(records)
        return outputs, counted, count(counted) if jitted else None

    outputs, counted, tallies = jax.jit(run)(*arguments)
    jax.effects_barrier()
    for slot, each in zip(slots, counted, strict=True):
        if not isinstance(each, Tally):  # it is not in a loop or branch
            values[id(slot)].append(np.repeat(each, slot.copies))
    runs = [[np.asarray(each) for each in runs] for runs in values.values()]
    return Profile(tuple(outputs), tallies or count(counted), slots, formats), runs


def bits(value):
    """The bits of an array."""
    array = np.asarray(value)
    return array.view(f"uint{array.itemsize * 8}")
