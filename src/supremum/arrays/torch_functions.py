"""PyTorch's functions called with an `Array`: they call the function of the standard with the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from operator import attrgetter
from typing import Any

from supremum.argument_checks import real_number
from supremum.arrays.assignment import assign_result, write_result
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.backends.kernels import caster_of
from supremum.arrays.calls import library_in
from supremum.arrays.errors import InPlaceError, TensorInPlaceError, unsupported
from supremum.arrays.functions.elementwise import FUNCTIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.numpy_functions import Call, Route, Routed, dot, rank, round_decimals, routes_of, swapaxes
from supremum.arrays.promoting_function import Arguments, PromotingFunction
from supremum.arrays.wrapped import WrappedArray, wrap
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format

# In each line: as in the table of NumPy's functions. The options follow the arguments where they are given by position.
_TABLE = """
sum prod : input : dim=axis keepdim=keepdims dtype
mean amax=max amin=min all any argmax argmin count_nonzero : input : dim=axis keepdim=keepdims
std var : input : dim=axis unbiased keepdim=keepdims correction
max min : input other : other dim keepdim
cumsum=cumulative_sum cumprod=cumulative_prod : input : dim=axis dtype
cat=concat concat concatenate=concat stack : tensors : dim=axis
add sub subtract : input other : alpha
div divide true_divide : input other : rounding_mode
pow : input exponent :
neg=negative : input :
round : input : decimals
clamp=clip clip : input min max : min max
clamp_min : input min :
clamp_max : input max :
where : condition input other :
lerp : input end weight :
matmul : input other :
mm=matmul bmm=matmul : input mat2 :
mv=matmul : input vec :
dot=matmul : input tensor :
vdot : input other :
inner : input other :
outer=linalg.outer ger=linalg.outer : input vec2 :
cross linalg_cross=linalg.cross : input other : dim=axis
tensordot : a b : dims=axes
addmm : input mat1 mat2 : beta alpha
addmv : input mat vec : beta alpha
baddbmm : input batch1 batch2 : beta alpha
addr : input vec1 vec2 : beta alpha
addcmul addcdiv : input tensor1 tensor2 : value=alpha
reshape : input shape :
permute=permute_dims : input dims :
transpose : input dim0 dim1 :
swapaxes : input axis0 axis1 :
swapdims : input dim0 dim1 :
t ravel clone numel : input :
nonzero : input : as_tuple
flatten : input : start_dim end_dim
squeeze : input : dim
unsqueeze=expand_dims : input : dim=axis
movedim=moveaxis moveaxis : input source destination :
flip : input : dims=axis
roll : input shifts : dims=axis
tile : input dims :
broadcast_to : input size :
broadcast_tensors=broadcast_arrays : *tensors :
unbind=unstack : input : dim=axis
tril triu : input : diagonal=k
index_select : input dim index :
take_along_dim=take_along_axis : input indices : dim=axis
repeat_interleave=repeat : input repeats : dim=axis
diff : input : n dim=axis prepend append
argsort : input : dim=axis descending stable
isin : elements test_elements : assume_unique invert
zeros_like ones_like empty_like : input : dtype device
full_like : input fill_value : dtype device
det=linalg.det inverse=linalg.inv : input :
linalg_det=linalg.det linalg_inv=linalg.inv linalg_cholesky=linalg.cholesky : A :
linalg_solve=linalg.solve : A B :
linalg_matmul=matmul : input other :
"""


# Functions with `alpha`


def _factor_arguments(x1: Any, x2: Any, /, *, alpha: float = 1) -> Arguments:
    """Two operands; the second one is multiplied by `alpha` in the dtype of the computation."""
    real_number("alpha", alpha)
    return (x1, x2), {"alpha": alpha}


def _with_factor(name: str) -> Callable[[Backend, CallPlan], Callable[..., Raw]]:
    def build(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
        function, alpha, row = backend.function(name), plan.options["alpha"], as_format(plan.compute[1])
        if isinstance(alpha, float) and not row.is_inexact:
            raise ArgumentError(
                f"alpha must be a whole number for {row}, got {shown(alpha)}; use torch.{name}(input, other * alpha)"
            )
        if backend.name == "torch":
            return partial(function, alpha=alpha)  # it rounds once
        multiply, factor = backend.function("multiply"), caster_of(row.dtype)(alpha)
        return lambda x1, x2: function(x1, multiply(x2, backend.asarray(factor, device=backend.device_of_plan(plan))))

    return build


_WITH_FACTOR = {name: PromotingFunction(name, _factor_arguments, _with_factor(name)) for name in ("add", "subtract")}


def _sum_of(name: str, *, is_elementwise: bool = False) -> Callable[..., Any]:
    """A function that adds a function of two arrays to a third array.

    Args:
        name: of the function.
        is_elementwise: whether it computes in the common dtype of all three.
    """

    def compute(xp: Any, x: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Any:
        if is_elementwise:
            common = xp.result_type(x, a, b)
            x, a, b = (xp.astype(each, common) for each in (x, a, b))
        term = attrgetter(name)(xp)(a, b)
        if beta == 0:  # PyTorch then ignores NaN in the array
            return term if alpha == 1 else xp.multiply(term, alpha)
        return _add("add", xp, x if beta == 1 else xp.multiply(x, beta), term, alpha)()

    return compute


def _add(name: str, xp: Any, a: Any, b: Any, alpha: float = 1) -> Call:
    return partial(getattr(xp, name), a, b) if alpha == 1 else partial(_WITH_FACTOR[name].call, a, b, alpha=alpha)


# Other functions that take more than a different name


def _interpolation_arguments(start: Any, end: Any, weight: Any, /) -> Arguments:
    """Numbers between the elements of two arrays."""
    return (start, end, weight), {}


def _interpolation(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    xp = backend.xp

    def lerp(start: Any, end: Any, weight: Any) -> Raw:
        change = end - start
        return xp.where(abs(weight) < 1 / 2, start + weight * change, end - change * (1 - weight))

    return getattr(xp, "lerp", lerp)


_LERP = PromotingFunction(None, _interpolation_arguments, _interpolation, name="lerp")


def _divide(xp: Any, a: Any, b: Any, rounding_mode: str | None = None) -> Call:
    if rounding_mode not in (None, "floor"):
        raise OperandError(
            f"torch.div with rounding_mode={shown(rounding_mode)} does not support an Array; use "
            "torch.trunc(torch.div(input, other))"
        )
    return partial(xp.divide if rounding_mode is None else xp.floor_divide, a, b)


def _extreme(reduction: str, pair: str) -> Callable[..., Any]:
    def call(xp: Any, x: Any, other: Any = None, dim: Any = None, keepdim: Any = None) -> Call:
        if dim is not None or isinstance(other, int):
            raise OperandError(
                f"torch.{reduction} with dim does not support an Array; use torch.a{reduction}(input, dim) and "
                f"torch.arg{reduction}(input, dim)"
            )
        return partial(getattr(xp, reduction), x) if other is None else partial(getattr(xp, pair), x, other)

    return call


def _spread(name: str) -> Callable[..., Any]:
    def call(xp: Any, x: Any, *, unbiased: bool = True, correction: float | None = None, **options: Any) -> Call:
        divisor = int(unbiased) if correction is None else correction
        return partial(getattr(xp, name), x, correction=divisor, **options)

    return call


def _flatten(xp: Any, x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    shape = tuple(wrap(x).shape)
    first, last = (dim % max(1, len(shape)) for dim in (start_dim, end_dim))
    return xp.reshape(x, (*shape[:first], -1, *shape[last + 1 :]))


def _squeeze(xp: Any, x: Any, dim: Any = None) -> Any:
    """Without the dimensions of length one among those given; PyTorch ignores the others."""
    shape = wrap(x).shape
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    return xp.squeeze(x, axis=tuple(each for each in dims if shape[each] == 1))


def _cross(xp: Any, a: Any, b: Any, axis: int | None = None) -> Any:
    return xp.linalg.cross(a, b, axis=wrap(a).shape.index(3) if axis is None else axis)


def _take_along(xp: Any, x: Any, indices: Any, axis: int | None = None) -> Any:
    if axis is None:
        x, indices, axis = xp.reshape(x, (-1,)), xp.reshape(indices, (-1,)), 0
    return xp.take_along_axis(x, indices, axis=axis)


def _isin(xp: Any, elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Call:
    return partial(xp.isin, elements, test_elements, invert=invert)


# Each of these returns the call to make, or else the result, which may depend on the shapes of the arrays.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "add": partial(_add, "add"),
    "addcdiv": _sum_of("divide", is_elementwise=True),
    "addcmul": _sum_of("multiply", is_elementwise=True),
    "addmm": _sum_of("matmul"),
    "addmv": _sum_of("matmul"),
    "addr": _sum_of("linalg.outer"),
    "baddbmm": _sum_of("matmul"),
    "clamp_max": lambda xp, x, bound: partial(xp.clip, x, None, bound),
    "clamp_min": lambda xp, x, bound: partial(xp.clip, x, bound),
    "clone": lambda xp, x: partial(xp.asarray, x, copy=True),
    "cross": _cross,
    "div": _divide,
    "divide": _divide,
    "flatten": _flatten,
    "index_select": lambda xp, x, dim, index: partial(xp.take, x, index, axis=dim),
    "inner": partial(dot, axis=-1),
    "isin": _isin,
    "lerp": lambda _, *operands: partial(_LERP.call, *operands),
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "nonzero": lambda xp, x, as_tuple=False: xp.nonzero(x) if as_tuple else xp.stack(xp.nonzero(x), axis=1),
    "numel": lambda _, x: prod(wrap(x).shape),
    "ravel": lambda xp, x: partial(xp.reshape, x, (-1,)),
    "round": round_decimals,
    "squeeze": _squeeze,
    "std": _spread("std"),
    "sub": partial(_add, "subtract"),
    "subtract": partial(_add, "subtract"),
    "swapaxes": swapaxes,
    "swapdims": swapaxes,
    "t": lambda xp, x: xp.matrix_transpose(x) if rank(x) > 1 else x,
    "take_along_dim": _take_along,
    "transpose": swapaxes,
    "true_divide": _divide,
    "var": _spread("var"),
    "vdot": lambda xp, a, b: xp.matmul(xp.conj(a), b),
}
# Those of them with operands that may be numbers.
_PROMOTING = (
    "add", "clamp_max", "clamp_min", "div", "divide", "lerp", "max", "min", "sub", "subtract",
    "true_divide",
)  # fmt: skip


def _elementwise(name: str) -> Route:
    """The route of an elementwise operation without a line in the table."""
    function = FUNCTIONS[name]
    losses = LOSSES.get(function.name)
    if losses is not None:
        arguments, options = ("input", "target"), ("reduction", *losses[1])
    else:
        arguments, options = ("input", "other")[: function.operation.arity], ()
    return Route(
        lambda _, *args, **kwargs: partial(function.call, *args, **kwargs), arguments, {each: each for each in options}
    )


ROUTES: dict[str, Route] = {name: _elementwise(name) for name in FUNCTIONS} | routes_of(_TABLE, _COMPOSED)
"""By the name of PyTorch's function, without its module."""


def torch_function(
    array_class: type[WrappedArray], function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of the function of the namespace for a function of PyTorch, which operators of tensors call too.

    Args:
        array_class: the class of the operators that PyTorch may call.
        function: PyTorch's function.
        args: its positional arguments.
        kwargs: its arguments by name.

    Raises:
        OperandError: for functions and options that no rule decides.
        PromotionError: if the rules refuse.
        InPlaceError: if the rules do not store the result in the dtype of the tensor that is written into.
        TensorInPlaceError: instead of it for methods in place, as PyTorch calls operators.
    """
    try:
        return _result_of(array_class, function, args, kwargs)
    except InPlaceError as error:
        method = getattr(function, "__name__", "")
        if not method.endswith("_") or method == "__setitem__" or "out" in kwargs:
            raise
        raise TensorInPlaceError(error.decision) from None


def _result_of(
    array_class: type[WrappedArray], function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of `torch_function`."""
    ours = _of_torch(function)
    method = getattr(function, "__name__", "")
    if method.startswith("__") and hasattr(array_class, method) and not kwargs:
        left: Any = wrap(args[0])
        result = getattr(left, method)(*args[1:])
        return args[0] if result is left else result
    path, operation, out = ours.name, ours.operation, kwargs.get("out")
    options = {option: value for option, value in kwargs.items() if value is not None and option != "out"}
    if ours.route is None:
        changed = sorted(option for option, value in options.items() if value is not False)
        raise unsupported(path, changed, f"torch's own tensors, {path}(x.unwrap())")
    if not ours.in_place and out is None:
        return ours.call(*args, **options)
    # With options the rules decide about the result alone.
    name_of_operation, operands = (path, ()) if operation is None or options else (operation.name, args)
    compute = partial(ours.call, *args, **options)
    if out is not None:
        return write_result(out, path, name_of_operation, operands, compute)
    # `tensor += Array` writes into the tensor, which keeps its dtype.
    assign_result(wrap(args[0]), compute(), name_of_operation, operands)
    return args[0]


class _TorchFunction(Routed):
    """A function of PyTorch; `name` is where PyTorch has it, such as `torch.linalg.inv`.

    Args:
        function: PyTorch's function.

    Attributes:
        operation: the elementwise operation; None if it is not one.
        in_place: whether its name has the mark of functions in place.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        from supremum.arrays.backends.torch import NAMES, path_of  # only where torch is loaded

        name = getattr(function, "__name__", str(function))
        plain = name.removesuffix("_")
        # Some names mean something else in PyTorch, such as `torch.equal`.
        ours = {theirs: ours for ours, theirs in NAMES.items()}.get(plain, "" if plain in NAMES else plain)
        self.operation: PromotingFunction | None = FUNCTIONS.get(ours)
        self.in_place: bool = plain != name
        is_elementwise = self.operation is not None and ours not in _COMPOSED
        promotes = is_elementwise or plain in _PROMOTING
        super().__init__(
            path_of(function), _any_arguments, ROUTES.get(ours), promotes=promotes, by_rank=not is_elementwise
        )

    def translate(self, args: Sequence[Any], options: Mapping[str, Any]) -> Call:
        """The call of the function of the namespace with the arguments of PyTorch's function.

        Raises:
            OperandError: for options that the standard does not have, and for too many arguments.
        """
        route = self.route
        assert route is not None
        library = library_in((args, *options.values()))
        if route.arguments[0].startswith("*"):
            return self.call_with({route.arguments[0][1:]: args, **options}, library)
        order = [*dict.fromkeys((*route.arguments, *route.options))]
        if len(args) > len(order):
            raise OperandError(f"{self.name} takes at most {len(order)} arguments with an Array, got {len(args)}")
        bound = {**dict(zip(order, args, strict=False)), **options}
        arguments = {name: value for name, value in bound.items() if value is not None or name in route.arguments}
        return self.call_with(arguments, library)

    def refusal(self, option: str) -> OperandError:
        """As in the base class."""
        return unsupported(self.name, [option], f"torch's own tensors, {self.name}(x.unwrap(), {option}=...)")


def _any_arguments(*args: Any, **options: Any) -> None:
    """The arguments of PyTorch's function."""


_of_torch = lru_cache(maxsize=4096)(_TorchFunction)
