"""Autocast's table against the lists of `torch.autocast` for CUDA, as the installed PyTorch has them.

Its header says which function is on which list, its dispatcher which functions have a kernel for autocast, and its own
tests name most of them again: none is typed here.
"""

import ast
import functools
import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from conformance import torch_judge as judge
from conformance.autocast_departures import AUTOCAST_COMPOSITIONS, AUTOCAST_ROWS
from supremum.jaxprs import walk
from supremum.mixed_precision import AUTOCAST_OPERATIONS, autocast

torch = judge.torch
ROWS = dict(AUTOCAST_OPERATIONS)  # before a test registers another one
MACROS = {
    "LOWER_PRECISION_FP": "compute",
    "FP32": "float32",
    "FP32_SET_OPT_DTYPE": "float32",
    "DIFFERENT_REDISPATCH_SIGNATURE": "float32",
    "PROMOTE": "widest",
}
TEST_LISTS = {
    "torch_fp16": "compute", "nn_fp16": "compute", "linalg_fp16": "compute", "methods_fp16": "compute",
    "torch_fp32": "float32", "nn_fp32": "float32", "methods_fp32": "float32",
    "torch_need_autocast_promote": "widest", "torch_expect_builtin_promote": "widest",
}  # fmt: skip


@functools.cache
def header():
    """The rule by function, from the macros that autocast is compiled from."""
    text = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    found = {}
    for macro, body in re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)+.*\n)", text):
        if macro in MACROS:
            for name in re.findall(r"_\((?:ADD_NS\()?(\w+)", body):
                assert found.setdefault(name, MACROS[macro]) == MACROS[macro]
    return found


@functools.cache
def of_its_tests():
    """The rule by function, from the lists that PyTorch tests autocast with."""
    path = Path(torch.__file__).parent / "testing/_internal/autocast_test_lists.py"
    (of_cuda,) = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "AutocastTestLists"
    ]
    lists = {
        node.targets[0].attr: [item.elts[0].value for item in node.value.elts]
        for node in ast.walk(of_cuda)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
    }
    return {name: rule for which, rule in TEST_LISTS.items() for name in lists[which]}


@functools.cache
def listed():
    return {**of_its_tests(), **header()}


def registered():
    names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    return {name.removeprefix("aten::").partition(".")[0] for name in names}


# Names of functions that call others, which autocast sees.
ALIASES = {
    "__rpow__": "pow",
    "__rdiv__": "reciprocal",
    "__rtruediv__": "reciprocal",
    "multi_dot": "linalg_multi_dot",
    "softmin": "softmax",
}


def test_the_lists_are_found():
    assert len(header()) > 90
    assert set(header().values()) == {"compute", "float32", "widest"}
    agreed = of_its_tests().keys() & header().keys()
    assert len(agreed) > 70
    assert {name: of_its_tests()[name] for name in agreed} == {name: header()[name] for name in agreed}


def test_the_header_lists_all_that_the_dispatcher_knows():
    """But for those that are written out one by one."""
    only_with_cuda = {"_cudnn_rnn"} if torch.backends.cuda.is_built() else set()
    assert registered() - header().keys() - only_with_cuda == {
        "binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose",
    }  # fmt: skip
    assert only_with_cuda <= registered()
    assert header().keys() <= registered()


def test_what_rows_follow_is_on_the_list_of_their_rule():
    different = {
        (name, row.rule, theirs)
        for row in ROWS.values()
        for name in row.follows
        if (theirs := listed().get(ALIASES.get(name, name))) != row.rule
    }
    covered = [(name, row.ours, row.theirs) for row in AUTOCAST_ROWS for name in row.functions.split()]
    assert sorted(different) == sorted(covered)


def test_aliases_are_what_they_say():
    called = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.append(function._schema.name.removeprefix("aten::"))
            return function(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Watch():
        for call in (lambda: 2**x, lambda: 2 / x, lambda: torch.nn.functional.softmin(x, 0)):
            call()
    assert called == ["pow", "reciprocal", "mul", "neg", "_softmax"]
    assert torch.linalg.multi_dot.__name__ == "linalg_multi_dot"


def test_a_reciprocal_runs_in_float32():
    assert ran(lambda x: 2.0 / x, ["narrow"])["div"] == {"float32"}


# What torch lists and no row follows: functions that do the same, written with JAX.

N, WIDTH = 4, 8
OPERANDS = [np.linspace(low, 0.9, N * WIDTH, dtype=np.float32).reshape(N, WIDTH) for low in (0.1, 0.2)]
LABELS = np.arange(N)
PREPARING = "preparing"


def ran(function, kinds):
    """The dtypes that a function's operations run in under autocast, what only moves values left out.

    Args:
        function: a function of arrays.
        kinds: of each whether it comes from a product, `"narrow"`, or as it is, `"wide"`.
    """

    def prepared(*operands):
        with jax.named_scope(PREPARING):
            given = [lax.dot(jnp.eye(N), x) if kind == "narrow" else x for x, kind in zip(operands, kinds, strict=True)]
        return function(*given)

    found = {}
    for site in walk(jax.make_jaxpr(autocast(prepared, "mixed_float16"))(*OPERANDS[: len(kinds)])):
        name = site.equation.primitive.name
        floats = {str(x.aval.dtype) for x in site.equation.invars if jnp.issubdtype(x.aval.dtype, jnp.floating)}
        if PREPARING not in site.scopes and name in ROWS and not ROWS[name].moves and floats:
            found.setdefault(name, set()).update(floats)
    return found


def normalised(x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(jnp.square(centred), -1, keepdims=True) + 1e-5)


def cosine(x, y):
    return jnp.sum(x * y, -1) / (jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1))


def huber(x, y):
    error = jnp.abs(x - y)
    return jnp.mean(jnp.where(error < 1, 0.5 * jnp.square(error), error - 0.5))


def resized(method):
    return lambda x: jax.image.resize(x, (2 * N, 2 * WIDTH), method)


def gru_cell(x, w):
    reset, update, new = jnp.split(jnp.tile(x @ w.T, 3), 3, -1)
    new = jnp.tanh(jax.nn.sigmoid(reset) * new)
    return new + jax.nn.sigmoid(update) * (x[:, :N] - new)


def lstm_cell(x, w):
    i, f, g, o = jnp.split(x @ w.T, 4, -1)
    return jax.nn.sigmoid(o) * jnp.tanh(jax.nn.sigmoid(f) + jax.nn.sigmoid(i) * jnp.tanh(g))


def attention(x, y):
    return jax.nn.dot_product_attention(x[None, :, None], y[None, :, None], y[None, :, None])


PRODUCTS = {
    "lstm_cell _thnn_fused_lstm_cell": lstm_cell,
    "gru_cell _thnn_fused_gru_cell": gru_cell,
    "rnn_tanh_cell": lambda x, w: jnp.tanh(x @ w.T),
    "rnn_relu_cell": lambda x, w: jax.nn.relu(x @ w.T),
    "_scaled_dot_product_flash_attention": attention,
}


# With the operations that run in 16 bits where all operands have them, before anything is summed up: torch casts them
# first, so that a difference or a product of two elements is not rounded once more.
DELICATE = {
    "layer_norm native_layer_norm group_norm": (normalised, ""),
    "rms_norm": (lambda x: x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5), ""),
    "frobenius_norm linalg_matrix_norm": (jnp.linalg.norm, ""),
    "nuclear_norm": (lambda x: jnp.linalg.norm(x, "nuc"), ""),
    "linalg_vector_norm": (lambda x: jnp.linalg.norm(x, 3, axis=-1), "abs"),
    "dist pdist cdist": (lambda x, y: jnp.linalg.norm(x[:, None] - y, axis=-1), "sub"),
    "renorm": (lambda x: x * jnp.minimum(1, 1 / jnp.linalg.norm(x, axis=0)), ""),
    "cosine_similarity cosine_embedding_loss": (cosine, "mul"),
    "l1_loss": (lambda x, y: jnp.mean(jnp.abs(x - y)), "sub abs"),
    "mse_loss": (lambda x, y: jnp.mean((x - y) ** 2), "sub"),
    "smooth_l1_loss huber_loss": (huber, "sub abs lt"),
    "poisson_nll_loss": (lambda x, y: jnp.mean(jnp.exp(x) - y * x), "mul"),
    "kl_div": (lambda x, y: jnp.mean(y * (jnp.log(y) - x)), ""),
    "nll_loss nll_loss2d": (lambda x: -jnp.mean(jnp.take_along_axis(x, LABELS[:, None], 1)), ""),
    "hinge_embedding_loss": (lambda x: jnp.mean(jnp.maximum(0.0, 1 - x)), "sub max"),
    "margin_ranking_loss triplet_margin_loss": (lambda x, y: jnp.mean(jnp.maximum(0.0, x - y + 1)), "sub add max"),
    "multilabel_margin_loss multi_margin_loss": (
        lambda x: jnp.mean(jnp.maximum(0.0, 1 - x[:, :1] + x)),
        "sub add max",
    ),
    "soft_margin_loss": (lambda x, y: jnp.mean(jnp.log1p(jnp.exp(-x * y))), "neg mul"),
    "binary_cross_entropy_with_logits": (
        lambda x, y: jnp.mean(jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))),
        "max sub mul abs neg",
    ),
    "upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d "
    "_upsample_nearest_exact3d": (resized("nearest"), ""),
}

# Of one operand in 16 bits and one in 32: both orders run in float32.
MEETING = {
    "addcmul": lambda x, y: x + y * x,
    "addcdiv": lambda x, y: x + y / x,
    "cross": lambda x, y: jnp.cross(x[:, :3], y[:, :3]),
}

# Functions that run otherwise than torch has them: the departures say what runs in 16 bits, and why.
OTHERWISE = {
    "prelu": lambda x, weight: jnp.where(x > 0, x, weight * x),
    "dot vdot": jnp.vdot,
    "tensordot": lambda x, y: jnp.tensordot(x, y, 2),
    "bilinear": lambda x, y: jnp.einsum("ni,nj,k->nk", x, y, jnp.ones(3)),
    "grid_sampler": lambda places, image: jax.scipy.ndimage.map_coordinates(image, [places, places], 1),
    "upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d": resized("linear"),
    "upsample_bicubic2d _upsample_bicubic2d_aa": resized("cubic"),
}


def arity(function):
    return min(2, sum(each.default is each.empty for each in inspect.signature(function).parameters.values()))


def in_16_bits(function, kinds):
    return {name for name, dtypes in ran(function, kinds).items() if "float16" in dtypes}


def test_every_function_on_the_lists_is_followed_composed_or_a_departure():
    followed = {name for row in ROWS.values() for name in row.follows}
    followed |= {ALIASES[name] for name in followed & ALIASES.keys()}
    elsewhere = [
        {name for names in table for name in names.split()} for table in (PRODUCTS, DELICATE, MEETING, OTHERWISE)
    ]
    assert header().keys() - followed == set().union(*elsewhere)
    assert sum(map(len, elsewhere)) == len(set().union(*elsewhere))
    for table, rule in zip((PRODUCTS, DELICATE, MEETING), ("compute", "float32", "widest"), strict=True):
        assert {header()[name] for names in table for name in names.split()} == {rule}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
def test_products_run_in_16_bits(function):
    for kinds in (["wide", "wide"], ["narrow", "wide"], ["narrow", "narrow"]):
        found = ran(function, kinds)
        products = [found[name] for name in ("dot_general", "conv_general_dilated") if name in found]
        assert products == [{"float16"}]


@pytest.mark.parametrize(("function", "narrow"), DELICATE.values(), ids=DELICATE)
def test_delicate_functions_run_in_float32(function, narrow):
    assert in_16_bits(function, ["narrow"] * arity(function)) == set(narrow.split())
    assert in_16_bits(function, ["wide"] * arity(function)) == set()


@pytest.mark.parametrize("function", MEETING.values(), ids=MEETING)
def test_the_widest_operand_decides(function):
    for kinds, dtype in (
        (["narrow", "wide"], "float32"),
        (["wide", "narrow"], "float32"),
        (["narrow", "narrow"], "float16"),
    ):
        assert set().union(*ran(function, kinds).values()) == {dtype}


@pytest.mark.parametrize("departure", AUTOCAST_COMPOSITIONS, ids=lambda departure: departure.functions)
def test_departures_depart(departure):
    function = OTHERWISE[departure.functions]
    assert in_16_bits(function, ["narrow", "wide"][: arity(function)]) == set(departure.ours.split())
    assert {header()[name] for name in departure.functions.split()} == {departure.theirs}


def test_every_function_that_runs_otherwise_is_a_departure():
    assert [row.functions for row in AUTOCAST_COMPOSITIONS] == list(OTHERWISE)


def test_what_promotes_in_torch_without_autocast_takes_the_widest():
    names = {name for name in of_its_tests() if name not in header() and of_its_tests()[name] == "widest"}
    assert {name for name in names if name in ROWS} == {
        "eq",
        "ge",
        "gt",
        "le",
        "lt",
        "ne",
        "add",
        "div",
        "mul",
        "stack",
    }
    assert {ROWS[name].rule for name in names if name in ROWS} == {"widest"}
