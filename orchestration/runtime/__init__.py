"""Support for training scripts in their containers: standard library only, Python 3.8 and later.

`source: {runtime: true}` packs it with a script's folder as `orchestration_runtime`, and
`orchestrate vendor-runtime DIRECTORY` copies it into one; it works under any name.

>>> def train(environ):
...     here = Cluster.from_environment(environ)
...     batch = global_batch(here.world_size, per_replica=32)
...     rate = Schedule(
...         peak=scaled_linearly(0.1, 256, batch), start=0.1, warmup_steps=10, total_steps=100
...     )
...     checkpoints = Checkpoints(
...         Folders.from_environment(environ).checkpoints, rank=here.rank, keep_last=3
...     )
...     last = checkpoints.newest()
...     first = last.number if last else 0
...     with reported_failures(), graceful_stop() as stop:
...         for step in range(first, rate.total_steps):
...             loss = 1 / (1 + step) + rate(step)
...             if stop or (step + 1) % 50 == 0:
...                 def write(folder):
...                     _ = (folder / "weights").write_text(str(loss))
...                 saved = checkpoints.save(step + 1, write, {"loss": loss})
...             if stop:
...                 break
...         else:
...             stop.complete()
...     return [checkpoint.path.name for checkpoint in checkpoints.whole()]
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as base:
...     train({"SAGEMAKER_BASE_DIR": base})
['checkpoint-00000050', 'checkpoint-00000100']
"""

from .batches import accumulation, cluster_size, global_batch, iterations_per_epoch
from .checkpoints import Checkpoints
from .errors import (
    CheckpointError,
    ClusterError,
    PreparationError,
    PreparationTimeout,
    Stopped,
)
from .failures import reported_failures, write_failure
from .folders import Folders
from .learning_rate import Schedule, scaled_by_root, scaled_linearly
from .lightning import lightning_environment
from .machines import InstanceGroup
from .measuring import StepMeter, measured_steps
from .preparing import prepare_once
from .ranks import Cluster, cluster
from .saved import Best, Checkpoint
from .stopping import StopSignal, default_grace_s, graceful_stop
from .tensorflow import tf_config

__all__ = [
    "Best",
    "Checkpoint",
    "CheckpointError",
    "Checkpoints",
    "Cluster",
    "ClusterError",
    "Folders",
    "InstanceGroup",
    "PreparationError",
    "PreparationTimeout",
    "Schedule",
    "StepMeter",
    "StopSignal",
    "Stopped",
    "accumulation",
    "cluster",
    "cluster_size",
    "default_grace_s",
    "global_batch",
    "graceful_stop",
    "iterations_per_epoch",
    "lightning_environment",
    "measured_steps",
    "prepare_once",
    "reported_failures",
    "scaled_by_root",
    "scaled_linearly",
    "tf_config",
    "write_failure",
]
