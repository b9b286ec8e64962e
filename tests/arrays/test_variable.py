"""Variables: every cell of the RFC's tables of assign_add on every library, and all other forms of assignment."""

import copy
import itertools
import json
import pathlib
import pickle
from importlib.util import find_spec

import jax
import numpy as np
import pytest

import supremum
from slowly import for_each
from supremum import Array, ArrayVariable, asarray
from supremum.arrays import ComputationError, InPlaceError, LibraryError, NarrowingError, RuntimeDtypeError
from supremum.decisions import PromotionError
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.rules.names import HOMES

ORACLE = json.loads((pathlib.Path(__file__).parent.parent / "conformance/oracles/tensorflow-rfc-431.json").read_text())
MODES = ("ALL", "SAFE", "NONE")
NUMBERS = {"i*": 1, "f*": 1.0, "c*": 1j}
LIBRARIES = ["numpy", "jax", *(["torch"] if find_spec("torch") else [])]
every_library = pytest.mark.parametrize("library", LIBRARIES)
# The dtypes without kernels: torch has none for unsigned integers of more than 8 bits.
NO_KERNEL = {"torch": {"uint16", "uint32", "uint64"}}


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def _ones(name, library):
    return asarray(np.ones(2, as_format(name).dtype), library=library)


def _arguments(name, library):
    """The arguments for a column: a Python number, or an array of the library and the same array of NumPy."""
    if name in NUMBERS:
        return [NUMBERS[name]]
    return [_ones(name, library), np.ones(2, as_format(name).dtype)]


def _in_place(variable, argument):
    variable += argument
    return variable


WAYS = {
    "assign_add": (ArrayVariable, ArrayVariable.assign_add),
    "+=": (ArrayVariable, _in_place),
    "+= of an Array": (Array, _in_place),
}


def _added_by_jax(array, argument):
    """Trace an addition, which gives its dtype; JAX would compile each addition that runs."""
    return jax.eval_shape(lambda array: _in_place(array, argument), array)


@for_each(
    "library, way, mode",
    [
        case
        for case in itertools.product(LIBRARIES, WAYS, MODES)
        if case[0] != "jax" or case[2] == "NONE" or case[1] == "+= of an Array"
    ],
    one_in=20,
    one_slow_in=4,
)
def test_assign_add_agrees_with_every_cell_of_the_rfc(library, way, mode):
    make, add = WAYS[way]
    is_traced = library == "jax" and mode != "NONE"
    if is_traced:
        add = _added_by_jax
    wrong, lacking = {}, set()
    with supremum.use_rules(f"tf-rfc-{mode.lower()}"):
        for cell, expected in ORACLE[f"assign_add_{mode}"].items():
            row, column = cell.split(",")
            for argument in _arguments(column, library):
                variable = make(_ones(row, library))
                try:
                    found = add(variable, argument)
                    answer = str(found.dtype)
                    assert is_traced or np.asarray(found)[0] == (1 if row == "bool" else 1 + NUMBERS.get(column, 1))
                except PromotionError:
                    answer = None
                    assert str(variable.dtype) == row
                    assert np.asarray(variable)[0] == 1
                except RuntimeDtypeError:
                    lacking |= {row, column} & NO_KERNEL.get(library, set())
                    assert {row, column} & NO_KERNEL[library]
                    continue
                if answer != expected.get("result"):
                    wrong[cell] = (answer, expected)
    assert not wrong
    assert lacking <= NO_KERNEL.get(library, set())


@for_each("rules", HOMES)
def test_assignments_that_lose_information_raise_under_all_rules(rules):
    with supremum.use_rules(rules):
        variable = ArrayVariable(np.ones(2, "int8"))
        for value in (np.full(2, 1.5), 1.5, 1000, -129, np.ones(2, "int16"), 2j, np.array([300, 1])):
            for assign in (variable.assign, variable.assign_add, variable.assign_sub, variable.assign_mul):
                with pytest.raises(PromotionError):
                    assign(value)
        assert repr(variable) == "ArrayVariable([1, 1], dtype=int8)"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns about the operation that is then refused
@every_library
@for_each("rules, kept", [("torch", True), ("paddle", True), ("numpy", False)])
@pytest.mark.parametrize(
    ("dtype", "wide", "beyond"), [("int8", "int64", 1000), ("float16", "float64", 1e6), ("bfloat16", "float64", 1e300)]
)
def test_assignments_of_0d_arrays_out_of_range_raise(rules, kept, dtype, wide, beyond, library):
    """The frameworks' own operators wrap these values or make them infinite."""
    variable = ArrayVariable(np.zeros(3, as_format(dtype).dtype), library=library)
    array = Array(np.zeros(3, as_format(dtype).dtype))
    for value in (np.array(beyond, wide), asarray(np.array(-beyond, wide), library=library)):
        with supremum.use_rules(rules):
            for assign in (variable.assign_add, variable.assign_mul, lambda v: variable.__setitem__(0, v)):
                with pytest.raises((InPlaceError, NarrowingError)):
                    assign(value)
            with pytest.raises(InPlaceError):
                array[0] = np.asarray(value)
    assert np.asarray(variable).tolist() == np.asarray(array).tolist() == [0, 0, 0]
    with supremum.use_rules(rules):
        for value in (np.array(3, wide), *([np.array(np.inf, wide)] if dtype != "int8" else ())):
            if kept:
                variable[0] = value
                assert np.asarray(variable)[0] == value


@every_library
def test_assignments_change_the_variable_and_not_earlier_values(library):
    variable = ArrayVariable(np.arange(3, dtype="float32"), library=library, name="w")
    before = variable.value
    assert variable.assign(np.ones(3, "float32")) is variable
    variable.assign_add(2).assign_sub(0.5).assign_mul(np.full(3, 2, "float32"))
    assert np.asarray(variable).tolist() == [5, 5, 5]
    assert np.asarray(before).tolist() == [0, 1, 2]  # values read earlier do not change
    first = variable
    variable /= 2
    variable -= 1.5
    variable[1] = 7
    assert first is variable
    square = ArrayVariable(np.full((2, 2), 1, "float32"), library=library)
    value = square.value
    square @= square
    assert np.asarray(square).tolist() == [[2, 2], [2, 2]]
    assert np.asarray(value).tolist() == [[1, 1], [1, 1]]
    assert np.asarray(variable).tolist() == [1, 7, 1]
    assert isinstance(variable + 1, Array)
    assert not isinstance(variable + 1, ArrayVariable)
    assert not isinstance(variable + variable, ArrayVariable)
    assert str(variable.backend.name) == library
    assert "name='w'" in repr(variable)


@pytest.mark.parametrize("options", [{}, *({"library": name} for name in LIBRARIES)], ids=str)
def test_variable_does_not_share_memory_with_its_initial_or_earlier_values(options):
    start = np.zeros(2, "float32")
    variable = ArrayVariable(start, **options)
    variable.assign_add(1)
    variable[0] = 5
    assert start.tolist() == [0, 0]
    value = variable.value
    variable[1] = 9
    assert np.asarray(value).tolist() == [5, 1]


@every_library
def test_assignments_refuse_other_shapes_and_objects(library):
    variable = ArrayVariable(np.zeros((2, 3), "float32"), library=library)
    for value in (np.zeros((4, 2, 3), "float32"), np.zeros((3, 2), "float32"), 1.0):
        with pytest.raises(ArgumentError, match="shape"):
            variable.assign(value)
    with pytest.raises(ArgumentError, match="shape"):
        variable.assign_add(np.zeros((4, 2, 3), "float32"))
    variable.assign_add(np.ones(3, "float32"))  # broadcasting to the variable's shape is allowed, as in +=
    for value in ([[1.0]], None, "a"):
        with pytest.raises(OperandError):
            variable.assign(value)
        with pytest.raises(OperandError):
            variable.assign_add(value)
    assert np.asarray(variable).tolist() == [[1, 1, 1]] * 2


def test_numpy_variable_refuses_jax_arrays_with_a_working_fix():
    variable = ArrayVariable(np.zeros(2, "float32"))
    stranger = asarray(np.ones(2, "float32"), library="jax")
    for assign in (variable.assign, variable.assign_add):
        with pytest.raises(LibraryError, match=r"supremum.namespace\('numpy'\).asarray\(b\)") as error:
            assign(stranger)
        fixed = eval(str(error.value).partition("use ")[2], {"supremum": supremum, "b": stranger})
        assign(fixed)
    assert np.asarray(variable).tolist() == [2, 2]


def test_variable_of_a_python_number_has_a_default_dtype_and_is_not_weak():
    assert repr(ArrayVariable(1)) == "ArrayVariable(1, dtype=int64)"
    assert repr(ArrayVariable(1, dtype="bfloat16")) == "ArrayVariable(1, dtype=bfloat16)"
    with supremum.use_rules("torch"):
        assert repr(ArrayVariable(1.5)) == "ArrayVariable(1.5, dtype=float32)"


@every_library
def test_copies_and_pickles_are_independent(library):
    variable = ArrayVariable(np.arange(2, dtype="int16"), library=library, name="v")
    for other in (copy.copy(variable), copy.deepcopy(variable), pickle.loads(pickle.dumps(variable))):
        assert repr(other) == repr(variable)
        other.assign_add(1)
        assert np.asarray(variable).tolist() == [0, 1]


def test_assignment_of_a_traced_value_raises():
    variable = ArrayVariable(np.zeros(2, "float32"), library="jax")
    for assign in (variable.assign, variable.assign_add):
        with pytest.raises(ArgumentError, match="keep it after the trace"):
            jax.jit(assign)(np.ones(2, "float32"))
    assert np.asarray(variable).tolist() == [0, 0]
    assert np.asarray(jax.jit(lambda x: variable + x)(np.ones(2, "float32"))).tolist() == [1, 1]


def test_a_list_nested_too_deeply_is_refused_as_by_asarray():
    deep = 1.0
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ComputationError, match="recursion"):
        ArrayVariable(deep)
