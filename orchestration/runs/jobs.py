"""The SageMaker jobs that runs of a pipeline have started."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestration.cleanup import PIPELINE, RUN, JobKind, leftovers
from orchestration.runs.asking import asking

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_STAGE: Final = "orchestration:stage"
_MOST: Final = 100
"""Jobs of one kind and stage that are looked at, the latest first: a page of the listing."""
_UNENDED: Final = ("InProgress", "Stopping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of a run, as SageMaker describes it."""

    kind: JobKind
    stage: str
    run: str
    """The token of its run."""
    description: Mapping[str, Any]
    """The response of its describe operation."""

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
        """The secondary status of a training job, ``Downloading``; else its status."""
        return str(self.description.get("SecondaryStatus") or self.status)

    @property
    def has_ended(self) -> bool:
        """True if it does not change any more."""
        return self.status not in _UNENDED


class Jobs:
    """The jobs of a pipeline's runs in an account; what can't change is asked for once."""

    def __init__(self, pipeline: Pipeline, sagemaker: Any) -> None:
        self.pipeline = pipeline
        self._client = sagemaker
        self._tags: dict[str, Mapping[str, str]] = {}
        self._ended: dict[str, Job] = {}

    def every(self) -> Iterator[Job]:
        """Yield the latest jobs of all runs, newest first among those of one stage."""
        with asking(f"jobs of {self.pipeline.name}"):
            yield from self._found(None)

    def of(self, tokens: Collection[str]) -> list[Job]:
        """Return the jobs of a run, the oldest first."""
        with asking(f"jobs of {self.pipeline.name}"):
            jobs = list(self._found(tokens))
        return sorted(jobs, key=lambda job: job.description["CreationTime"])

    def _found(self, tokens: Collection[str] | None) -> Iterator[Job]:
        seen: set[str] = set()
        for jobs in leftovers(self.pipeline.lower().graph).jobs:
            for prefix in jobs.prefixes:
                # The prefix of one stage may be the beginning of another's.
                for job in self._named(jobs.kind, prefix, tokens):
                    if job.name not in seen:
                        seen.add(job.name)
                        yield job

    def _named(self, kind: JobKind, prefix: str, tokens: Collection[str] | None) -> Iterator[Job]:
        listing = getattr(self._client, _method(kind.list))
        listed = listing(
            NameContains=prefix, SortBy="CreationTime", SortOrder="Descending", MaxResults=_MOST
        )[kind.summaries]
        for summary in listed:
            if not summary[kind.name].startswith(prefix):
                continue
            tags = self._tags_of(summary[kind.arn])
            run = tags.get(RUN, "")
            if tags.get(PIPELINE) == self.pipeline.name and (tokens is None or run in tokens):
                yield self._described(kind, summary[kind.name], tags)

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
        job = Job(
            kind=kind,
            stage=tags.get(_STAGE, ""),
            run=tags.get(RUN, ""),
            description=describe(**{kind.name: name}),
        )
        if job.has_ended:
            self._ended[name] = job
        return job


def _method(operation: str) -> str:
    from botocore import xform_name

    return str(xform_name(operation))
