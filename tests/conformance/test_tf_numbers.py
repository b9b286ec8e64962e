"""Results of TensorFlow with Python numbers at the limits of dtypes, as tools/oracles/tensorflow.py measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from supremum import use_rules
from supremum.arrays import asarray, ops
from supremum.formats import as_format

ORACLE = json.loads((Path(__file__).parent / "oracles/tensorflow-numbers.json").read_text())


@pytest.mark.parametrize("mode", ORACLE["modes"])
def test_results_with_python_numbers_agree_with_tensorflow(mode):
    different = {}
    assert len(ORACLE["modes"][mode]) > 500
    with use_rules(f"tf-{mode}"), np.errstate(all="ignore"):
        for call, expected in ORACLE["modes"][mode].items():
            dtype, operation, text = call.split()
            array = asarray(np.array([3, 10]).astype(as_format(dtype).dtype))
            try:
                result = ops.FUNCTIONS[operation](array, json.loads(text))
                found = [str(result.dtype), *(str(each) for each in np.asarray(result).astype(float).tolist())]
            except TypeError:
                found = None
            if found != expected:
                different[call] = (found, expected)
    assert different == {}


def test_python_int_wraps_before_division():
    with use_rules("tf-off"), np.errstate(all="ignore"):
        assert np.asarray(asarray(np.array([3, 10], "uint8")) / 256).tolist() == [np.inf, np.inf]
