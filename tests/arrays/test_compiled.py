"""A compiled program on `Array` matches the same casts written with `jax.numpy`."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import use_rules
from supremum.arrays import ops
from supremum.arrays.wrapped import wrap

I8, U8, I32 = (jnp.arange(1, 5, dtype=name) for name in ("int8", "uint8", "int32"))
BF16, F16, F32 = (jnp.arange(1, 5).astype(name) for name in ("bfloat16", "float16", "float32"))
BOOL = jnp.array([True, False, True, True])


def _stablehlo(lowered):
    """Return the StableHLO text without the names of functions and results, and without locations."""
    text = lowered.as_text()
    text = re.sub(r" loc\(.*?\)|#loc.*", "", text)
    text = re.sub(r"module @\S+", "module", text)
    # Both programs call functions that JAX itself jits, such as `jnp.where`, by a number.
    text = re.sub(r"@(\w+?)_\d+\b", r"@\1", text)
    text = re.sub(r"jax\.result_info = \"[^\"]*\"(, )?", "", text).replace(" {}", "")
    numbers = {}
    return re.sub(r"%[\w#]+", lambda found: f"%{numbers.setdefault(found[0], len(numbers))}", text)


def _optimised(lowered):
    """Return the text of the optimised program without metadata and names."""
    text = lowered.compile().as_text()
    text = re.sub(
        r", metadata=\{[^}]*\}|HloModule [^\n,]*|(?m:^(FileNames|FunctionNames|FileLocations|StackFrames).*)", "", text
    )
    text = re.sub(r"\n\d+ [\"{][^\n]*", "", text)
    numbers = {}
    return re.sub(r"%?\b[\w-]+\.\d+\b|%[\w.-]+", lambda found: f"%{numbers.setdefault(found[0], len(numbers))}", text)


def _unwrapped(tree):
    return jax.tree.map(
        lambda x: x.unwrap() if hasattr(x, "unwrap") else x, tree, is_leaf=lambda x: hasattr(x, "unwrap")
    )


def _both(ours, theirs, *raws):
    """Lower our program, given arrays, and the hand-written one, given the raw arrays."""

    def run(*raws):
        return _unwrapped(ours(*jax.tree.map(wrap, raws)))

    run.__name__ = theirs.__name__ = "run"
    return [jax.jit(function).lower(*raws) for function in (run, theirs)]


def _gradient(function):
    return jax.grad(lambda *args: jnp.sum(function(*args)), (0, 1))


f16, f32, i16, i32, bf16 = jnp.float16, jnp.float32, jnp.int16, jnp.int32, jnp.bfloat16

# For each name: the rules, the program on arrays, the hand-written program, and their operands.
PROGRAMS = {
    "add": ("torch", lambda a, b: a + b, lambda a, b: a + b, (F32, F32)),
    "add of integers": ("torch", lambda a, b: a + b, lambda a, b: a.astype(i16) + b.astype(i16), (I8, U8)),
    "add of other order": ("torch", lambda a, b: b + a, lambda a, b: b.astype(i16) + a.astype(i16), (I8, U8)),
    "subtract": ("numpy", lambda a, b: a - b, lambda a, b: a.astype(f32) - b.astype(f32), (BF16, F16)),
    "multiply": ("jax", lambda a, b: a * b, lambda a, b: a.astype(f16) * b, (I8, F16)),
    "divide": ("torch", lambda a, b: a / b, lambda a, b: a.astype(f32) / b.astype(f32), (I8, U8)),
    "floor_divide": ("jax", lambda a, b: a // b, lambda a, b: a // b.astype(f32), (F32, I8)),
    "remainder": ("jax", lambda a, b: a % b, lambda a, b: a.astype(i16) % b.astype(i16), (I8, U8)),
    "pow": ("jax", lambda a, b: a**b, lambda a, b: a**b.astype(f32), (F32, F16)),
    "square by **": ("jax", lambda a: a**2, lambda a: a**2, (BF16,)),
    "cube of integers": ("torch", lambda a: a**3, lambda a: a**3, (I8,)),
    "and": ("torch", lambda a, b: a & b, lambda a, b: a.astype(jnp.uint8) & b, (BOOL, U8)),
    "or": ("torch", lambda a, b: a | b, lambda a, b: a.astype(i16) | b.astype(i16), (I8, U8)),
    "shift": ("jax", lambda a, b: a << b, lambda a, b: jnp.left_shift(a, b.astype(i32)), (I32, I8)),
    "less": ("torch", lambda a, b: a < b, lambda a, b: a.astype(f16) < b, (I8, F16)),
    "equal": ("numpy", lambda a, b: a == b, lambda a, b: a.astype(f32) == b.astype(f32), (BF16, F16)),
    "negative": ("jax", lambda a: -a, lambda a: -a, (F16,)),
    "abs": ("jax", abs, jnp.abs, (I8,)),
    "invert": ("jax", lambda a: ~a, lambda a: ~a, (BOOL,)),
    "exp of integers": ("torch", ops.exp, lambda a: jnp.exp(a.astype(f32)), (I8,)),
    "maximum": ("torch", ops.maximum, lambda a, b: jnp.maximum(a, b.astype(f32)), (F32, I32)),
    "a number on the right": ("jax", lambda a: a * 2.5, lambda a: a * bf16(2.5), (BF16,)),
    "a number on the left": ("torch", lambda a: 1 - a, lambda a: f16(1) - a, (F16,)),
    "a float next to integers": ("torch", lambda a: a * 2.5, lambda a: a.astype(f32) * f32(2.5), (I8,)),
    "an array of NumPy": ("torch", lambda a: np.ones(4, "int8") + a, lambda a: np.ones(4, "float16") + a, (F16,)),
    "a chain": (
        "torch", lambda a, b, c: (a * b + 1) / c - a,
        lambda a, b, c: ((a.astype(f16) * b + f16(1)).astype(f32) / c) - a.astype(f32), (I8, F16, F32),
    ),
    "where": ("torch", ops.where, lambda c, a, b: jnp.where(c, a.astype(f32), b), (BOOL, F16, F32)),
    "a reduction": (
        "torch", lambda a, b: jnp.sum((a * b).unwrap()), lambda a, b: jnp.sum(a.astype(f16) * b), (I8, F16),
    ),
    "a mean squared error": ("torch", ops.mse_loss, lambda a, b: jnp.mean(jnp.square(a.astype(f32) - b)), (F16, F32)),
    "a loss that is summed wider": (
        "torch", lambda a, b: ops.l1_loss(a, b, reduction="sum"),
        lambda a, b: jnp.sum(jnp.abs(a - b).astype(f32)).astype(f16), (F16, F16),
    ),
    "a scan": (
        "torch", lambda c, x: jax.lax.scan(lambda c, x: (c * 2 + x, c < x), c, x)[1],
        lambda c, x: jax.lax.scan(lambda c, x: (c * f32(2) + x.astype(f32), c < x.astype(f32)), c, x)[1],
        (jnp.ones((), "float32"), F16),
    ),
    "gradient of a product": (
        "torch", _gradient(lambda a, b: (a * b).unwrap()), _gradient(lambda a, b: a.astype(f32) * b), (F16, F32),
    ),
    # JAX has separate gradient rules for x**2, for division and for `where`.
    "gradient of a power": (
        "torch", _gradient(lambda a, b: (a**2 * b).unwrap()), _gradient(lambda a, b: (a**2).astype(f32) * b),
        (F16, F32),
    ),
    # PyTorch divides a number by a 16-bit array in float32.
    "gradient of a division": (
        "torch", _gradient(lambda a, b: (1 / a + b).unwrap()),
        _gradient(lambda a, b: (f32(1) / a.astype(f32)).astype(f16).astype(f32) + b), (F16, F32),
    ),
    "gradient of a choice": (
        "torch", _gradient(lambda a, b: ops.where(a > 2, a, b).unwrap()),
        _gradient(lambda a, b: jnp.where(a > f16(2), a.astype(f32), b)), (F16, F32),
    ),
    "gradient of a maximum": (
        "torch", _gradient(lambda a, b: ops.maximum(a, b).unwrap()),
        _gradient(lambda a, b: jnp.maximum(a.astype(f32), b)), (F16, F32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_lowered_programs_match_handwritten_jax(program):
    rules, ours, theirs, raws = program
    with use_rules(rules):
        mine, written = _both(ours, lambda *args: theirs(*args), *raws)
    assert _stablehlo(mine) == _stablehlo(written)


def test_optimised_clip_matches_handwritten_jax():
    """The unoptimised programs have the same two constants in a different order."""
    with use_rules("torch"):
        mine, written = _both(lambda a: ops.clip(a, 0, 2), lambda a: jnp.clip(a, f16(0), f16(2)), F16)
    assert _optimised(mine) == _optimised(written)


def test_comparison_notices_a_different_cast_or_constant():
    """Checks that the other tests in this file can fail."""
    for theirs in (
        lambda a, b: (a.astype(f32) * b.astype(f32)).astype(f16),
        lambda a, b: a.astype(f16) * b + f16(1),
    ):
        mine, written = _both(lambda a, b: a * b, theirs, I8, F16)
        assert _stablehlo(mine) != _stablehlo(written)
        assert _optimised(mine) != _optimised(written)


def test_eager_operation_compiles_once(caplog):
    a, b = wrap(jnp.ones(7, "int8")), wrap(jnp.ones(7, "float16"))
    compiled = []
    with use_rules("torch"), jax.log_compiles(True):
        for _ in range(3):
            caplog.clear()
            assert (a + b).dtype == "float16"
            compiled.append(sum("Compiling" in record.getMessage() for record in caplog.records))
    assert compiled == [1, 0, 0]
