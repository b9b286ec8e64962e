"""Autocast's table compared with the lists of `torch.autocast` for CUDA in the installed PyTorch.

The lists are read from PyTorch: from its header, from its dispatcher's list of functions with an autocast kernel, and
from PyTorch's own tests of autocast.
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
from slowly import for_each
from supremum.jaxprs import walk
from supremum.mixed_precision import AUTOCAST_OPERATIONS, autocast

torch = judge.torch
ROWS = dict(AUTOCAST_OPERATIONS)  # a copy, because other tests register operations
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
    """The rule of each function, from the C++ macros of autocast."""
    text = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    found = {}
    for macro, body in re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)+.*\n)", text):
        if macro in MACROS:
            for name in re.findall(r"_\((?:ADD_NS\()?(\w+)", body):
                assert found.setdefault(name, MACROS[macro]) == MACROS[macro]
    return found


@functools.cache
def torch_test_lists():
    """The rule of each function, from the lists in PyTorch's tests of autocast."""
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
    return {**torch_test_lists(), **header()}


def registered():
    names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    return {name.removeprefix("aten::").partition(".")[0] for name in names}


# Functions that call other functions, and the name that autocast sees.
ALIASES = {
    "__rpow__": "pow",
    "__rdiv__": "reciprocal",
    "__rtruediv__": "reciprocal",
    "multi_dot": "linalg_multi_dot",
    "softmin": "softmax",
}


def test_torch_header_and_test_lists_agree():
    assert len(header()) > 90
    assert set(header().values()) == {"compute", "float32", "widest"}
    common = torch_test_lists().keys() & header().keys()
    assert len(common) > 70
    assert {name: torch_test_lists()[name] for name in common} == {name: header()[name] for name in common}


def test_header_lists_all_registered_functions_except_three():
    """The exceptions are the functions that PyTorch registers one by one."""
    only_with_cuda = {"_cudnn_rnn"} if torch.backends.cuda.is_built() else set()
    assert registered() - header().keys() - only_with_cuda == {
        "binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose",
    }  # fmt: skip
    assert only_with_cuda <= registered()
    assert header().keys() <= registered()


def test_rules_of_rows_agree_with_the_torch_lists_except_departures():
    different = {
        (name, row.rule, theirs)
        for row in ROWS.values()
        for name in row.follows
        if (theirs := listed().get(ALIASES.get(name, name))) != row.rule
    }
    covered = [(name, row.ours, row.theirs) for row in AUTOCAST_ROWS for name in row.functions.split()]
    assert sorted(different) == sorted(covered)


def test_aliases_dispatch_to_the_named_functions():
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


def test_reciprocal_runs_in_float32():
    assert ran(lambda x: 2.0 / x, ["narrow"])["div"] == {"float32"}


# Functions on torch's lists that no row of ours follows, written with JAX.

N, WIDTH = 4, 8
OPERANDS = [np.linspace(low, 0.9, N * WIDTH, dtype=np.float32).reshape(N, WIDTH) for low in (0.1, 0.2)]
LABELS = np.arange(N)
PREPARING = "preparing"


def ran(function, kinds):
    """The dtypes of a function's operations under autocast, without operations that only move values.

    Args:
        function: a function of arrays.
        kinds: one word per operand: `"narrow"` if the operand comes from a product, `"wide"` if it is an input.
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


# Each with the operations that run in 16 bits before the first sum if all operands have 16 bits. Torch casts the
# operands first, which saves one rounding of a difference or a product of two elements.
SENSITIVE = {
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

# Functions that run in float32 if one operand has 16 bits and the other 32, in both orders.
WIDEST = {
    "addcmul": lambda x, y: x + y * x,
    "addcdiv": lambda x, y: x + y / x,
    "cross": lambda x, y: jnp.cross(x[:, :3], y[:, :3]),
}

# Functions that run differently in torch; the departures list which operations run in 16 bits, and why.
DEPARTING = {
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


def test_every_listed_function_has_a_row_a_composition_or_a_departure():
    followed = {name for row in ROWS.values() for name in row.follows}
    followed |= {ALIASES[name] for name in followed & ALIASES.keys()}
    elsewhere = [
        {name for names in table for name in names.split()} for table in (PRODUCTS, SENSITIVE, WIDEST, DEPARTING)
    ]
    assert header().keys() - followed == set().union(*elsewhere)
    assert sum(map(len, elsewhere)) == len(set().union(*elsewhere))
    for table, rule in zip((PRODUCTS, SENSITIVE, WIDEST), ("compute", "float32", "widest"), strict=True):
        assert {header()[name] for names in table for name in names.split()} == {rule}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
def test_compositions_with_products_multiply_in_16_bits(function):
    for kinds in (["wide", "wide"], ["narrow", "wide"], ["narrow", "narrow"]):
        found = ran(function, kinds)
        products = [found[name] for name in ("dot_general", "conv_general_dilated") if name in found]
        assert products == [{"float16"}]


@pytest.mark.filterwarnings("ignore:autocast casts nothing")
@for_each("function, narrow", SENSITIVE.values())
def test_sensitive_compositions_run_in_float32_except_listed_operations(function, narrow):
    assert in_16_bits(function, ["narrow"] * arity(function)) == set(narrow.split())
    assert in_16_bits(function, ["wide"] * arity(function)) == set()


@pytest.mark.parametrize("function", WIDEST.values(), ids=WIDEST)
def test_compositions_run_in_the_dtype_of_the_widest_operand(function):
    for kinds, dtype in (
        (["narrow", "wide"], "float32"),
        (["wide", "narrow"], "float32"),
        (["narrow", "narrow"], "float16"),
    ):
        assert set().union(*ran(function, kinds).values()) == {dtype}


@for_each("departure", AUTOCAST_COMPOSITIONS)
def test_departing_compositions_run_the_listed_operations_in_16_bits(departure):
    function = DEPARTING[departure.functions]
    assert in_16_bits(function, ["narrow", "wide"][: arity(function)]) == set(departure.ours.split())
    assert {header()[name] for name in departure.functions.split()} == {departure.theirs}


def test_departing_compositions_are_those_of_the_departures():
    assert [row.functions for row in AUTOCAST_COMPOSITIONS] == list(DEPARTING)


def test_functions_that_torch_promotes_without_autocast_have_the_widest_rule():
    names = {name for name, rule in torch_test_lists().items() if name not in header() and rule == "widest"}
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
