"""NumPy's functions called with an `Array`: the standard's function of the same meaning is called, if there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from supremum.arrays.backends import Backend
from supremum.arrays.namespaces import namespace_of
from supremum.arrays.operand_keys import joint_backend
from supremum.arrays.wrapped import Wrap
from supremum.arrays.wrapped_functions import library_of
from supremum.errors import OperandError


class Route(NamedTuple):
    """How a function of NumPy is called in the standard.

    Args:
        target: the name there, after a dot in an extension; or a function of the namespace and the arguments.
        arguments: NumPy's names of those that are given by their place; one with a star takes all that come.
        options: NumPy's names of others, and the standard's.
    """

    target: str | Callable[..., Any]
    arguments: tuple[str, ...]
    options: Mapping[str, str]


def _dot(xp: Any, a: Any, b: Any) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return xp.multiply(a, b)
    return xp.tensordot(a, b, axes=((-1 % np.ndim(a),), (max(np.ndim(b) - 2, 0),)))


def _inner(xp: Any, a: Any, b: Any) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return xp.multiply(a, b)
    return xp.tensordot(a, b, axes=((np.ndim(a) - 1,), (np.ndim(b) - 1,)))


def _transpose(xp: Any, a: Any, axes: Any = None) -> Any:
    return xp.permute_dims(a, tuple(range(np.ndim(a)))[::-1] if axes is None else tuple(axes))


def _swapaxes(xp: Any, a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(np.ndim(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.permute_dims(a, tuple(order))


# One line each: NumPy's function, by its module within NumPy; the standard's; the arguments; and the options.
_TABLE = """
sum : sum : a : axis dtype keepdims
prod : prod : a : axis dtype keepdims
mean : mean : a : axis keepdims
std : std : a : axis ddof=correction correction keepdims
var : var : a : axis ddof=correction correction keepdims
max : max : a : axis keepdims
amax : max : a : axis keepdims
min : min : a : axis keepdims
amin : min : a : axis keepdims
all : all : a : axis keepdims
any : any : a : axis keepdims
argmax : argmax : a : axis keepdims
argmin : argmin : a : axis keepdims
count_nonzero : count_nonzero : a : axis keepdims
nonzero : nonzero : a :
cumsum : cumulative_sum : a : axis dtype
cumprod : cumulative_prod : a : axis dtype
cumulative_sum : cumulative_sum : x : axis dtype include_initial
cumulative_prod : cumulative_prod : x : axis dtype include_initial
diff : diff : a : n axis prepend append
round : round : a :
around : round : a :
real : real : val :
imag : imag : val :
clip : clip : a a_min a_max : min max
where : : condition x y :
concatenate : concat : arrays : axis
stack : stack : arrays : axis
unstack : unstack : x : axis
expand_dims : expand_dims : a : axis
broadcast_to : broadcast_to : array shape :
broadcast_arrays : broadcast_arrays : *args :
meshgrid : meshgrid : *xi : indexing
moveaxis : moveaxis : a source destination :
matrix_transpose : matrix_transpose : x :
flip : flip : m : axis
roll : roll : a shift : axis
repeat : repeat : a repeats : axis
tril : tril : m : k
triu : triu : m : k
take : take : a indices : axis
take_along_axis : take_along_axis : arr indices : axis
sort : sort : a : axis stable
argsort : argsort : a : axis stable
searchsorted : searchsorted : a v : side sorter
isin : isin : element test_elements : invert
unique_all : unique_all : x :
unique_counts : unique_counts : x :
unique_inverse : unique_inverse : x :
unique_values : unique_values : x :
astype : astype : x dtype : copy device
zeros_like : zeros_like : a : dtype device
ones_like : ones_like : a : dtype device
empty_like : empty_like : prototype : dtype device
full_like : full_like : a fill_value : dtype device
matmul : matmul : x1 x2 :
vecdot : vecdot : x1 x2 : axis
tensordot : tensordot : a b : axes
result_type : result_type : *arrays_and_dtypes :
linalg.cholesky : linalg.cholesky : a : upper
linalg.cross : linalg.cross : x1 x2 : axis
linalg.det : linalg.det : a :
linalg.diagonal : linalg.diagonal : x : offset
linalg.eigh : linalg.eigh : a :
linalg.eigvalsh : linalg.eigvalsh : a :
linalg.inv : linalg.inv : a :
linalg.matmul : linalg.matmul : x1 x2 :
linalg.matrix_norm : linalg.matrix_norm : x : keepdims ord
linalg.matrix_power : linalg.matrix_power : a n :
linalg.matrix_rank : linalg.matrix_rank : A : rtol
linalg.matrix_transpose : linalg.matrix_transpose : x :
linalg.outer : linalg.outer : x1 x2 :
linalg.pinv : linalg.pinv : a : rtol
linalg.qr : linalg.qr : a : mode
linalg.slogdet : linalg.slogdet : a :
linalg.solve : linalg.solve : a b :
linalg.svd : linalg.svd : a : full_matrices
linalg.svdvals : linalg.svdvals : x :
linalg.tensordot : linalg.tensordot : x1 x2 : axes
linalg.trace : linalg.trace : x : offset dtype
linalg.vecdot : linalg.vecdot : x1 x2 : axis
linalg.vector_norm : linalg.vector_norm : x : axis keepdims ord
fft.fft : fft.fft : a : n axis norm
fft.ifft : fft.ifft : a : n axis norm
fft.rfft : fft.rfft : a : n axis norm
fft.irfft : fft.irfft : a : n axis norm
fft.hfft : fft.hfft : a : n axis norm
fft.ihfft : fft.ihfft : a : n axis norm
fft.fftn : fft.fftn : a : s axes norm
fft.ifftn : fft.ifftn : a : s axes norm
fft.rfftn : fft.rfftn : a : s axes norm
fft.irfftn : fft.irfftn : a : s axes norm
fft.fftshift : fft.fftshift : x : axes
fft.ifftshift : fft.ifftshift : x : axes
transpose : : a axes :
permute_dims : : a axes :
squeeze : : a axis :
ravel : : a :
reshape : : a shape : copy
tile : : A reps :
swapaxes : : a axis1 axis2 :
dot : : a b :
inner : : a b :
outer : : a b :
copy : : a :
shape : : a :
ndim : : a :
size : : a :
"""


def _lengths(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


_COMPOSED: dict[str, Callable[..., Any]] = {
    "copy": lambda xp, a: xp.asarray(a, copy=True),
    "dot": _dot,
    "inner": _inner,
    "ndim": lambda _, a: a.ndim,
    "outer": lambda xp, a, b: xp.linalg.outer(*(xp.reshape(xp.asarray(x), (-1,)) for x in (a, b))),
    "permute_dims": _transpose,
    "ravel": lambda xp, a: xp.reshape(a, (-1,)),
    "reshape": lambda xp, a, shape, **options: xp.reshape(a, _lengths(shape), **options),
    "shape": lambda _, a: a.shape,
    "size": lambda _, a: a.size,
    "squeeze": lambda _, a, axis=None: a.squeeze(axis),
    "swapaxes": _swapaxes,
    "tile": lambda xp, a, reps: xp.tile(a, _lengths(reps)),
    "transpose": _transpose,
    "where": lambda xp, condition, *values: xp.where(condition, *values) if values else xp.nonzero(condition),
}


def _routes() -> dict[str, Route]:
    found: dict[str, Route] = {}
    for line in _TABLE.strip().splitlines():
        name, target, arguments, options = (part.split() for part in line.split(":"))
        pairs = [option.partition("=") for option in options]
        renamed = {numpy: standard or numpy for numpy, _, standard in pairs}
        found[name[0]] = Route(target[0] if target else _COMPOSED[name[0]], tuple(arguments), renamed)
    return found


ROUTES: dict[str, Route] = _routes()
"""By the name of NumPy's function, with the module it is in where that is not NumPy itself."""


def route(wrap: Wrap, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of the namespace that a function of NumPy stands for.

    Args:
        wrap: makes an `Array` of an array of a library and its key.
        function: NumPy's.
        args: as it was called.
        kwargs: likewise.

    Raises:
        OperandError: for functions that the standard does not have, and options that it does not have.
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> np.mean(supremum.arrays.asarray([1.0, 2.0], dtype="float32"))
    Array(1.5, dtype=float32)
    """
    name = _name_of(function)
    found = ROUTES.get(name)
    if found is None:
        raise OperandError(
            f"np.{name} of an Array follows no rules; use supremum.ops or a function of supremum.namespace, or "
            f"pass NumPy's own arrays, np.{name}(np.asarray(x))"
        )
    given = _given(name, function, found, args, kwargs)
    xp = namespace_of(joint_backend(_libraries(list(given.values()))), wrap)
    places: list[Any] = []
    for argument in found.arguments:
        places += given.pop(argument.lstrip("*"), ()) if argument.startswith("*") else _popped(given, argument)
    options: dict[str, Any] = {}
    for option, value in given.items():
        if option not in found.options:
            raise OperandError(
                f"np.{name} of an Array takes no {option}, which the array API standard does not have; leave it "
                f"out, or pass NumPy's own arrays, np.{name}(np.asarray(x), {option}=...)"
            )
        options[found.options[option]] = value
    if not isinstance(found.target, str):
        return found.target(xp, *places, **options)
    target: Any = xp
    for part in found.target.split("."):
        target = getattr(target, part)
    return target(*places, **options)


def _popped(given: dict[str, Any], argument: str) -> list[Any]:
    return [given.pop(argument)] if argument in given else []


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", str(function))
    module = str(getattr(function, "__module__", "numpy") or "numpy")
    return ".".join([*module.split(".")[1:], name])


def _given(
    name: str, function: Callable[..., Any], route: Route, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by NumPy's names, without those at their defaults."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some that are written in C, and of older versions; the table has their names in order
        names = [*route.arguments, *route.options]
        if len(args) > len(names):
            raise OperandError(f"np.{name} of an Array takes at most {len(names)} arguments") from None
        return {**dict(zip(names, args, strict=False)), **{k: v for k, v in kwargs.items() if not _is_left(v, None)}}
    parameters = signature.parameters
    bound = signature.bind(*args, **kwargs).arguments
    extra = cast(
        "dict[str, Any]", next((bound.pop(p.name, {}) for p in parameters.values() if p.kind is p.VAR_KEYWORD), {})
    )
    return {
        key: value
        for key, value in (bound | extra).items()
        if key not in parameters or not _is_left(value, parameters[key].default)
    }


def _is_left(value: Any, default: Any) -> bool:
    """Whether an option is left at its default."""
    if value is default or value is getattr(np, "_NoValue", None):
        return True
    kind = cast("type[object]", type(value))
    return kind in (bool, int, float, str) and kind is type(default) and value == default


def _libraries(value: Any) -> list[Backend]:
    """The libraries of the arrays in a value and in the lists in it."""
    if isinstance(value, (list, tuple)):
        return [library for part in cast("Sequence[Any]", value) for library in _libraries(part)]
    library = library_of(value)
    return [] if library is None else [library]
