"""Several processes save one state together, each its own part, and a different number of processes loads it."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest

from processes import run_processes
from supremum.training import load_arrays
from training.bits import assert_same
from training.spread import compiled, mesh_of, put_on, spread, state_of

pytestmark = pytest.mark.slow

# The program that each of two processes runs, with two devices.
SCRIPT = """
import sys
from pathlib import Path
import jax, numpy as np

jax.distributed.initialize()
at, rank = Path(sys.argv[1]), jax.process_index()

from supremum.errors import ArgumentError
from supremum.training import CheckpointError, Checkpoint, load_arrays, save_arrays
from training.spread import compiled, mesh_of, sharding_of, state_of


def everywhere(value):
    whole = np.asarray(value)
    return jax.make_array_from_callback(whole.shape, sharding_of(whole, mesh), lambda part: whole[part])

def put(model):
    for variable in model.variables.values():
        variable.assign(everywhere(variable.read_stored()))
    optimizer = model.compiled().optimizer
    optimizer.state = jax.tree.map(everywhere, optimizer.state)
    return model

def parts(value):
    return [np.asarray(part.data).tobytes() for part in value.addressable_shards]

mesh = mesh_of(4)
model = put(compiled("mixed_float16"))
kernel = model.variables["dense/kernel"].read_stored()
assert not kernel.is_fully_addressable and not kernel.is_fully_replicated
model.save_state(at / "state", format="orbax")
assert (at / "state").is_dir()

other = put(compiled("mixed_float16", seed=1))
where = {name: value.sharding for name, value in state_of(other).items()}
assert other.load_state(at / "state") == 0
for name, value in state_of(other).items():
    assert value.sharding == where[name], name
    assert parts(value) == parts(state_of(model)[name]), name

try:
    model.save_state(at / "one")
except ArgumentError as error:
    assert 'format="orbax"' in str(error) and "'model/dense/kernel'" in str(error), error
else:
    raise AssertionError("sharded arrays were gathered")
assert not (at / "one").exists()

# What all have alike is written once, and all wait for it: whoever comes back finds it.
same = jax.device_put(np.arange(4.0, dtype="float32"), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))
save_arrays(at / "alike", {"same": same, "own": np.float32(rank)})
assert load_arrays(at / "alike")[0]["own"] == 0
save_arrays(at / "own", {"own": np.float32(rank)}, format="orbax")
assert load_arrays(at / "own")[0]["own"] == 0

# One fails, and so do all.
(at / "taken").mkdir(exist_ok=True)
(at / "taken" / "file").write_text("")
try:
    save_arrays(at / "taken" / "file" / "state", {"same": same})
except CheckpointError:
    print("refused", rank)

# The file of weights that one process wrote goes onto the devices of both.
names = {name for name in load_arrays(at / "state")[0]}
if rank == 0:
    from supremum.training import save_weights
    save_weights(compiled(seed=5), at / "weights")
jax.experimental.multihost_utils.sync_global_devices("written")
other.load_weights(at / "weights")
expected = compiled(seed=5).variables
for name, variable in other.variables.items():
    assert variable.read_stored().sharding == where[name]
    assert parts(variable.read_stored()) == parts(everywhere(expected[name].read_stored())), name

for step in (1, 2):
    Checkpoint({"w": kernel}, step=step).save(at / "run", format="orbax")
assert Checkpoint.load(at / "run").step == 2
print("done", rank)
"""


def test_two_processes_save_and_load_together(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    _, outputs = run_processes(tmp_path / "script.py", tmp_path, processes=2, devices=2, PYTHONPATH=path)
    for rank, text in enumerate(outputs):
        assert f"refused {rank}" in text, text[-3000:]
        assert f"done {rank}" in text, text[-3000:]
    model = put_on(compiled("mixed_float16", seed=2), 4)
    assert model.load_state(tmp_path / "state") == 0
    assert_same(state_of(model), state_of(compiled("mixed_float16")))
    assert len(model.variables["dense/kernel"].read_stored().sharding.device_set) == 4
    like = {"w": spread(jax.numpy.zeros((8, 16)), mesh_of(8))}
    run = load_arrays(tmp_path / "run", like={"model/w": like["w"]})[0]
    assert run["model/w"].sharding == like["w"].sharding
    assert np.array_equal(run["model/w"], compiled().variables["dense/kernel"].read_stored())
