"""Values of variables that a training loop works on, whose memory it may use again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from supremum.errors import shown
from supremum.nn.variables import UninitializedError, Variable


class Donation:
    """The values of variables, donated to a loop.

    The loop takes the values before each step and gives back those after it. Meanwhile the variables hold none: the
    first of them that is read, in a callback say, has copies of all made, so that what was read stays when the loop
    uses the memory again; what is assigned in between is what the loop takes next. So a step costs nothing more
    however many variables there are.

    Args:
        variables: the variables by path.
        lock: held while values are read or handed back; whoever has it has the values to itself, other threads wait.

    >>> import jax.numpy as jnp
    >>> variable = Variable(jnp.zeros(2), name="x")
    >>> donation = Donation({"x": variable})
    >>> donation.give({path: value + 1 for path, value in donation.take().items()})
    >>> variable.value
    Array([1., 1.], dtype=float32)
    """

    def __init__(self, variables: Mapping[str, Variable], lock: threading.RLock | None = None) -> None:
        self._variables = dict(variables)
        self._lock = threading.RLock() if lock is None else lock
        self._values: dict[str, jax.Array] = {}
        # What the variables were last given, in which they hold it; None while they hold nothing.
        self._handed: dict[str, jax.Array] | None = {}

    def take(self) -> dict[str, jax.Array]:
        """The values, by path; the caller may use their memory."""
        handed = self._handed
        if handed is not None:
            held = {path: variable.read_stored() for path, variable in self._variables.items()}
            changed = {path: value for path, value in held.items() if value is not handed.get(path)}
            self._values |= _copied(changed)
            for path, variable in self._variables.items():
                variable.lend(partial(self._hand, path))
            self._handed = None
        return self._values

    def give(self, values: dict[str, jax.Array]) -> None:
        """Go on with other values.

        Args:
            values: by path, in the shapes and dtypes of the variables.
        """
        self._values = values

    def end(self) -> None:
        """Let the variables have their values for good."""
        if self._handed is None:
            for path, variable in self._variables.items():
                variable.take_back(self._values[path])
        self._handed, self._values = {}, {}

    def _hand(self, path: str) -> jax.Array | None:
        with self._lock:
            handed = self._handed
            if handed is None:
                if any(value.is_deleted() for value in self._values.values()):
                    raise UninitializedError(
                        f"variable {shown(self._variables[path].name)} lost its value in a training step that failed: "
                        "model.load_state(path) brings the model's values back"
                    )
                # Real arrays also for who reads them while JAX is tracing something.
                with jax.ensure_compile_time_eval():
                    handed = _copied(self._values)
                self._handed = handed
                for name, variable in self._variables.items():
                    variable.take_back(handed[name])
            return handed.get(path)  # none where another thread ended the loan meanwhile: the variable has it


@jax.jit
def _copied(values: Any) -> Any:
    return jax.tree.map(jnp.copy, values)
