"""What widened first: causes, the casts that follow from them, and the promotions that they hide."""

import inspect

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.errors import UnknownNameError
from supremum.tracing import casts
from tracing import gemma

X, W, SCALE = jnp.ones((4, 4), jnp.bfloat16), jnp.ones((4, 4), jnp.bfloat16), jnp.ones(4)


def causes(function, *args):
    return [
        (cause.first.expression, sorted({cast.expression for cast in cause.follow}))
        for cause in casts(function)(*args).causes
    ]


def test_a_cast_follows_from_the_one_that_widened_its_partner():
    def program(x, w, scale):
        h = x * scale
        h = jnp.tanh(h).T.reshape(4, 4)
        return h @ w + w

    (found,) = causes(program, X, W, SCALE)
    assert found == ("x * scale", ["h @ w", "h @ w + w"])


def test_two_widenings_that_do_not_meet_are_two_causes():
    assert sorted(causes(lambda x, w, s: (x * s, w - s), X, W, SCALE)) == [("w - s", []), ("x * s", [])]
    # The second would widen alone, but it meets a value that was widened before.
    assert causes(lambda x, w, s: (x * s) + w, X, W, SCALE) == [("x * s", ["(x * s) + w"])]


def test_a_narrowed_value_is_not_widened_any_more():
    def program(x, w, scale):
        h = (x * scale).astype(jnp.bfloat16)
        return h @ w, h + scale

    assert sorted(causes(program, X, W, SCALE)) == [("h + scale", []), ("x * scale", [])]


def test_a_cast_that_the_user_asked_for_is_the_reason_and_not_the_cause():
    def program(x, w):
        scores = jax.nn.softmax(x.astype(jnp.float32))
        return scores @ w

    report = casts(program)(X, W)
    (cause,) = report.causes
    assert cause.first.expression == "scores @ w"
    assert cause.first.asked_for.expression == "x.astype(jnp.float32)"
    assert "asks for float32: x.astype(jnp.float32)" in str(report)
    assert [cast.expression for cast in report.others] == ["x.astype(jnp.float32)"]
    assert "because" in str(report.explain(report.casts.index(cause.first)))


def scanned(x, w, scale):
    return lax.scan(lambda c, row: (c, c + row), x[0] * scale, w)[1]


def branched(x, w, scale):
    h = lax.cond(True, lambda u: u * scale, lambda u: u - scale, x)
    return h @ w


def looped(x, w, scale):
    return lax.while_loop(lambda c: c[0, 0] < 3, lambda c: c + w, x * scale)


def jitted(x, w, scale):
    inner = jax.jit(lambda u, v: jnp.where(u > 0, u, v))
    return inner(jax.jit(lambda u: u * scale)(x), w)


def checkpointed(x, w, scale):
    return jax.grad(lambda u: jax.checkpoint(lambda v: jnp.sin(v * scale) @ w)(u).astype(jnp.float32).sum())(x)


def identity(x, w, scale):
    return jax.jit(lambda u: u)(x * scale) @ w


@pytest.mark.parametrize(
    ("function", "root", "follow"),
    [
        (scanned, ["x[0] * scale"], ["c + row"]),
        (branched, ["u * scale", "u - scale"], ["h @ w"]),
        (looped, ["x * scale"], ["c + w"]),
        (jitted, ["u * scale"], ["jnp.where(u > 0, u, v)"]),
        (checkpointed, ["v * scale"], ["jnp.sin(v * scale) @ w", "v * scale"]),
        (identity, ["x * scale"], ["jax.jit(lambda u: u)(x * scale) @ w"]),
    ],
)
def test_widened_values_are_followed_through_calls_and_loops(function, root, follow):
    found = causes(function, X, W, SCALE)
    assert sorted(first for first, _ in found) == root
    assert sorted(text for _, texts in found for text in texts) == follow


def test_the_backward_pass_follows_from_the_forward_pass():
    report = casts(jax.grad(lambda x, w, s: jnp.sin((x * s) @ w).astype(jnp.float32).sum()))(X, W, SCALE)
    (cause,) = report.causes
    assert cause.first.expression == "x * s"
    assert {(cast.expression, str(cast.target)) for cast in cause.follow} == {
        ("(x * s) @ w", "float32"), ("x * s", "bfloat16")
    }  # fmt: skip


def test_both_operands_of_a_meeting_are_one_cause():
    (cause,) = casts(lambda x, y: x + y)(X, X.astype(jnp.float16)).causes
    assert sorted(str(cast.source) for cast in cause.casts) == ["bfloat16", "float16"]
    assert cause.follow == ()


@pytest.mark.slow
def test_a_library_that_widens_is_a_cause_with_a_fix_for_its_result():
    from flax import nnx

    norm = nnx.LayerNorm(4, rngs=nnx.Rngs(0))

    def program(x, w):
        h = norm(x)
        return h @ w

    report = casts(program)(X, W)
    (cause,) = report.causes
    assert (cause.first.expression, cause.first.kind, cause.first.library) == ("norm(x)", "library", "flax")
    assert "h @ w" in {cast.expression for cast in cause.follow}
    assert cause.fixes == ("norm(x).astype('bfloat16') to go on in bfloat16",)
    repaired = casts(lambda x, w: norm(x).astype("bfloat16") @ w)(X, W)
    assert len(repaired.promotion) == 0
    assert repaired.causes == ()


def test_causes_keep_their_roots_when_a_report_is_filtered():
    report = casts(lambda x, s, w: (x * s) @ w)(X, SCALE, W).where(lambda cast: "@" in cast.expression)
    (cause,) = report.causes
    assert (cause.first.expression, len(cause.follow), len(report)) == ("x * s", 1, 1)
    assert report.to_dict()["causes"][0]["casts"] == []
    assert "x * s" in str(report)
    assert "x * s" in report.to_html()


def test_select_takes_classes_files_and_libraries():
    report = casts(lambda x, s: (jnp.mean(x) * s, x.astype("float32")))(X, SCALE)
    assert {cast.kind for cast in report.select(kinds=["explicit", "library"])} == {"explicit", "library"}
    assert {cast.library for cast in report.select(libraries=["jax"])} == {"jax"}
    assert len(report.select(files=["*/test_causes.py"])) == len(report) > len(report.select(libraries=["jax"])) > 0
    assert len(report.select(files=["*/other.py"])) == 0
    with pytest.raises(UnknownNameError, match="did you mean 'explicit'"):
        report.select(kinds=["explicitt"])


# The training step.


@pytest.fixture(scope="module")
def report():
    return casts(gemma.train_step)(gemma.Gemma(17), gemma.tokens())


@pytest.mark.slow
def test_the_first_screen_of_a_training_step_says_what_to_change(report):
    assert len(report) > 300
    lines = str(report).splitlines()
    screen = "\n".join(lines[:24])
    assert max(map(len, lines[: lines.index("steps of libraries")])) <= 80
    for said in (
        "self.embedding[...][tokens] * np.sqrt(WIDTH)",
        "or:  np.sqrt(WIDTH).astype('bfloat16') to stay in bfloat16",
        "promotes: normed * (1 + self.scale[...])",
        "or:  (1 + self.scale[...]).astype('bfloat16') to stay in bfloat16",
        'promotes: jnp.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(WIDTH',
        "or:  np.sqrt(WIDTH // HEADS).astype('bfloat16') to stay in bfloat16",
    ):
        assert said in screen
    (cause,) = report.causes
    assert len(cause.casts) + len(cause.follow) + len(report.others) == len(report)
    assert {cast.times for cast in report.others} == {0}


@pytest.mark.slow
def test_the_fixes_on_the_first_screen_remove_all_promotions(report, tmp_path):
    """Type what the report says into the source, and trace again."""
    (cause,) = report.causes
    source = inspect.getsource(gemma)
    # Each fix alone leaves the promotions that the first one hid, the last removes all.
    left = []
    hidden = [each.expression for each in cause.hides]
    assert len(hidden) == 2
    fixes = [(cause.first.expression, cause.fixes[0]), *((each.expression, each.fix) for each in cause.hides)]
    for expression, fix in fixes:
        narrow = fix.split(", or ")[1].removesuffix(" to stay in bfloat16")
        operand = narrow.removesuffix(".astype('bfloat16')")
        assert source.count(expression) == 1
        source = source.replace(expression, expression.replace(operand, narrow))
        path = tmp_path / f"repaired_{len(left)}.py"
        path.write_text(source)
        names = {"__name__": "repaired"}
        exec(compile(source, str(path), "exec"), names)
        found = casts(names["train_step"])(names["Gemma"](2), gemma.tokens())
        left.append({cause.first.expression for cause in found.causes})
    assert left == [{hidden[0]}, {hidden[1]}, set()]


def test_causes_that_move_the_most_bytes_with_what_follows_come_first():
    def program(x, y, z, v, w):
        total = (x * w[:2]).sum()
        return total * y, total * z, v * w

    arrays = (jnp.ones(size, "bfloat16") for size in (2, 60, 60, 100))
    report = casts(program)(*arrays, jnp.ones(100))
    found = [(cause.first.expression, cause.total_bytes) for cause in report.causes]
    assert found == [("x * w[:2]", (2 + 60 + 60) * 6), ("v * w", 100 * 6)]
    assert report[0].expression == "v * w"  # the largest single cast


def masked(x, done, count):
    kept = x * (1 - done)
    mean = kept.sum() / count
    return jnp.where(done, kept, 0) + jnp.stack([mean, count]).sum()


def test_bools_and_integers_that_become_floats_are_no_cause():
    report = casts(masked)(jnp.ones(8), jnp.ones(8, bool), jnp.int32(3))
    assert report.causes == ()
    assert {cast.kind for cast in report} == {"conversion", "library"}
    assert {cast.expression for cast in report if cast.kind == "conversion"} == {
        "1 - done", "x * (1 - done)", "kept.sum() / count", "jnp.stack([mean, count])"
    }  # fmt: skip
    lines = str(report).splitlines()
    (line,) = (line for line in lines if "bools" in line)
    first = masked.__code__.co_firstlineno + 1
    total = report.by_class["conversion"]
    assert total.casts == 4
    assert line == (
        f"4 casts of bools and integers, {total.bytes} bytes, on "
        f"test_causes.py:{first}, test_causes.py:{first + 1}, test_causes.py:{first + 2}"
    )
    assert not any("fix" in line or "1 - done" in line for line in lines)
    assert "4 casts of bools" in report.to_html()
    assert "1 - done" not in report.to_html()


def test_an_integer_that_became_a_float_does_not_cause_the_promotion_that_follows():
    def program(x, count, y, w):
        scaled = x * jnp.sqrt(count)
        return (y * scaled) @ w

    (cause,) = casts(program)(W, jnp.arange(4), X, W).causes
    assert (cause.first.kind, cause.first.expression) == ("promotion", "x * jnp.sqrt(count)")
    assert cause.first.fix == (
        "x.astype('float32') to compute in float32, or jnp.sqrt(count).astype('bfloat16') to stay in bfloat16"
    )
    # If it is gone, the next product would widen as well.
    (cause,) = casts(lambda x, s, n: x * s * jnp.sqrt(n))(X, SCALE, jnp.arange(4)).causes
    assert [hidden.expression for hidden in cause.hides] == ["x * s * jnp.sqrt(n)"]


def test_the_gradient_of_a_promotion_beside_an_integer_follows_from_the_promotion():
    def loss(x, w, count):
        return jnp.stack([count, x[0, 0], w[0]]).sum()

    (cause,) = casts(jax.grad(loss))(X, SCALE, jnp.int32(3)).causes
    assert cause.first.kind == "promotion"
    assert [(str(cast.source), str(cast.target)) for cast in cause.follow] == [("float32", "bfloat16")]
