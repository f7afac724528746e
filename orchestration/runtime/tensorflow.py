"""TensorFlow's description of a cluster, for scripts that start their own strategy.

https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
"""

from __future__ import annotations

from typing import Any

from .ranks import Cluster

# Those of SageMaker's TensorFlow container.
_WORKER_PORT = 2222
_SERVER_PORT = 2223


def tf_config(cluster: Cluster, *, parameter_servers: bool = False) -> dict[str, Any]:
    """Build the content of `TF_CONFIG` (as JSON) on this host, with a worker on each host.

    `parameter_servers`: add a server on each host and make the first worker the master, like
    SageMaker's `parameter_server`. Raises ValueError if the names of the hosts are unknown.

    >>> two = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
    >>> tf_config(Cluster.from_environment(two))["task"]
    {'type': 'worker', 'index': 1}
    """
    hosts = cluster.hosts
    if not hosts or cluster.node_rank < 0:
        raise ValueError("the names of the hosts are unknown, or this host does not train")
    workers = [f"{host}:{_WORKER_PORT}" for host in hosts]
    if not parameter_servers or len(hosts) == 1:
        task = {"type": "worker", "index": cluster.node_rank}
        return {"cluster": {"worker": workers}, "task": task}
    members = {
        "master": workers[:1],
        "worker": workers[1:],
        "ps": [f"{host}:{_SERVER_PORT}" for host in hosts],
    }
    is_master = cluster.node_rank == 0
    task = {
        "type": "master" if is_master else "worker",
        "index": 0 if is_master else cluster.node_rank - 1,
    }
    return {"cluster": members, "task": task, "environment": "cloud"}
