"""`watch`, which measures every so many calls of a training step, whatever library it is written with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import jax.numpy as jnp

from supremum.argument_checks import function, whole_number
from supremum.bounded_cache import Bounded
from supremum.errors import OperandError, shown
from supremum.formats import Format, as_format
from supremum.jaxprs import Site, call_key, has_tracers, lift_objects, split_arrays
from supremum.mixed_precision import LossScaleState, is_inexact
from supremum.numerics.history import NumericsHistory, NumericsRecord
from supremum.numerics.named_tallies import NamedTallies, tallies_of
from supremum.numerics.observed import name_at, observe, scope_boundaries
from supremum.numerics.profiling import as_formats
from supremum.typing import DTypeLike

P = ParamSpec("P")
R = TypeVar("R")

FORMATS = "float16", "bfloat16"
OnLog = Callable[[dict[str, float]], Any]
_LARGEST = int(as_format("int32").max)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in one step, still on the device.

    Args:
        step: the number of the step.
        scaling: the loss scale and how many steps were skipped before; None without loss scaling.
        tallies: the tallies.
    """

    step: int
    scaling: tuple[Any, Any] | None
    tallies: NamedTallies

    def read(self) -> NumericsRecord:
        """Wait for the numbers, and read them."""
        scale, skipped = (None, 0) if self.scaling is None else jax.device_get(self.scaling)
        return NumericsRecord(self.step, None if scale is None else float(scale), int(skipped), self.tallies.counts())


class Measurements:
    """Measurements that are read later, so that Python does not wait for the device.

    Args:
        on_log: called with the numbers of each record when it is read.

    Attributes:
        history: the records read so far.
    """

    def __init__(self, on_log: OnLog | None) -> None:
        self.history: NumericsHistory = NumericsHistory()
        self._on_log = on_log
        self._waiting: list[Measured] = []

    def add(self, measured: Measured) -> None:
        """Add a measurement, and read the earlier ones."""
        self.read_all()
        self._waiting.append(measured)

    def read_all(self) -> None:
        """Read all measurements."""
        waiting, self._waiting = self._waiting, []
        for measured in waiting:
            record = measured.read()
            self.history.records.append(record)
            if self._on_log is not None:
                self._on_log(record.numbers())


def watch(
    step: Callable[P, R],
    every: int = 100,
    formats: Iterable[DTypeLike] = FORMATS,
    *,
    on_log: OnLog | None = None,
) -> Watched[P, R]:
    """Measure every so many calls of a training step.

    The watched step calls the step itself, so it computes the same bits, and a call that is not measured costs nothing.
    A measured call first runs a second program on the same arguments, traced from the same step, that only counts. It
    takes about the time of a step. Arguments may be donated.

    What it can know of any step, by kind:

    * `"inputs"` and `"outputs"`: the floating arrays among the arguments and the results, by path, such as
      `"[0]['dense']['kernel']"`: weights, moments, the loss.
    * `"forward"` and `"backward"`: values that leave a `jax.named_scope`, by the path of the scope. Flax puts each
      layer in one, so these are the outputs of layers, and the gradients that leave them.
    * `"named"`: values that the step names with `jax.ad_checkpoint.checkpoint_name(x, "name")`. Name the gradients to
      see them by path if they are not among the outputs.

    Args:
        step: a pure function of arrays, or one that changes modules of Flax nnx; best jitted.
        every: how many calls there are between measurements; the first call is measured.
        formats: the floating-point formats to answer for.
        on_log: a function of a dict of numbers, called for each measurement, at the next one or when `history` is read.

    Returns:
        A function with the same arguments and results, whose `history` has the measurements.

    Raises:
        OperandError: for a step that is not a function, and for formats that are not real floating; in a call, if JAX
            is tracing it.
        ArgumentError: for `every` below 1.

    >>> import jax, jax.numpy as jnp
    >>> @jax.jit
    ... def step(w, x):
    ...     return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    >>> watched = watch(step, every=10, formats=["float16"])
    >>> w, x = jnp.full((4, 1), 1e-6), jnp.full((8, 4), 1e-2)
    >>> for _ in range(20):
    ...     w = watched(w, x)
    >>> watched.history.steps, list(watched.history.numbers("inputs", "largest"))
    ([0, 10], ['[0]', '[1]'])
    """
    return Watched(step, every, formats, on_log=on_log)


class Watched(Generic[P, R]):
    """A step that is measured every so many calls; see `watch`.

    Args:
        step: as for `watch`.
        every: as for `watch`.
        formats: as for `watch`.
        on_log: as for `watch`.

    >>> import jax.numpy as jnp
    >>> watched = watch(jnp.sin, every=2)
    >>> [float(watched(jnp.zeros(()))) for _ in range(3)], watched.calls
    ([0.0, 0.0, 0.0], 3)
    >>> watched
    Watched(sin, every=2, formats=['float16', 'bfloat16'])
    """

    def __init__(
        self,
        step: Callable[P, R],
        every: int = 100,
        formats: Iterable[DTypeLike] = FORMATS,
        *,
        on_log: OnLog | None = None,
    ) -> None:
        self._step = function("step", step, "jax.jit(step)")
        self._every = whole_number("every", every, 1, _LARGEST)
        self._formats = as_formats(formats)
        if on_log is not None:
            function("on_log", on_log, "print")
        self._measurements = Measurements(on_log)
        self._programs: Bounded[Hashable, Callable[[list[Any]], NamedTallies]] = Bounded(8)
        self._calls = 0
        functools.update_wrapper(self, step, updated=())

    @property
    def calls(self) -> int:
        """How often the step was called."""
        return self._calls

    @property
    def history(self) -> NumericsHistory:
        """The measurements so far; reading it waits for the last one."""
        self._measurements.read_all()
        return self._measurements.history

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the step, and measure it if it is due."""
        if self._calls % self._every == 0:
            self._measurements.add(self._measure(args, kwargs))
        results = self._step(*args, **kwargs)
        self._calls += 1
        return results

    def _measure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Measured:
        if has_tracers((args, kwargs)):
            raise OperandError(
                f"{shown(self)} keeps its records on the host, so JAX must not trace its call: watch the jitted step, "
                "as in watch(jax.jit(step)), instead of jitting the watched one"
            )
        step, arguments, key = self._step, (args, kwargs), call_key((args, kwargs))
        lift = lift_objects(step, args, kwargs)
        if lift is not None:  # the arrays of the objects come first, and their structure may differ in every call
            step, arguments, key = lift.function, (lift.args, lift.kwargs), None
        arrays, with_arrays = split_arrays(arguments)
        program = self._programs.get(key)
        if program is None:
            program = _counting_program(step, with_arrays, self._formats)
        if key is not None:
            self._programs[key] = program
        return Measured(self._calls, _scaling_in((args, kwargs)), program(arrays))

    def __repr__(self) -> str:
        name = getattr(self._step, "__name__", type(self._step).__name__)
        return f"Watched({name}, every={self._every}, formats={[row.name for row in self._formats]})"


def _scaling_in(arguments: Any) -> tuple[jax.Array, jax.Array] | None:
    """Copies of the loss scale and the number of skipped steps among the arguments of a step; None without one."""
    leaves = jax.tree.leaves(arguments, is_leaf=lambda node: isinstance(node, LossScaleState))
    state = next((leaf for leaf in leaves if isinstance(leaf, LossScaleState)), None)
    # The step may donate its arguments.
    return None if state is None else (jnp.copy(state.loss_scale), jnp.copy(state.num_skipped_steps))


def _counting_program(
    step: Callable[..., Any], with_arrays: Callable[[Sequence[Any]], Any], formats: tuple[Format, ...]
) -> Callable[[list[Any]], NamedTallies]:
    """The second program of a step, which only counts.

    Args:
        step: the step.
        with_arrays: returns the positional and keyword arguments of the step with given arrays.
        formats: the formats to answer for.
    """

    def count(arrays: list[Any]) -> NamedTallies:
        names: list[str] = []

        def floating_results(*operands: Any) -> list[Any]:
            args, kwargs = with_arrays(operands)
            named = _floating(step(*args, **kwargs))
            names[:] = [name for name, _ in named]
            return [value for _, value in named]

        program, leaving = jax.make_jaxpr(floating_results)(*arrays), scope_boundaries()

        def choose(site: Site) -> Iterable[int]:
            return leaving(site) if name_at(site) is None else (0,)

        results, inside = observe(program, arrays, formats, choose, _kind_and_name)
        args, kwargs = with_arrays(arrays)
        inputs = tallies_of("inputs", [*_floating(args), *_floating(kwargs)], formats)
        return inputs + inside + tallies_of("outputs", zip(names, results, strict=True), formats)

    return jax.jit(count)


def _kind_and_name(site: Site) -> tuple[str, str]:
    name = name_at(site)
    if name is not None:
        return "named", name
    return "backward" if site.is_backward else "forward", site.path


def _floating(tree: Any) -> list[tuple[str, Any]]:
    """The floating arrays in a tree, with their paths."""
    return [
        (jax.tree_util.keystr(path) or "result", leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if is_inexact(leaf)
    ]
