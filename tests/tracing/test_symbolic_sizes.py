"""Reports on programs with symbolic sizes contain expressions."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from supremum.mixed_precision import autocast
from supremum.tracing import casts, forbid_casts

(BATCH, LENGTH) = export.symbolic_shape("batch, length")


def exported(function, *shapes):
    """The arguments of a function during its export."""
    found = []

    def traced(*args):
        found.append(function(*args))
        return args[0]

    export.export(jax.jit(traced))(*(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))
    return found[0]


def program(x, y):
    total = lax.scan(lambda c, row: (c + row.astype("bfloat16").sum(), None), jnp.bfloat16(0), x)[0]
    return total + (x.astype("float16") * jnp.ones(3)).sum() + y.astype("bfloat16").sum() + jnp.ones(7, "int8") * 1.5


@pytest.mark.parametrize("view", [str, repr, lambda r: r.to_html(), lambda r: r.to_json(), lambda r: r._repr_html_()])
def test_a_report_with_symbolic_sizes_has_every_format(view):
    report = exported(lambda x, y: casts(program)(x, y), (BATCH, 3), (LENGTH,))
    assert "batch" in view(report)
    assert "length" in view(report)


def test_reports_show_symbolic_expressions():
    report = exported(lambda x, y: casts(program)(x, y), (BATCH, 3), (LENGTH,))
    data = json.loads(report.to_json())
    assert ["batch", 3] in [cast["shape"] for cast in data["casts"]]
    assert {"6*batch", "18*batch", "6*length"} & {str(cast["bytes"]) for cast in data["casts"]}
    assert any(cast.times == BATCH for cast in report)
    assert "batch" in str(data["total"]["bytes"])
    assert isinstance(report.casts[-1].bytes, int)  # numbers come last
    for index in range(len(report)):
        assert str(report.explain(index))
    assert report.widening.title
    assert "batch" in str(report.title)


def test_autocast_and_forbid_casts_accept_symbolic_sizes():
    weights = jnp.ones((3, 3))
    report = exported(lambda x: autocast(lambda x: jnp.tanh(x @ weights)).report(x), (BATCH, 3))
    assert "bfloat16  1 x dot_general" in report.summary()
    assert str(report)
    assert exported(lambda x: forbid_casts()(lambda x: x * 2)(x).dtype, (BATCH, 3)) == "float32"
    found = export.export(jax.jit(autocast(lambda x: jnp.tanh(x @ weights))))(
        jax.ShapeDtypeStruct((BATCH, 3), "float32")
    )
    assert found.call(jnp.ones((5, 3))).shape == (5, 3)
