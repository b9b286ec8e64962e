"""`forbid_casts` raises with the lines that cast and a working fix; programs without forbidden casts run."""

import pickle
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from supremum.errors import ArgumentError, UnknownNameError
from supremum.tracing import ForbiddenCastError, forbid_casts
from supremum_pytest import forbid_casts_fixture  # noqa: F401

X, Y, Z = jnp.ones(3, jnp.bfloat16), jnp.ones(3), jnp.arange(3)


def mix(x, y):
    return jnp.sum(x * y)


def mix_on_purpose(x, y):
    return x.astype(y.dtype) * y


def test_a_promotion_raises_with_its_line_and_a_fix():
    def outer(x, y):
        return mix(x, y)

    with pytest.raises(ForbiddenCastError) as caught:
        forbid_casts()(outer)(X, Y)
    text = str(caught.value)
    for part in (
        "1 forbidden cast",
        f"{__file__}:{mix.__code__.co_firstlineno + 1}: x * y",
        "promotion: bfloat16 -> float32",
        "operands: x: bfloat16[3], y: float32[3]",
        "mix(x, y)",
        "fix: x.astype('float32') to compute in float32, or y.astype('bfloat16') to stay in bfloat16",
    ):
        assert part in text
    (cast,) = caught.value.casts
    assert cast.kind == "promotion"
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    assert isinstance(caught.value, TypeError)


def test_explicit_casts_are_allowed():
    checked = forbid_casts()(mix_on_purpose)
    assert checked(X, Y).dtype == jnp.float32
    assert checked.__name__ == "mix_on_purpose"
    with pytest.raises(ForbiddenCastError, match="explicit: bfloat16 -> float32"):
        forbid_casts("explicit")(mix_on_purpose)(X, Y)
    with pytest.raises(ForbiddenCastError, match="library: bfloat16 -> float32"):
        forbid_casts("all")(jnp.mean)(X)


def test_a_program_is_checked_once_for_each_type():
    seen = []

    def function(x, y):
        seen.append(x.dtype)
        return mix_on_purpose(x, y)

    checked = forbid_casts()(jax.jit(function))
    for x in (X, X, Y, X):
        checked(x, Y)
    assert seen == [X.dtype, Y.dtype]
    seen.clear()
    checked = forbid_casts()(function)
    for _ in range(3):
        checked(X, Y)
    assert len(seen) == 4  # looked at, and run three times


def test_forbid_casts_works_inside_and_outside_of_jit():
    for function in (jax.jit(forbid_casts()(mix)), forbid_casts()(jax.jit(mix)), jax.jit(forbid_casts()(jax.jit(mix)))):
        assert function(Y, Y) == 3
        with pytest.raises(ForbiddenCastError, match=r"x \* y"):
            function(X, Y)


def test_classes_rule_sets_and_files_are_allowed():
    # The safe mode of the RFC widens bfloat16 to float32, but does not convert integers to floats.
    assert forbid_casts(allow="tf-rfc-safe")(mix)(X, Y) == 3
    # In mode ALL of the RFC, int16 and float32 promote to float32, and int32 and float32 to float64.
    assert forbid_casts("conversion", allow=["tf-rfc-all"])(mix)(Z.astype("int16"), Y) == 3
    for mode in ("tf-rfc-safe", "tf-rfc-all"):
        with pytest.raises(ForbiddenCastError, match="int32 -> float32") as caught:
            forbid_casts("conversion", allow=mode)(mix)(Z, Y)
        assert str(caught.value).endswith("fix: x.astype('float32') to compute in float32")
    assert forbid_casts(allow="*/test_forbid.py")(mix)(X, Y) == 3
    with pytest.raises(ForbiddenCastError):
        forbid_casts(allow="*/other.py")(mix)(X, Y)
    assert forbid_casts("all", allow=["explicit", "library"])(mix_on_purpose)(X, Y).dtype == jnp.float32
    assert forbid_casts("all", allow="promotion")(mix)(X, Y) == 3


@pytest.mark.parametrize("arguments", [{"allow": "tf-rfc-save"}, {"allow": "promotions"}])
def test_unknown_names_raise(arguments):
    with pytest.raises(UnknownNameError, match="did you mean"):
        forbid_casts(**arguments)
    with pytest.raises(UnknownNameError, match="did you mean 'promotion'"):
        forbid_casts("promotoin")


def test_unused_casts_are_not_forbidden():
    def function(x, y):
        x * y
        return x

    assert forbid_casts()(function)(X, Y).dtype == jnp.bfloat16


def add_in_place(x, y):
    x += y
    return x


HOLDER = {"w": [types.SimpleNamespace(value=Y)]}


@pytest.mark.parametrize(
    ("run", "operands"),
    [
        (mix, "x: bfloat16, y: float32"),
        (jax.jit(mix), "x: bfloat16, y: float32"),
        (lambda x, y: jnp.where(x > 0, x, y), "x: bfloat16, y: float32"),
        (lambda x, y: x < y, "x: bfloat16, y: float32"),
        (lambda x, y: add_in_place(x, y), "x: bfloat16, y: float32"),
        (lambda x, y: jnp.hypot(x, {"w": [y]}["w"][0]), None),
        (lambda x, y: x + HOLDER["w"][0].value, 'x: bfloat16, HOLDER["w"][0].value: float32'),
        (lambda x, y: lax.scan(lambda c, s: (c, s * c), y[0], x), "s: bfloat16[], c: float32[]"),
    ],
)
def test_a_block_refuses_promotions(run, operands):
    run(X, Y)  # functions that were compiled before are refused, too
    with pytest.raises(ForbiddenCastError, match=f"{__file__}:") as caught, forbid_casts():
        run(X, Y)
    if operands is None:
        assert "no available implicit dtype promotion path" in str(caught.value)
    else:
        assert f"operands: {operands}\n    fix: " in str(caught.value)
        assert ".astype('float32') to compute in float32, or " in str(caught.value)
    assert run(X, Y) is not None
    with forbid_casts():
        run(Y, Y)
        mix_on_purpose(X, Y)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: jnp.arange(3) * 1.5, "implicit dtype promotion path"),  # only running it again would say the operands
        (lambda: Z * 1.5, "operands: Z: int32, 1.5\n    fix: Z.astype('float32') to compute in float32"),
        (lambda: Z**0.5, "operands: Z: int32, 0.5\n    fix: Z.astype('float32') to compute in float32"),
        (lambda: jnp.add(Z, np.float16(1)), "implicit dtype promotion path"),
    ],
)
def test_a_block_names_python_numbers(run, said):
    with pytest.raises(ForbiddenCastError) as caught, forbid_casts():
        run()
    assert said in str(caught.value)


def test_a_block_does_not_change_other_errors():
    with pytest.raises(ZeroDivisionError), forbid_casts():
        1 / 0  # noqa: B018
    with pytest.raises(ArgumentError, match=r"forbid_casts\(\.\.\.\)\(function\)"), forbid_casts(allow="jax"):
        pass
    with pytest.raises(TypeError, match="incompatible shapes"), forbid_casts():
        jnp.ones(3) + jnp.ones(2)


def test_blocks_can_be_nested_and_restore_promotion():
    forbidding = forbid_casts()
    with forbidding, forbidding:
        pass
    assert (X * Y).dtype == jnp.float32


def test_a_block_names_the_library():
    import optax

    with pytest.raises(ForbiddenCastError, match="in optax, at"), forbid_casts():
        optax.tree.add({"x": X}, {"x": Y})


def test_the_fixture_refuses_promotions(forbid_casts):
    assert forbid_casts(mix_on_purpose, X, Y).dtype == jnp.float32
    assert forbid_casts(mix, X, Y, allow="tf-rfc-safe") == 3
    with pytest.raises(ForbiddenCastError):
        forbid_casts(mix, X, y=Y)
    with pytest.raises(ForbiddenCastError):
        forbid_casts(mix_on_purpose, X, Y, kinds=["explicit"])
    assert np.all(forbid_casts(lambda x: x, X) == X)


@pytest.mark.parametrize("kinds", [(), ("promotion",), ("promotion", "unknown")])
def test_bools_and_integers_become_floats_unless_all_casts_are_forbidden(kinds):
    def kept(x, done, count):
        return x * (1 - done) / count

    arguments = Y, jnp.ones(3, bool), jnp.int32(3)
    assert forbid_casts(*kinds)(kept)(*arguments).dtype == Y.dtype
    for asked in ("all", "conversion"):
        with pytest.raises(ForbiddenCastError, match="3 forbidden casts"):
            forbid_casts(asked)(kept)(*arguments)


PROMPT = """
import jax, jax.numpy as jnp, numpy as np
from supremum import tracing
scores = lambda q, k: q @ k.T / np.sqrt(64)
q, k = jnp.ones((2, 4, 64), "bfloat16")
(cast,) = tracing.casts(scores)(q, k)
print(cast.kind, cast.target, len(cast.fix.split(", or ")))
tracing.casts(scores)(q, k).causes[0].first is cast
tracing.forbid_casts()(scores)(q, k)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [("-i",), ("-c",), ("-X", "no_debug_ranges", "-c")])
def test_the_example_of_the_readme_fails_at_a_prompt(options):
    typed = {"input": PROMPT} if options[-1] == "-i" else {}
    command = [sys.executable, *options, *([] if typed else [PROMPT])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **typed)
    assert "promotion float32 2" in done.stdout, done.stderr
    assert "ForbiddenCastError: 1 forbidden cast" in done.stderr


def upcast_in_a_rule():
    @jax.custom_vjp
    def double(x):
        return x + x

    # JAX keeps no position in here, so that this cast may be an operator's as well.
    double.defvjp(lambda x: (x + x, None), lambda _, ct: ((ct.astype("float32") * Y).astype("bfloat16"),))
    return jax.grad(lambda x: double(x).sum().astype("float32"))


def test_a_cast_that_may_be_a_promotion_raises():
    with pytest.raises(ForbiddenCastError) as caught:
        forbid_casts()(upcast_in_a_rule())(X)
    (cast,) = caught.value.casts
    assert (cast.kind, str(cast.source), str(cast.target)) == ("unknown", "bfloat16", "float32")
    assert "may be a promotion" in str(caught.value)
    assert 'allow="unknown"' in str(caught.value)
    forbid_casts(allow="unknown")(upcast_in_a_rule())(X)
    forbid_casts("explicit", allow="unknown")(lambda x: x)(X)
