"""The surprises of each rule set. The tests hold each against the rules, and those against the framework itself."""

from __future__ import annotations

from generate.surprise import Surprise
from generate.surprises_tensorflow import TENSORFLOW

SURPRISES: dict[str, tuple[Surprise, ...]] = {
    "jax-x64": (
        Surprise(
            "add", ("int32", "float16"), "float16",
            "However wide the integer, the float stays narrow: above 2,048 it does not hold every integer, and from "
            "65,520 on they are infinite.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A Python int takes the dtype of the array and wraps around: 1000 is -24 in int8.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float64",
            "No integer holds both, so that integers become floats, which are exact up to 2\\*\\*53 only. The result "
            "is weak: with bfloat16 it is bfloat16.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float32",
            "True division makes float32 of up to 16 and 32 bits, ...",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float64",
            "... and float64 of 64.",
        ),
        Surprise(
            "pow", ("int8", -1), "refused",
            "An integer to a negative Python power is an error; to a negative power in an array it is not.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "refused",
            "Bools are added, as a logical or, and not subtracted.",
        ),
        Surprise(
            "add", ("int4", "int8"), "refused",
            "The integers below 8 bits promote with Python numbers and themselves only.",
        ),
    ),
    "jax-x32": (
        Surprise(
            "add", ("int64", "uint64"), "int32",
            "What says 64 bits is 32 bits first, and int32 with uint32, whose join would be int64, is int32: "
            "uint32's upper half wraps around.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "The same with arrays that JAX does hold: 4294967295 becomes -1.",
        ),
        Surprise(
            "sqrt", ("float64",), "float32",
            "A NumPy array of float64 is float32 as soon as JAX touches it.",
        ),
        Surprise(
            "less", ("uint32", "int32"), "bool",
            "The answer is a bool, but both sides are cast to int32 first: 4294967295 < 0 is True.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float32",
            "A Python float makes a weak float of an integer, which the next float16 array turns to float16.",
        ),
        Surprise(
            "remainder", ("bool", "bool"), "int32",
            "Bools count as int32 where an operation has no meaning for them.",
        ),
    ),
    "jax-explicit-x64": (
        Surprise(
            "add", ("int64", "int32"), "int64",
            "With x64 off, and yet 64 bits: an array that was made so explicitly stays so.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "But nothing that has 32 bits becomes 64 by promotion: where x64 is on this is int64.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float32",
            "The weak float in which they meet is held as float32, half as wide as either.",
        ),
        Surprise(
            "divide", ("int64", "int32"), "float64",
            "Division of int64 is float64, while a Python float makes float32 of it ...",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "float32",
            "... like this.",
        ),
    ),
    "jax-strict-x64": (
        Surprise(
            "add", ("float32", "float16"), "refused",
            "Two dtypes never meet, not even where one holds the other.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float is for float arrays; an int meets integers and floats alike.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "Strict about dtypes, not about values: 1000 wraps around to -24.",
        ),
        Surprise(
            "multiply", ("bool", 2), "refused",
            "A mask times a number is refused too.",
        ),
        Surprise(
            "divide", ("int32", "int32"), "float32",
            "Division still makes floats of integers without being asked.",
        ),
    ),
    "jax-strict-x32": (
        Surprise(
            "add", ("float64", "float32"), "float32",
            "Two dtypes do meet here: NumPy's float64 is float32 before JAX looks at it, and then both are equal.",
        ),
        Surprise(
            "add", ("int64", "uint64"), "refused",
            "Held in 32 bits they still differ.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "Where JAX does not hold 64 bits, neither does a quotient.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "Strict about dtypes, not about values: 1000 wraps around to -24.",
        ),
    ),
    "jax-strict-explicit-x64": (
        Surprise(
            "add", ("float64", "float32"), "refused",
            "64 bits that were asked for stay, and so the two differ ...",
        ),
        Surprise(
            "multiply", ("float64", 1.5), "float64",
            "... while a Python float, which is float32 alone, takes the array's dtype.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float64",
            "A quotient has as many bits as its operands.",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "refused",
            "A Python float is for float arrays, whatever their width.",
        ),
    ),
    "numpy": (
        Surprise(
            "add", ("int32", "float16"), "float64",
            "A 16-bit float becomes 64 bits, four times the memory: the first float that holds every int32.",
        ),
        Surprise(
            "add", ("int64", "float32"), "float64",
            "An index array, int64 by default, turns float32 data into float64.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "A Python int that does not fit is an `OverflowError`, from NumPy 2 on.",
        ),
        Surprise(
            "equal", ("int8", 1000), "bool",
            "Unless it is compared, which is done by value.",
        ),
        Surprise(
            "sqrt", ("int8",), "float16",
            "8-bit integers give float16, ...",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float64",
            "... and their quotient is float64.",
        ),
        Surprise(
            "add", ("bfloat16", "uint16"), "float32",
            "`np.add` finds a loop here, while `np.result_type` refuses the same pair.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float64",
            "Integers become floats, exact up to 2\\*\\*53 only.",
        ),
    ),
    "numpy-legacy": (
        Surprise(
            "add", ("int8", 300), "int16",
            "The value decides: with 100 it stays int8, and 300 makes it int16.",
        ),
        Surprise(
            "add", ("uint8", -1), "int16",
            "A negative number makes a signed and wider array of an unsigned one.",
        ),
        Surprise(
            "add", ("float16", 65000.0), "float32",
            "A large float widens the array, and NumPy draws the line short of float16's largest number, 65,504.",
        ),
        Surprise(
            "add", ("float32", 3.4e38), "float64",
            "Likewise for float32, although that holds 3.4e38.",
        ),
        Surprise(
            "ceil", ("int32",), "float64",
            "Rounding an integer makes a float of it; in NumPy 2 it stays an integer.",
        ),
        Surprise(
            "add", ("int32", "float16"), "float64",
            "Arrays, as opposed to numbers, promote as in NumPy 2.",
        ),
    ),
    "torch": (
        Surprise(
            "add", ("int64", "float16"), "float16",
            "A float of any width outranks an integer of any width.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A Python int takes the dtype of the tensor and wraps around.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "refused",
            "The unsigned integers above 8 bits meet floats, and no other integers.",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "float32",
            "A Python float is float32, the default dtype, beside integers of 64 bits too.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "And so is every quotient of integers.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "refused",
            "Bools are added, not subtracted.",
        ),
        Surprise(
            "maximum", ("float32", 1.5), "refused",
            "`maximum` takes tensors only; `torch.clamp` takes numbers.",
        ),
        Surprise(
            "add", ("float8_e4m3fn", "float16"), "refused",
            "8-bit floats meet no other dtype.",
        ),
    ),
    "keras": (
        Surprise(
            "add", ("float64", "float64"), "float32",
            "Whatever has 64 bits has 32 in the end, also with JAX's x64 on.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float32",
            "Two integers of 64 bits meet in a float of 32.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "uint32 and int32 meet in int64, which is then made int32: the upper half of uint32 is lost.",
        ),
        Surprise(
            "add", ("float32", 1j), "complex64",
            "A Python complex is complex64, not weak like ints and floats.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "bool",
            "The symbolic result is bool; the backend may then refuse.",
        ),
        Surprise(
            "floor_divide", ("bool", "bool"), "int32",
            "Bools divided, raised to powers and their remainders are int32; sums and products stay bool.",
        ),
        Surprise(
            "add", ("float8_e4m3fn", 2.0), "refused",
            "8-bit floats are never converted, not even by a Python number.",
        ),
    ),
    **TENSORFLOW,
    "paddle": (
        Surprise(
            "add", ("int32", "int64"), "refused",
            "Integers do not promote, not even to the wider of the two.",
        ),
        Surprise(
            "add", ("int32", "float32"), "refused",
            "Nor with floats; floats do among each other, ...",
        ),
        Surprise(
            "add", ("int32", "complex64"), "complex64",
            "... and everything with complex.",
        ),
        Surprise(
            "divide", ("bool", "bool"), "bool",
            "A quotient of bools is bool, where that of integers is float32.",
        ),
        Surprise(
            "atan2", ("int32", "int32"), "float64",
            "The angle of two integers has 64 bits, their quotient 32.",
        ),
        Surprise(
            "pow", ("int32", -1), "int32",
            "A negative power of an integer is taken, and is an integer.",
        ),
        Surprise(
            "multiply", ("bool", 2), "int64",
            "A Python int takes the type of any tensor but a bool one.",
        ),
        Surprise(
            "where", ("bfloat16", 1.5), "float32",
            "Other operations keep bfloat16: `where` makes a float32 tensor of the number first.",
        ),
    ),
    "array-api": (
        Surprise(
            "add", ("int32", "float32"), "refused",
            "The standard says nothing of integers with floats, and what it does not say is refused.",
        ),
        Surprise(
            "divide", ("int32", "int32"), "refused",
            "Nor of the quotient of integers: cast first, or use `//`.",
        ),
        Surprise(
            "sqrt", ("int32",), "refused",
            "Nor of any other function that would make floats of them.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float is for float arrays only.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "refused",
            "uint64 meets no signed integer at all, not even int8.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "A Python int that does not fit is undefined, and refused.",
        ),
        Surprise(
            "bitwise_and", ("bool", "int8"), "refused",
            "Bools meet bools only.",
        ),
    ),
}  # fmt: skip
