"""The text of --args: arrays, keys, numbers and containers of them."""

import jax
import jax.numpy as jnp
import pytest

from supremum.errors import ArgumentError, UnknownDtypeError
from supremum.formats import FORMATS
from supremum.tracing import arguments_maker, check_call, parse_arguments


def described(value):
    return jax.tree.map(
        lambda leaf: f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, jax.ShapeDtypeStruct) else leaf, value
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ()),
        ("f32[8,128], bf16[128], i8[2]", ("float32[8, 128]", "bfloat16[128]", "int8[2]")),
        ("s32[2], float16[2], int64[]", ("int32[2]", "float16[2]", "int64[]")),
        ("float32[8, 128],u4[3],s16[1],c64[]", ("float32[8, 128]", "uint4[3]", "int16[1]", "complex64[]")),
        ("f8_e4m3fn[2], bool[2], f32[ ]", ("float8_e4m3fn[2]", "bool[2]", "float32[]")),
        ("1, -2.5, 1e-3, 2j, inf, True, None, 'same'", (1, -2.5, 1e-3, 2j, float("inf"), True, None, "same")),
        ("{'w': f32[2], 'b': {'x': i8[]}}, {3: 1.0}", ({"w": "float32[2]", "b": {"x": "int8[]"}}, {3: 1.0})),
        ("[f32[1], (i32[2], 3)], ()", (["float32[1]", ("int32[2]", 3)], ())),
        ("key, key[], key<fry>[4], [key[2,3]]", ("key<fry>[]", "key<fry>[]", "key<fry>[4]", ["key<fry>[2, 3]"])),
        ("{'f32[]': 'key[]'}", ({"f32[]": "key[]"},)),
        ("f32[8],", ("float32[8]",)),
        ("\n f32[1],\n f32[2]\n", ("float32[1]", "float32[2]")),
    ],
)
def test_text_describes_arguments(text, value):
    assert described(parse_arguments(text)) == value


def test_every_format_is_understood():
    found = 0
    for row in FORMATS:
        (argument,) = parse_arguments(f"{row.name}[2]")
        assert argument.dtype == row.dtype
        found += 1
    assert found > 20


@pytest.mark.parametrize(
    "text",
    [
        "f32", "f32[8", "f32]8[", "f32[-1]", "f32[1.5]", "f32['a']", "f32[n]", "x + 1", "print(1)", "*[f32[1]]",
        "{**{}}", "f32[1]) + (f32[2]", "{1, 2}", "lambda: 1", "a=1", "[x for x in 'ab']", "f32[1][2]", "key[-1]",
        "b'1'", "...", "a.b[1]", "(" * 400,
    ],
)  # fmt: skip
def test_other_text_is_an_error(text):
    with pytest.raises(ArgumentError, match=r"Arguments must be arrays such as f32\[8,128\]"):
        parse_arguments(text)


def test_errors_name_what_is_wrong():
    with pytest.raises(UnknownDtypeError, match="unknown dtype 'f33': did you mean 'f32'"):
        parse_arguments("{'w': f33[2]}")
    with pytest.raises(ArgumentError, match="keys of a dict"):
        parse_arguments("{f32[1]: 1}")
    with pytest.raises(ArgumentError, match="at most 18 digits"):
        parse_arguments(f"f32[{'9' * 19}]")


def test_a_described_key_can_be_used():
    (key,) = parse_arguments("key[]")
    assert jax.eval_shape(jax.random.normal, key).dtype == jnp.float32


def test_a_function_can_make_the_arguments():
    assert arguments_maker("f32[8]") is None
    assert arguments_maker("{'a': 1}") is None
    make = arguments_maker(" numpy:random.random ")
    assert make is not None
    (only,) = make()
    assert isinstance(only, float)
    assert arguments_maker("sys:exc_info")() == (None, None, None)  # a tuple has several


def test_a_call_is_checked():
    check_call("mix", lambda x, y=1, *rest: x, (1, 2, 3))
    check_call("f", jax.jit(lambda x: x), (1,))
    check_call("f", max, (1, 2, 3, 4, 5, 6))  # its parameters are unknown
    with pytest.raises(ArgumentError, match=r"f\(x\) cannot be called with 2 arguments: too many positional"):
        check_call("f", jax.jit(lambda x: x), (1, 2))
