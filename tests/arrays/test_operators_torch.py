"""Tensors of PyTorch beside arrays: scalars, functions in place, other libraries, devices, gradients and copies."""

import operator

import jax
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum import OperandError, use_rules
from supremum.arrays import Array, DeviceError, LibraryError, asarray, ops
from supremum.arrays.wrapped import wrap

torch = import_or_skip("torch")


def test_scalars_and_0d_tensors_on_the_left_follow_the_rules():
    a = wrap(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        assert (np.float32(2) + a).dtype == "float16"  # a 0-d array for torch
        assert (torch.ones((), dtype=torch.float64) + a).dtype == "float16"
        assert (torch.ones(2, dtype=torch.float64) + a).dtype == "float64"
        assert (2.5 - a).tolist() == [1.5, 1.5]
        assert (2 ** wrap(torch.tensor([3], dtype=torch.int8))).tolist() == [8]
        assert torch.sub(2.5, a).tolist() == [1.5, 1.5]
    with use_rules("numpy"):
        assert (np.float32(2) + a).dtype == "float32"
        assert (torch.ones((), dtype=torch.float64) + a).dtype == "float64"


def test_jax_and_torch_arrays_do_not_mix_and_the_fix_works():
    a, b = wrap(jax.numpy.ones(2)), wrap(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        for call in (
            lambda: a + b,
            lambda: b + a,
            lambda: a.unwrap() + b,
            lambda: b + a.unwrap(),
            lambda: b.unwrap() + a,
        ):
            with pytest.raises(LibraryError, match=r"jax.*torch|torch.*jax"):
                call()
        for x, y in ((a, b), (b, a)):
            with pytest.raises(LibraryError) as caught:
                ops.add(x, y)
            library, letter = str(caught.value).partition("supremum.namespace(")[2].rstrip(")").split(").asarray(")
            moved = {"a": x, "b": y} | {letter: asarray({"a": x, "b": y}[letter], library=library.strip("'"))}
            assert ops.add(moved["a"], moved["b"]).dtype == "float32"
        for target, value in ((a, b), (b, a)):
            with pytest.raises(LibraryError):
                target += value


@pytest.mark.slow
def test_tensors_on_different_devices_are_refused_except_0d_cpu_tensors():
    here, there = torch.ones(2), torch.ones(2, dtype=torch.float16, device="meta")
    a, b = wrap(here), wrap(there)
    with use_rules("torch"):
        for call in (lambda: a + b, lambda: b * a, lambda: here + b, lambda: a < there, lambda: ops.maximum(b, a)):
            with pytest.raises(DeviceError, match=r"cpu and meta.*to_device"):
                call()
        # As in torch, 0-d tensors on the CPU and numbers work with tensors on any device.
        mixed = [
            b + wrap(torch.ones(())),
            wrap(torch.ones(())) + b,
            2.0 * b,
            b + np.float32(1),
            b + np.ones(2, "float32"),
        ]
        assert [each.unwrap().device.type for each in mixed] == ["meta"] * 5
        assert [each.dtype.name for each in mixed] == ["float16"] * 4 + ["float32"]
        assert (mixed[0] + mixed[1]).unwrap().device.type == "meta"
        assert "meta" in repr(b)
        with pytest.raises((DeviceError, RuntimeError)):
            a += b


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch deprecates quantized tensors
def test_quantized_tensors_and_other_objects_are_refused():
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    a = wrap(torch.ones(2))
    for call in (lambda: a + quantized, lambda: quantized + a, lambda: Array(quantized)):
        with pytest.raises(OperandError, match="qint8"):
            call()
    for other in ([1.0], None, "1"):
        for call in ((a, other), (other, a)):
            with pytest.raises(TypeError):
                operator.add(*call)


def test_gradients_flow_to_torch_parameters_through_arrays():
    weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        loss = (wrap(weight) * wrap(torch.full((2,), 3.0)) + weight).unwrap()
        loss.sum().backward()
    assert loss.dtype == torch.float32
    assert weight.grad.dtype == torch.float16
    assert weight.grad.tolist() == [4.0, 4.0]
