"""The dollars that jobs of runs were billed, and the hours that they took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cleanup import PIPELINE, RUN
from orchestration.cli.commands.costs.estimating import price, usd
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, document, note, require, say

if TYPE_CHECKING:
    from orchestration.cleanup import JobKind
    from orchestration.pipeline import Pipeline
    from orchestration.pricing import Expected, Line

_STAGE: Final = "orchestration:stage"
_MOST: Final = 100
"""Jobs of one kind and stage that are looked at, the latest first: a page of the listing."""


def earlier(pipeline: str, region: str | None, profile: str | None) -> dict[str, Expected]:
    """Return the hours that jobs of earlier runs took, by stage; those that completed."""
    from orchestration.pricing.billed import billed_h, mean

    account = account_of(named(pipeline).load(), region, profile)
    hours: dict[str, list[float]] = {}
    for kind, stage, _, job in account.jobs():
        took = billed_h(kind, job)
        if job[f"{kind.word}JobStatus"] == "Completed" and took is not None:
            hours.setdefault(stage, []).append(took)
    found = {stage: mean(took) for stage, took in hours.items()}
    if not found:
        note(f"no job of an earlier run of {account.pipeline.name} is in {account.region}")
    return {stage: expected for stage, expected in found.items() if expected is not None}


def billed(
    pipeline: str, run_id: str, *, region: str | None, profile: str | None, as_json: bool
) -> None:
    """Show what the jobs of a run were billed; exit with 1 if it has none."""
    from orchestration.pricing import Sum

    account = account_of(named(pipeline).load(), region, profile)
    lines = account.billed(run_id)
    if not lines:
        note(f"no job of run {run_id} of {account.pipeline.name} is in {account.region}")
        raise typer.Exit(FAILED)
    total = Sum.of(lines)
    if as_json:
        each = [line.data() for line in lines]
        document({"run": run_id, "lines": each, "usd": total.expected_usd})
        return
    for text in told(lines):
        say(text)


def told(lines: Sequence[Line]) -> Iterator[str]:
    """Yield what jobs were billed, and their sum, as text."""
    from orchestration.pricing import Sum

    for line in lines:
        hours = "?" if line.expected is None else f"{line.expected:,.3g}"
        dollars = usd(line.expected_usd) if line.rate is not None else line.lacks
        yield f"{line.stage}: {line.what}, {hours} h at {price(line)}: {dollars}"
    total = Sum.of(lines).expected_usd
    yield f"billed for jobs: {usd(total)}, without file systems, endpoints and requests"


@dataclass(frozen=True, slots=True)
class Account:
    """The jobs that runs of a pipeline have left in an account."""

    pipeline: Pipeline
    client: Any
    """SageMaker's client."""
    region: str

    def billed(self, run_id: str) -> list[Line]:
        """Return the lines of the jobs of a run, by its name or its token."""
        from orchestration.expressions.evaluate import run_token
        from orchestration.pricing.billed import of_job
        from orchestration.pricing.lines import merged

        names = {run_id, run_token(f"{self.pipeline.name}/{run_id}")}
        found = [
            line
            for kind, stage, run, job in self.jobs()
            if run in names
            for line in of_job(kind, stage, job, self.region)
        ]
        return list(merged(found))

    def jobs(self) -> Iterator[tuple[JobKind, str, str, Mapping[str, Any]]]:
        """Yield the latest jobs: kind, stage, run, and what SageMaker says of each."""
        from orchestration.cleanup import leftovers

        seen: set[str] = set()
        for jobs in leftovers(self.pipeline.lower().graph).jobs:
            for prefix in jobs.prefixes:
                # The prefix of one stage may be the beginning of another's.
                for kind, stage, run, job in self._named(jobs.kind, prefix):
                    if job[kind.name] not in seen:
                        seen.add(job[kind.name])
                        yield kind, stage, run, job

    def _named(
        self, kind: JobKind, prefix: str
    ) -> Iterator[tuple[JobKind, str, str, Mapping[str, Any]]]:
        listing = getattr(self.client, _operation(kind.list))
        describe = getattr(self.client, _operation(f"Describe{kind.word}Job"))
        listed = listing(
            NameContains=prefix, SortBy="CreationTime", SortOrder="Descending", MaxResults=_MOST
        )[kind.summaries]
        for summary in listed:
            if not summary[kind.name].startswith(prefix):
                continue
            tags = self.client.list_tags(ResourceArn=summary[kind.arn])["Tags"]
            of = {tag["Key"]: tag["Value"] for tag in tags}
            if of.get(PIPELINE) == self.pipeline.name:
                job = describe(**{kind.name: summary[kind.name]})
                yield kind, of.get(_STAGE, ""), of.get(RUN, ""), job


def _operation(name: str) -> str:
    from botocore import xform_name

    return str(xform_name(name))


def account_of(pipeline: Pipeline, region: str | None, profile: str | None) -> Account:
    """Return the account in which a pipeline has run."""
    require({"boto3": "aws"}, what="looking up jobs")
    from orchestration.cli.commands.deployment import session_of

    session = session_of(region or pipeline.region, profile)
    return Account(pipeline, session.client("sagemaker"), session.region_name)
