"""The traceback of a refusal shows the user's line, at most two lines of this library, and no other error."""

import operator
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from optional_packages import import_or_skip
from supremum import SupremumError, asarray, explain, namespace, ops, result_type, use_rules
from supremum.arrays import ArrayVariable

_PACKAGE = str(Path(supremum.__file__).parent)


def _operands(library):
    if library == "torch":
        torch = import_or_skip("torch")
        return torch.ones(2, dtype=torch.int8), torch.ones(2)
    ones = {"numpy": np, "jax": jnp}[library].ones
    return ones(2, "int8"), ones(2, "float32")


# Each takes an int8 and a float32 array of the library.
CALLS = {
    "array + array": lambda a, b: asarray(a) + asarray(b),
    "raw + array": lambda a, b: a + asarray(b),
    "array + number": lambda a, b: 0.5 + asarray(a),
    "number < array": lambda a, b: 0.5 < asarray(a),  # noqa: SIM300
    "raw < array": lambda a, b: a < asarray(b),
    "divmod": lambda a, b: divmod(asarray(a), asarray(b)),
    "matmul": lambda a, b: asarray(a) @ asarray(b),
    "operator in place": lambda a, b: operator.iadd(asarray(a), asarray(b)),
    "raw in place": lambda a, b: operator.iadd(a, asarray(b)),
    "in": lambda a, b: 0.5 in asarray(a),
    "method": lambda a, b: asarray(a).clip(0.5, asarray(b)),
    "ops": lambda a, b: ops.add(a, asarray(b)),
    "namespace": lambda a, b: namespace(asarray(a).backend.name).isclose(a, asarray(b)),
    "variable": lambda a, b: ArrayVariable(a).assign_add(b),
    "variable in place": lambda a, b: operator.iadd(ArrayVariable(a), b),
    "element of a variable": lambda a, b: operator.setitem(ArrayVariable(a), 0, 0.5),
    "ufunc": lambda a, b: np.add(asarray(a), asarray(b)),
    "ufunc of matrices": lambda a, b: np.matmul(asarray(a), asarray(b)),
    "function of NumPy": lambda a, b: np.concatenate([asarray(a), asarray(b)]),
    "no operand": lambda a, b: ops.add(asarray(a), [0.5]),
    "result_type": lambda a, b: result_type(a, b),
    "result_type of no operand": lambda a, b: result_type(a, [0.5]),
    "explain": lambda a, b: explain(a, b).dtype,
    "asarray": lambda a, b: asarray(object()),
}
OF_LIBRARY = {
    "numpy": {
        "element": lambda a, b: operator.setitem(asarray(a), 0, 0.5),
        "ufunc with out": lambda a, b: np.add(asarray(a), asarray(b), out=a),
        "ufunc.at": lambda a, b: np.add.at(asarray(a), 0, 0.5),
    },
    "jax": {
        "at": lambda a, b: asarray(a).at[0].add(b[0]),
        "jit": lambda a, b: jax.jit(operator.add)(asarray(a), asarray(b)),
    },
    "torch": {
        "function of PyTorch": lambda a, b: import_or_skip("torch").add(a, asarray(b)),
        "method in place": lambda a, b: a.add_(asarray(b)),
    },
}


@pytest.mark.parametrize("library", OF_LIBRARY)
@pytest.mark.parametrize("rules", ["array-api", "tf-rfc-none", "numpy"])
def test_a_refusal_shows_the_line_of_the_user_and_at_most_two_of_ours(rules, library):
    wrong, count = [], 0
    with use_rules(rules):
        for name, call in (CALLS | OF_LIBRARY[library]).items():
            a, b = _operands(library)
            try:
                call(a, b)
            except SupremumError as error:
                text = "".join(traceback.format_exception(error))
                count += 1
                if text.count(_PACKAGE) > 2 or text.count("Traceback") > 1:
                    wrong.append((name, text))
    assert not wrong, wrong[0]
    assert count > len(CALLS) * (1 if rules == "array-api" else 0.2)


def test_errors_in_functions_of_the_user_keep_their_frames():
    def refused(element):
        return element + np.float32(1)

    x = asarray(jnp.ones(2, "int8"))
    with use_rules("array-api"), pytest.raises(SupremumError) as caught:
        x.at[0].apply(refused)
    assert "return element + np.float32(1)" in "".join(traceback.format_exception(caught.value))
    other = np.ones(2, "int8")
    with use_rules("array-api"), pytest.raises(SupremumError) as caught:
        namespace("numpy").apply_along_axis(lambda row: asarray(row) + np.float32(1), 0, other)
    assert "asarray(row) + np.float32(1)" in "".join(traceback.format_exception(caught.value))
