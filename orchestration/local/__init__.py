"""The embedded AWS: the parts of AWS that a pipeline uses, simulated on this machine.

S3, IAM, STS, EventBridge, EventBridge Scheduler and CloudWatch Logs are moto's; rules start state
machines and tell topics, schedules start theirs while `pass_time` moves the time. Step Functions is
moto's engine with its faults mended. SageMaker (training, tuning, processing, batch transforms,
models, endpoints) and FSx for Lustre are simulated here, and their jobs really run, as local
processes. What is not simulated answers `NotSimulated`.

A job can tell in these ways that it is not on AWS:

* Whatever its image, it runs with this interpreter and these packages: a training job in the
  PyTorch training toolkit (or its own `ContainerEntrypoint`), a processing job by its
  `ContainerEntrypoint`, either by the stand-in that
  its stage names (`local: {command: ...}`), a model under the PyTorch inference toolkit's contract.
* `/opt/ml` is a directory of its own, which `SAGEMAKER_BASE_DIR` names too; such paths in the
  request's hyperparameters, environment, entry point and arguments are rewritten. Where the system
  has no mount namespaces (macOS, many containers), a script that names `/opt/ml` itself reaches
  this machine's; the job then fails, and its reason says what to use.
* Each host is a process tree with an address of 127.0.0.0/8; an accelerated instance type has
  `devices_per_host` accelerators in the toolkit's eyes, and CPUs in fact.
* A processing job is not cut off the network (`EnableNetworkIsolation`), and its program must be
  one of this machine.
* A tuning job runs its training jobs for real; Bayesian search and Hyperband draw their values at
  random, and no training job is stopped early.
* Pauses are shorter. Limits on what really runs (`MaxRuntimeInSeconds`, a task's
  `TimeoutSeconds`) are as long as on AWS, and `MaxRuntimeInSeconds` counts only the time in which
  the job could run.
* `AWS_*` entries of a request's environment are dropped: they could lead to the real AWS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.local.account.records import Fault, RecordedCall
    from orchestration.local.policies.deciding import Access
    from orchestration.local.processes.environment import refuse_real_aws
    from orchestration.local.server.embedded import EmbeddedAws

_MODULES = {
    "Access": "policies.deciding",
    "EmbeddedAws": "server.embedded",
    "Fault": "account.records",
    "RecordedCall": "account.records",
    "refuse_real_aws": "processes.environment",
}
"""The module of each public name. Modules load on first use: every host of a job starts below this
package, and needs none of them."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


__all__ = ["Access", "EmbeddedAws", "Fault", "RecordedCall", "refuse_real_aws"]
