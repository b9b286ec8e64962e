import copy
import json
import pickle

import jax
import jax.numpy as jnp
import pytest

from supremum.mixed_precision import Policy, PolicyMap, UnmatchedPatternWarning

BY_PATH = PolicyMap({"encoder/.*/norm": "float32", "encoder": "mixed_float16", ".*bias": "float64"}, "mixed_bfloat16")


@pytest.mark.parametrize(
    ("path", "pattern", "policy"),
    [
        ("encoder/0/norm", "encoder/.*/norm", "float32"),
        ("encoder/0/norm/scale", "encoder/.*/norm", "float32"),
        ("encoder/0/mlp/norm/scale", "encoder/.*/norm", "float32"),
        ("encoder/0/normal", "encoder", "mixed_float16"),
        ("encoder/norm", "encoder", "mixed_float16"),
        ("encoder", "encoder", "mixed_float16"),
        ("encoder/0/bias", "encoder", "mixed_float16"),
        ("encoders/0", None, "mixed_bfloat16"),
        ("my/encoder", None, "mixed_bfloat16"),
        ("decoder/bias", ".*bias", "float64"),
        ("bias/decoder", ".*bias", "float64"),
        ("decoder/biases", None, "mixed_bfloat16"),
        ("", None, "mixed_bfloat16"),
    ],
)
def test_the_first_pattern_that_matches_a_path_or_its_parents_wins(path, pattern, policy):
    assert BY_PATH.pattern_for(path) == pattern
    assert BY_PATH.for_path(path) == Policy(policy)


def test_policy_maps_are_values():
    assert BY_PATH.patterns[1] == ("encoder", Policy("mixed_float16"))
    assert BY_PATH.default == Policy("mixed_bfloat16")
    assert PolicyMap({}).default == Policy("float32")
    same = PolicyMap(dict(BY_PATH.patterns), BY_PATH.default)
    assert (same, hash(same)) == (BY_PATH, hash(BY_PATH))
    assert PolicyMap(dict(reversed(BY_PATH.patterns)), BY_PATH.default) != BY_PATH
    for other in (copy.deepcopy(BY_PATH), pickle.loads(pickle.dumps(BY_PATH)), eval(repr(BY_PATH))):
        assert other == BY_PATH
    with pytest.raises(AttributeError):
        BY_PATH.default = Policy("float16")


def test_configs_survive_json():
    by_path = PolicyMap(
        {"b": Policy("mixed_float16", 8), "a.*": "infer"}, "variable=float32,compute=bfloat16,output=float32"
    )
    assert PolicyMap.from_config(json.loads(json.dumps(by_path.get_config(), sort_keys=True))) == by_path


def read(**change):
    return lambda: PolicyMap.from_config({**BY_PATH.get_config(), **change})


INVALID = [
    (lambda: PolicyMap.from_config({"patterns": []}), ValueError, "must have 'default'"),
    (lambda: PolicyMap.from_config(3), TypeError, "must be a mapping, got 3"),
    (read(defualt=3), ValueError, "did you mean 'default'"),
    *((read(patterns=bad), TypeError, r"\(pattern, policy\) pairs")
      for bad in ({"a": "float32"}, [["a"]], [[["a"], {}]], [["a", "float32"]])),
    (read(patterns=[["a", {}]]), ValueError, "must have 'name' and 'loss_scale'"),
    (lambda: PolicyMap({"encoder(": "float32"}), ValueError,
     r"the pattern 'encoder\(' is not a regular expression \(missing"),
    (lambda: PolicyMap({"a{99999999999}": "float32"}), ValueError, "is not a regular expression"),
    (lambda: PolicyMap({3: "float32"}), TypeError, "a pattern of a PolicyMap must be a string, got 3"),
    (lambda: PolicyMap({"a": "flaot32"}), ValueError, "did you mean 'float32'"),
    (lambda: PolicyMap([("a", "float32")]), TypeError, "must be a mapping to policies"),
    (lambda: PolicyMap("float32"), TypeError, "must be a mapping to policies"),
]  # fmt: skip


def test_invalid_arguments_raise():
    for call, error, message in INVALID:
        with pytest.raises(error, match=message):
            call()


def test_the_suggested_escape_of_a_path_works():
    with pytest.raises(ValueError, match="write '") as caught:
        PolicyMap({"a[0": "float32"})
    fixed = str(caught.value).rsplit("write ", 1)[1]
    assert PolicyMap({eval(fixed): "float16"}).for_path("a[0/b") == Policy("float16")


TREE = {
    "encoder": [{"norm": {"scale": jnp.ones(2)}, "mlp": (jnp.ones(2), jnp.arange(2))}],
    "decoder": {"bias": jnp.ones(2), "key": jax.random.key(0)},
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("cast", ["compute", "variable", "output"])
def test_each_leaf_is_cast_by_the_policy_of_its_path(cast, jitted):
    dtypes = {
        "norm": ("float16", "bfloat16", "float32"),
        "mlp": ("bfloat16", "float32", "float16"),
        "bias": ("float8_e5m2",) * 3,
    }
    text = "variable={},compute={},output={}".format
    by_path = PolicyMap(
        {"encoder/0/norm": text(*dtypes["norm"]), "encoder": text(*dtypes["mlp"])}, text(*dtypes["bias"])
    )
    place = ["variable", "compute", "output"].index(cast)
    method = getattr(by_path, f"cast_to_{cast}")
    out = (jax.jit(method) if jitted else method)(TREE)
    assert jax.tree.structure(out) == jax.tree.structure(TREE)
    assert out["encoder"][0]["norm"]["scale"].dtype == dtypes["norm"][place]
    assert out["encoder"][0]["mlp"][0].dtype == dtypes["mlp"][place]
    assert out["decoder"]["bias"].dtype == dtypes["bias"][place]
    assert out["encoder"][0]["mlp"][1].dtype == TREE["encoder"][0]["mlp"][1].dtype
    assert out["decoder"]["key"].dtype == TREE["decoder"]["key"].dtype


def test_leaves_under_one_infer_policy_get_their_common_dtype():
    tree = {"a": jnp.ones(1, "float16"), "b": jnp.ones(1, "bfloat16"), "c": jnp.ones(1, "float16")}
    out = PolicyMap({"[ab]": "infer"}, "float16").cast_to_compute(tree)
    assert {name: leaf.dtype for name, leaf in out.items()} == {"a": "float32", "b": "float32", "c": "float16"}


def test_an_unmatched_pattern_warns_with_similar_paths():
    by_path = PolicyMap({"encoder": "float16", "decodr/bias": "float32", "x+": "float32"})
    for call in (lambda: by_path.cast_to_compute(TREE), lambda: by_path.check(["encoder/0", "decoder/bias", "head"])):
        with pytest.warns(UnmatchedPatternWarning) as caught:
            call()
        assert len(caught) == 1
        assert (caught[0].filename, caught[0].lineno) == (__file__, call.__code__.co_firstlineno)
        message = str(caught[0].message)
        assert "'decodr/bias' (paths are 'decoder/bias')" in message
        assert "'x+' (paths are " in message
        assert "'encoder' (" not in message


def test_only_patterns_that_match_nothing_warn():
    assert PolicyMap({}, "bfloat16").for_path("a/b") == Policy("bfloat16")
    assert PolicyMap({}, "bfloat16").cast_to_compute({"w": jnp.ones(2)})["w"].dtype == jnp.bfloat16
    PolicyMap({"a": "float16", "a/b": "float32"}).check(["a/b/c"])  # warnings are errors here
    with pytest.warns(UnmatchedPatternWarning, match="none of the 0 paths: 'a'$"):
        PolicyMap({"a": "float16"}).check([])
