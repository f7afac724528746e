"""Programs of this machine that run in the place of images, by the stages whose jobs they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_PIPELINE, _STAGE = "orchestration:pipeline", "orchestration:stage"
_DECIDES = "/orchestration_verdict"
"""The folder of the program that decides about a stage's evaluations: it is no image's own."""


@dataclass(frozen=True)
class StandIn:
    """The program for the jobs of one stage, which are known by their tags."""

    pipeline: str
    stage: str
    command: tuple[str, ...]
    directory: str | None
    """The folder it is started in; None: the job's own."""
    serves: bool | None = None
    """True: only for the containers of the stage's models; False: only for its other jobs."""


class StandIns:
    """The programs of an account."""

    def __init__(self) -> None:
        self._of: dict[tuple[object, object, bool | None], StandIn] = {}

    def provide(self, stand_ins: Iterable[StandIn]) -> None:
        """Let the jobs of these stages run these programs from now on, or none by no command."""
        self._of |= {(each.pipeline, each.stage, each.serves): each for each in stand_ins}
        self._of = {key: each for key, each in self._of.items() if each.command}

    def of(self, request: Mapping[str, Any]) -> StandIn | None:
        """Return the program for the job, or the model, of a request, or None."""
        inputs = [each.get("S3Input", {}) for each in request.get("ProcessingInputs", [])]
        if any(str(each.get("LocalPath")).endswith(_DECIDES) for each in inputs):
            return None
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        stage = (tags.get(_PIPELINE), tags.get(_STAGE))
        serves = "PrimaryContainer" in request or "Containers" in request
        return self._of.get((*stage, serves), self._of.get((*stage, None)))
