"""The SageMaker jobs that runs of a pipeline have started."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestration.cleanup import PIPELINE, RUN, JobKind, leftovers
from orchestration.runs.asking import asking

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_STAGE: Final = "orchestration:stage"
_PAGE: Final = 100
"""Jobs of one page of a listing: the most that SageMaker gives."""
_UNENDED: Final = ("InProgress", "Stopping")
_SEARCH: Final = JobKind(word="HyperParameterTuning")
_TRAINING: Final = JobKind(word="Training")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of a run, as SageMaker describes it."""

    kind: JobKind
    stage: str
    run: str
    """The token of its run."""
    description: Mapping[str, Any]
    """The response of its describe operation."""
    trained: tuple[Mapping[str, Any], ...] = ()
    """The descriptions of a search's training jobs, the first one first."""

    @property
    def name(self) -> str:
        """Its name, derived from pipeline, stage and run."""
        return str(self.description[self.kind.name])

    @property
    def status(self) -> str:
        """``InProgress``, ``Completed``, ``Failed``, ``Stopping`` or ``Stopped``."""
        return str(self.description[f"{self.kind.word}JobStatus"])

    @property
    def phase(self) -> str:
        """The secondary status of a training job, ``Downloading``; else its status.

        That of a search says how many of its training jobs have ended.
        """
        if self.kind == _SEARCH:
            ended = sum(_has_ended(each) for each in self.trained)
            return f"{self.status}: {ended} jobs ended, {len(self.trained) - ended} running"
        return str(self.description.get("SecondaryStatus") or self.status)

    @property
    def has_ended(self) -> bool:
        """True if it does not change any more."""
        return self.status not in _UNENDED

    @property
    def paid(self) -> tuple[tuple[JobKind, Mapping[str, Any]], ...]:
        """The jobs that it is paid for: itself, or the training jobs of a search."""
        if self.kind == _SEARCH:
            return tuple((_TRAINING, each) for each in self.trained)
        return ((self.kind, self.description),)


class Jobs:
    """The jobs of a pipeline's runs in an account; what can't change is asked for once."""

    def __init__(self, pipeline: Pipeline, sagemaker: Any, *, page: int = _PAGE) -> None:
        self.pipeline = pipeline
        self._client = sagemaker
        self._page = page
        self._tags: dict[str, Mapping[str, str]] = {}
        self._ended: dict[str, Job] = {}
        self._trained: dict[str, Mapping[str, Any]] = {}

    def every(self) -> Iterator[Job]:
        """Yield the latest jobs of all runs, a page of each stage, newest first."""
        with asking(f"jobs of {self.pipeline.name}"):
            yield from self._found(None, None)

    def of(self, tokens: Collection[str], *, since: datetime.datetime | None = None) -> list[Job]:
        """Return the jobs of a run, the oldest first.

        ``since`` is the start of its first attempt, if that is known: among many jobs of one stage,
        the search goes back until then, and otherwise until a page of them has none of the run's,
        after those that were found.
        """
        with asking(f"jobs of {self.pipeline.name}"):
            jobs = list(self._found(tokens, since))
        return sorted(jobs, key=lambda job: job.description["CreationTime"])

    def _found(
        self, tokens: Collection[str] | None, since: datetime.datetime | None
    ) -> Iterator[Job]:
        seen: set[str] = set()
        for jobs in leftovers(self.pipeline.lower().graph).jobs:
            for prefix in jobs.prefixes:
                # The prefix of one stage may be the beginning of another's.
                for job in self._named(jobs.kind, prefix, tokens, since):
                    if job.name not in seen:
                        seen.add(job.name)
                        yield job

    def _named(
        self,
        kind: JobKind,
        prefix: str,
        tokens: Collection[str] | None,
        since: datetime.datetime | None,
    ) -> Iterator[Job]:
        was_found = False
        for page in self._pages(kind, prefix):
            jobs = list(self._of_page(kind, prefix, page, tokens))
            yield from jobs
            was_found = was_found or bool(jobs)
            is_over = was_found if since is None else page[-1]["CreationTime"] < since
            if tokens is None or (not jobs and is_over):
                return

    def _pages(self, kind: JobKind, prefix: str) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the summaries of jobs with a prefix in their names, the latest first."""
        pages = self._client.get_paginator(_method(kind.list)).paginate(
            NameContains=prefix,
            SortBy="CreationTime",
            SortOrder="Descending",
            PaginationConfig={"PageSize": self._page},
        )
        for page in pages:
            if page[kind.summaries]:
                yield page[kind.summaries]

    def _of_page(
        self,
        kind: JobKind,
        prefix: str,
        page: Iterable[Mapping[str, Any]],
        tokens: Collection[str] | None,
    ) -> Iterator[Job]:
        for summary in page:
            if not summary[kind.name].startswith(prefix):
                continue
            tags = self._tags_of(summary[kind.arn])
            run = tags.get(RUN, "")
            if tags.get(PIPELINE) == self.pipeline.name and (tokens is None or run in tokens):
                job = self._described(kind, summary[kind.name], tags)
                # The jobs of a search have its tags, and names that begin with its name.
                if "TuningJobArn" not in job.description:
                    yield job

    def _tags_of(self, arn: str) -> Mapping[str, str]:
        if arn not in self._tags:
            tags = self._client.list_tags(ResourceArn=arn)["Tags"]
            self._tags[arn] = {tag["Key"]: tag["Value"] for tag in tags}
        return self._tags[arn]

    def _described(self, kind: JobKind, name: str, tags: Mapping[str, str]) -> Job:
        known = self._ended.get(name)
        if known is not None:
            return known
        describe = getattr(self._client, _method(f"Describe{kind.word}Job"))
        description = describe(**{kind.name: name})
        job = Job(
            kind=kind,
            stage=tags.get(_STAGE, ""),
            run=tags.get(RUN, ""),
            description=description,
            # After the search: once that has ended, none of its jobs starts.
            trained=tuple(self._of_search(name)) if kind == _SEARCH else (),
        )
        if job.has_ended and all(map(_has_ended, job.trained)):
            self._ended[name] = job
        return job

    def _of_search(self, name: str) -> Iterator[Mapping[str, Any]]:
        pages = self._client.get_paginator(
            "list_training_jobs_for_hyper_parameter_tuning_job"
        ).paginate(
            HyperParameterTuningJobName=name,
            SortBy="CreationTime",
            SortOrder="Ascending",
            PaginationConfig={"PageSize": _PAGE},
        )
        for page in pages:
            for summary in page["TrainingJobSummaries"]:
                # Only its description has the billed time, and the machines that it got.
                yield self._training(summary["TrainingJobName"])

    def _training(self, name: str) -> Mapping[str, Any]:
        known = self._trained.get(name)
        if known is None:
            known = self._client.describe_training_job(TrainingJobName=name)
            if _has_ended(known):
                self._trained[name] = known
        return known


def _has_ended(training: Mapping[str, Any]) -> bool:
    return training["TrainingJobStatus"] not in _UNENDED


def _method(operation: str) -> str:
    from botocore import xform_name

    return str(xform_name(operation))
