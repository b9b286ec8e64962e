"""The types of a program's inputs and outputs: weak ones, and those that an iteration of a loop changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Var
from jax.tree_util import keystr, tree_leaves_with_path, tree_map_with_path

from supremum.argument_checks import function, pytree
from supremum.errors import OperandError, shown
from supremum.formats import DType
from supremum.jaxprs import walk
from supremum.operands import as_operand
from supremum.promotion import explain
from supremum.tracing.expressions import Sources
from supremum.tracing.origins import Origins


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value in a program.

    Args:
        dtype: its dtype.
        shape: its shape.
        weak: whether it is weak, like an array made of Python numbers.
    """

    dtype: DType
    shape: tuple[int, ...]
    weak: bool

    @classmethod
    def of(cls, value: Any) -> ValueType:
        """The type of an array, a number or a `jax.ShapeDtypeStruct`."""
        aval = jax.typeof(value) if not isinstance(value, jax.ShapeDtypeStruct) else value
        return cls(aval.dtype, aval.shape, bool(getattr(aval, "weak_type", False)))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{' (weak)' if self.weak else ''}"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a value was made.

    Args:
        where: the line, as `file:line`; empty if unknown.
        expression: the source text there.
    """

    where: str = ""
    expression: str = ""


@dataclass(frozen=True, slots=True)
class WeakValue:
    """An argument or a result that is weak, or an argument that comes back with a different type.

    Args:
        role: `"argument"` or `"result"`.
        path: its path, as Python would write it: `"[0]['step']"` is `args[0]['step']`.
        type: its type.
        returns: for an argument that comes back with a different type, that type. Passing the result in again makes JAX
            trace and compile the function again.
        place: for a result, the line that made it; for an argument that comes back, the line that made the new value.
        fix: what to write instead.
    """

    role: str
    path: str
    type: ValueType
    returns: ValueType | None
    place: SourcePlace
    fix: str

    @property
    def retraces(self) -> bool:
        """Whether JAX traces the function again when the result is passed in."""
        return self.returns is not None

    def __str__(self) -> str:
        back = "" if self.returns is None else f", comes back as {self.returns}: traced again when that is passed in"
        return f"{self.role}{self.path} is {self.type}{back}{_made_at(self.place)}\n  fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class WeakReport:
    """The weak inputs and outputs of a program.

    Args:
        values: the values, arguments first.
    """

    values: tuple[WeakValue, ...]

    @property
    def retraces(self) -> tuple[WeakValue, ...]:
        """The values that cause the function to be traced again."""
        return tuple(value for value in self.values if value.retraces)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[WeakValue]:
        return iter(self.values)

    def __getitem__(self, index: int) -> WeakValue:
        return self.values[index]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON; types are text."""
        types = [
            {"type": str(each.type), "returns": None if each.returns is None else str(each.returns)}
            for each in self.values
        ]
        return {"values": [asdict(each) | text for each, text in zip(self.values, types, strict=True)]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.values)) or "no weak arguments or results"


def weak_types(function: Callable[..., Any]) -> Callable[..., WeakReport]:
    """Find the weak arguments and results of a function.

    A result with the same containers and shapes as an argument, such as the state of an optimizer, is assumed to be
    passed in again.

    Args:
        function: a function with positional arguments: trees of arrays and numbers.

    Returns:
        A function that takes the same arguments and returns the report.

    >>> import jax.numpy as jnp
    >>> step = lambda state, x: ({"mean": 0.9 * state["mean"] + x.sum()}, x)
    >>> print(weak_types(step)({"mean": 0.0}, jnp.ones(3)))  # doctest: +ELLIPSIS
    argument[0]['mean'] is float32[] (weak), comes back as float32[]: traced again when that is passed in
      made at ...: 0.9 * state["mean"] + x.sum()
      fix: start with jnp.asarray(args[0]['mean'], 'float32')
    """

    def report(*args: Any) -> WeakReport:
        program, given = jax.make_jaxpr(function, return_shape=True)(*args)
        results = _types_by_path(given)
        places = dict(zip(results, _places_of_results(program), strict=True))
        values: list[WeakValue] = []
        fed = _fed_back(args, given)
        for path, kind in _types_by_path(args).items():
            back = fed.get(path, "")
            returned = results[back] if path in fed and results[back] != kind else None
            if kind.weak or returned is not None:
                place = SourcePlace() if returned is None else places[back]
                fix = f"start with jnp.asarray(args{path}, '{(returned or kind).dtype}')"
                values.append(WeakValue("argument", path, kind, returned, place, fix))
        for path, kind in results.items():
            if kind.weak:
                fix = f"return jnp.asarray({places[path].expression or 'it'}, '{kind.dtype}')"
                values.append(WeakValue("result", path, kind, None, places[path], fix))
        return WeakReport(tuple(values))

    return report


def _fed_back(args: tuple[Any, ...], given: Any) -> dict[str, str]:
    """The paths of arguments' leaves, each with the path of the result that looks the same."""
    parts: dict[str, Any] = {"": given}
    if isinstance(given, (tuple, list)):
        parts = {f"[{index}]": part for index, part in enumerate(given)}
    fed: dict[str, str] = {}
    for index, argument in enumerate(args):
        for name, part in parts.items():
            before, after = _types_by_path(argument), _types_by_path(part)
            alike = jax.tree.structure(argument) == jax.tree.structure(part) and bool(before)
            if alike and all(a.shape == b.shape for a, b in zip(before.values(), after.values(), strict=True)):
                fed |= {f"[{index}]{a}": f"{name}{b}" for a, b in zip(before, after, strict=True)}
                del parts[name]
                break
    return fed


@dataclass(frozen=True, slots=True)
class CarryMismatch:
    """A carried value whose type changes in one iteration of a loop.

    Args:
        path: the value within the carry, as Python would write it; empty if the carry is one array.
        before: the type of the input; None if only the output has this value.
        after: the type of the output; None if only the input has this value.
        place: the line that made the output.
        fix: what to write instead.
    """

    path: str
    before: ValueType | None
    after: ValueType | None
    place: SourcePlace
    fix: str

    def __str__(self) -> str:
        change = f"carry{self.path} goes in as {self.before} and comes out as {self.after}"
        return f"{change}{_made_at(self.place)}\n  fix: {self.fix}"


def carry_mismatches(body: Callable[..., Any], init: Any, *xs: Any) -> tuple[CarryMismatch, ...]:
    """Find the values of a loop's carry whose type changes in one iteration.

    Args:
        body: the body of a `jax.lax.while_loop`, a function of the carry; or, with `xs`, the body of a `scan`.
        init: the initial carry.
        *xs: for a `scan`, the arrays that it iterates over, with the leading axis; None if it has none.

    Raises:
        OperandError: if the body of a `scan` does not return a pair, or `xs` has no leading axis.
        Exception: any error that the body raises.

    >>> import jax.numpy as jnp
    >>> (found,) = carry_mismatches(lambda c, x: (c + x, None), jnp.zeros(2, "bfloat16"), jnp.ones((3, 2)))
    >>> str(found.before), str(found.after), found.place.expression
    ('bfloat16[2]', 'float32[2]', 'c + x')
    """
    function("body", body, "lambda carry, x: (carry, x)")
    for name, tree in (("init", init), ("xs", xs)):
        _check_arrays(name, tree)
    rows = [tree_map_with_path(_row, x) for x in xs]
    program, given = jax.make_jaxpr(body, return_shape=True)(init, *rows)
    if xs:
        if not isinstance(given, tuple) or len(given) != 2:
            raise OperandError("The body of a scan must return a pair of carry and output, such as: return carry, None")
        given = given[0]
    before, after = _types_by_path(init), _types_by_path(given)
    places = dict.fromkeys(before, SourcePlace()) | dict(zip(after, _places_of_results(program), strict=False))
    return tuple(
        CarryMismatch(path, had, has, place, _fix(path, had, has, place))
        for path, place in places.items()
        if not _match(had := before.get(path), has := after.get(path))
    )


def _check_arrays(name: str, tree: Any) -> None:
    for leaf in jax.tree.leaves(pytree(name, tree)):
        try:
            _ = isinstance(leaf, jax.ShapeDtypeStruct) or jax.typeof(leaf)
        except Exception as error:  # the value itself may raise anything
            raise OperandError(f"{name} must consist of arrays and numbers, got {shown(leaf)}.") from error


def _row(path: Any, leaf: Any) -> Any:
    if not getattr(leaf, "shape", ()):
        raise OperandError(
            f"xs must have a leading axis to iterate over, got {shown(leaf)} at xs{keystr(path)}. "
            "JAX treats lists as containers; make an array of a list of numbers: jnp.asarray([1.0, 2.0])"
        )
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _match(had: ValueType | None, has: ValueType | None) -> bool:
    if had is None or has is None or had.shape != has.shape:
        return False
    if had.dtype == has.dtype:
        return True
    # JAX converts a weak input to the dtype of the output if that dtype can hold it.
    operands = (replace(as_operand(each.dtype), weak=each.weak, ndim=len(each.shape)) for each in (had, has))
    return had.weak and explain(*operands, rules="jax").dtype == has.dtype


def _fix(path: str, had: ValueType | None, has: ValueType | None, place: SourcePlace) -> str:
    if had is None or has is None:
        return "return the same containers from the body that it takes"
    if had.shape != has.shape:
        return f"start carry{path} with the shape {has.shape}, or return the shape {had.shape}"
    made = f"({place.expression}).astype('{had.dtype}')" if place.expression else f"it with .astype('{had.dtype}')"
    return f"start with jnp.asarray(carry{path}, '{has.dtype}'), or return {made}"


def _types_by_path(tree: Any) -> dict[str, ValueType]:
    """The types of the leaves of a tree, by their paths as Python would write them.

    >>> {path: str(kind) for path, kind in _types_by_path({"step": 0, "w": jax.numpy.ones(2)}).items()}
    {"['step']": 'int32[] (weak)', "['w']": 'float32[2]'}
    """
    return {keystr(path): ValueType.of(leaf) for path, leaf in tree_leaves_with_path(tree)}


def _places_of_results(program: ClosedJaxpr) -> list[SourcePlace]:
    """The lines that made the results of a program."""
    origins, sources = Origins(), Sources()
    sites = {var: site for site in walk(program) if site.caller is None for var in site.equation.outvars}
    places: list[SourcePlace] = []
    for atom in program.jaxpr.outvars:
        site = sites.get(atom) if isinstance(atom, Var) else None
        at = None if site is None else origins.of(site).place
        places.append(SourcePlace() if at is None else SourcePlace(str(at), sources.text(at)))
    return places


def _made_at(place: SourcePlace) -> str:
    return f"\n  made at {place.where}: {place.expression}" if place.where else ""
