"""Measure what Keras stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import os
import warnings
from typing import Any

from assignment_cells import assign_in, document, measured, numbers
from extract_oracles import SCALARS
from oracle_keras import CODES


def keras() -> dict[str, Any]:
    """Measure Keras' variable on the JAX backend, which narrows 64 bits to 32; tensors cannot be written into."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax.numpy as jnp
    import keras as k

    warnings.simplefilter("ignore")
    # Leave out dtypes that JAX narrows: there are no tensors of them.
    codes = {code: name for code, name in CODES.items() if jnp.ones((), name).dtype.name == name}
    code_of = {name: code for code, name in codes.items()}
    keys = [*codes, *SCALARS]

    def variable(name: str) -> Any:
        return k.Variable(jnp.ones((), name), dtype=name)

    methods = {"add": "assign_add", "subtract": "assign_sub", "assign": "assign"}
    writes = {f"{name} variable": assign_in(method) for name, method in methods.items()}
    cells = measured(
        writes,
        keys,
        lambda key: variable(codes[key]),
        lambda key: SCALARS[key] if key in SCALARS else jnp.ones((), codes[key]),
        lambda found: code_of[found.value.dtype.name],
    )
    values = numbers(writes, variable, lambda found: f"{found.value.dtype.name} {found.value.item()}")
    return document("keras", k.__version__, codes, cells, keys, values)
