"""Messages about the ends of runs: one text on every driver.

A message is a JSON object, for people and for programs. On Step Functions EventBridge writes it
from the event of the execution's end, by a template that is made here from the same fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

State = Literal["SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"]
"""The ends of runs, as Step Functions calls them."""
FAILURES: Final[tuple[State, ...]] = ("ABORTED", "FAILED", "TIMED_OUT")
SUCCESSES: Final[tuple[State, ...]] = ("SUCCEEDED",)

CONSOLES: Final[Mapping[str, str]] = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""The domain of AWS's console, by partition."""

_MOST_IN_CAUSE: Final = 200_000
"""SNS takes 262,144 bytes, https://docs.aws.amazon.com/sns/latest/api/API_Publish.html, of what
some clients escape twice."""
_PATHS: Final = {
    "run": "$.detail.name",
    "state": "$.detail.status",
    "execution": "$.detail.executionArn",
    "detail": "$.detail",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The end of one run."""

    pipeline: str
    run: str
    state: State
    link: str | None = None
    stage: str | None = None
    """The stage that failed, if the driver knows it."""
    error: str | None = None
    cause: str | None = None

    @property
    def subject(self) -> str:
        """The subject: ASCII, and well below the 100 characters that SNS takes."""
        return _subject(self.pipeline, failed=self.state in FAILURES)

    @property
    def message(self) -> str:
        """The message, within the size that SNS takes."""
        cause = None if self.cause is None else _shortened(self.cause)
        known = {"stage": self.stage, "error": self.error, "cause": cause}
        detail = {name: value for name, value in known.items() if value is not None}
        return _written(
            _document(
                self.pipeline,
                self.run,
                self.state,
                self.link,
                detail if self.state in FAILURES else None,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The message of Step Functions, as EventBridge fills it in."""

    paths: Mapping[str, str]
    """The place in the event of each value in the template."""
    text: str


def template(pipeline: str, *, failed: bool, region: str, partition: str) -> Template:
    """Return the template of the message about an execution's end.

    Of a failure, ``detail`` is the event's own. EventBridge inserts it whole: a text with quotation
    marks in it, or a cause that is missing, could make the message no JSON, and then nothing comes.
    """
    link = (
        f"https://{region}.{CONSOLES[partition]}/states/home?region={region}"
        "#/v2/executions/details/<execution>"
    )
    text = _written(_document(pipeline, "<run>", "<state>", link, "<detail>" if failed else None))
    for name in ("run", "state", "detail"):
        text = text.replace(f'"<{name}>"', f"<{name}>")
    paths = {name: path for name, path in _PATHS.items() if f"<{name}>" in text}
    # The subject is that of its rule: EventBridge sets none for SNS.
    return Template(paths=paths, text=text)


def _document(pipeline: str, run: str, state: str, link: str | None, detail: Any) -> dict[str, Any]:
    failed = detail is not None
    document = {
        "subject": _subject(pipeline, failed=failed),
        "pipeline": pipeline,
        "run": run,
        "state": state,
        "link": link,
        "detail": detail,
    }
    return {name: value for name, value in document.items() if value is not None}


def _subject(pipeline: str, *, failed: bool) -> str:
    return f"Pipeline {pipeline} {'failed' if failed else 'succeeded'}"


def _written(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)


def _shortened(cause: str) -> str:
    most = len(cause)
    while len(json.dumps(json.dumps(cause[:most]))) > _MOST_IN_CAUSE:
        most = most * 3 // 4
    return cause if most == len(cause) else f"{cause[:most]} …"
