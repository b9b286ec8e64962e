import asyncio
import socket
import subprocess
import sys
import threading
import warnings

import jax.numpy as jnp
import pytest

from supremum import nn
from supremum.mixed_precision import (
    HardwareWarning,
    Policy,
    PolicyMap,
    PolicyWarning,
    floatx,
    global_policy,
    set_floatx,
    set_global_policy,
    use_policy,
)
from supremum.mixed_precision.policy import global_policy as settings
from supremum.mixed_precision.policy import hardware


@pytest.fixture(autouse=True)
def restore_policy_and_floatx():
    yield
    set_global_policy(None)
    set_floatx("float32")


class TestGlobalPolicy:
    def test_the_policy_follows_floatx_until_it_is_set(self):
        """The example of the RFC, "The global policy"."""
        assert global_policy() == Policy("float32")
        set_floatx("float16")
        assert global_policy() == Policy("float16")
        set_global_policy("float64")
        set_floatx("float32")
        assert global_policy() == Policy("float64")
        set_global_policy(None)
        assert global_policy() == Policy("float32")

    def test_a_policy_or_its_name_can_be_set(self):
        set_global_policy("mixed_float16")
        named = global_policy()
        set_global_policy(Policy("mixed_float16"))
        assert global_policy() == named
        set_global_policy(Policy("mixed_float16", loss_scale=128))
        assert global_policy().loss_scale is not None
        assert global_policy() != named

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("value", "code", "said"),
        [
            ("bfloat16", 0, "bfloat16"),
            ("float17", 1, "the environment variable SUPREMUM_FLOATX='float17' is invalid: unknown dtype"),
            ("int8", 1, "floatx must be bfloat16, float16, float32 or float64, got int8"),
        ],
    )
    def test_the_environment_variable_sets_floatx(self, value, code, said):
        program = "from supremum.mixed_precision import global_policy; print(global_policy())"
        environment = {"SUPREMUM_FLOATX": value, "JAX_PLATFORMS": "cpu", "PATH": ""}
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
        )
        assert run.returncode == code
        assert said in run.stdout + run.stderr

    @pytest.mark.parametrize("dtype", ["int32", "complex64", "bool", "float33", None])
    def test_a_floatx_that_is_not_real_floating_raises(self, dtype):
        with pytest.raises((ValueError, TypeError)):
            set_floatx(dtype)
        assert floatx() == "float32"


class TestAcceptedPolicies:
    @pytest.mark.parametrize("policy", ["int32", "bool", "complex64", "variable=float32,compute=int8"])
    @pytest.mark.parametrize("put", [set_global_policy, use_policy])
    def test_a_policy_that_does_not_compute_in_floats_raises(self, policy, put):
        with pytest.raises(ValueError, match="must compute in bfloat16, float16, float32 or float64"):
            put(policy)
        assert global_policy() == Policy("float32")
        assert nn.Flatten(dtype=policy).dtype_policy == Policy(policy)

    def test_infer_can_be_set(self):
        set_global_policy("infer")
        assert nn.Dense(2).compute_dtype is None

    @pytest.mark.parametrize("policy", ["float16", "bfloat16"])
    def test_16_bit_variables_warn_at_the_line_that_sets_the_policy(self, policy):
        for put in (set_global_policy, use_policy):
            with pytest.warns(PolicyWarning, match=f"'mixed_{policy}' computes in the same") as caught:
                put(policy)
            assert caught[0].filename == __file__

    @pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float32", "float64", "infer"])
    def test_other_policies_do_not_warn(self, policy):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            set_global_policy(policy)
        assert [each for each in caught if each.category is not HardwareWarning] == []
        assert global_policy() == Policy(policy)

    def test_a_policy_map_raises(self):
        with pytest.raises((ValueError, TypeError)):
            set_global_policy(PolicyMap({}))
        with pytest.raises(ValueError, match="must be one policy, got PolicyMap; give it to a model"):
            nn.Dense(2, dtype=PolicyMap({}))


class TestScope:
    def test_a_layer_reads_the_global_policy_once(self):
        layer = nn.Dense(10)
        set_global_policy("mixed_float16")
        assert (layer.dtype_policy.name, nn.Dense(10).dtype_policy.name) == ("float32", "mixed_float16")
        assert nn.Dense(10, dtype="float32").compute_dtype == "float32"
        with pytest.raises(AttributeError):
            layer.dtype_policy = Policy("float16")

    def test_use_policy_overrides_the_global_policy_until_it_exits(self):
        set_global_policy("mixed_float16")
        with use_policy("float32") as outer, use_policy("mixed_bfloat16"):
            assert (outer, global_policy()) == (Policy("float32"), Policy("mixed_bfloat16"))
            with use_policy(None):
                assert global_policy() == Policy("mixed_float16")
            assert global_policy() == Policy("mixed_bfloat16")
        with pytest.raises(RuntimeError), use_policy("float64"):
            raise RuntimeError
        assert use_policy("float64")(lambda: global_policy().name)() == "float64"
        assert global_policy() == Policy("mixed_float16")

    def test_use_policy_applies_to_tasks_but_not_to_threads(self):
        set_global_policy("mixed_float16")
        seen = {}

        async def task():
            seen["task"] = global_policy().name

        with use_policy("mixed_bfloat16"):
            thread = threading.Thread(target=lambda: seen.setdefault("thread", global_policy().name))
            thread.start()
            thread.join()
            asyncio.run(task())
        assert seen == {"thread": "mixed_float16", "task": "mixed_bfloat16"}

    def test_use_policy_decorates_functions(self):
        @use_policy("mixed_bfloat16")
        def make(units, *, name):
            """Made."""
            return nn.Dense(units).compute_dtype, name

        assert make(2, name="x") == ("bfloat16", "x")
        assert make.__doc__ == "Made."


class Device:
    def __init__(self, platform, capability=None):
        self.platform = self.device_kind = platform
        if capability is not None:
            self.compute_capability = capability


LAYER = "nn.ReLU()(jnp.ones(2))"
SCRIPT = """
import warnings
import jax, jax.numpy as jnp
from supremum import mixed_precision, nn

counts = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", mixed_precision.HardwareWarning)
    {before}
    mixed_precision.set_global_policy("mixed_float16")
    counts.append(len(caught))
    {after}
    counts.append(len(caught))
print(counts)
"""


class TestHardware:
    @pytest.mark.parametrize(
        ("dtype", "device", "gains"),
        [
            ("float16", Device("gpu", "7.0"), True),
            ("float16", Device("gpu", "6.1"), False),
            ("float16", Device("gpu", "gfx90a"), None),
            ("float16", Device("tpu"), False),
            ("float16", Device("cpu"), False),
            ("bfloat16", Device("gpu", "8.0"), True),
            ("bfloat16", Device("gpu", "7.5"), False),
            ("bfloat16", Device("gpu", "10.0"), True),
            ("bfloat16", Device("tpu"), True),
        ],
    )
    def test_gains_by_dtype_and_device(self, dtype, device, gains):
        assert hardware.gains(dtype, device) is gains

    @pytest.mark.parametrize(
        ("flags", "gains"), [({"avx512_bf16"}, True), ({"sse"}, False), ({"bf16"}, True), (None, None)]
    )
    def test_gains_reads_cpu_flags(self, monkeypatch, flags, gains):
        monkeypatch.setattr(hardware, "_cpu_flags", lambda: flags)
        assert hardware.gains("bfloat16", Device("cpu")) is gains

    def test_the_warning_comes_once_when_a_mixed_layer_first_runs(self, monkeypatch):
        monkeypatch.setattr(hardware, "_warned", set())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layers = [nn.ReLU(dtype=policy) for policy in ("mixed_float16", "mixed_float16", "float16", "float32")]
            for layer in layers:
                nn.initialize(layer, jnp.ones(2))
            assert not caught
            for layer in layers:
                layer(jnp.ones(2))
        assert [(each.category, each.filename) for each in caught] == [(HardwareWarning, __file__)]
        assert "computing in float16 gains no speed on this cpu device" in str(caught[0].message)

    @pytest.mark.parametrize("set_policy", [set_global_policy, use_policy])
    @pytest.mark.parametrize(
        ("running", "policy", "count"),
        [(True, "mixed_float16", 1), (False, "mixed_float16", 0), (True, "float32", 0), (True, "infer", 0)],
    )
    def test_a_policy_warns_when_set_if_a_backend_runs(self, monkeypatch, set_policy, running, policy, count):
        monkeypatch.setattr(hardware, "_warned", set())
        monkeypatch.setattr(settings, "is_backend_running", lambda: running)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HardwareWarning)
            set_policy(policy)
            set_policy(policy)
        found = [(each.category, each.filename) for each in caught if each.category is HardwareWarning]
        assert found == [(HardwareWarning, __file__)] * count

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ("", f"jax.distributed.initialize('127.0.0.1:{{port}}', 1, 0); {LAYER}", [0, 1]),
            ("jnp.ones(2)", LAYER, [1, 1]),
        ],
        ids=["before JAX runs", "after"],
    )
    def test_setting_a_policy_starts_no_backend(self, before, after, expected):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            script = SCRIPT.format(before=before, after=after.format(port=probe.getsockname()[1]))
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert (run.stdout, run.returncode) == (f"{expected}\n", 0), run.stderr
