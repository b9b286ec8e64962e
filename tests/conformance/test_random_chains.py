"""Random chains of operations with mixed dtypes, arrays without dimensions and numbers near the limits, beside NumPy,
PyTorch and JAX: the same dtypes, values and refusals.
"""

import random
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import for_each, slow
from supremum import PromotionError, use_rules
from supremum.arrays import RuntimeDtypeError, namespace
from supremum.formats import as_format

FRAMEWORKS = [("numpy", "numpy"), ("torch", "torch"), slow("jax", "jax-x64"), slow("jax", "jax-x32")]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "float16", "float32"]
NUMBERS = [True, 0, 1, -1, 3, 127, 1000, 2**31, 2**40, 0.5, -2.0, 70000.0, 1e300]
SHAPES = [(3,), (3,), (2, 3), ()]
CHAINS = 5000


def _reduced(name):
    def call(module, a, _):
        options = {"correction": 0} if (module.__name__, name) == ("torch", "var") else {}
        return getattr(module, name)(a, **options)

    return call


def _of_arrays(function):
    """A function of two arrays with dimensions; it leaves the first operand as it is beside any other."""
    return lambda module, a, b: function(module, a, b) if getattr(a, "shape", ()) and getattr(b, "shape", ()) else a


def _cumulative_sum(module, a, _):
    name = "cumulative_sum" if hasattr(module, "cumulative_sum") else "cumsum"
    return getattr(module, name)(a, **{"dim" if module.__name__ == "torch" else "axis": -1}) if a.shape else a


CALLS = {
    "add": lambda _, a, b: a + b,
    "radd": lambda _, a, b: b + a,
    "subtract": lambda _, a, b: a - b,
    "multiply": lambda _, a, b: a * b,
    "divide": lambda _, a, b: a / b,
    "less": lambda _, a, b: a < b,
    "equal": lambda _, a, b: a == b,
    "bitwise_and": lambda _, a, b: a & b,
    "bitwise_xor": lambda _, a, b: a ^ b,
    "negative": lambda _, a, __: -a,
    "abs": lambda _, a, __: abs(a),
    "sum": _reduced("sum"),
    "max": _reduced("max"),
    "any": _reduced("any"),
    "mean": _reduced("mean"),
    "prod": _reduced("prod"),
    "var": _reduced("var"),
    "clip": lambda module, a, _: module.clip(a, 0, 3),
    "cumulative_sum": _cumulative_sum,
    "maximum": _of_arrays(lambda module, a, b: module.maximum(a, b)),
    "concat": _of_arrays(lambda module, a, b: module.concat([a, b])[: a.shape[0]]),
    "matmul": _of_arrays(lambda module, a, b: module.matmul(a, b.T if len(b.shape) > 1 else b)),
}
ERRORS = (TypeError, RuntimeError, ValueError, OverflowError, NotImplementedError)


def _live(framework):
    """The framework's functions, a function that makes an array, and one that makes an array of NumPy."""
    if framework == "torch":
        torch = import_or_skip("torch")
        return torch, lambda x, dtype: torch.asarray(x).to(getattr(torch, dtype)), lambda x: x.to(torch.float64).numpy()
    if framework == "jax":
        return jnp, lambda x, dtype: jnp.asarray(x).astype(dtype), np.asarray
    return np, lambda x, dtype: np.asarray(np.asarray(x).astype(dtype)), np.asarray


@pytest.mark.parametrize(("framework", "rules"), FRAMEWORKS)
@for_each("part", range(10), one_in=10, one_slow_in=0)
def test_chains_give_the_dtypes_values_and_refusals_of_the_framework(framework, rules, part):
    is_wide = rules != "jax-x32"
    dtypes = [*DTYPES, *(["int64", "float64"] if is_wide else []), *(["bfloat16"] if framework == "torch" else [])]
    numbers = NUMBERS if is_wide else [number for number in NUMBERS if abs(number) < 2**31]
    chance = random.Random(f"{framework} {part}")
    counts = dict.fromkeys(("accepted", "refused"), 0)
    with jax.enable_x64(is_wide), warnings.catch_warnings(), np.errstate(all="ignore"), use_rules(rules):
        warnings.simplefilter("ignore")
        module, make, plain = _live(framework)
        xp = namespace(framework)
        for _ in range(CHAINS // 10):
            theirs = make(np.full(chance.choice(SHAPES), chance.randint(0, 3)), chance.choice(dtypes))
            ours, steps = xp.asarray(theirs), [str(theirs.dtype)]
            for _ in range(chance.randint(3, 6)):
                name = chance.choice([*CALLS])
                if chance.random() < 0.4:
                    other = own = chance.choice(numbers)
                    steps.append((name, other))
                else:
                    shape = chance.choice([tuple(theirs.shape), ()])
                    other = make(np.full(shape, chance.randint(0, 3)), chance.choice(dtypes))
                    own = xp.asarray(other)
                    steps.append((name, str(other.dtype), shape))
                try:
                    found = CALLS[name](xp, ours, own)
                except (PromotionError, RuntimeDtypeError):
                    found = None
                try:
                    expected = CALLS[name](module, theirs, other)
                except ERRORS:
                    expected = None
                assert (found is None) == (expected is None), steps
                counts["refused" if found is None else "accepted"] += 1
                if found is None:
                    continue
                assert found.dtype == as_format(str(expected.dtype).removeprefix("torch.")).dtype, steps
                assert found.shape == tuple(expected.shape), steps
                tolerance = 1e-3 if framework == "jax" else 0
                np.testing.assert_allclose(
                    plain(found.unwrap()), plain(expected), rtol=tolerance, atol=0, err_msg=str(steps)
                )
                ours, theirs = found, expected
    assert counts["accepted"] > 1000
    assert counts["refused"] > 50
