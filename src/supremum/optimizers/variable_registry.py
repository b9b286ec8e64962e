"""The variables of an optimizer, and their keys."""

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
"""The argument of optimizers: one variable, several variables, or the variables of a model by path."""


def register(key_of: Mapping[Variable, str], variables: Variables) -> dict[Variable, str]:
    """Give each variable a key: its path in a model, or an unused name if there is no path.

    Args:
        key_of: the keys of the known variables; paths replace earlier names.
        variables: the variables to add.

    Raises:
        OperandError: for anything that is not a variable.
        ArgumentError: for a variable that occurs twice or is not real floating, and for a path that another variable
            already has.
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
                f"two variables are called {shown(key)}, because this optimizer has trained another model: make one "
                "optimizer for each model, with type(optimizer).from_config(optimizer.get_config())"
            )
    return made


def checked_variables(variables: Variable | Iterable[Any]) -> list[Variable]:
    """Check variables, and return them as a list.

    Raises:
        OperandError: for anything that is not a variable.
        ArgumentError: for a variable that occurs twice, or is not real floating.
    """
    if isinstance(variables, Variable):
        return [variables]
    if not is_iterable(variables):
        raise _not_a_variable(variables)
    found: dict[Variable, None] = {}
    for variable in variables:
        check_variable(variable)
        if variable in found:
            raise ArgumentError(f"{shown(variable)} must occur only once: an optimizer changes it once in a step")
        found[variable] = None
    if not found:
        raise ArgumentError("an optimizer needs at least one variable, got none: pass model.trainable_variables")
    return list(found)


def check_variable(variable: Any) -> None:
    """Raise if a value is not a real floating variable."""
    if not isinstance(variable, Variable):
        raise _not_a_variable(variable)
    if as_format(variable.true_dtype).kind is not Kind.FLOAT:
        raise ArgumentError(
            f"trained variables must be real floating, got {shown(variable)}: leave it out, or make it with "
            "trainable=False"
        )


def _not_a_variable(given: Any) -> OperandError:
    return OperandError(
        f"an optimizer needs supremum.nn.Variable objects, got {type(given).__name__}: pass "
        "model.trainable_variables, or nn.Variable(array)"
    )


def _free_name(name: str, taken: set[str]) -> str:
    numbered = (f"{name}_{number}" for number in count(1))
    return next(free for free in chain([name], numbered) if free not in taken)
