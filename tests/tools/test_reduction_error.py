"""`tools/reduction_error.py` measures the errors that docs/distributed.md lists."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import reduction_error
from supremum.mixed_precision import DynamicLossScale

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SIZES = (1, 2, 4, 8, 16, 32, 64)


@cache
def found():
    return reduction_error.figures(*reduction_error.replica_gradients(64, steps=0), SIZES)


@pytest.mark.parametrize("order", ["ring", "tree"])
def test_float32_has_smaller_errors_than_float16_and_float16_than_bfloat16(order):
    by_dtype = {dtype: ways["divide first"][order][-1] for dtype, ways in found()["error"].items()}
    assert 1000 * by_dtype["float32"] < by_dtype["float16"] < by_dtype["bfloat16"] / 5


def test_dividing_first_avoids_overflow_and_errors_grow_around_a_ring():
    for dtype in ("float32", "float16", "bfloat16"):
        errors = found()["error"][dtype]["divide first"]
        assert None not in errors["ring"] + errors["tree"]
        assert np.all(np.diff(errors["ring"][1:]) > 0)
        assert errors["ring"][-1] > 1.5 * errors["tree"][-1] or dtype == "float32"


def test_summing_first_overflows_in_float16_only():
    errors = found()["error"]
    for order in ("ring", "tree"):
        assert errors["float16"]["sum first"][order][-1] is None
        for dtype in ("float32", "bfloat16"):  # a division by a power of two rounds nothing there
            assert errors[dtype]["sum first"][order] == errors[dtype]["divide first"][order]


def test_noise_falls_with_the_square_root_of_the_replicas():
    noise = np.asarray(found()["noise"])
    np.testing.assert_allclose(noise, noise[0] / np.sqrt(SIZES))


def test_the_scale_is_halved_until_float16_gradients_are_finite(monkeypatch):
    monkeypatch.setattr(reduction_error, "DynamicLossScale", lambda: DynamicLossScale(2.0**20))
    gradients, scale = reduction_error.replica_gradients(8, steps=0)
    assert 2.0**12 <= scale < 2.0**20
    assert 2.0**14 < np.abs(gradients).max() < 2.0**16
    assert found()["loss_scale"] == 2.0**15


def test_both_orders_round_after_each_addition():
    parts = np.float16([2048, 1, 1, 1])  # float16 cannot hold 2049
    assert (float(reduction_error.ring(parts)), float(reduction_error.tree(parts))) == (2048, 2050)
    ones = np.ones((512, 1), "float32")
    assert [float(reduction_error.reduced(ones, "bfloat16", "sum first", order)[0]) for order in ("ring", "tree")] == [
        0.5,
        1,
    ]


def test_the_picture_is_reproducible(tmp_path):
    document = {"replicas": list(SIZES), "figures": {"the first step": found()}}
    reduction_error.draw(tmp_path / "picture.svg", document)
    drawn = (tmp_path / "picture.svg").read_bytes()
    assert b"<svg" in drawn
    reduction_error.draw(tmp_path / "picture.svg", document)
    assert (tmp_path / "picture.svg").read_bytes() == drawn


def test_the_table_of_the_guide_has_the_measured_errors():
    document = json.loads((ROOT / "docs/pictures/reduction_error.json").read_text("utf-8"))
    guide = (ROOT / "docs/distributed.md").read_text("utf-8")
    for count in (8, 64, 512, 4096):
        at = document["replicas"].index(count)
        moments = document["figures"].values()
        worst = [
            max(each["error"][dtype]["divide first"][order][at] for each in moments)
            for dtype in ("float32", "float16", "bfloat16")
            for order in ("ring", "tree")
        ]
        noise = min(each["noise"][at] for each in moments)
        cells = " | ".join(f"{each:.0e}".replace("e-0", "e-") for each in [*worst, noise])
        assert f"| {count:,} | {cells} |" in guide
    for each in document["figures"].values():
        assert None not in each["error"]["float16"]["divide first"]["ring"]
        assert max(each["flushed"]["float16"]["divide first"]["ring"]) < 0.0012
