"""Products as devices compute them, in NumPy: operands rounded by ml_dtypes and on integer bits, exact sums."""

import ml_dtypes
import numpy as np


def nearest(x, bits):
    """Round float32 to nearest, ties to even, with so many mantissa bits and the exponent of float32."""
    x = np.asarray(x, np.float32)
    if bits == 7:
        with np.errstate(invalid="ignore"):  # NaN
            return x.astype(ml_dtypes.bfloat16).astype(np.float32)
    drop = 23 - bits
    raw = x.view(np.uint32).astype(np.uint64)
    kept = (raw + (1 << (drop - 1)) - 1 + ((raw >> np.uint64(drop)) & np.uint64(1))) >> np.uint64(drop)
    found = (kept << np.uint64(drop)).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), found, x)


def tf32(x):
    return nearest(x, 10)


def bfloat16(x):
    return nearest(x, 7)


def float16(x):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def float32(x):
    return np.asarray(x, np.float32)


def cut(x, bits):
    return (np.asarray(x, np.float32).view(np.uint32) & np.uint32((0xFFFFFFFF << (23 - bits)) & 0xFFFFFFFF)).view(
        np.float32
    )


def parts(x, bits, count, first):
    """Split float32 into parts: all but the last one by the function `first`, the last one to nearest."""
    x, found = np.asarray(x, np.float32), []
    for _ in range(count - 1):
        found.append(first(x, bits))
        x = x - found[-1]
    return [*found, nearest(x, bits)]


# The order in which XLA adds the products of parts, from dot_algorithm_rewriter.cc.
ORDERS = {
    3: [(1, 0), (0, 1), (0, 0)],
    6: [(1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)],
    9: [(2, 2), (2, 1), (1, 2), (1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)],
}


def exact(product, left, right):
    """A product in float64 that must be exact in float32, so that no order of the sum can matter."""
    found = product(left.astype(np.float64), right.astype(np.float64))
    assert (found.astype(np.float32) == found).all(), "the test's numbers are too long"
    return found.astype(np.float32)


def outer(left, right, rounding):
    """The product of a column and a row, in which each element is one product and is rounded once."""
    return (rounding(left).astype(np.float64) * rounding(right).astype(np.float64)).astype(np.float32)


def once(product, left, right, rounding):
    return exact(product, rounding(left), rounding(right))


def passes(product, left, right, bits, count, first=nearest):
    lefts, rights = (parts(x, bits, {3: 2, 6: 3, 9: 3}[count], first) for x in (left, right))
    total = np.float32(0)
    for one, other in ORDERS[count]:
        total = total + exact(product, lefts[one], rights[other])
    return total


def whole(rng, shape):
    """Numbers of 13 bits whose products can be added in any order: 4 of them in TF32, many in bfloat16."""
    return (rng.integers(2**12, 2**13, shape) * rng.choice([-1, 1], shape)).astype(np.float32) / np.float32(2**12)


def full(rng, shape):
    """Numbers with all 24 bits of float32; a product of two parts of them is exact, a sum need not be."""
    return (rng.integers(2**23, 2**24, shape) * rng.choice([-1, 1], shape)).astype(np.float32) / np.float32(2**23)
