"""Jobs of a run that still run when it has ended: found by name and tag, and stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestration.cleanup import RUN, Jobs
from orchestration.execution.effects import Note, Performance, Request, ServiceError
from orchestration.execution.sending import sent
from orchestration.graph import Retry


def stop_running(kinds: Iterable[Jobs], run: str, retry: Retry) -> Performance[list[str]]:
    """Stop the jobs of a run that still run; returns what was stopped, as errors name it."""
    stopped = []
    for jobs in kinds:
        for name, arn in (yield from _running(jobs, retry)):
            listed: Any = yield from sent(_request("ListTags", {"ResourceArn": arn}), retry)
            if {"Key": RUN, "Value": run} in listed["Tags"]:
                yield Note(f"{name} still runs at the end of its run; stopping it")
                try:
                    yield from sent(_request(jobs.kind.stop, {jobs.kind.name: name}), retry)
                except ServiceError as error:
                    if error.passing:
                        raise
                    # SageMaker calls it an error if the job has ended meanwhile.
                    yield Note(f"{name} could not be stopped: {error}")
                else:
                    stopped.append(f"Create{jobs.kind.word}Job {name}")
    return stopped


def _running(jobs: Jobs, retry: Retry) -> Performance[list[tuple[str, str]]]:
    """List the names and ARNs of jobs that run, whichever run they belong to."""
    kind, names, page = jobs.kind, list[tuple[str, str]](), dict[str, str]()
    named = {"NameContains": jobs.common} if jobs.common else {}
    while True:
        request = {**named, "StatusEquals": "InProgress", **page, "MaxResults": 100}
        try:
            answer: Any = yield from sent(_request(kind.list, request), retry)
        except ServiceError as error:
            if error.passing:
                raise
            # A run must not fail because it may not list jobs.
            yield Note(f"jobs that still run can't be looked for: {error}")
            return names
        for summary in answer[kind.summaries]:
            if summary[kind.name].startswith(jobs.prefixes):
                names.append((summary[kind.name], summary[kind.arn]))
        if "NextToken" not in answer:
            return names
        page = {"NextToken": answer["NextToken"]}


def _request(operation: str, parameters: dict[str, Any]) -> Request:
    return Request("sagemaker", operation, parameters)
