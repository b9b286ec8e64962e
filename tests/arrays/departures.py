"""What the libraries underneath lack, which arrays refuse with `RuntimeDtypeError`.

By operation, the dtypes that some rules have an operand of that dtype alone computed in and that the library has no
function for. The tests hold this against the library itself; it is written down so that it is noticed when more is
refused, or less. An operation that is not listed is asked all the same.
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
TORCH_LACKS: dict[str, str] = {}
