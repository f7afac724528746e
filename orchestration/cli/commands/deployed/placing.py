"""``orchestrate deploy airflow`` and ``destroy airflow``: files in a folder of DAGs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from orchestration.cli import values
from orchestration.cli.commands.changing import Consent
from orchestration.cli.commands.deployment import MODULES, session_to_change
from orchestration.cli.naming import deployed, named
from orchestration.cli.output import colored_diff, document, note, require, say
from orchestration.phrases import counted

if TYPE_CHECKING:
    from orchestration.deploy import SourceFolder
    from orchestration.deploy.account import Regional
    from orchestration.deploy.dags import Placement, Store
    from orchestration.expressions import Json
    from orchestration.pipeline import Pipeline

_MANY: Final = 1000
"""Times that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that say what is put where."""

    to: str
    dag: Path | None = None
    policy: Path | None = None
    unrestricted: Sequence[str] = ()
    adopt: bool = False
    renamed_from: str | None = None
    full: bool = False
    region: str | None = None
    profile: str | None = None

    def __post_init__(self) -> None:
        """Refuse a folder that does not exist before anything is asked of AWS."""
        if not (self.in_s3 or Path(self.to).is_dir()):
            raise typer.BadParameter(f"{self.to} is no folder", param_hint="--to")

    @property
    def in_s3(self) -> bool:
        """True if the folder of DAGs is in S3."""
        return self.to.startswith("s3://")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Code:
    """The folders of code that are not in S3 yet."""

    missing: Sequence[SourceFolder] = ()
    s3: Any = None

    def send(self, consent: Consent) -> None:
        """Put them there."""
        from orchestration.deploy.sources import send

        for folder in self.missing:
            send(folder, self.s3)
            consent.report(f"did upload {folder.uri}")


def deploy(pipeline: str, parameters: Sequence[str], options: Options, consent: Consent) -> None:
    """Put a pipeline's DAG into a folder of DAGs, and its code into S3."""
    from orchestration.deploy import dags, sources

    which = named(pipeline)
    if which.path is None:
        raise typer.BadParameter(
            "a DAG is deployed from a YAML file, since its lock file is read where Airflow parses",
            param_hint="PIPELINE",
        )
    loaded = which.load()
    specs = loaded.parameter_specs()
    chosen = values.parameters(specs, parameters, filled=[spec.name for spec in specs])
    folders = sources.folders(loaded, chosen)
    session = _session(loaded, options, folders)
    store = _store(options, session)
    files = dags.contents(which.path, options.dag)
    placed = dags.placement(
        loaded.name, files, store, adopt=options.adopt, renamed_from=options.renamed_from
    )
    warnings = [*dags.warnings(placed, files), *([] if placed.known else _missed(loaded))]
    code = _code(folders, session)
    policy = None if options.policy is None else _policy(loaded, chosen, options, session)
    if not consent.as_json:
        _announce(placed, code.missing, full=options.full)
        for text in warnings:
            note(f"warning: {text}")
    if not consent.dry_run:
        if count := len(placed.every_change) + len(code.missing):
            consent.ask(f"Make these {counted(count, 'change')}")
        code.send(consent)
        placed.apply(on_change=lambda change: consent.report(f"did {change.summary}"))
        if options.policy is not None:
            options.policy.write_text(json.dumps(policy, indent=2) + "\n", encoding="utf-8")
    if consent.as_json:
        shown = _as_json(placed, code.missing, policy, dry_run=consent.dry_run)
        document({**shown, "warnings": warnings})
    elif policy is None:
        note(f"what the connection of its tasks needs: orchestrate iam {pipeline} --for airflow")


def _missed(pipeline: Pipeline) -> Iterator[str]:
    """Yield how many runs Airflow starts when it sees a new DAG."""
    from orchestration.deploy.events.missed import between

    schedule = pipeline.schedule_spec()
    if schedule is None or not schedule.catchup or schedule.start is None:
        return
    times = between(schedule, datetime.fromisoformat(schedule.start), datetime.now(tz=UTC))
    if number := len(tuple(islice(times, _MANY))):
        text = f"{number}{' or more' if number == _MANY else ''}"
        yield (
            f"times since {schedule.start} that are over: {text}; with schedule.catchup, Airflow "
            "starts the run of each by itself"
        )


def _session(
    pipeline: Regional, options: Options, folders: Sequence[SourceFolder] = ()
) -> Any | None:
    """Return a session; ``None`` if nothing is asked of AWS, as for a folder on a disk."""
    if not (folders or options.policy is not None or options.in_s3):
        return None
    require(MODULES, what="deploying")
    return session_to_change(pipeline, options.region, options.profile)


def _code(folders: Sequence[SourceFolder], session: Any | None) -> _Code:
    from orchestration.deploy import sources

    if session is None:
        return _Code()
    s3 = session.client("s3")
    return _Code(missing=[each for each in folders if not sources.present(each, s3)], s3=s3)


def destroy(pipeline: str, options: Options, consent: Consent) -> None:
    """Delete the files of a pipeline's DAG; data and code stay."""
    from orchestration.deploy import dags

    known = deployed(pipeline)
    placed = dags.placement(known.name, {}, _store(options, _session(known, options)))
    if not consent.as_json:
        _announce(placed, (), full=False)
    if not consent.dry_run and placed.known:
        consent.ask(f"Delete these {len(placed.changes)} files")
        placed.apply(on_change=lambda change: consent.report(f"did {change.summary}"))
    if consent.as_json:
        document(_as_json(placed, (), None, dry_run=consent.dry_run))


def _store(options: Options, session: Any | None) -> Store:
    from orchestration.deploy import dags

    if session is not None and options.in_s3:
        return dags.Bucket.at(options.to, session.client("s3"))
    return dags.Folder(Path(options.to))


def _policy(
    pipeline: Pipeline, chosen: Mapping[str, Json], options: Options, session: Any
) -> Mapping[str, Any]:
    """Return what the connection of the DAG's tasks needs in the account."""
    from orchestration.deploy import Account
    from orchestration.deploy.identities import identities

    account = Account.of(session)
    every = identities(pipeline, account, parameters=chosen, unrestricted=options.unrestricted)
    return next(each.policy for each in every if each.who == "airflow")


def _announce(placed: Placement, missing: Sequence[SourceFolder], *, full: bool) -> None:
    note(f"folder of DAGs {placed.store.place}")
    for folder in missing:
        say(f"would upload {folder.uri}")
    for change in placed.every_change:
        say(f"would {change.summary}")
        lines = change.difference
        if change.name.endswith(".lock.json") and not full:
            lines = [f"{len(lines)} lines of the rendered DAG; --full shows them"] if lines else []
        colored_diff([f"    {line}" for line in lines])
    if not placed.every_change and not missing:
        note("nothing to change")


def _as_json(
    placed: Placement,
    missing: Sequence[SourceFolder],
    policy: Mapping[str, Any] | None,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    return {
        "folder": placed.store.place,
        "dry_run": dry_run,
        "changes": [change.summary for change in placed.every_change],
        "differences": [
            {"change": change.kind, "name": change.name, "difference": change.difference}
            for change in placed.every_change
        ],
        "uploads": [folder.uri for folder in missing],
        **({} if policy is None else {"policy": dict(policy)}),
    }
