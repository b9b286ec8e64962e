"""Run two tasks that take turns in every order, to test scopes in each task."""

import asyncio
import itertools

STEPS = 4
ORDERS = [
    tuple(index in first for index in range(2 * STEPS)) for first in itertools.combinations(range(2 * STEPS), STEPS)
]
"""All orders in which two tasks of four steps each may take turns."""


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
