"""Weak arguments and results, and arguments that come back with a different type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax

from supremum.tracing.value_types import SourcePlace, ValueType, places_of_results, types_by_path


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

    >>> found = weak_types(lambda x: x + 1.0)(2.0)
    >>> [(each.role, str(each.type), each.retraces) for each in found]
    [('argument', 'float32[] (weak)', False), ('result', 'float32[] (weak)', False)]
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
        back = "" if self.returns is None else f", comes back as {self.returns}: JAX traces again if you pass it back"
        return f"{self.role}{self.path} is {self.type}{back}{self.place}\n  fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class WeakReport:
    """The weak inputs and outputs of a program.

    Args:
        values: the values, arguments first.

    >>> import jax.numpy as jnp
    >>> report = weak_types(lambda state, x: (state + x.sum(), x))(0.0, jnp.ones(3))
    >>> len(report), len(report.retraces)
    (1, 1)
    >>> print(weak_types(lambda x: x + 1.0)(jnp.ones(3)))
    no weak arguments or results
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
    argument[0]['mean'] is float32[] (weak), comes back as float32[]: JAX traces again if you pass it back
      made at ...: 0.9 * state["mean"] + x.sum()
      fix: start with jnp.asarray(args[0]['mean'], 'float32')
    """

    def report(*args: Any) -> WeakReport:
        program, result = jax.make_jaxpr(function, return_shape=True)(*args)
        results = types_by_path(result)
        places = dict(zip(results, places_of_results(program), strict=True))
        values: list[WeakValue] = []
        fed = _match_results(args, result)
        for path, kind in types_by_path(args).items():
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


def _match_results(args: tuple[Any, ...], result: Any) -> dict[str, str]:
    """The paths of arguments' leaves, each with the path of the result that looks the same."""
    parts: dict[str, Any] = {"": result}
    if isinstance(result, (tuple, list)):
        parts = {f"[{index}]": part for index, part in enumerate(result)}
    fed: dict[str, str] = {}
    for index, argument in enumerate(args):
        for name, part in parts.items():
            before, after = types_by_path(argument), types_by_path(part)
            alike = jax.tree.structure(argument) == jax.tree.structure(part) and bool(before)
            if alike and all(a.shape == b.shape for a, b in zip(before.values(), after.values(), strict=True)):
                fed |= {f"[{index}]{a}": f"{name}{b}" for a, b in zip(before, after, strict=True)}
                del parts[name]
                break
    return fed
