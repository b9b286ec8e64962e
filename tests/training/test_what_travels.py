"""Communication between devices during training, read from the compiled program."""

import re

import jax
import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import Policy
from supremum.optimizers import SGD, LossScaleOptimizer
from supremum.training import (
    Batch,
    DataParallel,
    FullyShardedDataParallel,
    init_state,
    train_step,
)
from supremum.training.step import placed
from training.many_devices import CLASSES, FEATURES, LOSS, X, Y, devices, network, trained


def collectives(text):
    """List (operation, element type, size) of each collective in the optimised HLO, without single numbers."""
    found = []
    for types, name in re.findall(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all)(?:-start)?\(", text):
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", types):
            found.append((name, kind, int(np.prod([int(n) for n in shape.split(",") if n]))))
    return [each for each in found if each[2] > 1]


def lowered(policy, distribution, optimizer=None, middle=()):
    model = network(policy, *middle)
    nn.initialize(model, X[:1])
    optimizer = optimizer or (LossScaleOptimizer(SGD(0.1)) if Policy(policy).loss_scale else SGD(0.1))
    step = train_step(model, LOSS, optimizer, distribution=distribution)
    state = placed(distribution, init_state(model, optimizer))
    return jax.jit(step).lower(state, distribution.batch(Batch(X[:32], Y[:32])))


SIZES = sorted([FEATURES * 32, 32, 32 * CLASSES, CLASSES])
PARAMETERS = sum(SIZES)


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
        text = lowered(policy, DataParallel(devices(8)), optimizer).compile().as_text()
        assert sorted(collectives(text)) == [("all-reduce", dtype, size) for size in SIZES]

    def test_gradients_are_reduced_in_bfloat16_if_the_policy_says_so(self):
        """Read the StableHLO, because XLA's CPU backend widens bfloat16."""
        policy = "variable=float32,compute=bfloat16,reduce=bfloat16"
        text = lowered(policy, DataParallel(devices(8))).as_text()
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

    @pytest.mark.slow
    def test_a_flag_set_during_training_retraces_the_step(self):
        model = trained(DataParallel(devices(2)), "mixed_float16", epochs=1)
        before = model.optimizer.trace_key
        model.optimizer.aggregate_in_float16 = False
        assert model.optimizer.trace_key != before
        assert model.optimizer.reduce_dtype(np.dtype("float16")) is None
        model.fit(X, Y, batch_size=32, verbose=0)

    @pytest.mark.compiled
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize(("policy", "kind"), [("float32", "f32"), ("mixed_float16", "f16")])
    def test_sharded_variables_and_gradients_are_cast_before_they_are_sent(self, policy, kind):
        distribution = FullyShardedDataParallel(devices(8), smallest=100)
        found = collectives(lowered(policy, distribution).compile().as_text())
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

    @pytest.mark.slow
    def test_float16_gradients_send_half_the_bytes(self):
        size = {"f16": 2, "f32": 4}
        moved = []
        for flag in (True, False):
            optimizer = LossScaleOptimizer(SGD(0.1), aggregate_in_float16=flag)
            found = collectives(lowered("mixed_float16", DataParallel(devices(8)), optimizer).compile().as_text())
            moved.append(sum(size[kind] * elements for _, kind, elements in found))
        assert moved[0] * 2 == moved[1] == 4 * PARAMETERS
