"""Objects that can be made again from the arguments of their constructors: `get_config` and `from_config`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from inspect import Parameter
from typing import Any, Self, cast

from supremum.argument_checks import chosen, mapping, text
from supremum.errors import OperandError, shown
from supremum.nn.module_tree import PickledByName


class GivenArguments(PickledByName):
    """The arguments of a call, positional ones under their places.

    It is no container: the layers in it are not children of the layer that was made with them.

    Args:
        args: the positional arguments.
        kwargs: the keyword arguments.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        vars(self).update({str(place): value for place, value in enumerate(args)} | dict(kwargs))

    def by_name(self, kind: type) -> dict[str, Any]:
        """Return the arguments by the names of a constructor's parameters.

        Args:
            kind: the class whose constructor got them.
        """
        named = dict(vars(self))
        args = [named.pop(str(place)) for place in range(sum(name.isdigit() for name in named))]
        signature = inspect.signature(kind)
        found = signature.bind(*args, **named).arguments
        for name, parameter in signature.parameters.items():
            if parameter.kind is Parameter.VAR_KEYWORD:
                found |= found.pop(name, {})
        return found


class Configurable:
    """The base class of objects with `get_config` and `from_config`; it keeps the arguments of the constructor.

    >>> class Scale(Configurable):
    ...     def __init__(self, factor, inner=None): ...
    >>> config = Scale(2.0, inner=Scale(3.0)).get_config()
    >>> config["factor"], config["inner"]["config"]
    (2.0, {'factor': 3.0})
    >>> Scale.from_config(config).get_config() == config
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments."""
        made = super().__new__(cls)
        vars(made)["_given_arguments"] = GivenArguments(args, kwargs)
        return made

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that the constructor got, by name, for `from_config`.

        Layers among them are written as class and config. Functions, arrays and other objects stay as they are; the
        rest is data for JSON.
        """
        given: GivenArguments = vars(self)["_given_arguments"]
        return {name: as_data(value) for name, value in given.by_name(type(self)).items()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new object, without weights, from the result of `get_config`.

        Args:
            config: the arguments by name.
        """
        for name in mapping("config", config, f"{cls.__name__}(...).get_config()"):
            text("each name in config", name)
        return cls(**{name: from_data(value) for name, value in config.items()})


def as_data(value: Any) -> Any:
    """Write the `Configurable` objects in nested containers as their class and config.

    A class of this package is written as its name, and any other as the class itself; no class must be registered.
    """
    if isinstance(value, Configurable):
        kind = type(value)
        return {
            "class_name": kind.__name__ if _named().get(kind.__name__) is kind else kind,
            "config": value.get_config(),
        }
    return _mapped(as_data, value)


def from_data(data: Any) -> Any:
    """Make the objects that `as_data` has written.

    Raises:
        UnknownNameError: for an unknown class; a `ValueError`.
        OperandError: for a class that has no `from_config`; a `TypeError`.
    """
    if not isinstance(data, Mapping) or set(cast("Mapping[Any, Any]", data)) != {"class_name", "config"}:
        return _mapped(from_data, data)
    kind: Any = data["class_name"]
    if isinstance(kind, str):
        kind = _named()[chosen("class", kind, _named())]
    if not (isinstance(kind, type) and issubclass(kind, Configurable)):
        raise OperandError(f"class_name must be a class of layers or losses, or its name, got {shown(kind)}")
    return kind.from_config(data["config"])


def _mapped(function: Any, value: Any) -> Any:
    if type(value) is dict:
        return {name: function(each) for name, each in cast("dict[Any, Any]", value).items()}
    if type(value) in (list, tuple):
        return type(value)(map(function, value))
    return value


def _named() -> dict[str, type[Configurable]]:
    return {kind.__name__: kind for kind in _subclasses(Configurable) if kind.__module__.startswith("supremum.")}


def _subclasses(kind: type[Configurable]) -> Iterator[type[Configurable]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _subclasses(subclass)
