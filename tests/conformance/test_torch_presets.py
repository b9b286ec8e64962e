"""The presets `"torch-cpu"` and `"torch-cuda"` of autocast compared with the installed PyTorch.

On the CPU PyTorch is run: a dispatch mode sees the dtypes in which it calls its kernels under `torch.autocast`. The
lists for CUDA are read from its header.
"""

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from conformance import torch_judge as judge
from conformance.test_torch_autocast import header
from slowly import for_each
from supremum.jaxprs import walk
from supremum.mixed_precision import AUTOCAST_OPERATIONS, AUTOCAST_PRESETS, UnmatchedPatternWarning, autocast

torch = judge.torch


@dataclass(frozen=True)
class Case:
    """A function of PyTorch, and a program of JAX that does the same.

    Args:
        name: the name of the function in the lists of PyTorch.
        theirs: the function.
        ours: the program.
        primitives: the primitives in the program that do the work.
        operands: the number of operands.
    """

    name: str
    theirs: Any
    ours: Any
    primitives: str
    operands: int = 1


def summed(x):
    return lax.reduce_window(x, np.zeros((), x.dtype)[()], lax.add, (2, 2), (2, 2), "VALID")


CASES = [
    *(
        Case(name, getattr(torch, name), getattr(jnp, name, None) or getattr(lax, name), name)
        for name in ("exp", "expm1", "exp2", "log", "log1p", "tan", "cosh", "sinh", "rsqrt", "digamma")
    ),
    *(
        Case(name, getattr(torch, name), getattr(lax, name), name)
        for name in ("acos", "asin", "lgamma", "sin", "tanh", "sqrt", "abs")
    ),
    Case("log2", torch.log2, jnp.log2, "log log2"),  # the second primitive came after JAX 0.10
    Case("pow", lambda x: torch.pow(x, 1.5), lambda x: x**1.5, "pow"),
    Case("pow", lambda x: torch.pow(x, 3), lambda x: x**3, "integer_pow"),
    Case("pow", torch.square, lax.square, "square"),
    Case("erfinv", torch.erfinv, lax.erf_inv, "erf_inv"),
    Case("igamma", torch.igamma, lax.igamma, "igamma", 2),
    Case("igammac", torch.igammac, lax.igammac, "igammac", 2),
    Case("polygamma", lambda x: torch.polygamma(1, x), lambda x: lax.polygamma(jnp.ones_like(x), x), "polygamma"),
    Case("special_zeta", lambda x, y: torch.special.zeta(x + 2, y), lambda x, y: lax.zeta(x + 2, y), "zeta", 2),
    Case("special_i0e", torch.special.i0e, lax.bessel_i0e, "bessel_i0e"),
    Case("special_i1e", torch.special.i1e, lax.bessel_i1e, "bessel_i1e"),
    Case("sum", torch.sum, lambda x: lax.reduce_sum(x, axes=(0, 1)), "reduce_sum"),
    Case("prod", torch.prod, lambda x: lax.reduce_prod(x, axes=(0, 1)), "reduce_prod"),
    Case("cumsum", lambda x: torch.cumsum(x, 0), lax.cumsum, "cumsum"),
    Case("cumprod", lambda x: torch.cumprod(x, 0), lax.cumprod, "cumprod"),
    Case("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), lax.cumlogsumexp, "cumlogsumexp"),
    Case("avg_pool2d", lambda x: torch.nn.functional.avg_pool2d(x[None], 2), summed, "reduce_window_sum"),
    Case("softmax", lambda x: torch.softmax(x, 0), jax.nn.softmax, "reduce_max exp reduce_sum"),
    Case("reciprocal", torch.reciprocal, lambda x: 1 / x, "div"),
    Case("mm", torch.mm, lax.dot, "dot_general", 2),
    Case(
        "conv2d",
        lambda x, y: torch.nn.functional.conv2d(x[None, None], y[None, None]),
        lambda x, y: lax.conv(x[None, None], y[None, None], (1, 1), "VALID"),
        "conv_general_dilated",
        2,
    ),
]


def on_torch_cpu(case, dtype):
    """The dtype in which PyTorch calls its kernel, under autocast for bfloat16."""
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            dtypes = {str(x.dtype)[6:] for x in args if isinstance(x, torch.Tensor) and x.is_floating_point()}
            moves = {"_to_copy", "view", "unsqueeze", "add", "mul", "detach", "_unsafe_view", "t", "transpose"}
            if dtypes and function._schema.name.removeprefix("aten::") not in moves:
                seen.append(dtypes)
            return function(*args, **(kwargs or {}))

    x = torch.full((4, 4), 0.5, dtype=getattr(torch, dtype))
    without_kernel = contextlib.suppress(RuntimeError)  # not every function has a kernel for bfloat16
    with without_kernel, torch.autocast("cpu", dtype=torch.bfloat16), Watch():
        case.theirs(*[x] * case.operands)
    return seen[0]


def on_torch_cuda(case, dtype):
    rule = header().get(case.name, "widest")
    return {{"compute": "bfloat16", "float32": "float32", "widest": dtype}[rule]}


def here(case, dtype, ops):
    """The dtypes in which our autocast runs the primitives of a case."""

    def program(*operands):
        # The result of a product is narrow.
        with jax.named_scope("preparing"):
            given = [lax.dot(x, jnp.eye(4)) if dtype == "bfloat16" else x for x in operands]
        return case.ours(*given)

    operands = [np.full((4, 4), 0.5, "float32")] * case.operands
    found = set()
    for site in walk(jax.make_jaxpr(autocast(program, "mixed_bfloat16", ops=ops))(*operands)):
        if site.equation.primitive.name in case.primitives.split() and "preparing" not in site.scopes:
            # Without the numbers: before it had log2, JAX divided by the logarithm of 2.
            arrays = [x.aval for x in site.equation.invars if x.aval.ndim]
            found |= {str(each.dtype) for each in arrays if jnp.issubdtype(each.dtype, jnp.floating)}
    return found


@pytest.mark.filterwarnings("ignore:autocast casts nothing")
@for_each("case, dtype", itertools.product(CASES, ("bfloat16", "float32")), one_in=5, one_slow_in=4)
def test_preset_for_the_cpu_runs_operations_as_torch_does(case, dtype):
    assert here(case, dtype, "torch-cpu") == on_torch_cpu(case, dtype)


@pytest.mark.filterwarnings("ignore:autocast casts nothing")
@for_each("case, dtype", itertools.product(CASES, ("bfloat16", "float32")), one_in=5, one_slow_in=4)
def test_preset_for_cuda_runs_operations_as_the_lists_of_torch_say(case, dtype):
    assert here(case, dtype, "torch-cuda") == on_torch_cuda(case, dtype)


def test_every_primitive_of_a_preset_is_compared():
    compared = {name for case in CASES for name in case.primitives.split()}
    for preset in AUTOCAST_PRESETS.values():
        # reduce_min has the rule of reduce_max, and `x * x` is not a function of PyTorch.
        assert preset.keys() - compared <= {"reduce_min", "mul"}
        assert preset.keys() <= AUTOCAST_OPERATIONS.keys()


def test_registrations_are_those_of_the_compared_functions():
    """Every function that PyTorch registers for autocast, and that one primitive of ours computes, is compared."""
    registered = {
        device: {
            name.removeprefix("aten::").partition(".")[0]
            for name in torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device}")
        }
        for device in ("CPU", "CUDA")
    }
    assert header().keys() <= registered["CUDA"]
    for case in CASES:
        assert (on_torch_cuda(case, "x") != {"x"}) == (case.name in header())
        listed = any(on_torch_cpu(case, dtype) != {dtype} for dtype in ("bfloat16", "float32"))
        assert listed == (case.name in registered["CPU"])


def test_preset_gives_no_warning_and_takes_other_rules_on_top(recwarn):
    x = jnp.ones((2, 2))
    report = autocast(lambda x: jnp.exp(x @ x), "mixed_bfloat16", ops="torch-cpu").report(x)
    assert report.summary() == "bfloat16  1 x dot_general, 1 x exp"
    ops = {**AUTOCAST_PRESETS["torch-cpu"], "exp": "float32"}
    report = autocast(lambda x: jnp.exp(x @ x), "mixed_bfloat16", ops=ops).report(x)
    assert [row.dtype for row in report.rows] == ["bfloat16", "float32"]
    assert not [each for each in recwarn if issubclass(each.category, UnmatchedPatternWarning)]
    with pytest.raises(ValueError, match="unknown preset of ops 'torch-gpu': did you mean 'torch-cpu' or 'torch-cuda'"):
        autocast(lambda x: x, ops="torch-gpu")
