"""Interruptions of managed spot training: a job loses its instances and begins again on others.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html says that the job
is restarted, and that its checkpoints are copied from S3 to the new instances.
"""

from __future__ import annotations

import shutil

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject
from orchestration.local.account.records import INTERRUPTION
from orchestration.local.account.storage import Caller, Location
from orchestration.local.sagemaker.hosts.cluster import Cluster
from orchestration.local.sagemaker.outcomes import Interrupted


def check(account: Account, name: str, request: JsonObject, caller: Caller) -> None:
    """Raise `Interrupted` where a fault takes the instances; call this often.

    A job that keeps checkpoints is interrupted once there are some in S3.
    """
    if not request.get("EnableManagedSpotTraining"):
        return
    kept = request.get("CheckpointConfig")
    if kept and not storage.objects(Location.parse(kept["S3Uri"], caller)):
        return
    if account.faults.job_fault(INTERRUPTION, name, request) is not None:
        raise Interrupted


def lose(cluster: Cluster) -> None:
    """Remove everything that was on the instances."""
    for host in cluster.hosts:
        shutil.rmtree(host.directory)
