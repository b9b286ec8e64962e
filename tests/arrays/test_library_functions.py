"""Functions of the namespaces without rules: values, dtypes and weak flags are those of the library."""

import jax.numpy as jnp
import numpy as np
import pytest

from supremum import Array, namespace
from supremum.errors import OperandError

NAMED = """
sum prod mean std var max min any all argmax argmin sort argsort cumulative_sum cumulative_prod flip nonzero
count_nonzero unique_values unique_counts unique_inverse matrix_transpose tril triu zeros_like ones_like
broadcast_arrays unstack expand_dims
"""
SAME = dict.fromkeys(NAMED.split(), ()) | {
    "reshape": ((4,),), "permute_dims": ((1, 0),), "roll": (1,), "tile": ((2, 1),), "repeat": (2,),
    "broadcast_to": ((3, 2, 2),), "take": (np.array([1, 0]),), "take_along_axis": (np.array([[1, 0]]),),
    "moveaxis": (0, 1),
}  # fmt: skip
AXIS = {"expand_dims": 0, "take": 1, "take_along_axis": 1, "cumulative_sum": 0, "cumulative_prod": 0}
OPTIONS = {name: {"axis": axis} for name, axis in AXIS.items()}
LINALG = "cholesky det eigh eigvalsh inv matrix_norm matrix_rank pinv qr slogdet svd svdvals trace vector_norm diagonal"
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift"
OF_REALS = ("rfft", "rfftn", "ihfft", "fftshift", "ifftshift")


def _flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _plain(value):
    """Convert every array to a NumPy array."""
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return np.asarray(value) if isinstance(value, Array) else np.asarray(wrapped(value))


def wrapped(raw):
    return raw if isinstance(raw, (bool, int, float)) else Array(raw)


def _check_same(ours, theirs, name, x, *args, **options):
    result = getattr(ours, name)(x, *args, **options)
    args = [Array(x).__array_namespace__().asarray(a).unwrap() if isinstance(a, np.ndarray) else a for a in args]
    expected = getattr(theirs, name)(x.unwrap(), *args, **options)
    assert isinstance(result, Array | tuple | list)
    for found, wanted in zip(_leaves(_plain(result)), _leaves(_plain(expected)), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


def _leaves(value):
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, list) else [value]


@pytest.mark.one_in(2)
def test_functions_without_rules_give_the_values_and_dtypes_of_the_library(xp):
    x = xp.asarray([[4.0, 1.0], [2.0, 3.0]], dtype="float32")
    theirs = x.backend.xp
    for name, args in SAME.items():
        _check_same(xp, theirs, name, x, *args, **OPTIONS.get(name, {}))
    symmetric = x @ x.mT
    step = 4 if xp is namespace("jax") else 1  # JAX compiles each function
    for name in LINALG.split()[::step]:
        _check_same(xp.linalg, theirs.linalg, name, symmetric)
    for name in FFT.split()[::step]:
        real = (
            symmetric if name in ("rfft", "rfftn", "ihfft", "fftshift", "ifftshift") else symmetric.astype("complex64")
        )
        _check_same(xp.fft, theirs.fft, name, real)


def test_functions_with_several_results_keep_the_container_type(xp):
    matrix = xp.asarray([[4.0, 1.0], [2.0, 3.0]], dtype="float32")
    q, r = found = xp.linalg.qr(matrix)
    np.testing.assert_allclose(np.asarray(found.Q @ r), np.asarray(matrix), rtol=1e-5)
    assert isinstance(q, Array)
    assert type(xp.meshgrid(matrix[0], matrix[1])) is type(xp.broadcast_arrays(q, r)) is list
    assert type(xp.unstack(matrix)) is tuple
    a, b = xp.broadcast_arrays(matrix, xp.asarray(1, dtype="int8"))  # broadcasting does not promote
    assert (a.dtype, b.dtype, b.shape) == (np.float32, np.int8, (2, 2))


@pytest.mark.slow
def test_results_from_weak_arrays_are_weak_exactly_as_in_jax(xp):
    reference = jnp.broadcast_to(jnp.asarray(1.0), (2, 2))
    x = xp.broadcast_to(xp.asarray(1.0), (2, 2))
    assert x.weak_type
    assert reference.weak_type
    for name, args in SAME.items():
        options = OPTIONS.get(name, {})
        theirs, found = getattr(jnp, name)(reference, *args, **options), getattr(xp, name)(x, *args, **options)
        for one, other in zip(_flat(theirs), _flat(found), strict=True):
            assert other.weak_type == one.weak_type, name
    # The position of a weak integer is not weak.
    assert not xp.argmax(xp.full_like(xp.asarray(1), 2)).weak_type
    weak, strong = xp.broadcast_arrays(xp.asarray(1), xp.asarray(1, dtype="int64"))
    assert (weak.weak_type, strong.weak_type) == (True, False)


def test_functions_outside_the_standard_require_one_dtype():
    for name in ("numpy", "jax"):
        xp = namespace(name)
        a, b = xp.asarray([1.0, 2.0], dtype="float32"), xp.asarray([1, 2], dtype="int8")
        assert xp.kron(a, a).dtype == np.float32
        with pytest.raises(OperandError, match="kron is not in the array API standard") as caught:
            xp.kron(a, b)
        fix = str(caught.value).partition("cast first, with ")[2]
        assert xp.kron(a, eval(fix)).dtype == np.float32
