"""Weak values at the edges of a program, and the programs that are traced again because of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax

from supremum.tracing.value_types import SourcePlace, ValueType, places_of_results, types_by_path


@dataclass(frozen=True, slots=True)
class WeakValue:
    """An argument or a result of a function that has no dtype of its own, or comes back as another type.

    Args:
        role: `"argument"` or `"result"`.
        path: which one, as Python would write it: `"[0]['step']"` is `args[0]['step']`.
        type: its type.
        returns: for an argument, the type in which it comes back, where that is another: with what comes back the
            function is traced and compiled again.
        place: for a result, where it was made; for an argument that comes back, where what comes back was made.
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
        """Whether passing the result in again has the function traced again."""
        return self.returns is not None

    def __str__(self) -> str:
        back = "" if self.returns is None else f", comes back as {self.returns}: traced again when that is passed in"
        made = f"\n  made at {self.place.where}: {self.place.expression}" if self.place.where else ""
        return f"{self.role}{self.path} is {self.type}{back}{made}\n  fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class WeakReport:
    """The weak values at the edges of a program.

    Args:
        values: arguments first.
    """

    values: tuple[WeakValue, ...]

    @property
    def retraces(self) -> tuple[WeakValue, ...]:
        """Those because of which the function is traced again."""
        return tuple(value for value in self.values if value.retraces)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[WeakValue]:
        return iter(self.values)

    def __getitem__(self, index: int) -> WeakValue:
        return self.values[index]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON; types as text."""
        kinds = ("type", "returns")
        return {
            "values": [
                asdict(value)
                | {name: None if getattr(value, name) is None else str(getattr(value, name)) for name in kinds}
                for value in self.values
            ]
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.values)) or "no weak arguments or results"


def weak_types(function: Callable[..., Any]) -> Callable[..., WeakReport]:
    """Find what goes into a function or comes out of it without a dtype of its own.

    Arguments and results of the same containers and shapes, such as the state of an optimizer, are taken to be passed
    in again.

    Args:
        function: a function of trees of arrays and numbers, by position.

    Returns:
        A function of the same arguments that gives the report.

    >>> import jax.numpy as jnp
    >>> step = lambda state, x: ({"mean": 0.9 * state["mean"] + x.sum()}, x)
    >>> print(weak_types(step)({"mean": 0.0}, jnp.ones(3)))  # doctest: +ELLIPSIS
    argument[0]['mean'] is float32[] (weak), comes back as float32[]: traced again when that is passed in
      made at ...: 0.9 * state["mean"] + x.sum()
      fix: start with jnp.asarray(args[0]['mean'], 'float32')
    """

    def report(*args: Any) -> WeakReport:
        program, given = jax.make_jaxpr(function, return_shape=True)(*args)
        results = types_by_path(given)
        places = dict(zip(results, places_of_results(program), strict=True))
        values: list[WeakValue] = []
        fed = _fed_back(args, given)
        for path, kind in types_by_path(args).items():
            back = fed.get(path)
            returned = None if back is None or results[back] == kind else results[back]
            if kind.weak or returned is not None:
                place = SourcePlace() if back is None or returned is None else places[back]
                target = (returned or kind).dtype
                values.append(
                    WeakValue(
                        "argument", path, kind, returned, place, f"start with jnp.asarray(args{path}, '{target}')"
                    )
                )
        for path, kind in results.items():
            if kind.weak:
                text = places[path].expression or "it"
                fix = f"give back jnp.asarray({text}, '{kind.dtype}')"
                values.append(WeakValue("result", path, kind, None, places[path], fix))
        return WeakReport(tuple(values))

    return report


def _fed_back(args: tuple[Any, ...], given: Any) -> dict[str, str]:
    """For leaves of arguments, the leaves of the results that look like them, both by path."""
    parts = {"": given}
    if isinstance(given, (tuple, list)):
        parts = {f"[{index}]": part for index, part in enumerate(given)}
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
