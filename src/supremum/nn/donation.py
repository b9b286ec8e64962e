"""Lend the values of variables to a training loop, which may reuse their memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from supremum.errors import shown
from supremum.nn.variables import UninitializedError, Variable, lend_value, take_back
from supremum.typing import PyTree


class Donation:
    """The values of variables, donated to a loop.

    The loop takes the values before each step and gives new ones back after it. In the meantime the variables are
    empty. The first read of any variable, for example in a callback, copies all values, and the copies stay valid when
    the loop reuses the memory. Values assigned between steps are what the loop takes next. The cost of a step
    therefore does not grow with the number of variables.

    Args:
        variables: the variables by path.
        lock: held while values are read or returned; other threads wait for it.
        finish: called before values are read; it calls `give` if an interrupted loop could not.

    An exception may come from a signal handler or another thread at any line. Each method can therefore be called again
    where it was interrupted, and reads and assignments in between lead to the same values.

    >>> import jax.numpy as jnp
    >>> variable = Variable(jnp.zeros(2), name="x")
    >>> donation = Donation({"x": variable})
    >>> donation.give({path: value + 1 for path, value in donation.take().items()})
    >>> variable.value
    Array([1., 1.], dtype=float32)
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        lock: threading.RLock | None = None,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._variables = dict(variables)
        self._lenders = {path: partial(self._return_all, path) for path in self._variables}
        self._lock = threading.RLock() if lock is None else lock
        self._finish = finish
        self._values: dict[str, jax.Array] = {}
        # The values that the variables hold now; None while they are lent.
        self._returned: dict[str, jax.Array] | None = {}

    def take(self) -> dict[str, jax.Array]:
        """The values, by path; the caller may use their memory."""
        returned = self._returned
        if returned is not None:
            current = {path: variable.read_stored() for path, variable in self._variables.items()}
            changed = {path: value for path, value in current.items() if value is not returned.get(path)}
            values = self._values | copy_tree(changed) if changed else self._values
            self._values, self._returned = values, current
            for path, variable in self._variables.items():
                lend_value(variable, self._lenders[path])
            self._returned = None
        return self._values

    def give(self, values: dict[str, jax.Array]) -> None:
        """Continue with new values.

        Args:
            values: by path, in the shapes and dtypes of the variables.
        """
        self._values = values

    def end(self) -> None:
        """Return the values to the variables for good."""
        returned = self._values if self._returned is None else self._returned
        self._returned, self._values = returned, {}
        for path, value in returned.items():
            take_back(self._variables[path], value, self._lenders[path])
        self._returned = {}

    def _return_all(self, path: str) -> jax.Array | None:
        with self._lock:
            if self._returned is None and self._finish is not None:
                self._finish()
            returned = self._returned
            if returned is None:
                if any(value.is_deleted() for value in self._values.values()):
                    raise UninitializedError(
                        f"variable {shown(self._variables[path].name)} lost its value in a failed training step; "
                        "restore the model with model.load_state(path)"
                    )
                # Copies must be concrete even if they are read while JAX traces.
                with jax.ensure_compile_time_eval():
                    returned = copy_tree(self._values)
                self._returned = returned
                for name, variable in self._variables.items():
                    take_back(variable, returned[name], self._lenders[name])
            return returned.get(path)  # None if another thread has ended the loan: the variable has its value


@jax.jit
def copy_tree(values: PyTree) -> Any:
    """Copy arrays, on their devices, so that a step may reuse the memory of one of both.

    Args:
        values: a tree of arrays.
    """
    return jax.tree.map(jnp.copy, values)
