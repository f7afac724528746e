"""The kinds of resources that the steps of a graph may leave behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from orchestration.expressions import Join, Tree
from orchestration.graph import Call, Graph, Guarded, Operation, all_steps, candidates

PIPELINE: Final = "orchestration:pipeline"
"""The tag with the pipeline's name."""
COMPANION: Final = "-companion"
"""The end of the name of the state machine that cleans up, after the pipeline's."""
RUN: Final = "orchestration:run"
"""The tag with the run's identity, 12 hexadecimal digits."""
MACHINE: Final = "orchestration:machine"
"""The tag with the ARN of the state machine whose execution created the resource."""
KEEP: Final = "orchestration:keep-for-h"
"""The tag with the hours for which a file system outlives its run."""
TRIAL: Final = "orchestration:trial"
"""The tag of a temporary endpoint and of its configuration: the endpoint that is to be updated."""

_WORDS: Final = re.compile(r"\B(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """The operations on SageMaker jobs of one kind."""

    word: str
    """``Training``: what the names of its operations and fields begin with."""

    @property
    def list(self) -> str:
        """The operation that lists jobs."""
        return f"List{self.word}Jobs"

    @property
    def stop(self) -> str:
        """The operation that stops a job."""
        return f"Stop{self.word}Job"

    @property
    def summaries(self) -> str:
        """The field of a listing with its jobs."""
        return f"{self.word}JobSummaries"

    @property
    def name(self) -> str:
        """The field with a job's name."""
        return f"{self.word}JobName"

    @property
    def arn(self) -> str:
        """The field with a job's ARN."""
        return f"{self.word}JobArn"

    @property
    def resource(self) -> str:
        """The kind of resource in its ARNs: ``hyper-parameter-tuning-job``."""
        return f"{_WORDS.sub('-', self.word).lower()}-job"


JOB_KINDS: Final[Mapping[tuple[str, str], JobKind]] = {
    ("sagemaker", f"Create{word}Job"): JobKind(word=word)
    for word in ("HyperParameterTuning", "Training", "Processing", "Transform")
}
"""The jobs that can be listed and stopped, by the operation that starts them."""
_FILE_SYSTEM: Final = ("fsx", "CreateFileSystem")
_TRANSFER: Final = ("datasync", "CreateTask")
_COPY: Final = ("s3control", "CreateJob")
_TRIAL: Final = ("sagemaker", "CreateEndpoint")
_MARK: Final = ("sagemaker", "CreateEndpointConfig")
_ACQUIRED: Final = (_FILE_SYSTEM, _TRANSFER, _TRIAL, _MARK)
"""Creations by a guard of what has tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of one kind that runs of a pipeline start."""

    kind: JobKind
    prefixes: tuple[str, ...]
    """The beginnings of their names, the same in every run: ``digits-train-``."""

    @property
    def common(self) -> str:
        """The beginning of all their names."""
        columns = zip(*self.prefixes, strict=False)
        return "".join(letters[0] for letters in takewhile(lambda c: len(set(c)) == 1, columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """The resources that a run of a workflow may have left."""

    jobs: tuple[Jobs, ...] = ()
    file_systems: bool = False
    """True if runs create file systems."""
    transfers: tuple[str, ...] = ()
    """The beginnings of the names of DataSync's tasks, the same in every run."""
    copies: tuple[str, ...] = ()
    """The beginnings of the descriptions of jobs of S3 Batch Operations, the same in every run."""
    trials: tuple[str, ...] = ()
    """The beginnings of the names of temporary endpoints and of configurations that stand for a
    check which is not over, the same in every run."""
    unknown: tuple[str, ...] = ()
    """The steps that start or acquire something that can't be found again by names and tags."""

    def __bool__(self) -> bool:
        """Return whether there may be anything to stop or to delete."""
        named = (self.jobs, self.transfers, self.copies, self.trials)
        return self.file_systems or any(named)


def leftovers(graph: Graph) -> Leftovers:
    """Return what a run of a graph may leave if nothing of it goes on.

    A job that was started as a second attempt, on other machines or for an element of a loop has
    the same beginning of its name as the first.
    """
    prefixes: dict[JobKind, dict[str, None]] = {}
    unknown: dict[str, None] = {}
    acquired = [step.acquire for step in all_steps(graph) if isinstance(step, Guarded)]
    transfers = dict.fromkeys(_named(acquired, _TRANSFER, "Name"))
    tried = [call for call in acquired if _is_tried(call)]
    trials = dict.fromkeys(_named(tried, _TRIAL, "EndpointName"))
    trials |= dict.fromkeys(_named(tried, _MARK, "EndpointConfigName"))
    calls = [step for step in all_steps(graph) if isinstance(step, Call)]
    copies = dict.fromkeys(_named(calls, _COPY, "Description"))
    found = {_TRANSFER[0]: transfers, _COPY[0]: copies}
    for name, operation, field in _started(graph):
        if found.get(operation.service):
            # An execution belongs to its task, and the wait for a job to the job.
            continue
        kind = JOB_KINDS.get((operation.service, operation.name))
        prefix = None if field is None else _prefix(operation.request.get(field))
        if kind is None or prefix is None:
            unknown[name] = None
        else:
            prefixes.setdefault(kind, {})[prefix] = None
    kinds = {call.name: (call.operation.service, call.operation.name) for call in acquired}
    unknown |= {name: None for name, kind in kinds.items() if kind not in _ACQUIRED}
    endpoints = [call for call in acquired if kinds[call.name] in (_TRIAL, _MARK)]
    unknown |= {call.name: None for call in endpoints if call not in tried}
    return Leftovers(
        jobs=tuple(Jobs(kind=kind, prefixes=tuple(of)) for kind, of in prefixes.items()),
        file_systems=_FILE_SYSTEM in kinds.values(),
        transfers=tuple(transfers),
        copies=tuple(copies),
        trials=tuple(trials),
        unknown=tuple(unknown),
    )


def _named(calls: Iterable[Call], kind: tuple[str, str], field: str) -> Iterator[str]:
    """Yield the beginnings of the names that calls of one kind give."""
    for call in calls:
        if (call.operation.service, call.operation.name) == kind:
            prefix = _prefix(call.operation.request.get(field))
            if prefix is not None:
                yield prefix


def _is_tried(endpoint: Call) -> bool:
    """Return whether an endpoint says of itself that it is temporary."""
    tags = endpoint.operation.request.get("Tags")
    return isinstance(tags, list) and any(
        isinstance(tag, Mapping) and tag.get("Key") == TRIAL for tag in tags
    )


def _started(graph: Graph) -> Iterator[tuple[str, Operation, str | None]]:
    """Yield the requests that start what can be stopped, each with the field of its name."""
    for step in all_steps(graph):
        if isinstance(step, Call):
            field = None if step.adopt is None else step.adopt.name_field
            for call in candidates(step):
                if call.until is not None and call.until.stop is not None:
                    yield step.name, call.operation, field


def _prefix(name: Tree) -> str | None:
    """Return the part of a derived name that is the same in every run."""
    if isinstance(name, Join) and isinstance(name.parts[0], str):
        return name.parts[0]
    return None
