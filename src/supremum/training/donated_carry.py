"""Keep what a step returns, whatever interrupts Python after the step has overwritten the memory of its input."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from operator import is_
from typing import Any

import jax

from supremum.bounded_cache import Bounded
from supremum.errors import UnsupportedJaxError
from supremum.jaxprs import walk
from supremum.nn import copy_tree
from supremum.typing import PyTree


class DonatedCarry:
    """A carry whose memory each step may reuse.

    Once a step reuses the memory, only the values that it returns exist. A signal handler may raise wherever Python
    runs, also between the return of a step and the line that keeps its results, and so may an exception that another
    thread sets. Therefore one call of C code runs the step and keeps the results. Inside of it no Python runs if jit
    has run a step of the same signature before, and if the carry consists of plain dicts, lists and arrays; JAX would
    call Python to make the tuples and dataclasses of optax and of our own. All other steps, such as the first of their
    signature, run on a copy.

    Args:
        take: returns the values, a dataclass of trees of arrays to which there must be no other reference.
        keep: stores the next values. It runs again if it was interrupted.

    Attributes:
        lock: held while a step runs, and by other threads while they read the values.
    """

    def __init__(self, take: Callable[[], Any], keep: Callable[[Any], None]) -> None:
        self._take, self._keep = take, keep
        self.lock: threading.RLock = threading.RLock()
        self._results: deque[tuple[Any, ...]] = deque(maxlen=1)
        self._kept: tuple[tuple[Any, ...], Any] = (), None
        self._structures: list[Any] = []
        # The signatures that jit runs without Python, each with that of the carry it returns.
        self._warm: Bounded[Hashable, Hashable] = Bounded(64)
        self._signatures: Bounded[Hashable, object] = Bounded(64)
        self._last: tuple[dict[int, list[Any]], Hashable] = {}, None
        self._begun: Any = None  # the function of a call on a copy that has not returned

    def step(self, run: Callable[..., tuple[Any, ...]], *args: object) -> tuple[Any, ...]:
        """Run a step, and keep the next values, as `KeptCarry.step` does.

        Args:
            run: a jitted function of the carry, whose memory it may use, and of `args`.
            args: the other arguments.

        Returns:
            The results.
        """
        with self.lock:
            carry, signature = self._next()
            signature = run, signature, _signature(args)
            is_warm = self._warm.get(signature) is not None and not _is_debugging()
            call = run if is_warm else partial(self._run_on_copy, run, signature)
            try:
                try:
                    self._results.extend(map(call, (carry,), *((each,) for each in args)))
                finally:
                    self.finish()
            except Exception as error:
                if any(leaf.is_deleted() for leaf in jax.tree.leaves(self._next()[0])):
                    error.add_note(
                        "The step failed after it took over the memory of the model's values, so they are lost. "
                        "Restore them with model.load_state(path), or with model.compile(...) and "
                        "model.load_weights(path)."
                    )
                raise
            finally:
                self.finish()  # what is left to do, if an exception interrupted the first call
            results = self._results[0]
            self._last = results[0], self._warm.get(signature)
            return results

    def show(self, look: Callable[[Any], None]) -> None:
        """Call a function with the values, which it may neither change nor keep."""
        with self.lock:
            look(self.tree(self._next()[0]))

    def finish(self) -> None:
        """Store the values of the last step, if an exception came in between."""
        if self._results and self._results[0] is not self._kept[0]:
            results = self._results[0]
            values = self.tree(results[0])
            self._keep(values)
            self._kept = results, values

    def forget(self) -> None:
        """Drop the references to the values of the last step."""
        self._results.clear()
        self._kept, self._last = ((), None), ({}, None)

    def _next(self) -> tuple[Any, Hashable]:
        """Return the carry, and an object that stands for its signature, which is compared faster."""
        self.finish()
        values, (results, last) = self._take(), self._kept
        is_unchanged = bool(results) and all(map(_is_same, vars(values).values(), vars(last).values()))
        carry = results[0] if is_unchanged else self.plain(values)
        known, signature = self._last
        if carry is not known or signature is None:
            signature = self._signature_of(carry)
        return carry, signature

    def plain(self, tree: PyTree) -> dict[int, list[Any]]:
        """Convert a tree to its leaves under the number of its structure, for which jit traces again if it changes."""
        leaves, structure = jax.tree.flatten(tree)
        if structure not in self._structures:
            self._structures.append(structure)
        return {self._structures.index(structure): leaves}

    def tree(self, carry: dict[int, list[Any]]) -> Any:
        """Convert the result of `plain` back."""
        ((number, leaves),) = carry.items()
        return jax.tree.unflatten(self._structures[number], leaves)

    def _run_on_copy(self, run: Any, signature: Hashable, carry: Any, *args: Any) -> tuple[Any, ...]:
        if self._begun is not None:
            # jit would call Python in all later calls of the signature whose first call was interrupted.
            self._begun.clear_cache()
            self._warm.clear()
        self._begun = run
        try:
            results = run(copy_tree(carry), *args)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            results = run(carry, *args)  # the device has no room for a copy
        self._begun = None
        if signature not in self._warm and not _is_debugging():
            # JAX runs Python after each step that calls Python.
            python = _calls_python(run.trace(results[0], *args).jaxpr)
            self._warm[signature] = None if python else self._signature_of(results[0])
        return results

    def _signature_of(self, carry: dict[int, list[Any]]) -> object:
        ((number, leaves),) = carry.items()
        described = number, *((jax.typeof(leaf), leaf.sharding, leaf.committed) for leaf in leaves)
        return self._signatures.setdefault(described, object())


def _calls_python(jaxpr: Any) -> bool:
    """Whether a program has effects or calls functions of Python, or may do so."""
    if jaxpr.effects:
        return True
    try:
        return any("callback" in site.equation.primitive.name for site in walk(jaxpr))
    except UnsupportedJaxError:
        return True


def _is_debugging() -> bool:
    """Whether JAX looks for NaN or inf after each operation, or runs without jit."""
    config: Any = jax.config
    return config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are one object, or tuples of the same objects, since wrapped optimizers join their states."""
    return one is other or (isinstance(one, tuple) and type(one) is type(other) and all(map(is_, one, other)))


def _signature(args: tuple[Any, ...]) -> Hashable:
    """Return the shapes and dtypes of arrays, and everything else as it is."""
    leaves, structure = jax.tree.flatten(args)
    return structure, *((leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf for leaf in leaves)
