"""``orchestrate lint``: what is wrong with definitions, whoever wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from orchestration.cli.output import FAILED, USAGE, document, note, require, say
from orchestration.lint import Finding
from orchestration.lint import lint as findings_of
from orchestration.phrases import counted

_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The findings of one file."""

    file: str
    findings: tuple[Finding, ...] = ()
    unreadable: str | None = None

    def of(self, severity: str) -> list[Finding]:
        """Return the findings of a severity."""
        return [finding for finding in self.findings if finding.severity == severity]

    def data(self) -> dict[str, object]:
        """Return the verdict as JSON."""
        return {
            "file": self.file,
            "valid": self.unreadable is None and not self.of("error"),
            "unreadable": self.unreadable,
            "findings": [
                {
                    "severity": finding.severity,
                    "rule": finding.rule,
                    "path": finding.path,
                    "message": finding.message,
                }
                for finding in self.findings
            ],
        }


def lint(files: Sequence[Path], *, as_json: bool) -> None:
    """Print all findings, and exit with the status for them."""
    require({"jsonata": "lint"}, what="reading expressions of JSONata")
    verdicts = [_verdict(file) for file in files]
    if as_json:
        valid = not any(verdict.unreadable or verdict.of("error") for verdict in verdicts)
        document({"valid": valid, "files": [verdict.data() for verdict in verdicts]})
    for verdict in verdicts:
        _tell(verdict, as_json=as_json)
    if any(verdict.unreadable for verdict in verdicts):
        raise typer.Exit(USAGE)
    if any(verdict.of("error") for verdict in verdicts):
        raise typer.Exit(FAILED)


def _verdict(file: Path) -> _Verdict:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return _Verdict(str(file), unreadable=str(error))
    return _Verdict(str(file), tuple(findings_of(text, is_yaml=file.suffix in _YAML)))


def _tell(verdict: _Verdict, *, as_json: bool) -> None:
    if verdict.unreadable:
        note(f"{verdict.file}: cannot be read: {verdict.unreadable}")
        return
    for severity in ("error", "warning"):
        findings = verdict.of(severity)
        if findings:
            note(f"{verdict.file}: {counted(len(findings), severity)}")
        for finding in findings:
            note("  " + str(finding).replace("\n", "\n    "))
    if not as_json and not verdict.of("error"):
        say(f"{verdict.file}: valid")
