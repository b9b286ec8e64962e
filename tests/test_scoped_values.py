"""Scopes that do not nest: interleaved tasks, generators that close late, and threads.

For each kind of scope, the active value is that of the current task, JAX caches a trace per active value, and the
original state is restored when all scopes have ended.
"""

import asyncio
import contextvars
import itertools
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn, result_type
from supremum.errors import ScopeError
from supremum.mixed_precision import global_policy, set_global_policy, use_policy
from supremum.rules import get_rules, set_default_rules, use_rules
from supremum.scoped_values import BlockValue
from turns import ORDERS, take_turns


class Kind(NamedTuple):
    """A kind of scope: a function to enter it, values for it, and a function that returns the active value."""

    scope: object
    values: tuple
    ask: object
    outside: str


KINDS = {
    "rules": Kind(use_rules, ("numpy", "torch"), lambda: get_rules().name, "jax-x32"),
    "policy": Kind(use_policy, ("mixed_bfloat16", "mixed_float16"), lambda: global_policy().name, "float32"),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Probe:
    """A jitted function that returns the value active during tracing, and records every trace."""

    def __init__(self, kind):
        self.names = [kind.outside, *kind.values]
        self.traces = []

        @jax.jit
        def ask(x):
            self.traces.append(kind.ask())
            return jnp.broadcast_to(x, self.names.index(self.traces[-1]))

        self._ask = ask

    def __call__(self):
        """Return the value from tracing alone; JAX caches the trace and compiles nothing."""
        return self.names[jax.eval_shape(self._ask, 0).shape[0]]

    def run(self):
        """Return the value after compiling and running the function."""
        return self.names[self._ask(0).shape[0]]


def assert_original_state(kind, shared_probe):
    """Assert that no scope is left open, in Supremum, in JAX or in cached traces."""
    assert kind.ask() == Probe(kind)() == shared_probe() == shared_probe.run() == kind.outside
    traced = len(shared_probe.traces)
    for value in kind.values:
        with kind.scope(value):
            assert kind.ask() == Probe(kind)() == shared_probe() == shared_probe.run() == value
    assert kind.ask() == shared_probe() == shared_probe.run() == kind.outside
    assert set(shared_probe.traces[traced:]) <= set(kind.values)


@pytest.mark.one_in(2)
@every_kind
@pytest.mark.parametrize("nested", [pytest.param(False, marks=pytest.mark.slow), True])
def test_interleaved_tasks_have_separate_scopes_in_every_order(kind, nested):
    shared_probe = Probe(kind)
    for order in ORDERS:

        def task(value, other):
            async def run(step):
                with kind.scope(value):
                    assert kind.ask() == Probe(kind)() == value
                    await step()
                    assert kind.ask() == value
                    try:  # the trace has the active value, or raises
                        assert Probe(kind)() == value
                    except ScopeError as error:
                        assert repr(value) in str(error)  # noqa: PT017
                    with kind.scope(other if nested else value):
                        assert kind.ask() == Probe(kind)() == (other if nested else value)
                        await step()
                    assert kind.ask() == Probe(kind)() == shared_probe() == value
                    await step()
                assert kind.ask() == Probe(kind)() == shared_probe() == kind.outside

            return run

        take_turns(order, [task(*kind.values), task(*kind.values[::-1])])
        assert kind.ask() == Probe(kind)() == shared_probe() == kind.outside
    assert_original_state(kind, shared_probe)


@pytest.mark.one_in(2)
@every_kind
def test_decorated_coroutines_have_their_value_at_every_step(kind):
    shared_probe = Probe(kind)
    for order in ORDERS:

        def task(value, other):
            @kind.scope(value)
            async def run(step):
                assert kind.ask() == Probe(kind)() == shared_probe() == value
                await step()
                assert kind.ask() == Probe(kind)() == shared_probe() == value
                with kind.scope(other):
                    await step()
                    assert kind.ask() == Probe(kind)() == shared_probe() == other
                    with pytest.raises(KeyError):
                        await fails(step)
                    assert kind.ask() == Probe(kind)() == shared_probe() == other
                assert kind.ask() == shared_probe() == value

            @kind.scope(value)
            async def fails(step):
                await step()
                assert kind.ask() == shared_probe() == value
                raise KeyError

            assert asyncio.iscoroutinefunction(run)
            return run

        take_turns(order, [task(*kind.values), task(*kind.values[::-1])])
        assert kind.ask() == Probe(kind)() == shared_probe() == kind.outside
    assert len(shared_probe.traces) == 3
    assert_original_state(kind, shared_probe)


@every_kind
def test_tracing_raises_while_another_task_waits_in_an_undecorated_scope(kind):
    first, second = kind.values
    shared_probe = Probe(kind)

    async def wait_in_scope(step):
        with kind.scope(first):
            await step()

    @kind.scope(second)
    async def decorated(step):
        await step()
        assert shared_probe() == second

    async def trace_shared_probe(step):
        assert kind.ask() == kind.outside
        with pytest.raises(ScopeError, match="another scope"):
            shared_probe()
        await step()
        assert shared_probe() == kind.outside

    take_turns((0, 1, 0, 1), [wait_in_scope, trace_shared_probe])
    assert kind.outside in shared_probe.traces

    async def trace_without_error(step):
        assert kind.ask() == shared_probe() == kind.outside
        await step()

    take_turns((0, 1, 0, 1), [decorated, trace_without_error])
    assert_original_state(kind, shared_probe)


def test_a_known_answer_about_two_arrays_raises_as_a_new_one_does():
    a, b = np.ones(1, "int8"), np.ones(1, "float32")
    known = result_type(a, b)

    async def wait_in_scope(step):
        with use_rules("torch"):
            await step()

    async def ask(step):
        assert result_type(a, b) == known
        with pytest.raises(ScopeError, match="another scope"):
            jax.eval_shape(lambda: jnp.ones(1, result_type(a, b)))
        await step()
        assert jax.eval_shape(lambda: jnp.ones(1, result_type(a, b))).dtype == known

    take_turns((0, 1, 0, 1), [wait_in_scope, ask])


class Forever:
    def __await__(self):
        yield


@every_kind
def test_cancelled_and_closed_coroutines_end_their_scopes(kind):
    @kind.scope(kind.values[0])
    async def wait_in_scope(forever):
        try:
            await forever
        finally:
            seen.append((kind.ask(), Probe(kind)()))

    async def main(timeout):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait_in_scope(asyncio.sleep(100)), timeout)
        assert kind.ask() == Probe(kind)() == kind.outside

    seen = []
    asyncio.run(main(0.01))
    coroutine = wait_in_scope(Forever())
    contextvars.copy_context().run(coroutine.send, None)
    coroutine.close()
    assert seen == [(kind.values[0],) * 2] * 2
    assert_original_state(kind, Probe(kind))


@pytest.mark.slow
@every_kind
def test_several_tasks_can_enter_the_same_scope(kind):
    scope = kind.scope(kind.values[0])
    for order in ORDERS:

        async def run(step):
            with scope:
                assert kind.ask() == Probe(kind)() == kind.values[0]
                await step()
                with scope:
                    await step()
                assert kind.ask() == kind.values[0]
                await step()
            assert kind.ask() == Probe(kind)() == kind.outside

        take_turns(order, [run, run])
    assert_original_state(kind, Probe(kind))


@every_kind
def test_generators_can_close_their_scopes_in_any_order(kind):
    def scoped(value):
        with kind.scope(value):
            yield

    for order in itertools.permutations(range(3)):
        values = [*kind.values, kind.values[0]]
        generators = [scoped(value) for value in values]
        for generator in generators:
            next(generator)
        left = dict(enumerate(values))
        for index in order:
            generators[index].close()
            del left[index]
            assert kind.ask() == Probe(kind)() == ([kind.outside, *left.values()])[-1]
    generator = scoped(kind.values[0])
    with kind.scope(kind.values[1]):
        next(generator)
    assert kind.ask() == Probe(kind)() == kind.values[0]  # a generator shares the context of its caller
    with kind.scope(kind.values[1]):
        generator.close()
        assert kind.ask() == Probe(kind)() == kind.values[1]
    assert_original_state(kind, Probe(kind))


@every_kind
def test_closing_a_generator_elsewhere_keeps_the_scope_there(kind):
    def scoped():
        with kind.scope(kind.values[0]):
            yield

    def close_in_scope(generator, seen):
        with kind.scope(kind.values[1]):
            generator.close()
            seen.append((kind.ask(), Probe(kind)()))
        seen.append((kind.ask(), Probe(kind)()))

    expected = [(kind.values[1],) * 2, (kind.outside,) * 2]
    for run in (run_in_thread, lambda function, *args: contextvars.Context().run(function, *args)):
        generator, seen = scoped(), []
        contextvars.copy_context().run(next, generator)
        run(close_in_scope, generator, seen)
        assert seen == expected
    # In the copied context JAX still has the value of the closed scope; entering or leaving any scope updates JAX.
    with kind.scope(kind.values[1]):
        pass
    assert_original_state(kind, Probe(kind))


def run_in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


@every_kind
def test_a_thread_that_inherits_a_scope_must_enter_it_to_trace(kind):
    shared_probe, value = Probe(kind), kind.values[0]

    def trace_shared_probe():
        assert kind.ask() == value
        with pytest.raises(ScopeError, match=value):
            shared_probe()
        with kind.scope(value):
            return shared_probe()

    async def main():
        with kind.scope(value):
            return await asyncio.to_thread(trace_shared_probe)

    assert asyncio.run(main()) == value
    assert shared_probe.traces == [value]
    assert_original_state(kind, shared_probe)


@every_kind
def test_a_task_that_inherits_a_closed_scope_raises_when_tracing(kind):
    shared_probe, value = Probe(kind), kind.values[0]

    async def inheriting_task():
        assert kind.ask() == value
        with pytest.raises(ScopeError, match=rf"@use_\w+\('{value}'\)"):
            shared_probe()
        assert await decorated() == value

    @kind.scope(value)
    async def decorated():
        return shared_probe()

    async def main():
        with kind.scope(value):
            task = asyncio.create_task(inheriting_task())
        await task

    asyncio.run(main())
    assert_original_state(kind, shared_probe)


@every_kind
def test_generator_functions_cannot_be_decorated(kind):
    def numbers():
        yield 1

    async def async_numbers():
        yield 1

    for generator in (numbers, async_numbers):
        fix = rf"not a generator, got .*\.{generator.__name__}; use `with use_\w+\(...\):` inside"
        with pytest.raises(TypeError, match=f"must decorate a function that is {fix}"):
            kind.scope(kind.values[0])(generator)


DEFAULTS = {"rules": (set_default_rules, "jax"), "policy": (set_global_policy, None)}


@pytest.mark.parametrize("name", KINDS)
def test_a_default_set_inside_a_scope_applies_when_the_scope_ends(name):
    kind, (set_default, original) = KINDS[name], DEFAULTS[name]
    first, second = kind.values
    shared_probe = Probe(kind)
    try:
        with kind.scope(first):
            set_default(second)
            assert kind.ask() == shared_probe() == first
        assert kind.ask() == shared_probe() == Probe(kind)() == second
        seen = []
        run_in_thread(lambda: seen.append((kind.ask(), shared_probe())))
        assert seen == [(second, second)]
    finally:
        set_default(original)
    assert_original_state(kind, shared_probe)


def test_a_layer_made_in_a_jitted_function_has_the_active_policy():
    @jax.jit
    def apply_relu(x):
        return nn.ReLU()(x)

    seen = []
    for policy in ("mixed_bfloat16", None, "mixed_float16", "mixed_bfloat16"):
        with use_policy(policy):
            seen.append(apply_relu(np.ones(2, "float32")).dtype.name)
    assert seen == ["bfloat16", "float32", "float16", "bfloat16"]
    set_global_policy("mixed_float16")
    try:
        assert apply_relu(np.ones(2, "float32")).dtype == "float16"
    finally:
        set_global_policy(None)


def test_a_scope_first_entered_while_jax_traces_does_not_cause_a_second_trace():
    value, traces = BlockValue("value", 0, str), []

    @jax.jit
    def add_value(x):
        traces.append(1)
        with value.holding(1, "one"):
            return x + value.value

    assert [float(add_value(1.0)) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert len(traces) == 1
