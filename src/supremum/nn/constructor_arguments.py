"""Objects that can be made again from the arguments of their constructors: `get_config` and `from_config`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, cast

from supremum.argument_checks import chosen, mapping, pytree, text
from supremum.errors import OperandError, shortened, shown
from supremum.keyword_signature import KeywordSignature
from supremum.nn.module_tree import Attributes


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

    __signature__: ClassVar[KeywordSignature] = KeywordSignature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments; subclasses do not have to."""
        new = super().__new__(cls)
        names = inspect.signature(cls).parameters if args else ()
        vars(new)["_arguments"] = Attributes(dict(zip(names, args, strict=False)) | kwargs)
        return new

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that the constructor got, by name, for `from_config`.

        Layers among them are written as class and config. Functions, arrays and other objects stay as they are; the
        rest is data for JSON.
        """
        arguments: Attributes = vars(self)["_arguments"]
        return {name: as_data(value) for name, value in vars(arguments).items()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new object, without weights, from the result of `get_config`.

        Args:
            config: the arguments by name.

        Raises:
            OperandError: for a config without a required argument, or with one that the class does not have; a
                `TypeError`.
            ArgumentError: for a config that contains itself; a `ValueError`.
        """
        pytree("config", config)
        for name in mapping("config", config, f"{cls.__name__}(...).get_config()"):
            text("each name in config", name)
        try:
            inspect.signature(cls).bind(**config)
        except TypeError as error:
            raise OperandError(f"config does not fit {cls.__name__}: {shortened(str(error))}") from error
        return cls(**{name: from_data(value) for name, value in config.items()})


def as_data(value: object) -> Any:
    """Write the `Configurable` objects in nested containers as their class and config.

    A class of this package is written as its name, and any other as the class itself; no class must be registered.
    """
    if isinstance(value, Configurable):
        kind = type(value)
        return {
            "class_name": kind.__name__ if _own_classes().get(kind.__name__) is kind else kind,
            "config": value.get_config(),
        }
    return _map_items(as_data, value)


def from_data(data: object) -> Any:
    """Make the objects that `as_data` has written.

    Raises:
        UnknownNameError: for an unknown class; a `ValueError`.
        OperandError: for a class that has no `from_config`; a `TypeError`.
    """
    if not isinstance(data, Mapping) or set(cast("Mapping[Any, Any]", data)) != {"class_name", "config"}:
        return _map_items(from_data, data)
    kind: Any = data["class_name"]
    if isinstance(kind, str):
        kind = _own_classes()[chosen("class", kind, _own_classes())]
    if not (isinstance(kind, type) and issubclass(kind, Configurable)):
        raise OperandError(f"class_name must be a class of layers or losses, or its name, got {shown(kind)}")
    return kind.from_config(data["config"])


def _map_items(function: Callable[[Any], Any], value: Any) -> Any:
    if type(value) is dict:
        return {name: function(each) for name, each in cast("dict[Any, Any]", value).items()}
    if type(value) in (list, tuple):
        return type(value)(map(function, value))
    return value


def _own_classes() -> dict[str, type[Configurable]]:
    return {kind.__name__: kind for kind in _subclasses(Configurable) if kind.__module__.startswith("supremum.")}


def _subclasses(kind: type[Configurable]) -> Iterator[type[Configurable]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _subclasses(subclass)
