"""Every kind of fix works: typed into the source and traced again, the cast is gone."""

import importlib
import itertools
import re
import sys

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.tracing import casts

ARGUMENTS = [jnp.ones((3, 3), dtype) for dtype in ("bfloat16", "float32", "int32", "int8", "float16")]
STATEMENTS = [
    "r = x * y",
    "r = (x + x) - y[0]",
    "r = x @ y",
    "r = -x / jnp.exp(y)",
    "r = x < y",
    "r = x ** y",
    "r = x / np.sqrt(64)",
    "r = x * jnp.float32(3)",
    "r = i * 2.5",
    "r = i / i",
    "r = i * x",
    "r = j + i",
    "r = x + h",
    "r = jnp.where(x > 0, x, y)",
    "r = jnp.maximum(x, y)",
    "r = jnp.add(x, y)",
    "r = jnp.concatenate([x, y])",
    "r = jnp.stack((x, y))",
    "r = jnp.dot(x, y)",
    "r = jnp.einsum('ij,jk->ik', x, y)",
    "r = jnp.matmul(x, y)",
    "x += y; r = x",
    "x *= i; r = x",
]


@pytest.fixture
def report_on(tmp_path, monkeypatch):
    """Import a function with a statement in it, as a user's program would be, and report on it."""
    monkeypatch.syspath_prepend(tmp_path)
    number = itertools.count()

    def report(statement):
        name = f"typed_{tmp_path.name}_{next(number)}".replace("-", "_")
        source = f"import jax.numpy as jnp, numpy as np\ndef f(x, y, i, j, h):\n    {statement}\n    return r\n"
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        try:
            return casts(importlib.import_module(name).f)(*ARGUMENTS)
        finally:
            sys.modules.pop(name)

    return report


def typed(statement, fix):
    """The statement with a fix typed in; the fixes of two operands are joined by "and"."""
    parts = fix.partition(" to ")[0].split(" and ")
    for number, part in enumerate(parts):
        if " = " in part:  # a statement of its own
            statement = f"{part}; {statement}"
            continue
        operand = part.rpartition(".astype(")[0]
        operand = operand if operand in statement else operand.removeprefix("(").removesuffix(")")
        head, equals, expression = statement.partition("= ")
        expression, end, rest = expression.partition(";")
        # The last occurrence, unless the expression starts with the operand: the condition of a where has one too.
        found = list(re.finditer(rf"(?<![\w.]){re.escape(operand)}(?!\w)", expression))
        at = found[0 if not number and found[0].start() == 0 else -1].start()
        statement = head + equals + expression[:at] + part + expression[at + len(operand) :] + end + rest
    return statement


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_fix_works_when_typed(statement, report_on):
    promotions = report_on(statement).select(kinds=["promotion", "conversion"])
    assert len(promotions) > 0
    tried = 0
    for cast in promotions:
        assert "operand" not in cast.fix, f"{cast.fix} cannot be typed"
        for choice in cast.fix.split(", or "):
            after = typed(statement, choice)
            left = report_on(after).promotion
            same = [each for each in left if (each.source, each.target) == (cast.source, cast.target)]
            assert same == [], f"{after}: {[each.expression for each in same]}"
            tried += 1
    assert tried >= len(promotions)


def counters(c, x):
    return {"a": c["a"] + x, "b": c["b"] + 1, "n": c["n"] + 2}


START = {"a": 0, "b": 0, "n": 0}
LOOPS = {
    "scan": (lambda c, xs: lax.scan(lambda c, x: (counters(c, x), None), c, xs)[0]),
    "scan with constants": (lambda c, xs: lax.scan(lambda c, x: (counters(c, x * xs[0]), None), c, xs)[0]),
    "while_loop": (lambda c, xs: lax.while_loop(lambda c: c["n"] < 9 + xs[0], lambda c: counters(c, xs[0]), c)),
    "fori_loop": (lambda c, xs: lax.fori_loop(0, 3, lambda i, c: counters(c, xs[i]), c)),
    "fori_loop of unknown length": (lambda c, xs: lax.fori_loop(0, c["b"], lambda i, c: counters(c, xs[i]), c)),
    "scan in a jitted function": jax.jit(lambda c, xs: lax.scan(lambda c, x: (counters(c, x), None), c, xs)[0]),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_the_fix_of_a_loop_names_the_value_that_changes(loop):
    xs = jnp.ones(5)
    found = [cast for cast in casts(LOOPS[loop])(START, xs) if "start" in cast.fix]
    assert {(cast.kind, cast.fix) for cast in found} == {
        ("conversion", "start c['a'] with a number such as 0.0, or with jnp.asarray(c['a'], 'float32')")
    }
    for repaired in (0.0, jnp.asarray(0, "float32")):
        assert [cast for cast in casts(LOOPS[loop])(START | {"a": repaired}, xs) if "start" in cast.fix] == []


def test_the_fix_of_a_loop_names_a_weak_float():
    def program(total, xs):
        return lax.scan(lambda total, x: (total + x, None), total, xs)[0]

    xs = jnp.ones(5, "bfloat16")
    (cast,) = casts(program)(0.0, xs)
    assert cast.fix == "start total with jnp.asarray(total, 'bfloat16')"
    assert len(casts(program)(jnp.asarray(0.0, "bfloat16"), xs)) == 0


def test_a_fix_names_each_operand_once_and_none_that_needs_none():
    x, w = ARGUMENTS[:2]
    report = casts(lambda x, w, s: jnp.stack([x, x, w, s]))(x[0, 0], w[0, 0], 2.0)
    fixes = {cast.fix for cast in report if cast.source == x.dtype}
    assert fixes == {"x.astype('float32') to compute in float32, or w.astype('bfloat16') to stay in bfloat16"}
    (cast,) = casts(lambda x, s: x * s)(x, 0.5)
    assert cast.fix == "s.astype('bfloat16') to compute in bfloat16"
