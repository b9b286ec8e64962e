"""Call everything on an `Array` of NumPy or PyTorch and print the results. Runs in a separate process.

The first argument is the library, and the second a number n: one pair of operands in n is called. With `jax` as the
third argument, JAX is imported first. Further arguments are flags of JAX and their values.
"""

import itertools
import json
import operator
import sys
import warnings

import numpy as np

import supremum
from supremum import Array, ArrayVariable, ops
from supremum.arrays import ELEMENTWISE_OPERATIONS
from supremum.arrays.array_api_names import FFT, FUNCTIONS, LINALG
from supremum.arrays.functions.losses import LOSSES

NUMBERS = (True, 3, 2.5, 1e300, 1j)
VALUES = {
    "float64": [1e300, 0.1],
    "int64": [2**40, 3],
    "uint64": [2**63, 5],
    "complex128": [1e300 + 1j, 0.1],
    "float32": [1.5, -2],
    "int8": [100, -3],
    "uint32": [2**32 - 1, 7],
    "bool": [True, False],
}
WIDE = ("float64", "int64", "uint64", "complex128")
BINARY = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"),
    *("eq", "ne", "lt", "le", "gt", "ge", "matmul", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"),
    *("iand", "ior", "ixor", "ilshift", "irshift", "imatmul"),
]
UNARY = ["pos", "neg", "abs", "invert"]
RANDOM = ("empty", "empty_like")


def written(result):
    """The library, dtype, weak flag and values of a result, in a form that JSON can hold."""
    if isinstance(result, (tuple, list)):
        return [written(each) for each in result]
    if isinstance(result, Array):
        return [result.backend.name, str(result.dtype), result.weak_type, repr(result.tolist())]
    return str(result)


def said(function, *args):
    """The written result of a call, or the type of its error."""
    try:
        return written(function(*args))
    except Exception as error:
        return type(error).__name__


def programs(xp, one_in):
    """List (name, result) for every call with one pair of operands in `one_in`."""

    def made(name):
        return xp.asarray(np.array(VALUES[name], name))

    def set_item(name, value):
        array = made(name)
        array[0] = value
        return array

    arrays = {name: made(name) for name in VALUES if hasattr(xp, name)}
    weak = {f"weak {number!r}": xp.asarray(number) for number in NUMBERS[1:]}
    operands = arrays | weak | {repr(number): number for number in NUMBERS}
    wide = [name for name in WIDE if name in arrays]
    for a, b in itertools.islice(itertools.product(operands, repeat=2), 0, None, one_in):
        if a not in wide and b not in wide and not (a in weak and b in operands):
            continue
        for name in BINARY:
            left = made(a) if a in arrays else operands[a]  # a new array, because in-place operators change it
            yield f"{name}({a}, {b})", said(getattr(operator, name), left, operands[b])
        for name, applied in ELEMENTWISE_OPERATIONS.items():
            if applied.operation.arity == 2 and name not in LOSSES:
                yield f"ops.{name}({a}, {b})", said(getattr(ops, name), *(
                    (True, operands[a], operands[b]) if name == "where" else (operands[a], operands[b])
                ))  # fmt: skip
        for name in LOSSES:
            yield f"ops.{name}({a}, {b})", said(getattr(ops, name), operands[a], operands[b])
        yield f"result_type({a}, {b})", said(supremum.result_type, *((operands[a], operands[b])))
        yield f"clip({a}, {b})", said(xp.clip, operands[a], operands[b])
        if a in arrays:
            yield f"{a}[0] = {b}", said(set_item, a, operands[b])
            yield f"full_like({a}, {b})", said(xp.full_like, operands[a], operands[b])
            yield f"ArrayVariable({a}).assign({b})", said(lambda x, y: ArrayVariable(x).assign(y), made(a), operands[b])
    for a in operands:
        for name in UNARY:
            yield f"{name}({a})", said(getattr(operator, name), operands[a])
        for name, applied in ELEMENTWISE_OPERATIONS.items():
            if applied.operation.arity == 1:
                yield f"ops.{name}({a})", said(getattr(ops, name), operands[a])
    spaces = {"": (xp, FUNCTIONS), "linalg.": (xp.linalg, LINALG), "fft.": (xp.fft, FFT)}
    for where, (space, names) in spaces.items():
        asked = itertools.product(sorted(set(names) - {*RANDOM}), operands)
        for name, a in itertools.islice(asked, 0, None, one_in):
            if (name, a) == ("repeat", "uint32"):
                continue  # as counts, these are 4 billion copies, which fill the memory
            x = operands[a]
            square = xp.reshape(xp.concat([x, x]), (2, 2)) if a in arrays else x
            for call in ((x,), (x, x), ([x, x],), (square,), (square, square), (3,), (3, 2.5), ((2,), x)):
                yield f"{where}{name}({a}, {len(call)})", said(getattr(space, name), *call)
    for number in NUMBERS:
        yield f"asarray([{number}])", said(xp.asarray, [number])
        yield f"full({number})", said(xp.full, (2,), number)


def main():
    library, one_in, *given = sys.argv[1:]
    if given:
        import jax

        for flag, value in zip(given[1::2], given[2::2], strict=True):
            jax.config.update(flag, value == "true" if value in ("true", "false") else value)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    xp = supremum.namespace(library)
    print(json.dumps(list(programs(xp, int(one_in)))))
    assert bool(given) == ("jax" in sys.modules)


if __name__ == "__main__":
    main()
