"""Random JAX programs, made again from their seed: elementwise operations, reductions, products, loops and gradients.

The programs run over matrices, vectors and scalars, whose values leave the ranges of narrow formats on purpose.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

KINDS = "loops", "products", "gradients"
"""What a program certainly has, by its seed modulo 3; each program may have the others too."""
LONGEST = 60
"""The most operations that a program has, those of its nested functions included."""
SIZE = 4
SHAPES = (SIZE, SIZE), (SIZE,), ()


@dataclass(frozen=True)
class Program:
    """A random program.

    Args:
        function: takes the arguments, and returns a tuple of arrays.
        arguments: the arguments, float32 arrays.
        kind: what it certainly has, one of `KINDS`.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    kind: str


def program(seed, dtype="float32"):
    """Make the program of a seed, whose arguments have a dtype."""
    kind = KINDS[seed % len(KINDS)]
    rng = np.random.default_rng([2, seed])
    operations = int(rng.integers(6, LONGEST + 1))
    shapes = [SHAPES[0], SHAPES[1], SHAPES[int(rng.integers(len(SHAPES)))]]
    arguments = tuple(jnp.asarray(rng.normal(size=shape) * 4.0 ** rng.integers(-4, 5), dtype) for shape in shapes)

    def function(*values):
        return _values(values, seed, operations, kind)

    def loss(*values):
        return sum(jnp.sum(jnp.tanh(value)) for value in function(*values))

    if kind != "gradients":
        return Program(function, arguments, kind)
    return Program(jax.grad(loss, argnums=tuple(range(len(arguments)))), arguments, kind)


def _values(values, seed, operations, kind):
    """Run random operations on a pool of values, and return the last three results."""
    rng = np.random.default_rng([3, seed])
    pool, left = list(values), operations
    if kind in REQUIRED:
        name = REQUIRED[kind][int(rng.integers(len(REQUIRED[kind])))]
        taken = min(left, 5)
        pool.append(STRUCTURES[name](rng, pool, taken, kind))
        left -= taken
    while left > 0:
        if left > 4 and rng.random() < 0.25:
            allowed = [name for name in STRUCTURES if kind != "gradients" or name not in NOT_DIFFERENTIABLE]
            taken = int(rng.integers(2, 5))
            pool.append(STRUCTURES[allowed[int(rng.integers(len(allowed)))]](rng, pool, taken, kind))
        else:
            taken = 1
            pool.append(_operation(rng, pool))
        left -= taken
    return tuple(pool[-3:])


def _chosen(rng, pool):
    """One of the values, more often one of the newest."""
    return pool[-1 - min(int(rng.geometric(0.4)) - 1, len(pool) - 1)]


def _operation(rng, pool):
    table = (UNARY, BINARY, SHAPING)[int(rng.choice(3, p=(0.5, 0.3, 0.2)))]
    function = table[int(rng.integers(len(table)))]
    operands = [_chosen(rng, pool) for _ in range(2 if table is BINARY else 1)]
    scale = float(2.0 ** rng.integers(-40, 41)) if rng.random() < 0.15 else None
    result = function(*operands)
    return result if scale is None else result * scale


def _like(value, model):
    """A value in the shape of another."""
    return value if value.shape == model.shape else jnp.broadcast_to(jnp.sum(value), model.shape)


def _body(rng, operations):
    """A function of one value, whose result has the same shape. It makes the same choices each time it is traced."""
    seed = int(rng.integers(2**31))

    def body(value):
        inner = np.random.default_rng(seed)
        pool = [value]
        for _ in range(operations):
            pool.append(_operation(inner, pool))
        return _like(pool[-1], value)

    return body


def _jit(rng, pool, operations, kind):
    return jax.jit(_body(rng, operations))(_chosen(rng, pool))


def _remat(rng, pool, operations, kind):
    return jax.checkpoint(_body(rng, operations))(_chosen(rng, pool))


def _cond(rng, pool, operations, kind):
    value = _chosen(rng, pool)
    first, second = _body(rng, operations // 2), _body(rng, operations - operations // 2)
    return lax.cond(jnp.sum(value) > float(rng.normal()), first, second, value)


def _switch(rng, pool, operations, kind):
    value = _chosen(rng, pool)
    branches = [_body(rng, 1) for _ in range(operations)]
    return lax.switch(jnp.sum(value > 0), branches, value)


def _scan(rng, pool, operations, kind):
    value, rows = _chosen(rng, pool), jnp.broadcast_to(_chosen(rng, pool), SHAPES[0])
    body = _body(rng, operations - 1)

    def step(carry, row):
        return body(carry + jnp.sum(row)), jnp.sum(carry)

    last, sums = lax.scan(step, value, rows, reverse=bool(rng.integers(2)))
    return last + jnp.max(sums)


def _nested_scan(rng, pool, operations, kind):
    body, value = _body(rng, operations - 1), _chosen(rng, pool)
    inner_length, length = (int(each) for each in rng.integers(0, 4, size=2))

    def step(carry, _):
        return lax.scan(lambda c, _: (body(c), None), carry, length=inner_length)[0] * 0.5, None

    return lax.scan(step, value, length=length)[0]


def _while(rng, pool, operations, kind):
    value, limit = _chosen(rng, pool), int(rng.integers(0, 5))
    body = _body(rng, operations - 1)

    def going_on(state):
        count, carry = state
        return (count < limit) & (jnp.sum(carry * 0.5) < 1e9)

    return lax.while_loop(going_on, lambda state: (state[0] + 1, body(state[1])), (0, value))[1]


def _fori(rng, pool, operations, kind):
    body, value = _body(rng, operations), _chosen(rng, pool)
    # A bound that is known when traced makes a scan, one that is not a while.
    bound = int(rng.integers(0, 5)) if kind == "gradients" else jnp.sum(value > 0).astype(int)
    return lax.fori_loop(0, bound, lambda _, carry: body(carry), value)


def _vmap(rng, pool, operations, kind):
    value = jnp.broadcast_to(_chosen(rng, pool), SHAPES[0])
    return jax.vmap(_body(rng, operations))(value)


def _vmap_of_cond(rng, pool, operations, kind):
    value = jnp.broadcast_to(_chosen(rng, pool), SHAPES[0])
    first, second = _body(rng, 1), _body(rng, operations - 1)
    return jax.vmap(lambda row: lax.cond(row[0] > 0, first, second, row))(value)


def _vmap_of_while(rng, pool, operations, kind):
    value, body = jnp.broadcast_to(_chosen(rng, pool), SHAPES[0]), _body(rng, operations)

    def loop(row):
        return lax.while_loop(lambda c: c[0] < jnp.sum(row > 0), lambda c: (c[0] + 1, body(c[1])), (0, row))[1]

    return jax.vmap(loop)(value)


def _custom_jvp(rng, pool, operations, kind):
    body, rule = _body(rng, operations - 1), _body(rng, 1)
    function = jax.custom_jvp(body)
    function.defjvp(lambda primals, tangents: (body(*primals), tangents[0] * jnp.tanh(rule(*primals))))
    return function(_chosen(rng, pool))


def _custom_vjp(rng, pool, operations, kind):
    body, rule = _body(rng, operations - 1), _body(rng, 1)
    function = jax.custom_vjp(body)
    function.defvjp(lambda x: (body(x), x), lambda x, cotangent: (cotangent * jnp.tanh(rule(x)),))
    return function(_chosen(rng, pool))


def _gradient(rng, pool, operations, kind):
    body = _body(rng, operations)
    return jax.grad(lambda value: jnp.sum(jnp.tanh(body(value))))(_chosen(rng, pool))


def _scope(rng, pool, operations, kind):
    with jax.named_scope(f"layer{int(rng.integers(3))}"):
        return _body(rng, operations)(_chosen(rng, pool))


def _product(rng, pool, operations, kind):
    left, right = (jnp.broadcast_to(_chosen(rng, pool), SHAPES[0]) for _ in range(2))
    with jax.named_scope("dense"):
        return _body(rng, operations - 1)(left @ right)


def _einsum(rng, pool, operations, kind):
    left = jnp.broadcast_to(_chosen(rng, pool), (2, *SHAPES[0]))
    return _body(rng, operations - 1)(jnp.einsum("bij,kj->ik", left, left[0]))


def _convolution(rng, pool, operations, kind):
    signal = jnp.broadcast_to(_chosen(rng, pool), (1, SIZE, SIZE))
    kernel = jnp.broadcast_to(_chosen(rng, pool), (SIZE, SIZE, SIZE))
    result = lax.conv_general_dilated(signal, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    return _body(rng, operations - 1)(result[0])


LOOPS = {"scan": _scan, "nested scan": _nested_scan, "while": _while, "fori": _fori}
PRODUCTS = {"product": _product, "einsum": _einsum, "convolution": _convolution}
STRUCTURES = {
    **LOOPS, **PRODUCTS, "jit": _jit, "remat": _remat, "cond": _cond, "switch": _switch, "vmap": _vmap,
    "vmap of cond": _vmap_of_cond, "vmap of while": _vmap_of_while, "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp, "gradient": _gradient, "scope": _scope,
}  # fmt: skip
REQUIRED = {"loops": tuple(LOOPS), "products": tuple(PRODUCTS)}
NOT_DIFFERENTIABLE = "while", "vmap of while"
UNARY = (
    jnp.sin, jnp.tanh, jnp.negative, jnp.abs, jnp.square, jax.nn.relu, jax.nn.sigmoid, jax.nn.gelu, jnp.floor,
    lambda x: jnp.exp(jnp.clip(x, -80, 40)), lambda x: jnp.log1p(jnp.abs(x)), lambda x: jnp.log(jnp.abs(x) + 1e-6),
    lambda x: jnp.sqrt(jnp.abs(x)), lambda x: 1 / (jnp.abs(x) + 1e-4), lambda x: lax.rsqrt(x * x + 1),
    lambda x: x * x * x, lambda x: jnp.where(x > 0, x, 0.1), lambda x: x + 1.5, lambda x: x**3, jnp.reciprocal,
    *(lambda x: jnp.clip(x, -1e8, 1e8),) * 4,
)  # fmt: skip
BINARY = (
    jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, lambda x, y: jnp.where(x > y, x, y),
    lambda x, y: x / (jnp.abs(y) + 1e-3),
)  # fmt: skip
SHAPING = (
    jnp.sum, jnp.mean, jnp.max, jnp.transpose, lambda x: jnp.broadcast_to(x, SHAPES[0]).reshape(-1)[::SIZE],
    lambda x: jnp.sum(jnp.atleast_1d(x), -1), lambda x: jax.nn.softmax(jnp.atleast_1d(x)),
    lambda x: jax.nn.logsumexp(jnp.atleast_1d(x), -1), lambda x: jnp.sort(jnp.atleast_1d(x)),
    lambda x: jnp.broadcast_to(x, SHAPES[0])[jnp.asarray([2, 0, 0, 3])], lambda x: jnp.cumsum(jnp.atleast_1d(x), -1),
    lambda x: jnp.concatenate([jnp.atleast_1d(x)] * SIZE)[:SIZE],
    lambda x: jnp.broadcast_to(x, SHAPES[0]).at[0].add(1.0),
)  # fmt: skip
