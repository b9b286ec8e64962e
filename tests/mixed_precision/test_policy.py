import copy
import dataclasses
import itertools
import json
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supremum import PromotionError
from supremum.errors import UnknownNameError
from supremum.formats import FORMATS, Kind
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, Policy, as_policy

FLOATS = [row.name for row in FORMATS if row.kind is Kind.FLOAT]
ROLES = "variable=float32,compute=bfloat16,output=float64,reduce=float16"
ROLES_IN_ORDER = "variable", "compute", "output", "reduce"
either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def dtypes_of(policy):
    roles = (policy.variable_dtype, policy.compute_dtype, policy.output_dtype, policy.reduce_dtype)
    return tuple(None if dtype is None else str(dtype) for dtype in roles)


@pytest.mark.parametrize(
    ("name", "dtypes", "scale"),
    [
        ("mixed_float16", ("float32", "float16", "float16", "float16"), DynamicLossScale()),
        ("mixed_bfloat16", ("float32", "bfloat16", "bfloat16", None), None),
        ("infer", ("float32", None, None, None), None),
        *((row.name, (row.name, row.name, row.name, None), None) for row in FORMATS),
    ],
)
def test_named_policies_have_the_dtypes_of_the_rfc(name, dtypes, scale):
    policy = Policy(name)
    assert (policy.name, str(policy), repr(policy)) == (name, name, f"Policy({name!r})")
    assert dtypes_of(policy) == dtypes
    assert policy.loss_scale == scale
    assert policy.should_cast_variables == (dtypes[0] != dtypes[1])


@pytest.mark.parametrize("order", list(itertools.permutations(ROLES.split(","))), ids=" ".join)
def test_every_role_has_a_separate_dtype_in_any_order(order):
    for text in (",".join(order), " , ".join(item.replace("=", " = ") for item in order)):
        policy = Policy(text)
        assert dtypes_of(policy) == ("float32", "bfloat16", "float64", "float16")
        assert (policy.name, policy) == (ROLES, Policy(ROLES))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("variable=float32,compute=float16", "mixed_float16"),
        ("compute=half,variable=f32,output=f16,reduce=f16", "mixed_float16"),
        ("variable=float32,compute=bfloat16,output=bfloat16", "mixed_bfloat16"),
        ("variable=int8,compute=int8", "int8"),
        ("variable=float16,compute=float16,output=float16", "float16"),
        ("variable=float32,compute=infer", "infer"),
        ("variable=float32,compute=float16,reduce=float32", "variable=float32,compute=float16,reduce=float32"),
        ("variable=bfloat16,compute=float16,reduce=float16", "variable=bfloat16,compute=float16"),
        ("reduce=float32,variable=float64,compute=infer", "variable=float64,compute=infer,reduce=float32"),
        ("variable=float32,compute=infer,output=float32", "variable=float32,compute=infer,output=float32"),
        ("variable=float16,compute=float16,reduce=float16", "variable=float16,compute=float16,reduce=float16"),
        ("variable=float32,compute=float32,output=int32", "variable=float32,compute=float32,output=int32"),
        ("variable==f4,compute=<f2", "mixed_float16"),
        ("=f4", "float32"),
        *((each, "float16") for each in (np.float16, jnp.float16, np.dtype("float16"))),
        *((each, "bfloat16") for each in (ml_dtypes.bfloat16, jnp.bfloat16)),
    ],
)
def test_texts_and_dtypes_have_one_canonical_name(text, name):
    assert Policy(text).name == name
    assert Policy(text) == Policy(name)
    assert hash(Policy(text)) == hash(Policy(name))


def test_policies_of_different_roles_have_different_names():
    computes = ["infer", "bfloat16", "float32", "float64"]
    outputs = reduces = [None, "bfloat16", "float32", "float64"]
    made = {}
    for roles in itertools.product(["float16", "float32", "float64"], computes, outputs, reduces):
        stated = zip(ROLES_IN_ORDER, roles, strict=True)
        policy = Policy(",".join(f"{role}={dtype}" for role, dtype in stated if dtype is not None))
        assert dtypes_of(Policy(policy.name)) == dtypes_of(policy)
        made.setdefault(policy.name, set()).add(dtypes_of(policy))
    assert len(made) > 100
    assert {name for name, dtypes in made.items() if len(dtypes) > 1} == set()


def test_the_loss_scale_is_dynamic_if_only_computation_is_float16():
    for variable, compute in itertools.product([*FLOATS, "int32"], [*FLOATS, "infer", "int32"]):
        policy = Policy(f"variable={variable},compute={compute}")
        narrow = compute == "float16" and variable != "float16"
        assert policy.loss_scale == (DynamicLossScale() if narrow else None)
        assert str(policy.reduce_dtype) == ("float16" if narrow else "None")
        assert policy.should_cast_variables == (variable != compute)
        assert policy == Policy(policy.name)


def test_the_loss_scale_can_be_set():
    assert Policy("mixed_float16", None).loss_scale is None
    assert Policy("mixed_float16", 128).loss_scale == FixedLossScale(128.0)
    assert Policy("float32", "dynamic").loss_scale == DynamicLossScale()
    assert repr(Policy("mixed_float16", None)) == "Policy('mixed_float16', loss_scale=None)"
    assert repr(Policy("mixed_float16", "dynamic")) == "Policy('mixed_float16')"
    for policy in (Policy("float32", 8), Policy(ROLES, "dynamic"), Policy("mixed_float16", None)):
        assert eval(repr(policy)) == policy


@pytest.mark.parametrize("name", ["float32", "float16", "infer", "mixed_float16"])
def test_an_explicit_none_differs_from_a_loss_scale_that_nobody_chose(name):
    explicit = Policy(name, None)
    assert not explicit.is_loss_scale_open
    assert Policy(name).is_loss_scale_open == (name != "mixed_float16")
    assert explicit != Policy(name)
    for same in (copy.copy(explicit), as_policy(explicit), pickle.loads(pickle.dumps(explicit)), eval(repr(explicit))):
        assert same == explicit


def test_policies_are_frozen_hashable_values():
    policy = Policy("mixed_float16")
    assert hash(policy) == hash(Policy("mixed_float16"))
    assert policy != Policy("mixed_float16", None)
    for field in dataclasses.fields(Policy):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, field.name, "float32")
    assert as_policy(policy) is policy
    for each in (policy, Policy(ROLES, 8)):
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == each


# Texts that are no policies, and what the error says.
MISTAKES = {
    "_infer": "is not supported: use 'infer'",
    "variable=float32": "needs compute: write variable=float32,compute=float32, for instance",
    "output=int8,reduce=float16": "needs variable and compute: write output=int8,",
    "variable=float32,compute": "'compute' must be role=dtype, where role is variable, compute, output or reduce",
    "variable=float32,compute=float16,": "'' must be role=dtype",
    "float32,bfloat16": "'float32' must be role=dtype",
    "variable=float32,compute=float16,compute=float16": "has compute twice: keep one",
    "variable=float32,compute=float16,ouput=float16": "unknown role 'ouput': did you mean 'output'",
    "params=float32,compute=float16": "unknown role 'params': choose from variable, compute, output, reduce",
    "=float32,compute=float16": "unknown role ''",
    "variable=float32,compute=bflaot16": "unknown compute dtype 'bflaot16': did you mean 'bfloat16'",
    "variable=float32,compute=infre": "did you mean 'infer'",
    "variable=infer,compute=float16": "unknown variable dtype 'infer'",
    "variable=float32,compute=float16,output=": "unknown output dtype ''",
    "variable=float32,compute=float16,reduce=int32": "reduce must be .*float32 or float64, got int32",
    "variable=float32,compute=float16,reduce=complex64": "got complex64",
    "variable=float32,compute=float16,reduce=None": "unknown reduce dtype 'None'",
}


def configured(**change):
    return lambda: Policy.from_config(Policy("float32").get_config() | change)


INVALID = [
    *((lambda text=text: Policy(text), ValueError, message) for text, message in MISTAKES.items()),
    *((lambda bad=bad: Policy(bad), UnknownNameError, "unknown policy")
      for bad in ("mixed_flaot16", "string", "float", "", None, 3, [], "Infer", "infer_")),
    (lambda: Policy("float32", "dynamik"), UnknownNameError, "unknown loss scale 'dynamik': did you mean 'dynamic'"),
    (lambda: Policy("float32", "none"), UnknownNameError, "choose from auto, dynamic"),
    (lambda: Policy("float32", True), TypeError, "a loss scale must be a LossScale, 'dynamic', a number or None"),
    (configured(nmae="float32"), ValueError, "unknown key of a policy's config 'nmae': did you mean 'name'"),
    (configured(name="flaot32"), ValueError, "did you mean 'float32'"),
    (configured(loss_scale={"class_name": "Fixed", "config": {}}), ValueError, "unknown class of loss scale"),
    (configured(loss_scale="dynamic"), TypeError, "must be a mapping, got 'dynamic'"),
    (lambda: Policy.from_config({"loss_scale": None}), ValueError, "must have 'name'"),
    (lambda: Policy.from_config({"name": None}), ValueError, "must have 'loss_scale'"),
    (lambda: Policy("infer").cast_to_compute([jnp.ones(2, "float8_e4m3fn"), jnp.ones(2, "float16")]), PromotionError,
     "float8_e4m3fn"),
]  # fmt: skip


def test_invalid_arguments_raise():
    for call, error, message in INVALID:
        with pytest.raises(error, match=message):
            call()


WORDS = ["variable", "compute", "output", "reduce", "float32", "bfloat16", "infer", "int8", "=", ",", " ", "x", "\0"]


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=12), st.lists(st.sampled_from(WORDS), max_size=16).map("".join)))
def test_any_text_is_a_policy_or_raises_a_value_error(text):
    try:
        policy = Policy(text)
    except ValueError:
        return
    assert Policy(policy.name) == policy


NAMES = ["mixed_float16", "mixed_bfloat16", "infer", ROLES, *(row.name for row in FORMATS)]
SCALES = ["auto", None, "dynamic", 8, DynamicLossScale(6.0, 3, 1.5, 2.0, 96.0, 5)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_configs_survive_json(name, scale):
    policy = Policy(name, scale)
    assert Policy.from_config(json.loads(json.dumps(policy.get_config()))) == policy


TREE = {
    "x": np.ones(2, np.float64), "s": np.float32(1), "j": jnp.ones(2, jnp.bfloat16), "h": jnp.ones((), jnp.float16),
    "i": np.arange(2), "k": jax.random.key(0), "b": np.array([True]), "c": np.ones(1, np.complex64), "p": 1e-8,
    "t": np.array(["a"]), "n": None, "name": "dense",
}  # fmt: skip


@pytest.mark.parametrize(
    ("cast", "dtype"), [("compute", "bfloat16"), ("variable", "float32"), ("output", "float8_e5m2")]
)
def test_casts_change_only_real_floating_leaves(cast, dtype):
    policy = Policy("variable=float32,compute=bfloat16,output=float8_e5m2,reduce=float16")
    before = dict(TREE)
    out = getattr(policy, f"cast_to_{cast}")(TREE)
    assert {name: str(out[name].dtype) for name in "xsjh"} == dict.fromkeys("xsjh", dtype)
    assert all(out[name] is TREE[name] for name in ("i", "k", "b", "c", "p", "t", "n", "name"))
    assert all(TREE[name] is before[name] for name in TREE)
    jitted = jax.jit(getattr(policy, f"cast_to_{cast}"))({name: TREE[name] for name in "sjhikb"})
    assert {name: str(jitted[name].dtype) for name in "sjh"} == dict.fromkeys("sjh", dtype)


@either_mode
@pytest.mark.parametrize(
    ("dtypes", "common"),
    [
        (("float16", "bfloat16"), "float32"), (("bfloat16", "bfloat16"), "bfloat16"),
        (("float16", "float32"), "float32"),
        (("bfloat16", "weak"), "bfloat16"), (("weak", "weak"), "float32"), (("float8_e5m2", "weak"), "float8_e5m2"),
        (("float16", "int32"), "float16"), (("float16", "complex64"), "float16"),
    ],
)  # fmt: skip
def test_infer_computes_in_the_common_dtype_of_floating_leaves(dtypes, common, jitted):
    leaves = [jnp.asarray(1.0) if dtype == "weak" else jnp.ones(2, dtype) for dtype in dtypes]
    cast = Policy("infer").cast_to_compute
    out = (jax.jit(cast) if jitted else cast)({"w": leaves[0], "x": [leaves[1]]})
    for leaf, dtype in zip((out["w"], out["x"][0]), dtypes, strict=True):
        assert str(leaf.dtype) == (dtype if dtype in ("int32", "complex64") else common)


def test_infer_and_other_dtypes_than_floats_leave_trees_alone():
    policy = Policy("infer")
    tree = [jnp.ones(2, "float16"), np.ones(2), 1.0]
    assert all(a is b for a, b in zip(policy.cast_to_output(tree), tree, strict=True))
    assert policy.cast_to_compute({"n": 3, "p": 1.5}) == {"n": 3, "p": 1.5}
    assert [leaf.dtype for leaf in policy.cast_to_variable(tree)[:2]] == ["float32", "float32"]
    for other in map(Policy, ("int32", "bool", "complex64", "uint4")):  # a cast would truncate
        for cast in (other.cast_to_compute, other.cast_to_variable, other.cast_to_output):
            assert all(cast(TREE)[key] is TREE[key] for key in TREE)
    with jax.enable_x64(True):
        assert [leaf.dtype for leaf in policy.cast_to_compute(tree)[:2]] == ["float64", "float64"]
