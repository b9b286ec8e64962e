"""KeywordSignature: `help` and `inspect.signature` show every keyword argument of a class."""

from __future__ import annotations

import inspect
from inspect import Parameter, Signature
from typing import Any, get_args


class KeywordSignature:
    """A class attribute `__signature__` with every keyword argument, for `help` and `inspect.signature`.

    Python shows `**options` where a constructor passes arguments on. This descriptor shows what the base classes take
    instead, with their defaults: the keys of a `TypedDict` where the annotation is `Unpack[TypedDict]`, otherwise all
    keyword arguments.

    Args:
        passed_to: the attribute with the class whose constructor gets `**options`, if that is not a base class.

    >>> class Base:
    ...     __signature__ = KeywordSignature()
    ...
    ...     def __init__(self, *, name: str | None = None): ...
    >>> class Scale(Base):
    ...     def __init__(self, factor: float = 1.0, **options): ...
    >>> inspect.signature(Scale)
    <Signature (factor: 'float' = 1.0, *, name: 'str | None' = None)>
    """

    def __init__(self, passed_to: str | None = None) -> None:
        self._passed_to = passed_to

    def __get__(self, instance: object | None, owner: type) -> Signature:
        if instance is not None:  # a callable object has the signature of its `__call__`
            raise AttributeError("__signature__")
        bases = owner.__mro__[:-1]
        if self._passed_to is not None:  # no `**options` reaches the base classes of the class that passes them on
            bases = bases[: next(n for n, base in enumerate(bases) if vars(base).get("__signature__") is self) + 1]
        parameters = _merge([vars(base)["__init__"] for base in bases if "__init__" in vars(base)])
        if self._passed_to is not None and (taker := getattr(owner, self._passed_to, None)) is not None:
            options = inspect.signature(taker).parameters
            own = {name: each for name, each in parameters.items() if each.kind is not Parameter.VAR_KEYWORD}
            others = {name: each for name, each in options.items() if name not in own}
            parameters = own | {name: each.replace(kind=Parameter.KEYWORD_ONLY) for name, each in others.items()}
        return Signature(sorted(parameters.values(), key=lambda parameter: parameter.kind))


def _merge(constructors: list[Any]) -> dict[str, Parameter]:
    """The parameters of the first constructor, and the inherited ones that its `**options` accepts."""
    if not constructors:
        return {}
    own = _parameters(constructors[0])
    options = next((each for each in own.values() if each.kind is Parameter.VAR_KEYWORD), None)
    if options is None or not constructors[1:]:
        return own
    inherited = _merge(constructors[1:])
    if any(each.kind is Parameter.VAR_POSITIONAL for each in own.values()):  # it passes on all its arguments
        return inherited
    unpacked = next((each for each in get_args(options.annotation) if hasattr(each, "__optional_keys__")), None)
    keys = inherited if unpacked is None else unpacked.__optional_keys__
    return {name: each for name, each in own.items() if each is not options} | {
        name: each if each.kind is Parameter.VAR_KEYWORD else each.replace(kind=Parameter.KEYWORD_ONLY)
        for name, each in inherited.items()
        if name in keys and own.get(name, options) is options
    }


def _parameters(constructor: Any) -> dict[str, Parameter]:
    """The parameters of a constructor without `self`; only the annotation of `**options` is evaluated."""
    _, *parameters = inspect.signature(constructor).parameters.items()
    return {name: _evaluate(each, constructor) for name, each in parameters}


def _evaluate(parameter: Parameter, constructor: Any) -> Parameter:
    if parameter.kind is not Parameter.VAR_KEYWORD or not isinstance(parameter.annotation, str):
        return parameter
    return parameter.replace(annotation=eval(parameter.annotation, constructor.__globals__))
