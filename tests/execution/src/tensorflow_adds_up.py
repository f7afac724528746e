"""Joins the others by TF_CONFIG, adds up with them in TensorFlow, and tells who it was."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf
from orchestration_runtime import cluster


def by_servers(config: dict[str, Any], mine: float, world: int) -> float:
    """The sum, in a variable that lives on a parameter server."""
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    task = config["task"]
    spec = tf.train.ClusterSpec(config["cluster"])
    server = v1.train.Server(spec, job_name=task["type"], task_index=task["index"])
    with tf.Graph().as_default():
        with v1.device("/job:ps/task:0"):
            total = v1.get_variable("total", initializer=0.0)
            arrived = v1.get_variable("arrived", initializer=0)
            left = v1.get_variable("left", initializer=0)
        add = tf.group(total.assign_add(mine), arrived.assign_add(1))
        leave = left.assign_add(1)
        chief = task["type"] == "master"
        with v1.train.MonitoredTrainingSession(server.target, is_chief=chief) as session:
            session.run(add)
            while session.run(arrived) < world:
                pass
            found = float(session.run(total))
            session.run(leave)
            while chief and session.run(left) < world:
                pass
            os._exit(tell(config, found))  # the session would wait for peers that have gone


def by_mirroring(mine: float) -> float:
    """The sum, all-reduced between replicas."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function
    def step() -> Any:
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(mine))

    return float(strategy.run(step).numpy())


def tell(config: dict[str, Any], total: float) -> int:
    """Write down who this process was; exit status 0."""
    here = cluster()
    seen = {
        "rank": here.rank,
        "host": socket.gethostname(),
        "group": os.environ["SM_CURRENT_INSTANCE_GROUP"],
        "task": config["task"],
        "cluster": config["cluster"],
        "runtime": [here.launcher, here.role, here.world_size],
        "arguments": sys.argv[1:],
        "total": total,
    }
    Path(os.environ["SEEN"], f"{here.rank}.json").write_text(json.dumps(seen))
    return 0


def main() -> None:
    """Add up."""
    config = json.loads(os.environ["TF_CONFIG"])
    here = cluster()
    if "ps" in config["cluster"]:
        by_servers(config, here.rank + 1.0, here.world_size)
    else:
        tell(config, by_mirroring(here.rank + 1.0))


if __name__ == "__main__":
    main()
