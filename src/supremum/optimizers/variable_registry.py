"""The variables of an optimizer, and the key of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, TypeAlias

from supremum.argument_checks import is_iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import Kind, as_format
from supremum.nn import Variable

Variables: TypeAlias = "Mapping[str, Variable] | Sequence[Variable] | Variable"
"""What optimizers take: one variable, several, or the variables of a model by path."""


def register(key_of: Mapping[Variable, str], variables: Variables) -> dict[Variable, str]:
    """Give variables a key each: their path in a model, or, if only variables are given, a free name.

    Args:
        key_of: the keys of the variables so far; paths replace the names that variables had before.
        variables: the variables to add.

    Raises:
        OperandError: for what is not a variable.
        ArgumentError: for a variable that is given twice, one that is not real floating, or a path that another
            variable has.
    """
    made = dict(key_of)
    if isinstance(variables, Mapping):
        made.update(zip(checked_variables(variables.values()), variables, strict=True))
    else:
        taken = set(made.values())
        for variable in checked_variables(variables):
            if variable not in made:
                made[variable] = _free_name(variable.name, taken)
                taken.add(made[variable])
    for key, times in Counter(made.values()).items():
        if times > 1:
            raise ArgumentError(
                f"two variables are called {shown(key)}, so this optimizer has trained another model: make one for "
                "each model, with type(optimizer).from_config(optimizer.get_config())"
            )
    return made


def checked_variables(variables: Variable | Iterable[Any]) -> list[Variable]:
    """Variables as a list.

    Raises:
        OperandError: for anything that is not a variable.
        ArgumentError: for one that is given twice, or whose dtype is not real floating.
    """
    if isinstance(variables, Variable):
        return [variables]
    if not is_iterable(variables):
        raise _no_variable(variables)
    found: dict[Variable, None] = {}
    for variable in variables:
        check_variable(variable)
        if variable in found:
            raise ArgumentError(f"{shown(variable)} is given twice: an optimizer changes each variable once in a step")
        found[variable] = None
    if not found:
        raise ArgumentError("there are no variables to train: give model.trainable_variables")
    return list(found)


def check_variable(variable: Any) -> None:
    """Raise if a value is not a real floating variable."""
    if not isinstance(variable, Variable):
        raise _no_variable(variable)
    if as_format(variable.true_dtype).kind is not Kind.FLOAT:
        raise ArgumentError(
            f"optimizers change real floating variables, and {shown(variable)} is not: leave it out, or make it with "
            "trainable=False"
        )


def _no_variable(given: Any) -> OperandError:
    return OperandError(
        f"an optimizer changes supremum.nn.Variable objects, not {type(given).__name__}: give "
        "model.trainable_variables, or nn.Variable(array)"
    )


def _free_name(name: str, taken: set[str]) -> str:
    numbered = (f"{name}_{number}" for number in count(1))
    return next(free for free in chain([name], numbered) if free not in taken)
