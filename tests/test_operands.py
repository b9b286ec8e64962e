import enum
from dataclasses import replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum.errors import OperandError, SupremumError, UnknownDtypeError
from supremum.formats import FORMATS
from supremum.operands import Operand, as_operand, parse_operand


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "category"), [(1, "integer"), (1.0, "float"), (1j, "complex")], ids=["int", "float", "complex"]
)
def test_python_numbers_and_their_types_are_weak(value, category):
    operand = as_operand(value)
    assert (operand.category, operand.dtype, operand.weak, operand.ndim, operand.value) == (
        category,
        None,
        True,
        0,
        value,
    )
    assert (
        as_operand(type(value)) == Operand(category, None, weak=True, ndim=0) == as_operand(f"{type(value).__name__}*")
    )


def test_a_python_bool_is_a_strong_bool():
    assert as_operand(True) == Operand("bool", np.dtype(bool), ndim=0, value=True)
    assert as_operand(bool) == Operand("bool", np.dtype(bool))


def test_numpy_scalars_are_not_weak_although_float64_is_a_float():
    assert isinstance(np.float64(1), float)
    assert as_operand(np.float64(1)) == Operand("float", np.dtype("float64"), ndim=0)


@pytest.mark.parametrize("row", FORMATS, ids=str)
def test_as_operand_accepts_arrays_dtypes_and_names_of_every_format(row):
    bare = Operand(row.category, row.dtype)
    assert as_operand(row.dtype) == as_operand(row.name) == as_operand(row.dtype.type) == bare
    assert as_operand(np.zeros((2, 3), row.dtype)) == Operand(row.category, row.dtype, ndim=2)
    assert as_operand(np.zeros((), row.dtype)) == Operand(row.category, row.dtype, ndim=0)


def test_jax_arrays_keep_weak_types_even_while_traced():
    assert as_operand(jnp.asarray(2)).weak
    assert as_operand(jnp.asarray(2)).dtype == np.dtype("int32")
    assert not as_operand(jnp.asarray(2, dtype="int32")).weak
    operands = []
    jax.jit(lambda x, y: operands.extend([as_operand(x), as_operand(y)]))(2.0, jnp.ones(3, jnp.bfloat16))
    assert operands == [
        Operand("float", np.dtype("float32"), weak=True, ndim=0),
        Operand("float", np.dtype(ml_dtypes.bfloat16), ndim=1),
    ]
    assert as_operand(jax.ShapeDtypeStruct((2,), jnp.float16)) == Operand("float", np.dtype("float16"), ndim=1)
    assert as_operand(jnp.bfloat16) == as_operand("bfloat16")


@pytest.mark.parametrize(
    "value",
    [
        [1, 2], None, (1,), {}, object(), Colour.RED, np.array(["a"]), np.zeros(2, "M8[s]"), np.zeros(1, "i4,f4"),
        np.zeros(1, object), np.longdouble(1), str, list, print,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_invalid_operands_raise_with_their_position(value):
    with pytest.raises(OperandError, match="argument 1 must be") as caught:
        as_operand(value, position=1)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, SupremumError)


def test_an_unknown_dtype_name_raises_with_a_suggestion():
    with pytest.raises(UnknownDtypeError, match="did you mean 'bfloat16'"):
        as_operand("bfloat")


def test_operands_print_type_value_and_weakness():
    assert [str(as_operand(x)) for x in (3, int, np.int8(1), np.zeros(2, np.int8), jnp.asarray(1.5))] == [
        "int* (3)", "int*", "int8[]", "int8", "float32[] (weak)",
    ]  # fmt: skip
    assert str(as_operand(-(10**5000))) == "int* (an integer of 16610 bits)"  # more digits than Python prints


def test_parse_operand_accepts_dtypes_and_numbers():
    assert parse_operand("int8") == as_operand("int8")
    assert parse_operand("int8[]") == as_operand(np.int8(1))
    assert parse_operand("256") == as_operand(256)
    assert [parse_operand(text).value for text in ("-1.5", "1j", "inf", "True", "1_000")] == [
        -1.5,
        1j,
        np.inf,
        True,
        1000,
    ]
    assert parse_operand("float*") == as_operand(float)
    for bad in ("int", "int9", "", "[]", "int*[]", "None"):
        with pytest.raises(UnknownDtypeError):
            parse_operand(bad)


@pytest.mark.parametrize(
    ("of_dtype", "printed", "name"),
    [
        # As measured with tensorflow_cpu 2.21.0 and paddlepaddle 3.3.1, which the tests do not install.
        ("tensorflow.python.framework.dtypes.DType", "<dtype: 'bfloat16'>", "bfloat16"),
        ("tensorflow.python.framework.dtypes.DType", "<dtype: 'string'>", None),
        ("paddle.DataType", "paddle.float8_e4m3fn", "float8_e4m3fn"),
        ("elsewhere.DType", "elsewhere.uint64", None),
    ],
)
def test_dtypes_of_frameworks_are_recognised_by_their_names(of_dtype, printed, name):
    module, _, kind = of_dtype.rpartition(".")
    dtype = type(kind, (), {"__module__": module, "__str__": lambda self: printed})()
    tensor = type("Tensor", (), {"dtype": dtype, "ndim": 1})()
    # TensorFlow's variables have a shape with a rank and no ndim.
    variable = type("Variable", (), {"dtype": dtype, "shape": type("Shape", (), {"rank": 2})()})()
    if name is None:
        for each in (dtype, tensor, variable):
            with pytest.raises(OperandError):
                as_operand(each)
    else:
        assert as_operand(dtype) == as_operand(name)
        assert as_operand(tensor) == replace(as_operand(name), ndim=1)
        assert as_operand(variable) == replace(as_operand(name), ndim=2)


def test_arrays_and_dtypes_of_mlx_are_operands():
    mx = import_or_skip("mlx.core")
    arrays = [mx.array([1.0]), mx.array(1, mx.uint8), mx.zeros((2, 2), mx.bfloat16), mx.array([1j])]
    assert [str(as_operand(array)) for array in arrays] == ["float32", "uint8[]", "bfloat16", "complex64"]
    assert as_operand(mx.float16) == as_operand("float16")


def test_tensors_and_dtypes_of_tinygrad_are_operands():
    tinygrad = import_or_skip("tinygrad")
    dtypes = tinygrad.dtypes
    tensors = [tinygrad.Tensor([1], dtype=each) for each in (dtypes.int8, dtypes.half, dtypes.fp8e5m2, dtypes.bfloat16)]
    assert [as_operand(tensor).name for tensor in tensors] == ["int8", "float16", "float8_e5m2", "bfloat16"]
    assert as_operand(dtypes.ulong) == as_operand("uint64")
    assert [str(as_operand(each)) for each in (dtypes.weakint, dtypes.weakfloat)] == ["int32 (weak)", "float32 (weak)"]
    assert [str(as_operand(tinygrad.Tensor(value))) for value in (1, 1.5)] == ["int32[] (weak)", "float32[] (weak)"]
    with pytest.raises(OperandError):
        as_operand(dtypes.void)


def test_columns_of_pandas_that_pyarrow_stores_are_operands():
    pandas = import_or_skip("pandas")
    column = pandas.Series([1, None], dtype="int8[pyarrow]")
    assert str(as_operand(column)) == str(as_operand(column.dtype)) == "int8 (nullable)"
    with pytest.raises(OperandError):
        as_operand(pandas.Series(["a"], dtype="string[pyarrow]"))
