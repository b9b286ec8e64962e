"""Run the steps of two asyncio tasks in a chosen order, to test values that are set for one task."""

import asyncio
import itertools

STEPS = 4
ORDERS = [
    tuple(index in first for index in range(2 * STEPS)) for first in itertools.combinations(range(2 * STEPS), STEPS)
]
"""All orders in which the steps of two tasks can run: True is a step of the second task, False one of the first."""


def take_turns(order, tasks):
    """Run two coroutine functions in the given order; each gets a function to await between its steps."""

    async def main():
        turns = [asyncio.Queue(), asyncio.Queue()]
        done = asyncio.Queue()

        async def run(which):
            await turns[which].get()
            try:
                await tasks[which](lambda: step(which))
            finally:
                done.put_nowait(None)

        async def step(which):
            done.put_nowait(None)
            await turns[which].get()

        running = [asyncio.create_task(run(which)) for which in (0, 1)]
        for which in order:
            turns[which].put_nowait(None)
            if not running[which].done():
                await done.get()
        await asyncio.gather(*running)

    asyncio.run(asyncio.wait_for(main(), 600))
