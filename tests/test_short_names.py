"""Short names of formats are understood wherever a format is asked for."""

import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import RuleSet, analysis, explain, mixed_precision, nn, training
from supremum.mixed_precision import Policy, PolicyMap, cast_floating
from supremum.tracing import parse_arguments

X = jnp.ones((2, 3))
XP = supremum.namespace("numpy")
# How a format is given by its name, and what the answer depends on.
PLACES = {
    "operands": lambda f32, bf16, i8: explain(bf16, i8, into=f32, operation="add", rules="torch").to_dict(),
    "result_type": lambda f32, bf16, i8: supremum.result_type(f32, bf16, i8),
    "promote_types": lambda f32, bf16, i8: supremum.promote_types(bf16, i8),
    "can_promote": lambda f32, bf16, i8: supremum.can_promote(bf16, i8, rules="jax-strict"),
    "asarray": lambda f32, bf16, i8: supremum.asarray([1, 2], dtype=bf16).dtype,
    "variable": lambda f32, bf16, i8: supremum.ArrayVariable(np.ones(2), dtype=f32).dtype,
    "astype": lambda f32, bf16, i8: supremum.asarray([1]).astype(f32).dtype,
    "namespace": lambda f32, bf16, i8: [
        XP.zeros(2, dtype=bf16).dtype, XP.arange(3, dtype=f32).dtype, XP.astype(XP.ones(2), bf16).dtype,
        XP.sum(XP.ones(2), dtype=f32).dtype, XP.finfo(f32).max, XP.isdtype(np.dtype("int8"), "integral"),
    ],
    "tables": lambda f32, bf16, i8: analysis.rule_table("torch", types=f"{f32},{bf16},{i8}").data(),
    "comparison": lambda f32, bf16, i8: analysis.compare("torch", "numpy", types=[f32, i8, bf16]).data(),
    "lattice": lambda f32, bf16, i8: analysis.lattice_svg("jax-x64", path=(i8, bf16)),
    "own rules": lambda f32, bf16, i8: supremum.result_type(
        "int8", 1.5, rules=RuleSet.from_lattice(
            "mine", {i8: ["float*"], "float*": [bf16], bf16: [f32]}, defaults={"float*": bf16}
        ),
    ),
    "policies": lambda f32, bf16, i8: [
        Policy(bf16).name, Policy(f"variable={f32},compute={bf16},output={f32},reduce={f32}").name,
        str(PolicyMap({".*": bf16})),
    ],
    "cast_floating": lambda f32, bf16, i8: cast_floating(X, bf16).dtype,
    "layers": lambda f32, bf16, i8: [
        nn.Dense(4, dtype=bf16, param_dtype=f32)(X).dtype, nn.functional.softmax(X, dtype=bf16).dtype,
        nn.Input((3,), dtype=bf16).dtype, nn.InputSpec(dtype=f32).dtype,
    ],
    "floatx": lambda f32, bf16, i8: (mixed_precision.set_floatx(bf16), mixed_precision.floatx(),
                                     mixed_precision.set_floatx("float32"))[1],
    "losses": lambda f32, bf16, i8: str(training.MeanSquaredError(dtype=bf16)),
    "casts": lambda f32, bf16, i8: parse_arguments(f"{f32}[8,2], {bf16}[], {i8}[3]"),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_short_names_mean_the_same_as_full_names(place):
    ask = PLACES[place]
    full = ask("float32", "bfloat16", "int8")
    assert ask("f32", "bf16", "i8") == full
    assert full is not None
