"""An operator of a library's object belongs to the user only if the object forwards it to an array."""

import importlib
import sys

import jax.numpy as jnp
import pytest

from supremum.tracing import casts, forbid_casts

SOURCE = """
import jax
import jax.numpy as jnp

@jax.tree_util.register_dataclass
@__import__("dataclasses").dataclass
class Pose:
    value: jax.Array

    def __matmul__(self, other):
        return self.multiply(other) if isinstance(other, Pose) else self.apply(other)

    def __add__(self, other):
        return Pose(self.value + other.value * jnp.arange(3, dtype=jnp.int32))

    def __mul__(self, other):
        return jnp.stack([self.value, other * 1.0, jnp.arange(3, dtype=jnp.int32)])

    def __neg__(self):
        return Pose(self.value * jnp.arange(3, dtype=jnp.int32))

    def multiply(self, other):
        return Pose(self.value * jnp.arange(3, dtype=jnp.int32) + other.value)

    def apply(self, other):
        return self.value * jnp.arange(3, dtype=jnp.int32) + other

class Box:
    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return self.value * other

    def __rmul__(self, other):
        return other * self.value

    def __add__(self, other):
        return self.value.__add__(other)

    def __sub__(self, other):
        return jnp.subtract(self.value, other)

    def __lt__(self, other):
        return self.value < other

def handed_on(name):
    def method(self, other):
        return getattr(self.value, name)(other)
    return method

Box.__truediv__ = handed_on("__truediv__")

class Crate(Box):
    def __mul__(self, other):
        return super().__mul__(other)
"""
X, Y = jnp.ones(3), jnp.ones(3, "bfloat16")


@pytest.fixture(scope="module")
def poses(tmp_path_factory):
    """A package in the folder of Python's package manager."""
    folder = tmp_path_factory.mktemp("lib") / "site-packages"
    (folder / "poses").mkdir(parents=True)
    (folder / "poses/__init__.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("poses")
    sys.path.remove(str(folder))
    del sys.modules["poses"]


OWN = {
    "product of two": lambda poses, x: (poses.Pose(x) @ poses.Pose(x)).value,
    "applied": lambda poses, x: poses.Pose(x) @ x,
    "sum with a product inside": lambda poses, x: (poses.Pose(x) + poses.Pose(x)).value,
    "a stack": lambda poses, x: poses.Pose(x) * x,
    "unary": lambda poses, x: (-poses.Pose(x)).value,
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OWN)
def test_casts_that_a_library_computes_itself_belong_to_it(poses, name):
    report = casts(lambda x: OWN[name](poses, x))(X)
    assert {cast.kind for cast in report} == {"library"}
    assert {(str(cast.source), str(cast.target)) for cast in report} == {("int32", "float32")}
    assert all("poses casts at" in cast.reason for cast in report)
    assert all("pose" in cast.expression.lower() for cast in report)  # the user's line
    forbid_casts()(lambda x: OWN[name](poses, x))(X)


FORWARDED = {
    "box * y": lambda poses, x, y: poses.Box(x) * y,
    "box + y": lambda poses, x, y: poses.Box(x) + y,
    "box - y": lambda poses, x, y: poses.Box(x) - y,
    "box < y": lambda poses, x, y: poses.Box(x) < y,
    "box / y": lambda poses, x, y: poses.Box(x) / y,
    "crate * y": lambda poses, x, y: poses.Crate(x) * y,
}


@pytest.mark.parametrize("name", FORWARDED)
def test_casts_of_forwarded_operators_belong_to_the_user(poses, name):
    report = casts(lambda x, y: FORWARDED[name](poses, x, y))(X, Y)
    assert {cast.kind for cast in report} == {"promotion"}
    assert all(cast.fix for cast in report)


def test_operators_of_our_arrays_belong_to_the_user():
    from supremum import asarray

    report = casts(lambda x, y: asarray(x) * asarray(y))(X, Y)
    assert {cast.kind for cast in report} == {"promotion"}


@pytest.mark.parametrize("operator", ["x % 3", "3 % x", "x // 3", "x % 2.5", "divmod(x, 3)[0]"])
@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_a_number_beside_an_array_is_not_a_promotion(operator, kind, tmp_path):
    """JAX passes the number to its function as int32 or float32 and casts it there."""
    path = tmp_path / "numbers.py"
    path.write_text(f"def f(x):\n    return {operator}\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    report = casts(names["f"])(jnp.ones(3, kind))
    assert {cast.kind for cast in report} <= {"library"}
    forbid_casts("promotion", "unknown")(names["f"])(jnp.ones(3, kind))
    promoted = casts(names["f"])(jnp.arange(3))
    assert {cast.kind for cast in promoted} <= ({"conversion"} if "2.5" in operator else {"library"})
