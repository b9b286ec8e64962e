"""`products`, which lists the products of a function and what a device makes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from jax import lax
from jax.extend.core import JaxprEqn

from supremum.argument_checks import function
from supremum.formats import as_format
from supremum.jax_compat import parameter, type_text
from supremum.jaxprs import ENTERED, Site, aval_of, operation_of, walk
from supremum.numerics.calls import trace
from supremum.numerics.devices import Device, as_device
from supremum.numerics.product_arithmetic import PRODUCTS, Computation, computation_of
from supremum.reports import Column, OperationRow, Report, RowTable, plain_data, plural
from supremum.tracing import RowFields

_KERNEL = "its products run as the kernel says, and are not emulated"
_SOLVER = "the products inside it run as the device's library chooses, and are not emulated"
_OPAQUE = {
    "scaled_dot": "how it multiplies blocks with scales is not emulated",
    **dict.fromkeys(("ffi_call", "pallas_call", "pure_callback", "io_callback"), _KERNEL),
    **dict.fromkeys(
        (
            *("cholesky", "custom_linear_solve", "eig", "eigh", "geqrf", "householder_product"),
            *("lu", "schur", "svd", "triangular_solve"),
        ),
        _SOLVER,
    ),
}
"""Primitives that multiply inside, out of the reach of `on`, by name; `jax.extend` does not export all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRow(OperationRow):
    """A product of a program; see `reports.OperationRow` for the fields of every operation.

    Args:
        operands: the types of its operands, such as `"float32[8,128]"`.
        result: the type of its result.
        precision: the precision that the program asks for, such as `"highest"`, or the name of a dot algorithm; empty
            for none.
        computed: the arithmetic that the device computes in, such as `"tf32"` or `"bfloat16 x 3"` for three passes, or
            the formats of the operands; empty if the device refuses the product.
        passes: the number of products that the device computes for it.
        emulated: whether `on` computes it as the device does; `why` says what is missing.
        why: the reason.
        runs: how often it runs when the program runs once; None if only the run can tell.
        flops: the additions and multiplications of one run, counted once whatever the passes; None if unknown.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((8, 4), jnp.float32)
    >>> row = products(lambda x: x @ x.T, "h100")(x).rows[0]
    >>> row.operands, row.computed, row.why, row.flops
    (('float32[8,4]', 'float32[4,8]'), 'tf32', 'default precision', 512)
    """

    operands: tuple[str, ...]
    result: str
    precision: str
    computed: str
    passes: int
    emulated: bool
    why: str
    runs: int | None
    flops: int | None


_COLUMNS = (
    Column("operands", lambda row: " ".join(row.operands[:2])),
    Column("precision", lambda row: row.precision),
    Column("runs", lambda row: "?" if row.runs is None else str(row.runs), right=True),
    Column("flops", lambda row: "" if row.flops is None else f"{row.flops:.3g}", right=True),
    Column("computed in", lambda row: row.computed or "refused"),
    Column("why", lambda row: row.why),
)


@dataclass(frozen=True, slots=True, repr=False)
class Products(Report):
    """The products of a program, and what a device makes of them; `print` it.

    Args:
        device: the device.
        rows: the products, in the order of the program.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((8, 4), jnp.float32)
    >>> def twice(x):
    ...     return jnp.matmul(x @ x.T, x, precision="highest")
    >>> products(twice, "tpu")(x)
    Products(2 products on tpu: 1 bfloat16, 1 bfloat16 x 6)
    """

    device: Device
    rows: tuple[ProductRow, ...]

    @property
    def title(self) -> str:
        """The number of products for each arithmetic."""
        counts = Counter(row.computed or "refused" for row in self.rows)
        each = ", ".join(f"{count} {name}" for name, count in counts.items())
        number = f"{plural(len(self.rows), 'product')} on {self.device.name}"
        return f"{number}: {each}" if each else number

    def to_dict(self) -> dict[str, Any]:
        """The products as plain data for JSON."""
        return {"device": self.device.name, "rows": plain_data(self.rows)}

    def __str__(self) -> str:
        return RowTable(self.rows, _COLUMNS).to_text(self.title)

    def _repr_html_(self) -> str:
        return RowTable(self.rows, _COLUMNS).to_html(self.title)


def products(fn: Callable[..., Any], device: str | Device = "h100") -> Callable[..., Products]:
    """List the products of a function, the precision it asks for, and what a device makes of them.

    Nothing is computed, so a `jax.ShapeDtypeStruct` can stand for an array. Products in loops, branches and called
    functions have rows of their own; those that the results do not depend on have none. For backward products, list the
    gradient: `products(jax.grad(loss))`.

    Args:
        fn: any function of arrays that JAX can trace.
        device: the name of a device, such as `"tpu"`, or a row like those of `DEVICES`.

    Returns:
        A function that takes the same arguments and returns `Products`.

    Raises:
        UnknownNameError: for an unknown device; a `ValueError`.
        OperandError: if `fn` is not a function, and in a call for arguments without an array.

    >>> import jax.numpy as jnp
    >>> def layer(w, x):
    ...     return jnp.tanh(x @ w) @ w.astype("bfloat16")
    >>> for row in products(layer, "tpu")(jnp.ones((4, 4)), jnp.ones((2, 4))).rows:
    ...     print(row.computed, row.emulated, row.why)
    bfloat16 True default precision
    bfloat16 True default precision
    """
    row = as_device(device)
    function("fn", fn, "jnp.matmul")

    @wraps(fn, updated=())
    def report(*args: Any, **kwargs: Any) -> Products:
        return Products(row, tuple(_rows(row, trace(fn, args, kwargs, "products").program)))

    return report


def _rows(device: Device, program: Any) -> Iterator[ProductRow]:
    fields = RowFields()
    for site in walk(program):
        how = _computation(device, site)
        if how is None or not site.used:
            continue
        equation = site.equation
        operands = [aval_of(atom) for atom in equation.invars]
        yield ProductRow(
            **fields.of(site),
            operands=tuple(map(type_text, operands)),
            result=", ".join(type_text(aval_of(result)) for result in equation.outvars),
            precision=_asked(equation.params.get("precision")),
            computed=_name(how, operands),
            passes=1 if how.arithmetic is None else how.arithmetic.passes,
            emulated=how.emulated,
            why=how.reason,
            runs=site.trips,
            flops=_flops(equation),
        )


def _computation(device: Device, site: Site) -> Computation | None:
    """How a device computes an equation; None if it is not a product."""
    equation = site.equation
    name = operation_of(equation)
    if any(operation_of(each) in _OPAQUE for each in site.callers):
        return None  # the row of the call stands for it
    if name in _OPAQUE:
        return Computation(None, _OPAQUE[name], emulated=not device.emulated)
    if name not in PRODUCTS:
        return None
    # A product that another `on` computes stays as it is.
    own = equation.params.get("device", device)
    how = computation_of(own, name, [aval_of(atom) for atom in equation.invars], equation.params)
    closed = next((each for each in site.callers if each.primitive.name not in ENTERED), None)
    if closed is None or not device.emulated:
        return how
    return Computation(
        how.arithmetic, f"it is inside of {closed.primitive.name}, which is not emulated", emulated=False
    )


def _asked(precision: Any) -> str:
    if precision is None:
        return ""
    if isinstance(precision, tuple) and not isinstance(precision, lax.DotAlgorithm):
        return ", ".join(dict.fromkeys(each.name.lower() for each in precision))
    return (
        precision.name.lower() if isinstance(precision, lax.Precision) else str(getattr(precision, "name", precision))
    )


def _name(how: Computation, operands: Sequence[Any]) -> str:
    if how.refused:
        return ""
    if how.arithmetic is not None:
        return how.arithmetic.name
    if how.operands:
        return how.operands[0]
    kinds = [as_format(aval.dtype) for aval in operands[:2] if hasattr(aval, "dtype")]
    return " and ".join(dict.fromkeys(row.name for row in kinds))


def _flops(equation: JaxprEqn) -> int | None:
    name = operation_of(equation)
    if name not in PRODUCTS:
        return None
    left, right, *_ = (aval_of(atom) for atom in equation.invars)
    result = aval_of(equation.outvars[0])
    numbers = parameter(equation, "ragged_dot_dimension_numbers" if name.startswith("ragged") else "dimension_numbers")
    if name == "conv_general_dilated":
        kernel = [size for axis, size in enumerate(right.shape) if axis != numbers.rhs_spec[0]]
        count = result.size * math.prod(kernel)
    else:
        groups = getattr(numbers, "rhs_group_dimensions", ())
        (_, contracted), (_, batch) = getattr(numbers, "dot_dimension_numbers", numbers)
        others = {*contracted, *batch, *groups}
        count = left.size * math.prod(size for axis, size in enumerate(right.shape) if axis not in others)
    is_complex = as_format(result.dtype).component is not as_format(result.dtype)
    return 2 * count * (4 if is_complex else 1)
