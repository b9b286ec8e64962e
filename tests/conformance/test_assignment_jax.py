"""What `.at` stores in JAX arrays and which dtype `+=` gives, compared with the installed JAX, x64 on and off."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.assignment_judge import NUMBERS, REFUSED, STORED, check
from slowly import mostly_slow
from supremum.formats import FORMATS, as_format

METHODS = {"assign": "set", "minimum": "min", "maximum": "max"}
CLASSIC = (
    "bool", "int8", "uint8", "int32", "uint32", "int64", "bfloat16", "float16", "float32", "float64", "complex64",
)  # fmt: skip
# XLA on a CPU cannot compute in float6, and JAX does not have the other formats.
NAMES = [row.name for row in FORMATS if row.bits not in (1, 6) or row.name == "bool"]
NAMES = [name for name in NAMES if name not in ("complex32", "bcomplex32", "uint1", "int1")]
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")
either_width = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])


def _value(name):
    return NUMBERS[name] if name in NUMBERS else np.ones((), as_format(name).dtype)


def _stores(change, into, value):
    """JAX warns that it will refuse values that do not promote to the array's dtype; the warning counts as refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            found = change(jnp.ones(1, into), _value(value))
        except (TypeError, ValueError, FutureWarning):
            return REFUSED
    return STORED if found.dtype.name == into else REFUSED


def _cells(name, change, names):
    targets = [each for each in names if jnp.ones(1, each).dtype.name == each]
    values = [*names, *NUMBERS]
    return {(name, into, value): _stores(change, into, value) for into, value in itertools.product(targets, values)}


@pytest.mark.slow
@either_width
@pytest.mark.parametrize("name", mostly_slow(["assign", "add", "multiply", "minimum", "maximum"], "assign"))
def test_at_updates_store_what_installed_jax_stores(name, x64):
    def change(array, value):
        return getattr(array.at[0], METHODS.get(name, name))(value)

    rules = "jax-x64" if x64 else "jax-x32"
    with jax.enable_x64(x64):
        check(rules, "at", _cells(name, lambda *operands: jax.eval_shape(change, *operands), CLASSIC))


@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@either_width
@pytest.mark.parametrize("name", ["assign", "add"])
def test_eager_at_updates_store_what_installed_jax_stores_for_every_format(name, x64):
    def change(array, value):
        return getattr(array.at[0], METHODS.get(name, name))(value)

    with jax.enable_x64(x64):
        check("jax-x64" if x64 else "jax-x32", "eager at", _cells(name, change, NAMES))


@either_width
def test_in_place_operators_are_refused_where_jax_gives_a_new_dtype(x64):
    with jax.enable_x64(x64):
        check(
            "jax-x64" if x64 else "jax-x32",
            "operator",
            _cells("add", lambda a, b: jax.eval_shape(jnp.add, a, b), CLASSIC),
        )
