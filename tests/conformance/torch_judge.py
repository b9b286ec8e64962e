"""Ask the installed PyTorch for dtypes; this module contains no promotion rules."""

import contextlib
import re
import warnings

from optional_packages import import_or_skip
from supremum.formats import FORMATS
from supremum.operations import ELEMENTWISE

torch = import_or_skip("torch")
F = torch.nn.functional
torch.set_num_threads(1)

DTYPES = {row.name: dtype for row in FORMATS if isinstance(dtype := getattr(torch, row.name, None), torch.dtype)}
DEFAULTS = ("float16", "bfloat16", "float32", "float64")
# PyTorch computes nothing in these, so a missing kernel for one of them says nothing about other formats.
SHELL = ("uint1", "uint2", "uint4", "int1", "int2", "int4")
REFUSED = "refused"


def tensor(name, ndim):
    made = torch.empty((2,) * ndim, dtype=DTYPES[name])
    return made if name in SHELL else made.fill_(1)


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "ComplexHalf support is experimental")  # PyTorch warns once per process
    TENSORS = {f"{name}{suffix}": tensor(name, ndim) for name in DTYPES for suffix, ndim in (("", 1), ("[]", 0))}
NUMBERS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
OPERANDS = TENSORS | NUMBERS

_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "equal": "equal", "not_equal": "not_equal"}
_MIRRORED |= {mirrored: name for name, mirrored in _MIRRORED.items()}
_NAMES = {"bitwise_invert": "bitwise_not", "equal": "eq", "not_equal": "ne"}
_LOSSES = ("huber_loss", "poisson_nll_loss", "l1_loss", "mse_loss")
ASKED = {
    name: getattr(F if name in _LOSSES else torch, _NAMES.get(name, name)) for name in ELEMENTWISE if name != "where"
} | {"where": lambda a, b: torch.where(torch.ones(2, dtype=torch.bool), a, b)}


@contextlib.contextmanager
def default_dtype(name):
    before = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[name])
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def promote_types(a, b):
    try:
        return name_of(torch.promote_types(DTYPES[a], DTYPES[b]))
    except RuntimeError:
        return REFUSED


def result_type(a, b):
    try:
        return name_of(torch.result_type(a, b))
    except RuntimeError:
        return REFUSED


def call(function, *operands):
    """The dtype of a call, `"refused"`, or `"no kernel for <format>"`, which names the dtype of the computation."""
    return _call(function, operands)[0]


def operate(operation, *operands):
    """The same for an operation; a comparison with a number on the left is mirrored, as Python's operators do."""
    return operate_with_overflow(operation, *operands)[0]


def operate_with_overflow(operation, *operands):
    """The same, and whether PyTorch refuses because a number is out of range."""
    if operation in _MIRRORED and not isinstance(operands[0], torch.Tensor) and isinstance(operands[1], torch.Tensor):
        operation, operands = _MIRRORED[operation], operands[::-1]
    return _call(ASKED[operation], operands)


def _call(function, operands):
    try:
        return name_of(function(*operands).dtype), False
    except NotImplementedError as error:
        missing = re.search(r"not implemented for '(\w+)'", str(error))  # other messages name no single dtype
        return (f"no kernel for {_FORMAT_OF_CPP[missing[1]]}" if missing else REFUSED), False
    except OverflowError:
        return REFUSED, True
    except (RuntimeError, TypeError, AttributeError, KeyError) as error:  # KeyError: meta tensors of float8
        return REFUSED, "without overflow" in str(error)


def divides_by_zero(operation, _, divisor):
    """Whether the call divides an integer by zero on the CPU, an error that depends on values and not on dtypes."""
    wrapped_to_zero = isinstance(divisor, int) and divisor % 256 == 0
    return operation == "floor_divide" and wrapped_to_zero


def cast(operand, dtype):
    """Cast an operand explicitly."""
    target = DTYPES[str(dtype)]
    if not target.is_complex:
        operand = operand.real  # as the `.real` of a fix; real numbers and tensors stay the same
    return torch.as_tensor(operand).to(target)


def without_kernel(outcome):
    """The format without a kernel that an outcome names, or None."""
    return outcome.removeprefix("no kernel for ") if outcome.startswith("no kernel for ") else None


_FORMAT_OF_CPP = (
    {name.capitalize().replace("Uint", "UInt"): name for name in DTYPES if "int" in name}
    | {name.capitalize(): name for name in DTYPES if name.startswith("float8")}
    | {"Bool": "bool", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64"}
    | {"BFloat16": "bfloat16", "Half": "float16", "Float": "float32", "Double": "float64"}
    | {"ComplexHalf": "complex32", "ComplexFloat": "complex64", "ComplexDouble": "complex128"}
)
