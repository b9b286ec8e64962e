"""The surprises of TensorFlow, as shipped and as its RFC has it."""

from __future__ import annotations

from generate.surprise import Surprise

TENSORFLOW: dict[str, tuple[Surprise, ...]] = {
    "tf-off": (
        Surprise(
            "add", ("float32", "float16"), "refused",
            "Tensors of two dtypes never meet.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A number takes the dtype of the tensor, and 1.5 is no int32.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A number that is out of range wraps around, without a word.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float32",
            "Division makes floats of integers: float32 of 8 and 16 bits, ...",
        ),
        Surprise(
            "divide", ("int32", "int32"), "float64",
            "... and float64 of 32 bits, where JAX and PyTorch have float32.",
        ),
        Surprise(
            "add", ("bool", "bool"), "refused",
            "Bools are not added: that is `logical_or`.",
        ),
        Surprise(
            "sqrt", ("int32",), "refused",
            "Functions like `sqrt` make no floats of integers.",
        ),
    ),
    "tf-all": (
        Surprise(
            "add", ("int32", "float16"), "float16",
            "As in JAX an integer of any width meets the narrowest of floats.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float64",
            "But a Python float makes float64 of 8 bits, a weak one: the next float32 makes it float32.",
        ),
        Surprise(
            "equal", ("int32", "int64"), "bool",
            "`==` promotes, ...",
        ),
        Surprise(
            "not_equal", ("int32", "int64"), "refused",
            "... and `!=` does not: only some operations know of the mode.",
        ),
        Surprise(
            "bitwise_left_shift", ("int8", "int64"), "refused",
            "Neither do the operations on bits.",
        ),
        Surprise(
            "add", ("bool", "bool"), "refused",
            "Every pair of dtypes promotes, and yet bools are not added.",
        ),
    ),
    "tf-safe": (
        Surprise(
            "add", ("int8", "uint8"), "refused",
            "Their join, int16, is neither of the two, and so it counts as unsafe.",
        ),
        Surprise(
            "add", ("int32", "int64"), "int64",
            "What one of the operands can hold is allowed.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float beside an integer tensor is refused.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "Safe of dtypes, not of values: 1000 wraps around.",
        ),
        Surprise(
            "not_equal", ("int32", "int64"), "refused",
            "`!=` promotes in no mode, while `==` does.",
        ),
    ),
    "tf-rfc-all": (
        Surprise(
            "add", ("int32", "float16"), "float64",
            "The text widens until every value is held; TensorFlow as shipped has float16 here.",
        ),
        Surprise(
            "add", ("int64", "float32"), "float64",
            "Nothing holds both exactly, and the widest float is taken.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "A Python number is checked for range in every mode.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float64",
            "A Python float counts as float64 beside integers.",
        ),
        Surprise(
            "add", ("bool", "bool"), "bool",
            "Bools are added; TensorFlow as shipped refuses.",
        ),
    ),
    "tf-rfc-safe": (
        Surprise(
            "add", ("int8", "uint8"), "refused",
            "int16 would hold both, but be wider than both, and that is refused.",
        ),
        Surprise(
            "add", ("int32", "int64"), "int64",
            "What the wider one of the operands holds is fine.",
        ),
        Surprise(
            "add", ("float16", "bfloat16"), "refused",
            "float32 would be wider than both.",
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
            "A Python number is checked for range.",
        ),
    ),
    "tf-rfc-none": (
        Surprise(
            "add", ("int32", "int64"), "refused",
            "Tensors of two dtypes never meet.",
        ),
        Surprise(
            "multiply", ("float32", 2), "float32",
            "A Python int fits a float tensor, ...",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "... and a Python float no integer one.",
        ),
        Surprise(
            "add", ("float16", 1e6), "refused",
            "Floats are checked for range too: float16 ends at 65,504.",
        ),
        Surprise(
            "sqrt", ("int64",), "float64",
            "Yet functions make floats of integers without being asked.",
        ),
    ),
}  # fmt: skip
