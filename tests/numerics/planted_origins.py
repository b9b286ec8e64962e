"""Random JAX programs in which exactly one operation makes a NaN or an infinity from values that are in order.

The programs are made again from their seed. All their other operations are bounded, so that the planted value and what
follows from it are the only values that are not finite. It is planted inside of loops, branches and calls, at a chosen
iteration of each loop, and `where` may mask it afterwards.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SIZE = 4
PLACE = 1
"""The element of the vector that is spoiled."""


@dataclass(frozen=True)
class Planted:
    """A program with one origin.

    Args:
        function: takes the arguments and returns an array.
        arguments: the arguments.
        kind: what is planted, a name of `PLANTS`.
        line: the line of this file that has the origin.
        call: the line of the call of the function with a custom rule around it. The origin is named there if it is in
            the rule, and JAX keeps only the line of the call. 0 if there is none.
        iterations: the iteration of each loop around it, outermost first.
        structures: the loops, branches and calls around it, outermost first.
        masked: whether a `where` drops the value immediately.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    kind: str
    line: int
    call: int
    iterations: tuple[int, ...]
    structures: tuple[str, ...]
    masked: bool


def _spoiled(x, hit, bad):
    """A vector of values between 1 and 2, one of which is bad where the origin is planted."""
    return jnp.where(hit & (jnp.arange(SIZE) == PLACE), bad, 1.5 + 0.5 * jnp.sin(x))


PLANTS = {
    # the value that is spoiled, and the operation, whose line has the origin
    "log of zero": (0.0, lambda x: jnp.log(x)),
    "log of a negative number": (-0.5, lambda x: jnp.log(x)),
    "zero by zero": (0.0, lambda x: x / (1.5 * x)),
    "one by zero": (0.0, lambda x: 1.0 / x),
    "difference of infinities": (-jnp.inf, lambda x: x - jnp.min(x)),
    "overflow of a product": (1e30, lambda x: x * x),
    "overflow of exp": (100.0, lambda x: jnp.exp(x)),
    "overflow of a sum": (3e38, lambda x: x + jnp.sum(x)),
    "root of a negative number": (-1.0, lambda x: jnp.sqrt(x)),
    "power of a negative number": (-2.0, lambda x: jnp.power(x, 0.5 + 0.01 * x)),
    "power of zero": (0.0, lambda x: lax.integer_pow(x, -2)),
    "overflow of float16": (1e6, lambda x: x.astype("float16")),
    "overflow of a product in float16": (300.0, lambda x: x.astype("float16") * x.astype("float16")),
    "infinite matrix product": (2e38, lambda x: x @ jnp.full((SIZE, SIZE), 3.0)),
}

TAME = (
    jnp.sin, jnp.cos, jnp.tanh, jnp.negative, jnp.abs, jax.nn.sigmoid, lambda x: jnp.clip(x, -3, 3), lambda x: x * 0.5,
    lambda x: x + 0.25, lambda x: jnp.where(x > 0, x, 0.1 * x), lambda x: x[::-1], lambda x: jnp.roll(x, 1),
    lambda x: x - jnp.mean(x), lambda x: jnp.maximum(x, -1.0), lambda x: x[:1] * 0.5 + x, jax.nn.relu,
    lambda x: jax.nn.softmax(x), lambda x: jnp.sort(x), lambda x: jnp.cumsum(x) * 0.2, lambda x: x * jnp.ones(SIZE),
    lambda x: (x @ jnp.full((SIZE, SIZE), 0.1)), lambda x: jnp.minimum(x, 2.0) * x[0] * 0.1,
)  # fmt: skip
"""Operations whose results are finite for finite operands."""


def _tame(rng, value):
    for _ in range(int(rng.integers(0, 2))):
        value = jnp.clip(TAME[int(rng.integers(len(TAME)))](value), -10, 10)
    return value


def _scan(rng, inner, gradient):
    length = int(rng.integers(1, 5))
    chosen, reverse = int(rng.integers(length)), bool(rng.integers(2))
    later = bool(rng.integers(2)) and not reverse

    def run(value, hit):
        def step(carry, index):
            return inner(carry, hit & ((index >= chosen) if later else (index == chosen))), jnp.sum(carry)

        last, sums = lax.scan(step, value, jnp.arange(length), reverse=reverse)
        return last + 0.1 * jnp.sum(jnp.tanh(sums))

    return run, (chosen,)


def _fori(rng, inner, gradient):
    length = int(rng.integers(1, 5))
    chosen = int(rng.integers(length))

    def run(value, hit):
        # A bound that is known when traced makes a scan, one that is not a while.
        bound = length if gradient else length + (jnp.sum(value) > 1e9).astype(int)
        return lax.fori_loop(0, bound, lambda index, carry: inner(carry, hit & (index == chosen)), value)

    return run, (chosen,)


def _while(rng, inner, gradient):
    length = int(rng.integers(1, 5))
    chosen = int(rng.integers(length))

    def run(value, hit):
        def step(state):
            index, carry = state
            return index + 1, inner(carry, hit & (index >= chosen))

        return lax.while_loop(lambda state: state[0] < length, step, (0, value))[1]

    return run, (chosen,)


def _cond(rng, inner, gradient):
    branch, other = int(rng.integers(3)), int(rng.integers(3))

    def run(value, hit):
        branches = [jnp.sin, jnp.cos, jnp.tanh]
        branches[branch] = lambda value: inner(value, hit)
        return lax.switch(jnp.where(hit, branch, other), branches, value)

    return run, ()


def _vmap(rng, inner, gradient):
    row = int(rng.integers(3))

    def run(value, hit):
        rows = value * jnp.arange(1.0, 4.0)[:, None] * 0.3
        found = jax.vmap(inner)(rows, hit & (jnp.arange(3) == row))
        return found[0] + found[1] - 0.5 * found[2]

    return run, ()


def _custom_vjp(rng, inner, gradient):
    @jax.custom_vjp
    def function(value, hit):
        return inner(value, hit)

    function.defvjp(
        lambda value, hit: (inner(value, hit), value), lambda value, cotangent: (cotangent * jnp.tanh(value), None)
    )

    def run(value, hit):
        return function(value, hit)  # called

    return run, ()


def _backward_rule(rng, inner, gradient):
    @jax.custom_vjp
    def function(value, hit):
        return jnp.sin(value)

    function.defvjp(
        lambda value, hit: (jnp.sin(value), (value, hit)), lambda kept, cotangent: (cotangent * inner(*kept), None)
    )

    def run(value, hit):
        return function(value, hit)  # called back

    return run, ()


def _alone(transform):
    """A structure without choices."""
    return lambda rng, inner, gradient: (transform(inner), ())


def _gradient(inner):
    return lambda value, hit: jax.grad(lambda value: jnp.sum(jnp.sin(inner(value, hit))))(value)


LOOPS = {"scan": _scan, "fori": _fori, "while": _while}
STRUCTURES = {
    **LOOPS, "cond": _cond, "remat": _alone(jax.checkpoint), "jit": _alone(jax.jit), "vmap": _vmap,
    "scope": _alone(jax.named_scope("layer")), "gradient": _alone(_gradient),
}  # fmt: skip
CUSTOM = {"custom_vjp": _custom_vjp, "backward rule": _backward_rule}
NOT_DIFFERENTIABLE = ("while",)


def planted(seed):
    """Make the program of a seed."""
    rng = np.random.default_rng([4, seed])
    kind = list(PLANTS)[seed % len(PLANTS)]
    masked, gradient = bool(rng.integers(2)), rng.random() < 0.3
    differentiable = [name for name in STRUCTURES if name not in NOT_DIFFERENTIABLE]
    count = int(rng.integers(0, 4))
    structures = [str(rng.choice(differentiable if gradient else list(STRUCTURES))) for _ in range(count)]
    # Second derivatives make programs of thousands of equations.
    derivatives = [place for place, name in enumerate(structures) if name == "gradient"]
    for place in derivatives if gradient else derivatives[1:]:
        structures[place] = "remat"
    if "gradient" in structures:  # everything inside is differentiated
        place = structures.index("gradient")
        structures[place:] = [name if name not in NOT_DIFFERENTIABLE else "fori" for name in structures[place:]]
    is_differentiated = gradient or "gradient" in structures
    if rng.random() < 0.3:
        structures.append(str(rng.choice(["custom_vjp", *(["backward rule"] * is_differentiated)])))
    seeds = [int(each) for each in rng.integers(2**31, size=2 * len(structures) + 2)]
    bad, plant = PLANTS[kind]

    def innermost(value, hit):
        inner = np.random.default_rng(seeds[0])
        value = _tame(inner, value)
        made = plant(_spoiled(value, hit, bad))
        if masked:
            made = jnp.where(hit & (jnp.arange(SIZE) == PLACE), 0.25, made)
            made = jnp.where(hit, jnp.where(jnp.isfinite(made), made, 0.5), made)
        return _tame(inner, made.astype("float32"))

    run, iterations = innermost, ()
    for place, name in reversed(list(enumerate(structures))):
        made = (STRUCTURES | CUSTOM)[name](np.random.default_rng(seeds[2 * place + 1]), run, is_differentiated)
        run, iterations = _around(made[0], seeds[2 * place + 2]), (*made[1], *iterations)

    def function(value, hit):
        return run(value, hit)

    calls = {"custom_vjp": (_custom_vjp, "# called"), "backward rule": (_backward_rule, "# called back")}
    call = calls.get(structures[-1]) if structures else None
    differentiated = jax.grad(lambda value, hit: jnp.sum(jnp.cos(function(value, hit)))) if gradient else function
    return Planted(
        differentiated,
        (jnp.asarray(rng.normal(size=SIZE), "float32"), jnp.array(True)),
        kind,
        plant.__code__.co_firstlineno,
        0 if call is None else _line(*call),
        iterations,
        (*(["gradient"] if gradient else []), *structures),
        masked,
    )


def _around(function, seed):
    def run(value, hit):
        inner = np.random.default_rng(seed)
        return _tame(inner, function(_tame(inner, value), hit))

    return run


def _line(function, mark):
    lines, first = inspect.getsourcelines(function)
    return next(first + place for place, line in enumerate(lines) if line.rstrip().endswith(mark))
