"""The surprises of TensorFlow, as shipped and as in its RFC."""

from __future__ import annotations

from generate.surprise import Surprise

TENSORFLOW: dict[str, tuple[Surprise, ...]] = {
    "tf-off": (
        Surprise(
            "add", ("float32", "float16"), "refused",
            "Tensors of two dtypes never promote.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A number takes the dtype of the tensor, and 1.5 is not an int32.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A number out of range silently wraps around.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float32",
            "A quotient of 8-bit or 16-bit integers is float32.",
        ),
        Surprise(
            "divide", ("int32", "int32"), "float64",
            "A quotient of 32-bit integers is float64; in JAX and PyTorch it is float32.",
        ),
        Surprise(
            "add", ("bool", "bool"), "refused",
            "Bools cannot be added; use `logical_or`.",
        ),
        Surprise(
            "sqrt", ("int32",), "refused",
            "Functions like `sqrt` do not turn integers into floats.",
        ),
    ),
    "tf-all": (
        Surprise(
            "add", ("int32", "float16"), "float16",
            "As in JAX, an integer of any width takes the dtype of the float.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float64",
            "A Python float with an 8-bit integer gives a weak float64, which with a float32 tensor becomes float32.",
        ),
        Surprise(
            "equal", ("int32", "int64"), "bool",
            "`==` promotes.",
        ),
        Surprise(
            "not_equal", ("int32", "int64"), "refused",
            "`!=` does not promote: only some operations follow the mode.",
        ),
        Surprise(
            "bitwise_left_shift", ("int8", "int64"), "refused",
            "Bit operations do not promote either.",
        ),
        Surprise(
            "add", ("bool", "bool"), "refused",
            "Although every pair of dtypes promotes, bools cannot be added.",
        ),
    ),
    "tf-safe": (
        Surprise(
            "add", ("int8", "uint8"), "refused",
            "Their join, int16, is neither of the two, so it counts as unsafe.",
        ),
        Surprise(
            "add", ("int32", "int64"), "int64",
            "A promotion to the dtype of one operand is allowed if it can hold the other.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float with an integer tensor is refused.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "The mode is safe for dtypes, not for values: 1000 wraps around.",
        ),
        Surprise(
            "not_equal", ("int32", "int64"), "refused",
            "`!=` never promotes, although `==` does.",
        ),
    ),
    "tf-rfc-all": (
        Surprise(
            "add", ("int32", "float16"), "float64",
            "The RFC widens until the result can hold every value; TensorFlow as shipped gives float16.",
        ),
        Surprise(
            "add", ("int64", "float32"), "float64",
            "No dtype holds both exactly, so the result is the widest float.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "The range of Python numbers is checked in every mode.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float64",
            "A Python float with an integer counts as float64.",
        ),
        Surprise(
            "add", ("bool", "bool"), "bool",
            "Bools can be added; TensorFlow as shipped refuses.",
        ),
    ),
    "tf-rfc-safe": (
        Surprise(
            "add", ("int8", "uint8"), "refused",
            "int16 holds both but is wider than both, and is therefore refused.",
        ),
        Surprise(
            "add", ("int32", "int64"), "int64",
            "The wider of the operands holds both, so it is allowed.",
        ),
        Surprise(
            "add", ("float16", "bfloat16"), "refused",
            "float32 holds both but is wider than both.",
        ),
        Surprise(
            "add", ("int32", "float32"), "refused",
            "float32 does not hold every int32, and float64 would be wider.",
        ),
        Surprise(
            "add", ("int8", "float16"), "float16",
            "float16 does hold every int8.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "The range of Python numbers is checked.",
        ),
    ),
    "tf-rfc-none": (
        Surprise(
            "add", ("int32", "int64"), "refused",
            "Tensors of two dtypes never promote.",
        ),
        Surprise(
            "multiply", ("float32", 2), "float32",
            "A Python int fits a float tensor.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float does not fit an integer tensor.",
        ),
        Surprise(
            "add", ("float16", 1e6), "refused",
            "The range of floats is checked, too: the maximum of float16 is 65,504.",
        ),
        Surprise(
            "sqrt", ("int64",), "float64",
            "Functions still turn integers into floats.",
        ),
    ),
}  # fmt: skip
