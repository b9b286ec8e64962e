"""The dtypes that frameworks give for functions of whole arrays: called live if installed, else read from oracles.

The calls are those of tools/oracles/arrays.py. An answer is `"refused"`, `"no kernel"` or the name of a dtype, with `*`
if it is weak.
"""

import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from conformance.measured import NUMBERS, cells, document, operand
from oracles import arrays as oracle
from oracles.tables import Framework
from rules.test_jax_flags import flags
from supremum.formats import FORMATS
from supremum.rules import get_rules

REFUSED, NO_KERNEL = "refused", "no kernel"
_CUMULATIVE = {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}
_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max")


def _functions(module, linalg, cat="concatenate"):
    found = {name: getattr(module, name) for name in ("matmul", "outer") if hasattr(module, name)}
    return found | {
        "vecdot": getattr(module, "vecdot", None) or linalg.vecdot,
        "concat": lambda a, b: getattr(module, cat)([a, b]),
        "stack": lambda a, b: module.stack([a, b]),
        "diff": lambda a, b: module.diff(a, prepend=b),
        "tensordot": lambda a, b: module.tensordot(a, b, 1),
        "solve": linalg.solve,
    }


def numpy_asked():
    return Framework(
        name="numpy",
        version=np.__version__,
        codes={row.name: row.name for row in FORMATS},
        reductions={name: getattr(np, _CUMULATIVE.get(name, name)) for name in (*_REDUCTIONS, *_CUMULATIVE)},
        several=_functions(np, np.linalg) | {"cross": np.cross, "clip": lambda a, b: np.clip(a, b, b)},
        make=lambda value, name: np.asarray(value).astype(np.dtype(getattr(ml_dtypes, name, name))),
        name_of=lambda result: np.asarray(result).dtype.name,
        numbers=lambda result: np.asarray(result).astype("float64").tolist(),
    )


def torch_asked():
    import torch

    names = [row.name for row in FORMATS if isinstance(getattr(torch, row.name, None), torch.dtype)]
    shell = ("uint1", "uint2", "uint4", "int1", "int2", "int4")
    return Framework(
        name="torch",
        version=torch.__version__,
        codes={name: name for name in names if name not in (*shell, "float4_e2m1fn_x2")},
        reductions={name: getattr(torch, {"min": "amin", "max": "amax"}.get(name, name)) for name in _REDUCTIONS}
        | {name: lambda a, theirs=theirs: getattr(torch, theirs)(a, 0) for name, theirs in _CUMULATIVE.items()},
        several=_functions(torch, torch.linalg, "cat")
        | {"cross": torch.linalg.cross, "clip": lambda a, b: torch.clamp(a, b, b)},
        make=lambda value, name: torch.tensor(value).to(getattr(torch, name)),
        name_of=lambda result: str(result.dtype).removeprefix("torch."),
        numbers=lambda result: result.to(torch.float64).tolist(),
        kernel="not implemented for|not supported for",
    )


# JAX's flags for each rule set: `jax_enable_x64`, `jax_explicit_x64_dtypes` and `jax_numpy_dtype_promotion`.
JAX_FLAGS = {
    f"jax-{'strict-' * (promotion == 'strict')}{width}": (*flags, promotion)
    for promotion in ("standard", "strict")
    for width, flags in {"x64": (True, "warn"), "x32": (False, "warn"), "explicit-x64": (False, "allow")}.items()
}


def jax_asked(rules, names=None):
    wide = ("int64", "uint64", "float64", "complex128")
    known = [row.name for row in FORMATS if "complex32" not in row.name and ("x64" in rules or row.name not in wide)]
    names = [name for name in known if names is None or name in names]
    return Framework(
        name="jax",
        version=jax.__version__,
        codes=dict(zip(names, names, strict=True)),
        reductions={name: getattr(jnp, name) for name in (*_REDUCTIONS, *_CUMULATIVE)},
        several=_functions(jnp, jnp.linalg) | {"cross": jnp.cross, "clip": lambda a, b: jnp.clip(a, b, b)},
        make=lambda value, name: jnp.asarray(value).astype(name),
        name_of=lambda result: result.dtype.name + "*" * jax.typeof(result).weak_type,
        numbers=lambda result: np.asarray(result).astype("float64").tolist(),
        # JAX 0.10 raises this error only when it compiles.
        kernel="lu does not accept dtype",
    )


def strict_asked():
    import array_api_strict as xp

    integers = [f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)]
    names = ["bool", *integers, "float32", "float64", "complex64", "complex128"]
    return Framework(
        name="array-api-strict",
        version=xp.__version__,
        codes=dict(zip(names, names, strict=True)),
        reductions={name: getattr(xp, name) for name in (*_REDUCTIONS, *_CUMULATIVE)},
        several=_functions(xp, xp.linalg, "concat")
        | {"cross": xp.linalg.cross, "outer": xp.linalg.outer, "tensordot": lambda a, b: xp.tensordot(a, b, axes=1)}
        | {"clip": lambda a, b: xp.clip(a, b, b)},
        make=lambda value, name: xp.astype(xp.asarray(value), getattr(xp, name)),
        name_of=lambda result: str(result.dtype).removeprefix("array_api_strict."),
        numbers=lambda result: np.asarray(result).tolist(),
    )


def live(asked):
    """Ask an installed framework: {(operation, left, right): answer}, and how reductions accumulate."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = oracle.measured(asked, NUMBERS)
    answers = {}
    for table, rows in found["tables"].items():
        name = table.split()[0]
        for left, row in rows.items():
            for right, cell in row.items():
                key = (left, right, "") if name == "unary" else (name, left, right)
                answers[key] = _answer(cell, asked.codes)
    return answers, found["accumulates"]


def live_jax(rules):
    """Ask JAX the same. One trace gives all dtypes; only the dtypes of accumulation need values."""
    asked, answers = jax_asked(rules), {}
    with flags(*JAX_FLAGS[rules]):
        traced = asked._replace(numbers=lambda _: 0.0)
        jax.eval_shape(lambda: answers.update(live(traced)[0]))
        accumulates = oracle.accumulations(asked)
    return answers, accumulates


def measured(framework, mode=None):
    """Read the same answers from the oracle of a framework, and the framework's version."""
    found = document(f"{framework}-arrays")
    tables = found if mode is None else found["modes"][mode]
    answers = {
        (operation, full(left, found["codes"]), full(right, found["codes"])): _answer(cell, found["codes"])
        for (operation, _, left, right), cell in cells(tables["tables"], tables["columns"])
    }
    accumulates = {
        name: {found["codes"][code]: how for code, how in row.items()} for name, row in tables["accumulates"].items()
    }
    return answers, accumulates, found["version"]


def full(code, codes):
    """Spell out a code: `"f4[]"` becomes `"float32[]"`."""
    return codes.get(code.removesuffix("[]"), code.removesuffix("[]")) + "[]" * code.endswith("[]")


def _answer(cell, codes):
    if cell in ("-", "n"):
        return REFUSED if cell == "-" else NO_KERNEL
    return codes[cell.removesuffix("*")] + "*" * cell.endswith("*")


def ours(rules, operation, left, right):
    """The answer of one of our rule sets."""
    bounds = (right, right) if operation == "clip" else (right,) if right else ()
    result = get_rules(rules).decide(operation, [operand(name) for name in (left, *bounds)]).result
    return REFUSED if result is None else str(result.dtype) + "*" * result.weak
