"""Random programs with promotions and explicit casts at known places."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

HEAD = """\
import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P



def use(a, value):
    return lax.optimization_barrier((a, value))[0]


W = np.ones(8, np.float32)
F32 = jnp.float32
MESH = jax.make_mesh((1,), ("i",), devices=jax.devices()[:1])
"""


class Plant(NamedTuple):
    """A planted cast.

    It never runs where nothing uses what it gives. The path has the line of every call that leads there, the last one
    being the line of the expression.
    """

    kind: str
    source: str
    target: str
    path: tuple[int, ...]
    times: int | None


class Form(NamedTuple):
    """A form of a cast; `@` marks the line where the expression begins."""

    text: str
    source: str = "bfloat16"
    target: str = "float32"


# a is bfloat16[8], b is float32[8], and i is int32[8]; each form has one cast of its class.
PROMOTIONS = [
    Form("@a + b"),
    Form("@b - a"),
    Form("@a * b / b"),
    Form("@(a + a) * b"),
    Form("@a < b"),
    Form("@a @ b"),
    Form("@a ** b"),
    Form("@a + jnp.exp(b)[0]"),
    Form("@-a * W"),
    Form("@W * a"),
    Form("@a * np.float32(3)"),
    Form("@np.float32(3) * a"),
    Form("@i / 2", "int32", "float32"),
    Form("@i * 2.5", "int32", "float32"),
    Form("@a + i", "int32", "bfloat16"),
    Form("@jnp.sin(i)", "int32", "float32"),
    Form("@jnp.maximum(a, b)"),
    Form("@jnp.add(b, a)"),
    Form("@jnp.where(a > 0, a, b)"),
    Form("@jnp.where(b > 0, jnp.exp(b), a)"),
    Form("@jnp.concatenate([a, b])"),
    Form("@jnp.stack([b, a])"),
    Form("@jnp.dot(a, b)"),
    Form("@jnp.einsum('i,i->i', a, b)"),
    Form("@jnp.hypot(a, b)"),
    Form("@functools.reduce(operator.mul, [a, b])"),
    Form("@sum([b, a])"),
    Form("@operator.add(a, b)"),
    Form("@pick[0](a, b)"),
    Form("(\n        @a\n        * b\n    )"),
    Form("jnp.exp(\n        @b\n        + a,\n    )"),
    Form("@jnp.where(\n        a > 0,\n        a,\n        b,\n    )"),
    Form("(\n        @jnp.maximum(\n            a, b)\n        .sum()\n    )"),
    Form("[@a + b for _ in range(1)]"),
    Form("{'k': (@a * b, a)}"),
    Form("a.sum() if a.ndim > 1 else @a + b"),
]  # fmt: skip
EXPLICIT = [
    Form("@a.astype(jnp.float32)"),
    Form("@a.astype('float32')"),
    Form("@a.astype(b.dtype)"),
    Form("@a.astype(dtype=np.float32)"),
    Form("@a.astype(kind)"),
    Form("@b.astype(jnp.bfloat16)", "float32", "bfloat16"),
    Form("@b.astype(a.dtype) * a", "float32", "bfloat16"),
    Form("@a.astype(jnp.float32) + b"),
    Form("b * @a.astype(F32)"),
    Form("@jnp.asarray(a, jnp.float32)"),
    Form("@jnp.asarray(a, kind)"),
    Form("@jnp.array(a, dtype=jnp.float32)"),
    Form("@jnp.astype(a, jnp.float32)"),
    Form("@lax.convert_element_type(b, jnp.float16)", "float32", "float16"),
    Form("@lax.convert_element_type(i, kind)", "int32", "float32"),
    Form("@jnp.float32(a)"),
    Form("@F32(a)"),
    Form("@convert(a)"),
    Form("@jnp.sum(a, dtype=jnp.float32)"),
    Form("@jnp.sum(a, None, jnp.float32)"),
    Form("@a.sum(dtype=kind)"),
    Form("@jax.tree.map(jnp.float32, [a])"),
    Form("@jax.tree.map(functools.partial(jnp.asarray, dtype=jnp.float32), [a])"),
    Form("(\n        a\n        @.astype(jnp.float32)\n        .sum()\n    )"),
    Form("@a.astype(\n        jnp.float32\n    )"),
    Form("jnp.maximum(\n        @a.astype(jnp.float32),\n        b,\n    )"),
]
LIBRARY = [
    "jnp.mean(a)",
    "jax.nn.softmax(a)",
    "jnp.var(a)",
    "a.sum()",
    "b[i.astype(jnp.int32)]",
    "jnp.cumsum(a)",
    "jnp.linalg.norm(a)",
    "jax.nn.gelu(a)",
    "jax.nn.logsumexp(a)",
    "jnp.zeros_like(a) + 1",
    "a * 2.0",
    "a.at[0].set(1.0)",
]
# Calls of a function, and how often each runs it. The path goes through the lines marked by @, in order.
CALLS = [
    ("@{f}(a, b, i)", 1),
    ("@{f}(\n        a,\n        b,\n        i,\n    )", 1),
    ("@jax.jit({f})(a, b, i)", 1),
    ("@jitted_{f}(a, b, i)", 1),
    ("@@(lambda u: {f}(u, b, i))(a)", 1),
    ("@@lax.scan(lambda c, _: ({f}(c, b, i), None), a, None, length=3)", 3),
    ("def body(c, _):\n        return 2@{f}(c, b, i), None\n\n    1@lax.scan(body, a, None, length=5)", 5),
    ("@@lax.while_loop(lambda c: jnp.all(c > 0), lambda c: {f}(c, b, i), a)", None),
    ("@@lax.fori_loop(0, 4, lambda _, c: {f}(c, b, i), a)", 4),
    ("@@lax.cond(b[0] > 0, lambda: {f}(a, b, i), lambda: a)", 1),
    ("1@lax.switch(\n        i[0],\n        [lambda: a,\n         lambda: 2@{f}(a, b, i)],\n    )", 1),
    ("@jax.checkpoint({f})(a, b, i)", 1),
    ("@@jax.vmap(lambda u: {f}(u, b, i))(jnp.stack([a, a]))", 1),
    ("@derived_{f}(a, b, i)", 1),
    ("@jax.shard_map({f}, mesh=MESH, in_specs=P(), out_specs=P())(a, b, i)", 1),
    ("@functools.partial({f}, a)(b, i)", 1),
]  # fmt: skip


@dataclass
class Program:
    """A program under construction.

    Args:
        random: where its choices come from.
    """

    random: random.Random
    lines: list[str] = field(default_factory=lambda: HEAD.splitlines())
    # For each function: the casts planted in it and in the functions it calls.
    plants: dict[str, list[Plant]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names: list[str] = []
        count = self.random.randint(3, 4)
        self.main = f"f{count - 1}"
        for name in (f"f{number}" for number in range(count)):
            self.define(name, names[-2:])
            names.append(name)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def expected(self) -> Counter[Plant]:
        return Counter(self.plants[self.main])

    def define(self, name: str, callees: list[str]) -> None:
        self.lines += [
            "",
            "",
            f"def {name}(a, b, i):",
            "    pick, convert, kind = [jnp.multiply], jnp.float32, jnp.float32",
        ]
        self.plants[name] = []
        statements = [self.plant for _ in range(self.random.randint(2, 4))]
        statements += [self.library] * self.random.randint(0, 2)
        self.random.shuffle(statements)
        for statement in statements:
            statement(name)
        for callee in callees:
            self.call(name, callee)
        self.lines += ["    return a", "", "", f"jitted_{name} = jax.jit({name})"]
        self.lines += ["", "", "@jax.custom_jvp", f"def derived_{name}(a, b, i):", f"    return {name}(a, b, i)"]
        self.lines += ["", "", f"derived_{name}.defjvp(lambda p, t: ({name}(*p), t[0]))"]

    def plant(self, name: str) -> None:
        kind = self.random.choice(["promotion", "explicit"])
        form = self.random.choice(PROMOTIONS if kind == "promotion" else EXPLICIT)
        statement = self.random.choice(["a = use(a, {})", "a = use(a, {})", "value = {}"])
        (line,) = self.write(statement.format(form.text))
        kind = "conversion" if form.source == "int32" and kind == "promotion" else kind
        self.plants[name].append(Plant(kind, form.source, form.target, (line,), 0 if "value" in statement else 1))

    def library(self, name: str) -> None:
        self.write(self.random.choice(LIBRARY))

    def call(self, name: str, callee: str) -> None:
        for _ in range(self.random.randint(1, 2)):
            # shard_map cannot be nested over the same mesh.
            calls = [call for call in CALLS if name == self.main or "shard_map" not in call[0]]
            text, times = self.random.choice(calls)
            before, call = text.split("\n\n    ") if "\n\n" in text else ("", text)
            used = f"a = use(a, {call})"
            path = self.write((f"{before}\n\n    {used}" if before else used).format(f=callee))
            if "derived_" in text:
                defined = next(n for n, line in enumerate(self.lines, 1) if line == f"def derived_{callee}(a, b, i):")
                path = (*path, defined + 1)
            for plant in self.plants[callee]:
                product = 0 if plant.times == 0 else None if None in (times, plant.times) else times * plant.times
                self.plants[name].append(plant._replace(path=(*path, *plant.path), times=product))

    def write(self, text: str) -> tuple[int, ...]:
        """Write a statement; returns the lines of its marks, ordered by their numbers if they have any."""
        marks: list[tuple[str, int]] = []
        for line in f"    {text}".split("\n"):
            clean = line
            while "@" in clean.replace(" @ ", "   "):
                at = clean.replace(" @ ", "   ").index("@")
                digit = clean[at - 1] if at and clean[at - 1] in "12" else ""
                clean = clean[: at - len(digit)] + clean[at + 1 :]
                marks.append((digit, len(self.lines) + 1))
            self.lines.append(clean)
        return tuple(line for _, line in sorted(marks, key=lambda mark: mark[0]))
