"""``orchestrate export``: what a deployment makes, for CloudFormation and Terraform."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli import values
from orchestration.cli.commands.delivery import deliver
from orchestration.cli.commands.rendering import locked
from orchestration.cli.naming import named
from orchestration.cli.output import document, note

if TYPE_CHECKING:
    from orchestration.deploy.exporting import Export

_ACCOUNT = re.compile(r"\d{12}")


class Format(StrEnum):
    """A format that a deployment is exported to."""

    CLOUDFORMATION = "cloudformation"
    TERRAFORM = "terraform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The options that say where the text goes."""

    file: Path | None
    check: bool
    definitions: str | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The text of an export, and the files that belong to it, by their URIs."""

    text: str
    beside: Mapping[str, str]


def export(
    pipeline: str,
    form: Format,
    parameters: Sequence[str],
    unrestricted: Sequence[str],
    *,
    account: str | None,
    region: str | None,
    role: str | None,
    sweep_every_h: int,
    destination: Destination,
) -> None:
    """Export a pipeline's deployment."""
    from orchestration.deploy import exporting

    _check(form, account, destination)
    which = named(pipeline)
    loaded = which.load()
    locked(which)
    specs = loaded.parameter_specs()
    made = exporting.export(
        loaded,
        parameters=values.parameters(specs, parameters, filled=[spec.name for spec in specs]),
        unrestricted=unrestricted,
        role_arn=role,
        sweep_every_h=sweep_every_h,
        account=account,
        region=region,
    )
    written = _written(made, form, destination)
    if not (destination.as_json and destination.file is None):
        again = f"orchestrate export {form} {pipeline} -o {destination.file}"
        deliver(written.text, destination.file, check=destination.check, again=again)
    if destination.file is not None and not destination.check:
        for uri, text in written.beside.items():
            path = destination.file.parent / uri.rpartition("/")[2]
            path.write_text(text, encoding="utf-8")
            note(f"{path} written; it belongs at {uri}")
    if destination.as_json:
        document(_as_json(made, form, written, destination.file))
    else:
        _advise(made, form, pipeline)


def _check(form: Format, account: str | None, destination: Destination) -> None:
    if account is not None and _ACCOUNT.fullmatch(account) is None:
        raise typer.BadParameter(f"expected 12 digits, got {account!r}", param_hint="--account")
    if destination.definitions is not None and form is Format.TERRAFORM:
        raise typer.BadParameter(
            "is for CloudFormation; Terraform takes a definition of any size",
            param_hint="--definitions",
        )
    if destination.definitions is not None and destination.file is None:
        raise typer.BadParameter(
            "needs a file, beside which the definitions are written: -o FILE",
            param_hint="--definitions",
        )


def _written(made: Export, form: Format, destination: Destination) -> _Written:
    from orchestration.deploy.exporting import cloudformation, terraform

    if form is Format.TERRAFORM:
        return _Written(text=terraform.text(made), beside={})
    template = cloudformation.template(made, definitions=destination.definitions)
    suffix = destination.file.suffix if destination.file is not None else ""
    as_json = suffix == ".json" or (destination.as_json and destination.file is None)
    bucket = (destination.definitions or "").removeprefix("s3://").partition("/")[0]
    beside = {f"s3://{bucket}/{key}": text for key, text in template.definitions.items()}
    return _Written(text=template.text(as_json=as_json), beside=beside)


def _warnings(made: Export, form: Format) -> tuple[str, ...]:
    from orchestration.deploy.exporting import cloudformation, terraform

    writer = terraform if form is Format.TERRAFORM else cloudformation
    return (*made.warnings, *writer.warnings(made))


def _advise(made: Export, form: Format, pipeline: str) -> None:
    """Say what must be done besides."""
    for uri in made.code_uris:
        note(f"code belongs at {uri}: orchestrate upload {pipeline}")
    for text in _warnings(made, form):
        note(f"warning: {text}")


def _as_json(made: Export, form: Format, written: _Written, file: Path | None) -> dict[str, Any]:
    return {
        "format": form.value,
        "account": made.account,
        "region": made.region,
        "file": None if file is None else str(file),
        "size_bytes": len(written.text.encode()),
        "parameters": list(made.parameters),
        "code": list(made.code_uris),
        "definitions": list(written.beside),
        "warnings": list(_warnings(made, form)),
        **({"template": json.loads(written.text)} if file is None else {}),
    }
