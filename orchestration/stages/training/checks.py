"""The errors, warnings and facts of a training job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from orchestration import strategies
from orchestration.errors import PipelineError, Problem
from orchestration.phrases import counted
from orchestration.stages.stage import Context
from orchestration.stages.training import batch, limits
from orchestration.stages.training.automatic import PICKED, Auto
from orchestration.stages.training.batch import Arithmetic
from orchestration.stages.training.cluster import Candidate
from orchestration.stages.training.fields import TrainingFields
from orchestration.stages.training.limits import MOST_CHARACTERS
from orchestration.stages.training.request import request
from orchestration.stages.values import s3_problem
from orchestration.strategies import NoStrategy, Use


def problems(job: TrainingFields, context: Context) -> Iterator[Problem]:
    """Everything that is wrong with a job, with paths inside the stage."""
    if isinstance(job.strategy, Auto):
        yield from _unplanned(job)
        return
    machines = [*_container(job), *job.cluster.problems()]
    yield from machines
    for finding in strategies.findings(job.distribution, use(job)):
        if finding.certain:
            yield Problem(finding.path, finding.message)
    for name, channel in job.channels.items():
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            yield Problem(
                f"channels.{name}", "a channel's name is made of letters, digits, dots, - and _"
            )
        yield from channel.problems(f"channels.{name}")
    if job.source is not None and job.enable_network_isolation and "code" in job.channels:
        yield Problem(
            "channels.code", "is how an isolated container gets its source; choose another name"
        )
    yield from _places(job)
    yield from _metrics(job)
    yield from _hyperparameters(job)
    if job.profiler is not None:
        yield from job.profiler.problems()
    yield from _batch(job)
    yield from _requests(job, context, is_known=not machines)


def _unplanned(job: TrainingFields) -> Iterator[Problem]:
    yield Problem(
        "strategy",
        "is not planned yet, or what it asks for has changed since; run "
        "`orchestrate plan FILE --update` (the YAML or Python file)",
    )
    for name in PICKED:
        if getattr(job.cluster, name) not in (None, ()):
            yield Problem(f"cluster.{name}", "is what the planner picks; leave it out")


def warnings(job: TrainingFields) -> Iterator[Problem]:
    """Yield probable mistakes in a job that can be sent."""
    for finding in strategies.findings(job.distribution, use(job)):
        if not finding.certain:
            yield Problem(finding.path, finding.message)
    if job.spot is not None and job.checkpoints is None:
        yield Problem("spot", "an interrupted job starts from scratch; give it checkpoints: {}")
    alone = isinstance(job.distribution, NoStrategy) and not job.entrypoint
    several = any(isinstance(m.instance_count, int) and m.instance_count > 1 for m in _all(job))
    python = job.framework is not None and job.framework.base_framework == "pytorch"
    if alone and several and python and job.source is not None:
        yield Problem(
            "strategy",
            "is none on several instances: each runs the script by itself, on all the data unless "
            "a channel is sharded; torch_distributed connects them",
        )
    if job.cluster.max_pending_s is not None and not any(map(_accelerated, _all(job))):
        yield Problem(
            "cluster.max_pending_s", "has no effect on instance types without accelerators"
        )


def facts(job: TrainingFields) -> Iterator[str]:
    """The sizes of the job's cluster and batch, for every candidate that is known."""
    for machines in _distributed_over(job):
        processes = _processes(job, machines)
        if processes is None:
            continue
        replicas = processes // strategies.model_parallel(job.distribution)
        alone = f"{counted(processes, 'process')}, {counted(replicas, 'replica')}"
        arithmetic = _arithmetic(job, machines) or alone
        yield f"{machines.instance_count} x {machines.instance_type}: {arithmetic}"


def use(job: TrainingFields) -> Use:
    """Return the framework, version and machines that the job's strategy must support."""
    framework, cluster = job.framework, job.cluster
    counts = [m.instance_count for m in _all(job) if isinstance(m.instance_count, int)]
    base, version = (None, None) if framework is None else framework.toolkit
    name = None if framework is None else framework.name
    return Use(
        framework=name,
        framework_version=version,
        base=None if base == name else base,
        image=job.image if isinstance(job.image, str) else None,
        instance_types=_types(job),
        clusters=tuple(
            (name, count)
            for name, count in ((m.instance_type, m.instance_count) for m in _distributed_over(job))
            if isinstance(name, str) and isinstance(count, int)
        ),
        instance_count=min(counts, default=None) if not cluster.groups else None,
        groups=cluster.group_facts(),
        group_names=tuple(group.name for group in cluster.groups),
        entry_point=None if job.source is None else job.source.entry_point,
        has_source=job.source is not None,
    )


def _types(job: TrainingFields) -> tuple[str, ...]:
    """The types that the strategy has to run on, as far as they are known before the run."""
    found = (machines.instance_type for machines in _distributed_over(job))
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str)))


def _distributed_over(job: TrainingFields) -> tuple[Candidate, ...]:
    """Each cluster that the strategy may run on: of a heterogeneous one, the group it names."""
    named: str | None = getattr(job.distribution, "instance_group", None)
    for group in job.cluster.groups:
        if group.name == named:
            return (Candidate(group.instance_type, group.instance_count),)
    return job.cluster.machines()


def _all(job: TrainingFields) -> tuple[Candidate, ...]:
    return job.cluster.machines()


def _accelerated(machines: Candidate) -> bool:
    from orchestration.catalog import instance

    name = machines.instance_type
    known = instance(name) if isinstance(name, str) else None
    return known is None or known.devices != 0


def _container(job: TrainingFields) -> Iterator[Problem]:
    framework = job.framework
    if job.algorithm is not None and (job.image is not None or framework is not None):
        yield Problem("algorithm", "comes with its own container; leave out image and framework")
    elif job.algorithm is None and job.image is None:
        if framework is None:
            yield Problem("image", "is needed; or a framework, or an algorithm")
        elif framework.version is None:
            yield Problem("framework.version", "is needed where there is no image")
    if isinstance(job.image, str) and not job.image.strip():
        yield Problem("image", "is empty; give the registry path of a container, or leave it out")
    if job.algorithm is not None and job.source is not None:
        yield Problem("source", "an algorithm brings its own code; leave it out")
    if framework is not None and framework.name != "tensorflow" and framework.model_dir is not None:
        yield Problem("framework.model_dir", "only TensorFlow scripts receive this; remove it")
    if job.entrypoint:
        yield from _without_toolkit(job)


def _without_toolkit(job: TrainingFields) -> Iterator[Problem]:
    if not isinstance(job.distribution, NoStrategy):
        yield Problem(
            "entrypoint",
            "replaces the training toolkit, which is what starts "
            f"{job.distribution.kind}; leave out one of them",
        )
    if job.source is not None:
        yield Problem(
            "entrypoint",
            "replaces the training toolkit, which is what starts the source's entry_point; leave "
            "out one of them",
        )


def _places(job: TrainingFields) -> Iterator[Problem]:
    if job.checkpoints is not None:
        yield from s3_problem("checkpoints.uri", job.checkpoints.uri)
    yield from s3_problem("output.uri", job.output.uri)
    if job.debugger is not None:
        yield from s3_problem("debugger.uri", job.debugger.uri)
    if job.tensorboard is not None:
        yield from s3_problem("tensorboard.uri", job.tensorboard.uri)


def _metrics(job: TrainingFields) -> Iterator[Problem]:
    for name, regex in job.metrics.items():
        try:
            groups = re.compile(regex).groups
        except re.error as error:
            yield Problem(
                f"metrics.{name}", f"expected a regular expression, got {regex!r}: {error}"
            )
        else:
            if groups == 0:
                yield Problem(
                    f"metrics.{name}", f"{regex!r} has no group around the value: 'loss=([0-9.]+)'"
                )


def _hyperparameters(job: TrainingFields) -> Iterator[Problem]:
    is_encoded = job.source is not None or not isinstance(job.distribution, NoStrategy)
    for name, value in job.hyperparameters.items():
        if name.startswith("sagemaker_"):
            yield Problem(
                f"hyperparameters.{name}",
                "names with sagemaker_ are the toolkit's; set strategy, source or extra_request",
            )
        if not isinstance(value, str):
            continue
        sent = len(json.dumps(value) if is_encoded else value)
        if sent > MOST_CHARACTERS:
            yield Problem(
                f"hyperparameters.{name}",
                f"has {sent} characters{' as JSON' if is_encoded else ''}; the most is "
                f"{MOST_CHARACTERS}; put it into a file of the source, or into a channel",
            )


def _processes(job: TrainingFields, machines: Candidate) -> int | None:
    from orchestration.catalog import instance

    if not isinstance(machines.instance_type, str) or not isinstance(machines.instance_count, int):
        return None
    known = instance(machines.instance_type)
    devices = None if known is None else known.devices
    return strategies.world(job.distribution, machines.instance_count, devices)


def _arithmetic(job: TrainingFields, machines: Candidate) -> Arithmetic | None:
    described = batch.described(job.batch, job.hyperparameters)
    processes = _processes(job, machines)
    if described is None or processes is None:
        return None
    parallel = strategies.model_parallel(job.distribution)
    return batch.arithmetic(described, job.hyperparameters, processes, parallel)


def _batch(job: TrainingFields) -> Iterator[Problem]:
    if job.batch is None:
        return
    found: list[Problem] = []
    for machines in _distributed_over(job):
        on_cluster = _arithmetic(job, machines)
        found += batch.problems(job.batch, job.hyperparameters, on_cluster)
    yield from dict.fromkeys(found)


def _requests(job: TrainingFields, context: Context, *, is_known: bool) -> Iterator[Problem]:
    """Yield the rules that the candidates' requests break, and what prevents a request.

    Where the container or the machines are wrong themselves, what follows from that is left out.
    """
    found: list[Problem] = []
    for number in range(len(job.candidates())):
        try:
            whole = request(job, context, number)
        except PipelineError as error:
            found += error.problems if is_known else ()
        except ValueError as error:
            found.append(Problem("extra_request", str(error)))
        else:
            found += limits.problems(whole, job.extra_request)
    yield from dict.fromkeys(found)
