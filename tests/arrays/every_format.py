"""Call every function of a namespace on every format, with empty and other arrays. XLA may abort the process.

    python every_format.py LIBRARY [FUNCTION ...]

Prints a line before each function, and a line for each call that raises an error outside Supremum's hierarchy.
"""

import importlib
import inspect
import sys
import warnings

import numpy as np

import supremum
from supremum.errors import SupremumError
from supremum.formats import FORMATS

SHAPES = {"jax": ((2, 2), (0, 2))}  # JAX compiles for each shape
ALL_SHAPES = ((2, 2), (0, 2), (2,), (0,), ())


def values(xp, row, shape):
    """Values for arguments, by the names of the parameters."""
    x = xp.asarray(np.full(shape, min(1, row.max), row.dtype))
    where = xp.asarray(np.zeros(shape, bool))
    return {
        "x": x, "x1": x, "x2": x, "a": x, "b": x, "obj": x, "arrays": (x, x), "arrays_and_dtypes": (x, x), "A": x,
        "condition": where, "indices": xp.asarray(np.zeros(1, "int32")), "values": x, "fill_value": 1, "shape": shape,
        "repetitions": (2,), "repeats": 2, "shift": 1, "source": 0, "destination": 0, "axes": (0,), "axis": 0,
        "dtype": row.dtype, "type": row.dtype, "from_": row.dtype, "to": row.dtype, "kind": "numeric", "n": 2,
        "start": 0, "stop": 2, "num": 3, "n_rows": 2, "k": 0, "min": x, "max": x, "seed": 0, "element": x,
        "test_elements": x, "object": x, "array": x, "m": x, "M": x, "arr": x, "prototype": x, "reps": (2,),
        "subscripts": "...,...", "operands": (x, x), "points": x, "pad_width": 1, "q": 0.5,
    }  # fmt: skip


def functions(xp):
    """The functions of a namespace and of its extensions, by name."""
    found = {}
    for name in dir(xp):
        thing = getattr(xp, name)
        if name in ("linalg", "fft"):
            found |= {f"{name}.{each}": getattr(thing, each) for each in dir(thing) if callable(getattr(thing, each))}
        elif callable(thing) and not isinstance(thing, type) and not name.startswith("_"):
            found[name] = thing
    return found


def parameters(name, function):
    """The parameters of a function, or of NumPy's function of the same name if it has no signature."""
    try:
        return inspect.signature(function).parameters.values()
    except ValueError:
        return inspect.signature(functions(supremum.namespace("numpy"))[name]).parameters.values()


def call(name, function, given, chosen=None):
    """Call a function with its required arguments, and with the chosen one; return its result."""
    args, kwargs = [], {}
    for each in parameters(name, function):
        if each.kind is each.VAR_POSITIONAL:
            several = given.get(each.name, (given["x"],))
            args += several if each.name != chosen else [several]
        elif each.kind is each.VAR_KEYWORD or (each.default is not each.empty and each.name != chosen):
            continue
        elif each.kind is each.KEYWORD_ONLY or each.default is not each.empty:
            kwargs[each.name] = given[each.name]
        else:
            args.append(given[each.name])
    result = function(*args, **kwargs)
    for each in result if isinstance(result, (list, tuple)) else (result,):
        if hasattr(each, "unwrap") and each.backend.name == "jax":
            each.unwrap().block_until_ready()
    return result


def main():
    warnings.simplefilter("ignore")
    library, *chosen = sys.argv[1:]
    module = importlib.import_module(library)
    xp = supremum.namespace(library)
    for count, (name, function) in enumerate(functions(xp).items()):
        if library == "jax" and count % 25 == 0:
            module.clear_caches()  # programs of all functions would take more than 4 GB
        if chosen and name not in chosen:
            continue
        print("begun", name, flush=True)
        for row in FORMATS:
            for shape in SHAPES.get(library, ALL_SHAPES):
                try:
                    given = values(xp, row, shape)
                except SupremumError:
                    continue
                except Exception as error:
                    print("wrong", "asarray", row, shape, type(error).__name__, str(error).split("\n")[0][:120])
                    continue
                try:
                    call(name, function, given)
                except (SupremumError, NotImplementedError):
                    pass
                except Exception as error:
                    print("wrong", name, row, shape, type(error).__name__, str(error).split("\n")[0][:120], flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
