"""Communication between devices during training, read from the compiled program."""

import re

import pytest

from mixed_precision.replica_groups import collectives
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import DataParallel, FullyShardedDataParallel
from training.many_devices import CLASSES, FEATURES, KINDS, devices, lowered, network


def moved(lowered_step):
    """List the operation, element type and size of each array that the compiled program sends."""
    found = collectives(lowered_step.compile().as_text())
    return [(each.name, each.dtype, size) for each in found for size in each.sizes]


SIZES = sorted([FEATURES * 32, 32, 32 * CLASSES, CLASSES])


class TestCommunication:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("policy", "flag", "dtype"),
        [
            ("float32", None, "f32"),
            ("mixed_float16", True, "f16"),
            ("mixed_float16", False, "f32"),
            ("mixed_bfloat16", None, "f32"),
            ("variable=float32,compute=float16,reduce=float32", None, "f16"),
            ("variable=float32,compute=float32,reduce=float16", None, "f16"),
        ],
    )
    def test_gradients_are_summed_in_the_reduce_dtype(self, policy, flag, dtype):
        """The flag of a LossScaleOptimizer, True by default, takes precedence over the policy."""
        optimizer = None if flag is None else LossScaleOptimizer(SGD(0.1), aggregate_in_float16=flag)
        assert sorted(moved(lowered(policy, DataParallel(devices(8)), optimizer))) == [
            ("all-reduce", dtype, size) for size in SIZES
        ]

    @pytest.mark.parametrize("kind", ["data parallel", "split"])
    def test_gradients_are_reduced_in_bfloat16_if_the_policy_says_so(self, kind):
        """Read the StableHLO, because XLA's CPU backend widens bfloat16."""
        policy = "variable=float32,compute=bfloat16,reduce=bfloat16"
        text = lowered(policy, KINDS[kind]()).as_text()
        kinds = re.findall(r"all_reduce.*?\}\) : \(tensor<([\dx]*x)?(\w+)>\)", text, re.DOTALL)
        assert sorted(shape for shape, kind in kinds if kind == "bf16") == ["16x32x", "32x", "32x4x", "4x"]
        others = [kind for _, kind in kinds if kind != "bf16"]
        assert others
        assert set(others) == {"f32"}

    def test_compile_sets_aggregate_in_float16_from_the_policy(self):
        for policy, flag in (("mixed_float16", True), ("variable=float32,compute=float16,reduce=float32", False)):
            model = network(policy)
            model.compile("sgd", "mse")
            assert model.optimizer.aggregate_in_float16 is flag

    @pytest.mark.compiled
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize(("policy", "kind"), [("float32", "f32"), ("mixed_float16", "f16")])
    def test_sharded_variables_and_gradients_are_cast_before_they_are_sent(self, policy, kind):
        distribution = FullyShardedDataParallel(devices(8), smallest=100)
        found = moved(lowered(policy, distribution))
        kernels = [FEATURES * 32, 32 * CLASSES]
        gathered = sorted(size for name, dtype, size in found if name == "all-gather" and dtype == kind)
        scattered = sorted(size * 8 for name, dtype, size in found if name == "reduce-scatter" and dtype == kind)
        assert gathered == scattered == sorted(kernels)
        reduced = sorted(size for name, dtype, size in found if name == "all-reduce" and dtype == kind)
        assert reduced == [CLASSES, 32]

    def test_bfloat16_variables_gathered_for_bfloat16_are_summed_in_float32(self):
        text = lowered("mixed_bfloat16", FullyShardedDataParallel(devices(8), smallest=100)).as_text()
        assert re.search(r"reduce_scatter.*?: \(tensor<\S+xf32>\)", text, re.DOTALL)
        assert re.search(r"all_gather.*?: \(tensor<\S+xbf16>\)", text)
