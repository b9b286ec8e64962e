"""Installed libraries behind one interface, for tests that run chains of operations beside them.

The calls of each library are those of its module in tools/oracles, such as polars.py.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optional_packages import import_or_skip
from supremum.formats import as_format

BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "equal": operator.eq, "not_equal": operator.ne,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
}  # fmt: skip
UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {"negative": operator.neg, "abs": abs}
REVERSED = "reversed "
"""The start of the names of calls whose operands change places."""
MASK = [True, False, True]
"""The condition of `where`, and as many elements as every column has."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call.

    Args:
        column: what the library calls next.
        dtype: our name of its dtype, with `*` if it is weak.
        values: its elements, with None for missing ones; None if they are not computed.
        shape: the shape of the array that would hold them.
    """

    column: Any
    dtype: str
    values: Sequence[Any] | None
    shape: tuple[int, ...]


def named(module: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Functions of a module by our names: "sum" or, where the library has a different one, "prod:product"."""
    pairs = (name.partition(":") for name in names.split())
    return {ours: getattr(module, theirs or ours) for ours, _, theirs in pairs}


def _swapped(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: call(b, a)


class Library:
    """An installed library.

    Args:
        unary, binary: its calls of one and of two operands, by our names.
    """

    rules: ClassVar[str]
    """The name of our rules for it."""
    dtypes: ClassVar[list[str]] = [
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64"),
    ]
    has_scalars: ClassVar[bool] = True
    """Whether it has arrays without dimensions, or scalars that count like them."""
    errors: tuple[type[BaseException], ...] = (Exception,)
    """What it raises if it refuses."""

    def __init__(self, unary: dict[str, Callable[..., Any]], binary: dict[str, Callable[..., Any]]) -> None:
        self.unary = unary
        swapped = {f"{REVERSED}{name}": _swapped(binary[name]) for name in ("add", "subtract", "multiply", "divide")}
        self.calls = unary | binary | swapped
        self.names = [*self.calls, *(["where"] if hasattr(self, "where") else [])]

    def begin(self) -> None:
        """Start a chain; in most libraries every array stands alone."""

    @staticmethod
    def lacks_kernel(error: BaseException) -> bool:
        """Whether a call failed because this build of the library lacks a kernel, which rules leave out."""
        return False


class Polars(Library):
    """Expressions in `select`; each result becomes a column, and of a scalar the next call takes `first`."""

    rules = "polars"

    def __init__(self) -> None:
        self.polars = pl = import_or_skip("polars")
        own = {"bool": "Boolean", "uint": "UInt", "int": "Int", "float": "Float"}
        names = {name: own[name.rstrip("0123456789")] + name.lstrip("boluintfa") for name in (*self.dtypes, "int128")}
        self.types = {name: getattr(pl, theirs) for name, theirs in names.items()}
        self.name_of = {dtype: name for name, dtype in self.types.items()}
        # Polars panics with an exception that is not of class Exception.
        self.errors = (Exception, pl.exceptions.PanicException)
        unary = named(
            pl.Expr,
            "sqrt exp sign floor ceil round isnan:is_nan isfinite:is_finite sum prod:product min max any all mean"
            " cumulative_sum:cum_sum",
        )
        binary = named(pl, "maximum:max_horizontal minimum:min_horizontal")
        super().__init__(UNARY_OPERATORS | unary, BINARY_OPERATORS | binary)

    def begin(self) -> None:
        """Drop the columns of the last chain."""
        self.frame = self.polars.DataFrame({"mask": MASK})
        self.count = itertools.count()

    def make(self, array: np.ndarray) -> Any:
        """Make a column of a NumPy array."""
        return self._kept(self.polars.Series(array.reshape(-1)).cast(self.types[str(array.dtype)]), array.ndim)

    def _kept(self, series: Any, ndim: int) -> Any:
        name = f"c{next(self.count)}"
        column = series if ndim else series.extend_constant(series[0], len(MASK) - 1)
        self.frame = self.frame.with_columns(column.alias(name))
        return self.polars.col(name) if ndim else self.polars.col(name).first()

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two columns."""
        condition = self.polars.col("mask") if ndim else self.polars.lit(True)
        return self.polars.when(condition).then(left).otherwise(right)

    def result(self, found: Any) -> Result:
        """Run an expression."""
        series = self.frame.select(r=found)["r"]
        shape = () if len(series) == 1 else (len(series),)
        values = series.to_list()
        return Result(self._kept(series, len(shape)), self.name_of[series.dtype], values, shape)


class PyArrow(Library):
    """Functions of pyarrow.compute, for arrays and for scalars of PyArrow, with their safe casts."""

    rules = "pyarrow"

    def __init__(self) -> None:
        self.pyarrow, pc = import_or_skip("pyarrow"), import_or_skip("pyarrow.compute")
        self.types = {name: getattr(self.pyarrow, {"bool": "bool_"}.get(name, name))() for name in self.dtypes}
        self.name_of = {dtype: name for name, dtype in self.types.items()}
        self.if_else = pc.if_else
        unary = named(
            pc,
            "negative:negate abs sqrt exp sign floor ceil round isnan:is_nan isfinite:is_finite sum prod:product min"
            " max any all mean cumulative_sum",
        )
        binary = named(
            pc,
            "add subtract multiply divide remainder:modulo pow:power less less_equal greater equal not_equal"
            " bitwise_and:bit_wise_and bitwise_or:bit_wise_or bitwise_xor:bit_wise_xor"
            " maximum:max_element_wise minimum:min_element_wise",
        )
        super().__init__(unary, binary)

    def make(self, array: np.ndarray) -> Any:
        """Make an array, or a scalar."""
        made = self.pyarrow.array(array.reshape(-1), self.types[str(array.dtype)])
        return made if array.ndim else made[0]

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two arrays."""
        return self.if_else(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Read a result."""
        is_scalar = isinstance(found, self.pyarrow.Scalar)
        values = [found.as_py()] if is_scalar else found.to_pylist()
        return Result(found, self.name_of[found.type], values, () if is_scalar else (len(values),))


class Pandas(Library):
    """Operators, methods and NumPy's functions of Series with NumPy's dtypes."""

    rules = "pandas"
    nullable = False
    has_scalars = False
    """Chains end with a reduction: pandas treats a NumPy scalar like a Python number, and these rules like a column."""

    def __init__(self) -> None:
        self.pandas = import_or_skip("pandas")
        methods = {
            name: operator.methodcaller({"cumulative_sum": "cumsum"}.get(name, name))
            for name in ("sum", "prod", "min", "max", "any", "all", "mean", "round", "cumulative_sum")
        }
        functions = named(np, "sqrt exp sign floor ceil isfinite isnan")
        super().__init__(UNARY_OPERATORS | methods | functions, BINARY_OPERATORS | named(np, "maximum minimum"))

    def make(self, array: np.ndarray) -> Any:
        """Make a Series."""
        name = str(array.dtype)
        if self.nullable:
            name = "boolean" if name == "bool" else name.capitalize().replace("Ui", "UI")
        return self.pandas.Series(array).astype(name)

    def result(self, found: Any) -> Result:
        """Read a result; a column of objects is a refusal."""
        if not isinstance(found, self.pandas.Series):
            number = found.item() if isinstance(found, np.generic) else found
            return Result(found, np.asarray(found).dtype.name, [number], ())
        if found.dtype == object:
            raise TypeError("pandas gives a column of objects")
        values = [None if value is self.pandas.NA else value for value in found.tolist()]
        return Result(found, getattr(found.dtype, "numpy_dtype", found.dtype).name, values, (len(values),))


class NullablePandas(Pandas):
    """The same with nullable dtypes, such as Int8."""

    rules = "pandas-nullable"
    dtypes: ClassVar = [name for name in Library.dtypes if name != "float16"]
    nullable = True


class Mlx(Library):
    """Operators and functions of MLX on the CPU, for arrays with and without dimensions."""

    rules = "mlx"
    dtypes: ClassVar = [*Library.dtypes, "bfloat16", "complex64"]

    def __init__(self) -> None:
        self.mlx = mx = import_or_skip("mlx.core")
        mx.set_default_device(mx.cpu)
        unary = named(
            mx, "sqrt exp sign floor ceil round isnan isfinite sum prod min max any all mean cumulative_sum:cumsum"
        )
        super().__init__(UNARY_OPERATORS | unary, BINARY_OPERATORS | named(mx, "maximum minimum logaddexp"))

    def make(self, array: np.ndarray) -> Any:
        """Make an array."""
        name = str(array.dtype)
        wide = array.astype(np.float32) if name == "bfloat16" else array
        return self.mlx.array(wide, getattr(self.mlx, {"bool": "bool_"}.get(name, name)))

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two arrays."""
        return self.mlx.where(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Evaluate an array."""
        self.mlx.eval(found)
        name = str(found.dtype).removeprefix("mlx.core.")
        return Result(found, name, found.reshape((-1,)).tolist(), tuple(found.shape))


class Tinygrad(Library):
    """Operators and methods of tensors, weak ones included, whose graphs are not computed: they have dtypes alone."""

    rules = "tinygrad"
    dtypes: ClassVar = [*Library.dtypes, "bfloat16"]

    def __init__(self) -> None:
        self.tinygrad = import_or_skip("tinygrad")
        self.strong = import_or_skip("tinygrad.dtype").strong_dtype
        specification = import_or_skip("tinygrad.uop.spec")
        self.verify, self.spec = specification.type_verify, specification.spec_tensor
        own = {"weakint": "int32*", "weakfloat": "float32*"}
        names = {name: name for name in self.dtypes} | own
        self.name_of = {getattr(self.tinygrad.dtypes, theirs): name for theirs, name in names.items()}
        tensor = self.tinygrad.Tensor
        unary = named(
            tensor,
            "abs sqrt exp sign floor ceil round isnan isfinite sum prod min max any all mean cumulative_sum:cumsum",
        )
        super().__init__({"negative": operator.neg} | unary, BINARY_OPERATORS | named(tensor, "maximum minimum"))

    def make(self, array: np.ndarray) -> Any:
        """Make a tensor; it is not computed, so no compiler is needed."""
        dtype = getattr(self.tinygrad.dtypes, str(array.dtype))
        return self.tinygrad.Tensor(array.astype(float).tolist(), dtype="float32", device="PYTHON").cast(dtype)

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two tensors."""
        return self.make(np.array(MASK if ndim else True)).where(left, right)

    def result(self, found: Any) -> Result:
        """Read the dtype of a tensor, whose graph tinygrad must accept."""
        self.verify(found.cast(self.strong(found.dtype)).uop.sink(), self.spec)
        return Result(found, self.name_of[found.dtype], None, found.shape)


LIBRARIES = {each.rules: each for each in (Polars, PyArrow, Pandas, NullablePandas, Mlx, Tinygrad)}


@functools.cache
def library(name: str) -> Any:
    """The library that the rules of a name are those of."""
    return LIBRARIES[name]()


def array_of(numbers: Sequence[Any], dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of one of our formats: the first number if it has no dimensions."""
    return np.asarray(numbers if shape else numbers[0]).astype(as_format(dtype).dtype)
