"""NumPy's functions called with an `Array`: they call the function of the standard with the same meaning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from supremum.argument_checks import whole_number
from supremum.arrays.assignment import write_result
from supremum.arrays.backends import Backend
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.calls import Function, Prepared, PreparedCall, function_of, library_in
from supremum.arrays.errors import unsupported
from supremum.arrays.functions.compositions import with_dimensions
from supremum.arrays.namespaces import namespace_in
from supremum.arrays.numpy_signatures import numpy_signature
from supremum.arrays.promoting_function import Arguments, PromotingFunction, by_name
from supremum.arrays.wrapped import WrappedArray, wrap
from supremum.errors import OperandError
from supremum.formats import argument_dtype, as_format
from supremum.rules import RulesLike
from supremum.typing import ArrayLike


class Route(NamedTuple):
    """How to call the standard's function for a function of a library.

    Args:
        target: the standard's name, with its extension; or a function of the namespace and the arguments. For NumPy it
            returns the call to make, which may depend on how many dimensions the arrays have.
        arguments: the library's names of the arguments that are given by position; one with a star takes all that are
            left.
        options: the library's names of the other arguments, and the standard's.
    """

    target: str | Callable[..., Any]
    arguments: tuple[str, ...]
    options: Mapping[str, str]


Call: TypeAlias = "partial[Any]"
"""A function and its arguments."""


def rank(a: Any) -> int:
    """The number of dimensions of an array, or of anything that NumPy makes one from."""
    return len(a.shape) if isinstance(a, WrappedArray) else np.ndim(a)  # `np.ndim` of an array comes back here


def dot(xp: ModuleType, a: ArrayLike, b: ArrayLike, axis: int = -2) -> Call:
    """The sum of products over the last dimension of the first array and one of the second."""
    ranks = rank(a), rank(b)
    if 0 in ranks:
        return partial(xp.multiply, a, b)
    if axis == -2:
        return partial(xp.dot, a, b)
    return partial(xp.tensordot, a, b, axes=((ranks[0] - 1,), (max(ranks[1] + axis, 0),)))


def _transpose(xp: ModuleType, a: Any, axes: Any = None) -> Call:
    return partial(xp.permute_dims, a, (*range(rank(a) - 1, -1, -1),) if axes is None else tuple(axes))


def _along(name: str, axis: int | None) -> Callable[..., Call]:
    """A function along a dimension that flattens its array if there is none.

    Args:
        name: the standard's name.
        axis: NumPy's default.
    """

    def along(xp: ModuleType, a: Any, *args: Any, axis: Any = axis, **options: Any) -> Call:
        is_flat = axis is None and rank(a) != 1
        array = xp.reshape(a, (-1,)) if is_flat else a
        return partial(getattr(xp, name), array, *args, axis=0 if axis is None else axis, **options)

    return along


def _whole_numbers(xp: ModuleType, value: Any) -> Any:
    """A list of positions or lengths as an array, which not all libraries make themselves."""
    if not isinstance(value, (list, tuple)):
        return value
    return xp.asarray(value, dtype=xp.__array_namespace_info__().default_dtypes()["indexing"])


def _round_arguments(x: Any, /, decimals: int = 0) -> Arguments:
    return (x,), {"decimals": whole_number("decimals", decimals, -400, 400)}


_ROUND = PromotingFunction("round", _round_arguments, by_name("round", decimals=0))


def round_decimals(_: ModuleType, a: ArrayLike, decimals: int = 0) -> Call:
    """Elements rounded to a number of decimals, in the dtype that the rules decide for `round`."""
    return partial(_ROUND.call, a, decimals)


def _at_least(count: int, xp: ModuleType, *arrays: ArrayLike) -> Call:
    """Arrays with at least a number of dimensions: a tuple, or the only one."""
    reshaped = [with_dimensions(xp, each, count) for each in arrays]
    return partial(lambda: reshaped[0] if len(reshaped) == 1 else (*reshaped,))


def _is_complex(a: Any, *, wanted: bool) -> Call:
    return partial(lambda: (as_format(wrap(a).dtype).category == "complex") == wanted)


def swapaxes(xp: ModuleType, a: ArrayLike, axis1: int, axis2: int) -> Call:
    """An array with two dimensions exchanged."""
    order = list(range(rank(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return partial(xp.permute_dims, a, tuple(order))


# In each line: functions of NumPy with their module, and with `=` the standard's name if it differs; the arguments that
# are given by position; and the options. `_COMPOSED` has the functions that take more than a different name.
_TABLE = """
sum prod mean nansum nanmean : a : axis dtype keepdims
median max amax=max min amin=min all any argmax argmin count_nonzero : a : axis keepdims
std var : a : axis ddof=correction correction dtype keepdims
cumsum=cumulative_sum cumprod=cumulative_prod : a : axis dtype
cumulative_sum cumulative_prod : x : axis dtype include_initial
diff : a : n axis prepend append
nonzero ravel copy shape ndim size linalg.det linalg.eigh linalg.eigvalsh linalg.inv : a :
linalg.slogdet : a :
real imag : val :
iscomplexobj isrealobj : x :
atleast_1d atleast_2d atleast_3d : *arys :
round around : a decimals :
clip : a a_min a_max : a_min=min a_max=max min max
where : condition x y :
concatenate=concat stack : arrays : axis
unstack : x : axis
expand_dims : a : axis
broadcast_to : array shape :
broadcast_arrays : *args :
meshgrid : *xi : indexing
moveaxis : a source destination :
matrix_transpose unique_all unique_counts unique_inverse unique_values : x :
linalg.matrix_transpose linalg.svdvals : x :
flip : m : axis
roll : a shift : axis
repeat : a repeats : axis
tril triu : m : k
take : a indices : axis
take_along_axis : arr indices : axis
sort argsort : a : axis stable
searchsorted : a v : side sorter
isin : element test_elements : invert
astype : x dtype : copy device
zeros_like ones_like : a : dtype device
empty_like : prototype : dtype device
full_like : a fill_value : dtype device
matmul linalg.matmul linalg.outer : x1 x2 :
vecdot linalg.vecdot linalg.cross : x1 x2 : axis
tensordot : a b : axes
result_type : *arrays_and_dtypes :
linalg.cholesky : a : upper
linalg.diagonal : x : offset
linalg.matrix_norm : x : keepdims ord
linalg.matrix_power : a n :
linalg.matrix_rank : A : rtol
linalg.pinv : a : rtol
linalg.qr : a : mode
linalg.solve dot inner outer : a b :
linalg.svd : a : full_matrices
linalg.tensordot : x1 x2 : axes
linalg.trace : x : offset dtype
linalg.vector_norm : x : axis keepdims ord
fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft : a : n axis norm
fft.fftn fft.ifftn fft.rfftn fft.irfftn : a : s axes norm
fft.fftshift fft.ifftshift : x : axes
transpose permute_dims : a axes :
squeeze : a axis :
reshape : a shape : copy
tile : A reps :
swapaxes : a axis1 axis2 :
percentile quantile : a q : axis method keepdims
unique : ar : return_index return_inverse return_counts equal_nan
hstack vstack : tup :
isclose allclose : a b : rtol atol equal_nan
einsum : *operands :
pad : array pad_width : mode constant_values
histogram : a : bins range density weights
bincount : x weights : minlength
interp : x xp fp : left right
gradient : f *varargs : axis edge_order
convolve : a v : mode
linalg.norm : x : ord axis keepdims
"""


def _lengths(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


_COMPOSED: dict[str, Callable[..., Call]] = {
    "around": round_decimals,
    "argsort": _along("argsort", -1),
    "atleast_1d": partial(_at_least, 1),
    "atleast_2d": partial(_at_least, 2),
    "atleast_3d": partial(_at_least, 3),
    "copy": lambda xp, a: partial(xp.asarray, a, copy=True),
    "cumprod": _along("cumulative_prod", None),
    "cumsum": _along("cumulative_sum", None),
    "dot": dot,
    "inner": partial(dot, axis=-1),
    "iscomplexobj": lambda _, x: _is_complex(x, wanted=True),
    "isrealobj": lambda _, x: _is_complex(x, wanted=False),
    "ndim": lambda _, a: partial(getattr, a, "ndim"),
    "outer": lambda xp, a, b: partial(xp.linalg.outer, *(xp.reshape(xp.asarray(x), (-1,)) for x in (a, b))),
    "permute_dims": _transpose,
    "ravel": lambda xp, a: partial(xp.reshape, a, (-1,)),
    "repeat": lambda xp, a, repeats, axis=None: partial(xp.repeat, a, _whole_numbers(xp, repeats), axis=axis),
    "reshape": lambda xp, a, shape, **options: partial(xp.reshape, a, _lengths(shape), **options),
    "round": round_decimals,
    "shape": lambda _, a: partial(getattr, a, "shape"),
    "size": lambda _, a: partial(getattr, a, "size"),
    "squeeze": lambda _, a, axis=None: partial(a.squeeze, axis),
    "sort": _along("sort", -1),
    "swapaxes": swapaxes,
    "take": lambda xp, a, indices, axis=None: _along("take", None)(xp, a, _whole_numbers(xp, indices), axis=axis),
    "tile": lambda xp, a, reps: partial(xp.tile, a, _lengths(reps)),
    "transpose": _transpose,
}
# Those of them whose calls do not depend on how many dimensions an array has, if it has any.
_OF_ANY_RANK = ("around", "copy", "dot", "ravel", "reshape", "round")
# Those of them with operands that may be numbers.
_PROMOTING = ("dot", "inner")


def _names(text: str) -> dict[str, str]:
    """NumPy's names, and the standard's."""
    pairs = [name.partition("=") for name in text.split()]
    return {numpy: standard or numpy for numpy, _, standard in pairs}


def routes_of(table: str, composed: Mapping[str, Callable[..., Any]]) -> dict[str, Route]:
    """The routes of a table of functions, by the names of a library.

    Args:
        table: the lines; see `_TABLE`.
        composed: functions that take more than a different name, by the names of the library.
    """
    routes: dict[str, Route] = {}
    for line in table.strip().splitlines():
        names, arguments, options = line.split(":")
        for name, standard in _names(names).items():
            routes[name] = Route(composed.get(name, standard), tuple(arguments.split()), _names(options))
    return routes


ROUTES: dict[str, Route] = routes_of(_TABLE, _COMPOSED)
"""By the name of NumPy's function, with its module if that is not `numpy` itself."""


def route(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of the namespace for a function of NumPy.

    Args:
        function: NumPy's function.
        args: its positional arguments.
        kwargs: its arguments by name.

    Raises:
        OperandError: for functions and options that the standard does not have.
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> np.mean(supremum.arrays.asarray([1.0, 2.0], dtype="float32"))
    Array(1.5, dtype=float32)
    """
    return _routed(function).call(*args, **kwargs)


class Routed(Function):
    """A function of a library, which calls the function of the namespace with the same meaning.

    What is prepared for that function is kept for calls of this one, too.

    Args:
        name: its name in its library, for errors.
        arguments: a function with the parameters, as for `Function`.
        route: what it calls; None for a function that the standard does not have.
        promotes: if the route is composed: whether its arguments may be numbers that are promoted.
        by_rank: if the route is composed: as for `Function`.
    """

    def __init__(
        self, name: str, arguments: Callable[..., Any], route: Route | None, *, promotes: bool, by_rank: bool
    ) -> None:
        self.route = route
        if route is not None and not route.arguments[0].startswith("*"):
            if isinstance(route.target, str):
                target = function_of(attrgetter(route.target)(namespace_in(NUMPY)))
                promotes = target is not None and target.operands > 0
            else:
                self.by_rank = by_rank
            self.operands: int = len(route.arguments) if promotes else 0
        super().__init__(name, arguments)

    @abstractmethod
    def refusal(self, option: str) -> OperandError:
        """The error for an option that the standard does not have."""

    @abstractmethod
    def translate(self, args: Sequence[Any], options: Mapping[str, Any]) -> Call:
        """The call of the function of the namespace."""

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """As for the function of the namespace."""
        call = self.translate(args, options)
        function = function_of(call.func)
        return (Prepared(call), ()) if function is None else function.find(rules_like, call.args, call.keywords)

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """As for the function of the namespace, unless the error is about the arguments of this one."""
        try:
            call = self.translate(args, options)
        except Exception:  # the same error again
            super().fail(args, options, error)
            return
        function = function_of(call.func)
        if function is not None:
            function.fail(call.args, call.keywords, error)

    def call_with(self, bound: dict[str, Any], library: Backend) -> Call:
        """The call of the function of the namespace with some arguments.

        Args:
            bound: the arguments by the names of the library; one with a star is a tuple.
            library: the library of the namespace.

        Raises:
            OperandError: for options that the standard does not have.
        """
        assert self.route is not None
        target, arguments, options = self.route
        args: list[Any] = []
        for name in arguments:
            if name.startswith("*"):
                args += bound.pop(name[1:], ())
            elif name in bound:
                args.append(bound.pop(name))
            else:  # those after it are given by name
                break
        for name in bound:
            if name not in options:
                raise self.refusal(name)
        named = {options[name]: value for name, value in bound.items()}
        xp = namespace_in(library)
        if isinstance(target, str):
            return partial(attrgetter(target)(xp), *args, **named)
        called = target(xp, *args, **named)
        return called if isinstance(called, partial) else partial(lambda: called)


class NumpyFunction(Routed):
    """A function of NumPy.

    Args:
        function: NumPy's function.
        arguments: a function with the parameters, as for `Function`; None for NumPy's function.
    """

    def __init__(self, function: Callable[..., Any], arguments: Callable[..., Any] | None = None) -> None:
        self._function, name = function, name_of(function)
        route, promotes, by_rank = ROUTES.get(name), name in _PROMOTING, name not in _OF_ANY_RANK
        super().__init__(name, arguments or function, route, promotes=promotes, by_rank=by_rank)

    def translate(self, args: Sequence[Any], options: Mapping[str, Any]) -> Call:
        """The call of the function of the namespace.

        Raises:
            OperandError: for functions and options that the standard does not have.
            ArgumentError: for a dtype that NumPy reads as another.
            TypeError: for wrong numbers and names of arguments.
        """
        route, name = self.route, self.name
        if route is None:
            raise unsupported(f"np.{name}", (), f"NumPy's own arrays, np.{name}(np.asarray(x))")
        bound = _arguments_of(self._function, args, options)
        out = bound.pop("out", None)
        if bound.get("dtype") is not None:
            argument_dtype(bound["dtype"])
        called = self.call_with(bound, library_in((args, *options.values())))
        if out is None:
            return called
        # NumPy's ufuncs pass a tuple.
        return partial(_write_result, out[0] if isinstance(out, tuple) else out, self._function, called)

    def refusal(self, option: str) -> OperandError:
        """As in the base class."""
        return OperandError(
            f"np.{self.name} takes no {option} with an Array, as its function of the namespace has no such option; "
            f"leave it out, or pass NumPy's own arrays, np.{self.name}(np.asarray(x), {option}=...)"
        )


_routed = lru_cache(maxsize=4096)(NumpyFunction)


def _arguments_of(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function of NumPy by its names of them, without options that have their defaults."""
    signature = numpy_signature(function)
    bound = dict(signature.bind(*args, **options).arguments)
    for each in signature.parameters.values():
        if each.kind is each.VAR_KEYWORD:
            bound |= bound.pop(each.name, {})
        elif each.name in bound and is_left(bound[each.name], each.default):
            del bound[each.name]
    return bound


def _write_result(out: Any, function: Callable[..., Any], called: Call) -> Any:
    """Write the result of a function of NumPy into an array; the rules decide about the operands that they promote."""
    decided = function_of(called.func)
    name, operands = "", ()
    if isinstance(decided, PromotingFunction) and called.keywords.get("dtype") is None:
        name, operands = decided.name, decided.operands_of(called.args, called.keywords)
    return write_result(out, f"np.{name_of(function)}", name, operands, called)


def name_in_standard(function: Callable[..., Any]) -> str:
    """The standard's name of a function of NumPy; empty if it is composed of several."""
    target = ROUTES[name_of(function)].target
    return target if isinstance(target, str) else ""


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function of NumPy, with its module if that is not `numpy` itself."""
    module = str(getattr(function, "__module__", "numpy") or "numpy")
    return ".".join([*module.split(".")[1:], getattr(function, "__name__", str(function))])


def is_left(value: object, default: object) -> bool:
    """Whether an option of a function of NumPy has its default value."""
    if value is default or value is _NO_VALUE:
        return True
    kind = type(value)
    return kind in (bool, int, float, str) and kind is type(default) and value == default


_NO_VALUE = getattr(np, "_NoValue", object())
