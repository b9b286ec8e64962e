"""The dtypes for which the array libraries lack a function, so that arrays raise `RuntimeDtypeError`.

For each operation, the dtypes in which some rules compute it for operands of one dtype, and for which the library has
no function. The tests compare these tables with the library, to notice when it refuses more or less than before.
Operations that are not listed are tested too.
"""

NUMPY_LACKS: dict[str, str] = {
    "subtract": "bool",
    "negative": "bool",
    "positive": "bool",
    "sign": "bool",
    "floor_divide": "complex128 complex64",
    "remainder": "complex128 complex64",
    "atan2": "complex128 complex64",
    "hypot": "complex128 complex64",
    "copysign": "complex128 complex64",
    "nextafter": "complex128 complex64",
    "logaddexp": "complex128 complex32 complex64",
    "huber_loss": "bool",
    "l1_loss": "bool",
    "mse_loss": "bool",
}

_SMALL = "float6_e2m3fn float8_e4m3fn float8_e8m0fnu"
JAX_LACKS: dict[str, str] = {
    "subtract": "bool",
    "negative": "bool",
    "sign": "bool",
    "signbit": _SMALL,
    "copysign": f"complex128 complex64 {_SMALL}",
    "floor_divide": "complex128 complex64",
    "remainder": "complex128 complex64",
    "hypot": "complex128 complex64",
    "nextafter": "complex128 complex64",
    "huber_loss": "bool",
    "l1_loss": "bool",
    "mse_loss": "bool",
    "add": "",
    "multiply": "",
    "divide": "",
    "pow": "",
    "equal": "",
    "less": "",
    "exp": "",
}

_FLOAT8 = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
_UNSIGNED = "uint16 uint32 uint64"
_COMPLEX = "complex128 complex64"
TORCH_LACKS: dict[str, str] = {
    "add": f"{_FLOAT8} {_UNSIGNED}",
    "subtract": f"bool {_FLOAT8} {_UNSIGNED}",
    "multiply": _FLOAT8,
    "divide": f"complex32 {_FLOAT8} {_UNSIGNED}",
    "floor_divide": f"bool {_COMPLEX} {_FLOAT8} {_UNSIGNED}",
    "remainder": f"bool {_COMPLEX} {_FLOAT8} {_UNSIGNED}",
    "pow": f"bool complex32 {_FLOAT8} {_UNSIGNED}",
    "maximum": f"complex128 complex32 complex64 {_FLOAT8} {_UNSIGNED}",
    "minimum": f"complex128 complex32 complex64 {_FLOAT8} {_UNSIGNED}",
    "atan2": f"{_COMPLEX} {_FLOAT8}",
    "logaddexp": f"complex32 {_FLOAT8}",
    "equal": "",
    "less": f"complex128 complex32 complex64 {_FLOAT8} {_UNSIGNED}",
    "bitwise_and": "",
    "bitwise_left_shift": f"bool {_UNSIGNED}",
    "bitwise_invert": _UNSIGNED,
    "positive": "bool",
    "negative": f"bool {_FLOAT8} {_UNSIGNED}",
    "abs": f"bool float8_e8m0fnu {_UNSIGNED}",
    "exp": f"complex32 {_FLOAT8}",
    "sqrt": f"complex32 {_FLOAT8}",
    "huber_loss": f"bool {_FLOAT8}",
    "mse_loss": f"bool {_FLOAT8} {_UNSIGNED}",
}
