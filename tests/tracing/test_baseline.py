"""Baselines know the casts of today by what they are, not by their lines, and let only new ones fail."""

import json
import textwrap

import jax.numpy as jnp
import pytest

from supremum.errors import ArgumentError, FileError
from supremum.tracing import Baseline, ForbiddenCastError, casts, forbid_casts

X, Y = jnp.ones(3, jnp.bfloat16), jnp.ones(3)
BEFORE = """
    def mix(x, y):
        return x * y
"""
# The same casts on other lines, with a comment.
MOVED = """
    # A comment, and another function in front.
    def other(x):
        return x


    def mix(x, y):
        z = x  # not used
        return x * y
"""


@pytest.fixture
def compiled(tmp_path):
    def load(source, name="mix"):
        path = tmp_path / "model.py"
        path.write_text(textwrap.dedent(source))
        names = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names[name]

    return load


@pytest.fixture
def path(tmp_path, compiled):
    report = casts(compiled(BEFORE))(X, Y)
    Baseline.of([report], tmp_path).write(tmp_path / "casts.json")
    return tmp_path / "casts.json"


def test_a_file_says_what_is_known(path):
    data = json.loads(path.read_text())
    assert data["format"] == "supremum casts baseline 1"
    assert data["casts"] == [
        {
            "file": "model.py", "function": "mix", "expression": "x * y", "class": "promotion", "from": "bfloat16",
            "to": "float32", "count": 1,
        }
    ]  # fmt: skip
    Baseline.read(path).write(path)
    assert json.loads(path.read_text()) == data


def test_moved_lines_are_known(path, compiled):
    report = casts(compiled(MOVED))(X, Y)
    assert len(report) == 1
    assert Baseline.read(path).new(report) == ()
    assert forbid_casts(baseline=path)(compiled(MOVED))(X, Y).dtype == Y.dtype


@pytest.mark.parametrize(
    ("source", "y", "new"),
    [
        (BEFORE.replace("x * y", "x * y + (x * y)"), Y, ["x * y"]),  # more of the same
        (BEFORE.replace("x * y", "x / y"), Y, ["x / y"]),  # another expression
        (BEFORE.replace("def mix", "def blend"), Y, ["x * y"]),  # another function
        (BEFORE, Y.astype(jnp.float16), ["x * y"]),  # other dtypes: both operands widen, one as before
        (BEFORE.replace("x * y", "x.astype('float32') * y"), Y, ["x.astype('float32')"]),  # another class
    ],
)
def test_new_casts_are_found(path, compiled, source, y, new):
    report = casts(compiled(source, "blend" if "blend" in source else "mix"))(X, y)
    assert [cast.expression for cast in Baseline.read(path).new(report)] == new


def test_only_new_casts_raise(path, compiled, forbid_casts):
    assert forbid_casts(compiled(BEFORE), X, Y, baseline=path).dtype == Y.dtype
    with pytest.raises(ForbiddenCastError, match="1 forbidden cast") as caught:
        forbid_casts(compiled(BEFORE.replace("x * y", "x * y - (x - y)")), X, Y, baseline=str(path))
    assert [cast.expression for cast in caught.value.casts] == ["x - y"]


def test_the_highest_count_of_several_programs_holds(compiled, tmp_path):
    function = compiled(BEFORE)
    one, two = casts(function)(X, Y), casts(lambda x, y: (function(x, y), function(x, y)))(X, Y)
    baseline = Baseline.of([one, two, one], tmp_path)
    assert list(baseline.counts.values()) == [2]
    assert baseline.new(two) == ()
    assert baseline.gone([two]) == 0
    assert baseline.gone([one]) == 1
    assert baseline.gone([]) == 2


def test_casts_that_the_program_drops_are_not_recorded(tmp_path):
    def program(x, y):
        x * y
        return x

    report = casts(program)(X, Y)
    assert [cast.times for cast in report] == [0]
    assert Baseline.of([report], tmp_path).counts == {}
    assert Baseline.of([], tmp_path).new(report) == ()


def test_files_of_libraries_are_named_from_their_package(tmp_path):
    from flax import nnx

    report = casts(nnx.LayerNorm(3, rngs=nnx.Rngs(0)))(X)
    without_caller = [cast for cast in report if cast.library == "flax" and "site-packages" in cast.file]
    files = {key[0] for key in Baseline.of([without_caller], tmp_path).counts}
    assert files
    assert all(file.startswith("flax/") for file in files)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[" * 100_000, b"\xff\xfe", b"[]", b"{}", b'{"format": "another", "casts": []}',
        b'{"format": "supremum casts baseline 1", "casts": {}}',
        b'{"format": "supremum casts baseline 1", "casts": [1]}',
        b'{"format": "supremum casts baseline 1", "casts": [{"file": "a.py", "count": 1}]}',
    ],
)  # fmt: skip
def test_a_corrupt_file_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "casts.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"casts\.json must be a baseline .*--write-baseline"):
        Baseline.read(path)


@pytest.mark.parametrize("change", [{"count": 0}, {"count": "1"}, {"count": True}, {"from": None}, {"file": 1}])
def test_a_corrupt_row_is_an_error(path, change):
    data = json.loads(path.read_text())
    data["casts"][0] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(FileError, match="must be a baseline in the format"):
        Baseline.read(path)


def test_a_missing_file_is_an_error_that_says_how_to_write_it(tmp_path):
    with pytest.raises(FileError, match=r"There is no baseline .*casts\.json; write it with: .*--write-baseline"):
        forbid_casts(baseline=tmp_path / "casts.json")
    with pytest.raises(FileError, match="cannot be read"):
        Baseline.read(tmp_path)
    with pytest.raises(FileError, match="/dev/full cannot be read: it is a device, not a file"):
        Baseline.read("/dev/full")


def test_a_file_is_written_whole_or_not_at_all(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(FileError, match="cannot be written"):
        Baseline.read(path).write(tmp_path)
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["casts.json", "model.py"]


def test_a_block_takes_no_baseline(path):
    with pytest.raises(ArgumentError, match="baseline="), forbid_casts(baseline=path):
        pass
