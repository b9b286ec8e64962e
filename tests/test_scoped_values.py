"""Scopes that do not nest: tasks that take turns, generators that are closed late, threads.

For each kind of scope the same: what is in force is that of the task, what JAX traces is kept for what is in force, and
when all scopes have ended everything is as it was before.
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

from supremum import nn
from supremum.errors import ScopeError
from supremum.mixed_precision import global_policy, set_global_policy, use_policy
from supremum.rules import get_rules, set_default_rules, use_rules
from turns import ORDERS, take_turns


class Kind(NamedTuple):
    """A kind of scope: how to enter one, what can be entered, and how to ask what is in force."""

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
    """A jitted function that returns what was in force when it was traced, and how often that was."""

    def __init__(self, kind):
        self.names = [kind.outside, *kind.values]
        self.traces = []

        @jax.jit
        def ask(x):
            self.traces.append(kind.ask())
            return jnp.broadcast_to(x, self.names.index(self.traces[-1]))

        self._ask = ask

    def __call__(self):
        """What it returns; JAX keeps the trace, and compiles nothing."""
        return self.names[jax.eval_shape(self._ask, 0).shape[0]]

    def run(self):
        """What it returns when it is compiled and run."""
        return self.names[self._ask(0).shape[0]]


def check_as_before(kind, shared):
    """Nothing is left behind: neither a scope, nor in JAX, nor in what it has traced meanwhile."""
    assert kind.ask() == Probe(kind)() == shared() == shared.run() == kind.outside
    traced = len(shared.traces)
    for value in kind.values:
        with kind.scope(value):
            assert kind.ask() == Probe(kind)() == shared() == shared.run() == value
    assert kind.ask() == shared() == shared.run() == kind.outside
    assert set(shared.traces[traced:]) <= set(kind.values)


@pytest.mark.one_in(2)
@every_kind
@pytest.mark.parametrize("nested", [pytest.param(False, marks=pytest.mark.slow), True])
def test_tasks_that_take_turns_in_any_order_leave_everything_as_it_was(kind, nested):
    shared = Probe(kind)
    for order in ORDERS:

        def task(value, other):
            async def run(step):
                with kind.scope(value):
                    assert kind.ask() == Probe(kind)() == value
                    await step()
                    assert kind.ask() == value
                    try:  # traced for what is in force, or not at all
                        assert Probe(kind)() == value
                    except ScopeError as error:
                        assert repr(value) in str(error)  # noqa: PT017
                    with kind.scope(other if nested else value):
                        assert kind.ask() == Probe(kind)() == (other if nested else value)
                        await step()
                    assert kind.ask() == Probe(kind)() == shared() == value
                    await step()
                assert kind.ask() == Probe(kind)() == shared() == kind.outside

            return run

        take_turns(order, [task(*kind.values), task(*kind.values[::-1])])
        assert kind.ask() == Probe(kind)() == shared() == kind.outside
    check_as_before(kind, shared)


@pytest.mark.one_in(2)
@every_kind
def test_coroutine_functions_that_are_decorated_are_right_at_every_step(kind):
    shared = Probe(kind)
    for order in ORDERS:

        def task(value, other):
            @kind.scope(value)
            async def run(step):
                assert kind.ask() == Probe(kind)() == shared() == value
                await step()
                assert kind.ask() == Probe(kind)() == shared() == value
                with kind.scope(other):
                    await step()
                    assert kind.ask() == Probe(kind)() == shared() == other
                    with pytest.raises(KeyError):
                        await fails(step)
                    assert kind.ask() == Probe(kind)() == shared() == other
                assert kind.ask() == shared() == value

            @kind.scope(value)
            async def fails(step):
                await step()
                assert kind.ask() == shared() == value
                raise KeyError

            return run

        take_turns(order, [task(*kind.values), task(*kind.values[::-1])])
        assert kind.ask() == Probe(kind)() == shared() == kind.outside
    assert len(shared.traces) == 3
    check_as_before(kind, shared)


@every_kind
def test_who_has_no_scope_is_right_or_refused_while_another_task_waits_in_one(kind):
    first, second = kind.values
    shared = Probe(kind)

    async def waits(step):
        with kind.scope(first):
            await step()

    @kind.scope(second)
    async def decorated(step):
        await step()
        assert shared() == second

    async def asks(step):
        assert kind.ask() == kind.outside
        with pytest.raises(ScopeError, match="another scope"):
            shared()
        await step()
        assert shared() == kind.outside

    take_turns((0, 1, 0, 1), [waits, asks])
    assert kind.outside in shared.traces

    async def asks_rightly(step):
        assert kind.ask() == shared() == kind.outside
        await step()

    take_turns((0, 1, 0, 1), [decorated, asks_rightly])
    check_as_before(kind, shared)


class Forever:
    def __await__(self):
        yield


@every_kind
def test_cancelled_and_closed_coroutines_end_their_scopes(kind):
    @kind.scope(kind.values[0])
    async def waits(forever):
        try:
            await forever
        finally:
            seen.append((kind.ask(), Probe(kind)()))

    async def main(timeout):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waits(asyncio.sleep(100)), timeout)
        assert kind.ask() == Probe(kind)() == kind.outside

    seen = []
    asyncio.run(main(0.01))
    coroutine = waits(Forever())
    contextvars.copy_context().run(coroutine.send, None)
    coroutine.close()
    assert seen == [(kind.values[0],) * 2] * 2
    check_as_before(kind, Probe(kind))


@pytest.mark.slow
@every_kind
def test_one_scope_that_several_tasks_share(kind):
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
    check_as_before(kind, Probe(kind))


@every_kind
def test_generators_that_are_closed_in_any_order(kind):
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
    assert kind.ask() == Probe(kind)() == kind.values[0]  # a generator has no context of its own
    with kind.scope(kind.values[1]):
        generator.close()
        assert kind.ask() == Probe(kind)() == kind.values[1]
    check_as_before(kind, Probe(kind))


@every_kind
def test_a_generator_that_is_closed_in_another_thread_or_context_changes_nothing_there(kind):
    def scoped():
        with kind.scope(kind.values[0]):
            yield

    def closes(generator, seen):
        with kind.scope(kind.values[1]):
            generator.close()
            seen.append((kind.ask(), Probe(kind)()))
        seen.append((kind.ask(), Probe(kind)()))

    expected = [(kind.values[1],) * 2, (kind.outside,) * 2]
    for run in (in_thread, lambda function, *args: contextvars.Context().run(function, *args)):
        generator, seen = scoped(), []
        contextvars.copy_context().run(next, generator)
        run(closes, generator, seen)
        assert seen == expected
    # That context was left with JAX told of a scope of its own; entering or leaving any scope tells it again.
    with kind.scope(kind.values[1]):
        pass
    check_as_before(kind, Probe(kind))


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


@every_kind
def test_threads_that_inherit_a_scope_trace_for_it_where_they_enter_it_and_not_otherwise(kind):
    shared, value = Probe(kind), kind.values[0]

    def asks():
        assert kind.ask() == value
        with pytest.raises(ScopeError, match=value):
            shared()
        with kind.scope(value):
            return shared()

    async def main():
        with kind.scope(value):
            return await asyncio.to_thread(asks)

    assert asyncio.run(main()) == value
    assert shared.traces == [kind.outside, value] or shared.traces == [value]
    check_as_before(kind, shared)


@every_kind
def test_a_task_that_inherits_a_scope_is_refused_a_wrong_trace(kind):
    shared, value = Probe(kind), kind.values[0]

    async def inherits():
        assert kind.ask() == value
        with pytest.raises(ScopeError, match=rf"@use_\w+\('{value}'\)"):
            shared()
        assert await decorated() == value

    @kind.scope(value)
    async def decorated():
        return shared()

    async def main():
        with kind.scope(value):
            task = asyncio.create_task(inherits())
        await task

    asyncio.run(main())
    check_as_before(kind, shared)


@every_kind
def test_generator_functions_cannot_be_decorated(kind):
    def numbers():
        yield 1

    with pytest.raises(
        TypeError,
        match=r"must decorate a function that is not a generator, got .*numbers; use `with use_\w+\(...\):` inside",
    ):
        kind.scope(kind.values[0])(numbers)


DEFAULTS = {"rules": (set_default_rules, "jax"), "policy": (set_global_policy, None)}


@pytest.mark.parametrize("name", KINDS)
def test_a_default_that_is_set_while_scopes_are_open_holds_when_they_have_ended(name):
    kind, (set_default, original) = KINDS[name], DEFAULTS[name]
    first, second = kind.values
    shared = Probe(kind)
    try:
        with kind.scope(first):
            set_default(second)
            assert kind.ask() == shared() == first
        assert kind.ask() == shared() == Probe(kind)() == second
        seen = []
        in_thread(lambda: seen.append((kind.ask(), shared())))
        assert seen == [(second, second)]
    finally:
        set_default(original)
    check_as_before(kind, shared)


def test_a_layer_that_is_made_in_a_jitted_function_has_the_policy_of_the_time():
    @jax.jit
    def activated(x):
        return nn.ReLU()(x)

    seen = []
    for policy in ("mixed_bfloat16", None, "mixed_float16", "mixed_bfloat16"):
        with use_policy(policy):
            seen.append(activated(np.ones(2, "float32")).dtype.name)
    assert seen == ["bfloat16", "float32", "float16", "bfloat16"]
    set_global_policy("mixed_float16")
    try:
        assert activated(np.ones(2, "float32")).dtype == "float16"
    finally:
        set_global_policy(None)
