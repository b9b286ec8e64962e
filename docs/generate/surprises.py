"""The surprises of each rule set; tests compare their answers with the rules and with the framework."""

from __future__ import annotations

from generate.surprise import Surprise
from generate.surprises_tensorflow import TENSORFLOW

SURPRISES: dict[str, tuple[Surprise, ...]] = {
    "jax-x64": (
        Surprise(
            "add", ("int32", "float16"), "float16",
            "The float keeps its width, however wide the integer is: above 2,048 it does not hold every integer, "
            "and from 65,520 on the result is infinite.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A Python int takes the dtype of the array and wraps around: 1000 is -24 in int8.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float64",
            "No integer dtype holds both, so the result is a float, which is exact only up to 2\\*\\*53. It is weak: "
            "with bfloat16 it becomes bfloat16.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float32",
            "Division of integers up to 32 bits gives float32.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float64",
            "Division of 64-bit integers gives float64.",
        ),
        Surprise(
            "pow", ("int8", -1), "refused",
            "An integer raised to a negative Python int is refused; raised to an array of negative ints it is not.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "refused",
            "Bools can be added, as a logical or, but not subtracted.",
        ),
        Surprise(
            "add", ("int4", "int8"), "refused",
            "Integers below 8 bits promote only with themselves and with Python numbers.",
        ),
    ),
    "jax-x32": (
        Surprise(
            "add", ("int64", "uint64"), "int32",
            "64 bits become 32 first. int32 with uint32 would be int64, which becomes int32: the upper half of uint32 "
            "wraps around.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "The same happens to arrays of 32 bits: 4294967295 becomes -1.",
        ),
        Surprise(
            "sqrt", ("float64",), "float32",
            "A float64 NumPy array becomes float32 as soon as JAX uses it.",
        ),
        Surprise(
            "less", ("uint32", "int32"), "bool",
            "The result is bool, but both operands are cast to int32 first: 4294967295 < 0 is True.",
        ),
        Surprise(
            "add", ("int8", 1.5), "float32",
            "A Python float with an integer gives a weak float, which with a float16 array becomes float16.",
        ),
        Surprise(
            "remainder", ("bool", "bool"), "int32",
            "Bools count as int32 in operations that are not defined for bools.",
        ),
    ),
    "jax-explicit-x64": (
        Surprise(
            "add", ("int64", "int32"), "int64",
            "Although x64 is off, an array that was explicitly created with 64 bits keeps them.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "Promotion never turns 32 bits into 64: with x64 on this is int64.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float32",
            "Their join is the weak float, which becomes float32: half as wide as either operand.",
        ),
        Surprise(
            "divide", ("int64", "int32"), "float64",
            "Division of int64 gives float64.",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "float32",
            "A Python float with int64 gives float32.",
        ),
    ),
    "jax-strict-x64": (
        Surprise(
            "add", ("float32", "float16"), "refused",
            "Two different dtypes never promote, even if one holds the other.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float promotes only with float arrays; a Python int promotes with integers and floats.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "These rules are strict about dtypes, not about values: 1000 wraps around to -24.",
        ),
        Surprise(
            "multiply", ("bool", 2), "refused",
            "A mask times a number is refused.",
        ),
        Surprise(
            "divide", ("int32", "int32"), "float32",
            "Division of integers still gives floats.",
        ),
    ),
    "jax-strict-x32": (
        Surprise(
            "add", ("float64", "float32"), "float32",
            "NumPy's float64 becomes float32 first, so both dtypes are equal.",
        ),
        Surprise(
            "add", ("int64", "uint64"), "refused",
            "As int32 and uint32 they still differ.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "JAX has no 64-bit arrays here, so the quotient has 32 bits.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "These rules are strict about dtypes, not about values: 1000 wraps around to -24.",
        ),
    ),
    "jax-strict-explicit-x64": (
        Surprise(
            "add", ("float64", "float32"), "refused",
            "Arrays keep the 64 bits that you ask for, so the dtypes differ.",
        ),
        Surprise(
            "multiply", ("float64", 1.5), "float64",
            "A Python float takes the array's dtype.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float64",
            "A quotient has as many bits as its operands.",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "refused",
            "A Python float promotes only with float arrays, whatever their width.",
        ),
    ),
    "numpy": (
        Surprise(
            "add", ("int32", "float16"), "float64",
            "A 16-bit float becomes 64 bits and needs four times the memory, because float64 is the first float that "
            "holds every int32.",
        ),
        Surprise(
            "add", ("int64", "float32"), "float64",
            "An index array, int64 by default, turns float32 data into float64.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "Since NumPy 2, a Python int that does not fit raises an `OverflowError`.",
        ),
        Surprise(
            "equal", ("int8", 1000), "bool",
            "Comparisons compare values, so the int need not fit.",
        ),
        Surprise(
            "sqrt", ("int8",), "float16",
            "Functions of 8-bit integers give float16.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float64",
            "The quotient of 8-bit integers is float64, although their square roots are float16.",
        ),
        Surprise(
            "add", ("bfloat16", "uint16"), "float32",
            "`np.add` finds a loop here, while `np.result_type` refuses the same pair.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float64",
            "The result is a float, which is exact only up to 2\\*\\*53.",
        ),
    ),
    "numpy-legacy": (
        Surprise(
            "add", ("int8", 300), "int16",
            "The value decides: with 100 the result is int8, with 300 it is int16.",
        ),
        Surprise(
            "add", ("uint8", -1), "int16",
            "A negative number turns an unsigned array into a signed and wider one.",
        ),
        Surprise(
            "add", ("float16", 65000.0), "float32",
            "A large float widens the array, and NumPy's limit is lower than the maximum of float16, 65,504.",
        ),
        Surprise(
            "add", ("float32", 3.4e38), "float64",
            "The same is true of float32, although float32 can hold 3.4e38.",
        ),
        Surprise(
            "ceil", ("int32",), "float64",
            "`ceil` of an integer is a float; in NumPy 2 it is an integer.",
        ),
        Surprise(
            "add", ("int32", "float16"), "float64",
            "Arrays with dimensions promote as in NumPy 2.",
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
            "Unsigned integers above 8 bits promote with floats, but not with other integers.",
        ),
        Surprise(
            "multiply", ("int64", 1.5), "float32",
            "A Python float is float32, the default dtype, even with 64-bit integers.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "Every quotient of integers is float32, too.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "refused",
            "Bools can be added, but not subtracted.",
        ),
        Surprise(
            "maximum", ("float32", 1.5), "refused",
            "`maximum` takes tensors only; `torch.clamp` takes numbers.",
        ),
        Surprise(
            "add", ("float8_e4m3fn", "float16"), "refused",
            "8-bit floats promote with no other dtype.",
        ),
    ),
    "keras": (
        Surprise(
            "add", ("float64", "float64"), "float32",
            "Results never have 64 bits, even with JAX's x64 on.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float32",
            "Two 64-bit integers give a 32-bit float.",
        ),
        Surprise(
            "add", ("uint32", "int32"), "int32",
            "The join of uint32 and int32 is int64, which then becomes int32: the upper half of uint32 is lost.",
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
            "Quotients, powers and remainders of bools are int32; sums and products stay bool.",
        ),
        Surprise(
            "add", ("float8_e4m3fn", 2.0), "refused",
            "8-bit floats never promote, not even with a Python number.",
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
            "Integers do not promote with floats either; floats promote with floats.",
        ),
        Surprise(
            "add", ("int32", "complex64"), "complex64",
            "Everything promotes with complex numbers.",
        ),
        Surprise(
            "divide", ("bool", "bool"), "bool",
            "A quotient of bools is bool, although a quotient of integers is float32.",
        ),
        Surprise(
            "atan2", ("int32", "int32"), "float64",
            "`atan2` of two integers is float64, although their quotient is float32.",
        ),
        Surprise(
            "pow", ("int32", -1), "int32",
            "A negative power of an integer is accepted, and gives an integer.",
        ),
        Surprise(
            "multiply", ("bool", 2), "int64",
            "A Python int takes the dtype of any tensor except a bool one.",
        ),
        Surprise(
            "where", ("bfloat16", 1.5), "float32",
            "`where` turns the number into a float32 tensor first; other operations keep bfloat16.",
        ),
    ),
    "mlx": (
        Surprise(
            "add", ("uint64", "int64"), "float32",
            "No integer dtype holds both, so the result is float32, which has 24 bits for the 64 of its operands. With "
            "float16 it stays float32, although uint64 and int64 each give float16 with float16.",
        ),
        Surprise(
            "multiply", ("float64", "complex64"), "complex64",
            "There is no complex128, and complex numbers outrank floats: the float64 is rounded to float32.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "A quotient of integers is float32, however wide they are.",
        ),
        Surprise(
            "add", ("bool", 2**40), "int32",
            "Next to a bool array, a Python int is an int32 and wraps around silently, here to 0. Next to any integer "
            "array but uint64, MLX raises for an int that is out of range.",
        ),
        Surprise(
            "subtract", ("bool", "bool"), "bool",
            "A difference of bools is bool, so that False minus True is True.",
        ),
        Surprise(
            "mse_loss", ("int8", "int8"), "int8",
            "Losses of integers are integers, and a squared error wraps around.",
        ),
        Surprise(
            "bitwise_left_shift", ("bool", "bool"), "uint8",
            "Bools are shifted as uint8; the other bitwise operations keep bool.",
        ),
    ),
    "tinygrad": (
        Surprise(
            "add", ("int8", 1.5), "float32",
            "The result is a weak float: with a float16 tensor it becomes float16, and with a float8_e5m2 tensor "
            "float8_e5m2.",
        ),
        Surprise(
            "add", ("int8", 1000), "int8",
            "A Python int takes the dtype of the tensor and wraps around: 1000 is -24 in int8. Comparisons use 1000.",
        ),
        Surprise(
            "add", ("uint64", "int8"), "float32",
            "No integer dtype holds both, so the result is a weak float, which is exact only up to 2\\*\\*24.",
        ),
        Surprise(
            "add", ("int32", "float8_e4m3fn"), "float8_e4m3fn",
            "The float keeps its width, even one of 8 bits: above 16 it does not hold every integer.",
        ),
        Surprise(
            "add", ("float8_e4m3fn", "float8_e5m2"), "float16",
            "float16 and bfloat16 hold both, and tinygrad takes float16. With bfloat16 as a third operand the result "
            "is bfloat16 if all are promoted at once, and float32 if the first two are added first.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "float32",
            "A quotient of integers is float32, however wide they are.",
        ),
        Surprise(
            "floor_divide", ("bool", "bool"), "float32",
            "The floor of a quotient of bools is a float, although that of integers is an integer.",
        ),
        Surprise(
            "round", ("int8",), "float32",
            "Rounding turns integers into weak floats, because it adds a Python float. `floor` and `trunc` keep them.",
        ),
    ),
    "polars": (
        Surprise(
            "add", ("int32", "float32"), "float64",
            "Integers of 32 and 64 bits promote to float64 with any float.",
        ),
        Surprise(
            "add", ("bool", "bool"), "uint32",
            "A sum of bools counts them in uint32; `subtract` and `multiply` refuse two bools.",
        ),
        Surprise(
            "multiply", ("bool", 2), "int32",
            "A Python int takes the dtype of any column except a bool one.",
        ),
        Surprise(
            "pow", ("int8", "int64"), "int8",
            "A power has the dtype of its base.",
        ),
        Surprise(
            "pow", ("int64", "float16"), "float16",
            "An integer base takes the dtype of a float exponent, even if that is narrower than the supertype.",
        ),
        Surprise(
            "atan2", ("float32", "float64"), "float32",
            "The result has the dtype of the first operand.",
        ),
        Surprise(
            "bitwise_and", ("bool", "int8"), "refused",
            "Booleans and integers do not mix in bitwise operations; Polars 1 accepted them.",
        ),
        Surprise(
            "divide", ("int8", "int8"), "float64",
            "A quotient of integers is float64, whatever their width.",
        ),
    ),
    "polars-1": (
        Surprise(
            "add", ("uint64", "int8"), "float64",
            "uint64 and signed integers promote to float64; in Polars 2, they promote to Int128.",
        ),
        Surprise(
            "maximum", ("uint8", 1), "int32",
            "`max_horizontal` makes a column of the number first; elsewhere it takes the dtype of the column.",
        ),
        Surprise(
            "maximum", ("float32", 1.0), "float64",
            "The same is true of floats.",
        ),
        Surprise(
            "bitwise_and", ("bool", "int8"), "int8",
            "Booleans mix with integers in bitwise operations; Polars 2 refuses them.",
        ),
        Surprise(
            "any", ("int8",), "refused",
            "`any` and `all` accept bools only; Polars 2 accepts numbers too.",
        ),
    ),
    "pyarrow": (
        Surprise(
            "add", ("int8", 1), "int64",
            "A Python int counts as an int64 scalar, so it widens every narrower array.",
        ),
        Surprise(
            "multiply", ("float32", 2.0), "float64",
            "A Python float counts as a float64 scalar.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "int64",
            "The result is neither a wider integer nor a float: a uint64 from 2\\*\\*63 on raises an error.",
        ),
        Surprise(
            "add", ("int64", "float32"), "float32",
            "The float keeps its width. An integer beyond 2\\*\\*24 raises an error instead of being rounded, even if "
            "float32 holds it.",
        ),
        Surprise(
            "divide", ("int64", "int64"), "int64",
            "A quotient of integers is an integer: the fraction is cut off.",
        ),
        Surprise(
            "add", ("float16", "float16"), "refused",
            "Few functions accept float16, and few accept bool. Tables concatenate float16 with other numbers.",
        ),
        Surprise(
            "floor", ("int8",), "float64",
            "`floor`, `ceil` and `trunc` of integers are float64; `round` keeps the integer.",
        ),
        Surprise(
            "sign", ("uint64",), "int8",
            "Signs of integers are int8.",
        ),
    ),
    "pandas": (
        Surprise(
            "concat", ("bool", "int8"), "refused",
            "A column of bools and numbers is a column of Python objects. `add` of the same two columns is int8.",
        ),
        Surprise(
            "divide", ("bool", "bool"), "refused",
            "pandas does not divide bools, and has no powers of them; NumPy has both.",
        ),
        Surprise(
            "bitwise_and", ("bool", "int8"), "bool",
            "Logical operators give bool if an operand is bool: True & 2 is False.",
        ),
        Surprise(
            "bitwise_or", ("uint64", "int64"), "refused",
            "No integer dtype holds both, and pandas gives a column of Python objects.",
        ),
        Surprise(
            "negative", ("bool",), "bool",
            "The negative of True is False, where NumPy refuses the operator.",
        ),
        Surprise(
            "exp", ("int8",), "float16",
            "As in NumPy, functions of narrow integers give narrow floats, which overflow early: exp(12) is infinite.",
        ),
        Surprise(
            "add", ("Int8", "complex64"), "complex64",
            "No nullable column holds complex numbers: the result is a column of NumPy's complex64.",
        ),
        Surprise(
            "add", ("Int8", "float16"), "refused",
            "No nullable column is float16, so that pandas raises. The same sum with Int16 is Float32.",
        ),
    ),
    "pandas-nullable": (
        Surprise(
            "exp", ("int8",), "float32",
            "The function computes in float16, as in NumPy; the result becomes float32, since no column is float16.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "float64",
            "No integer dtype holds both, so that the result is Float64, which has 53 bits.",
        ),
        Surprise(
            "add", ("int8", 1j), "refused",
            "There are no nullable complex columns; pandas gives a column of NumPy's complex128 and drops the mask.",
        ),
        Surprise(
            "bitwise_and", ("bool", 1), "refused",
            "The logical operators of nullable bools accept a column of integers, but no Python int.",
        ),
        Surprise(
            "divide", ("bool", "bool"), "refused",
            "pandas does not divide bools, and has no powers of them; NumPy has both.",
        ),
        Surprise(
            "negative", ("bool",), "bool",
            "The negative of True is False, where NumPy refuses the operator.",
        ),
    ),
    "array-api": (
        Surprise(
            "add", ("int32", "float32"), "refused",
            "The standard does not define integers with floats, and this rule set refuses what it does not define.",
        ),
        Surprise(
            "divide", ("int32", "int32"), "refused",
            "The standard does not define quotients of integers: cast first, or use `//`.",
        ),
        Surprise(
            "sqrt", ("int32",), "refused",
            "The same is true of all other functions that would turn integers into floats.",
        ),
        Surprise(
            "multiply", ("int32", 1.5), "refused",
            "A Python float promotes only with float arrays.",
        ),
        Surprise(
            "add", ("uint64", "int64"), "refused",
            "uint64 promotes with no signed integer, not even int8.",
        ),
        Surprise(
            "add", ("int8", 1000), "refused",
            "The standard does not define a Python int that is out of range, so it is refused.",
        ),
        Surprise(
            "bitwise_and", ("bool", "int8"), "refused",
            "Bools promote only with bools.",
        ),
    ),
}  # fmt: skip
