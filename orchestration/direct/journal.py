"""The journal of a run: what its finished steps gave, one small object in S3 for each.

Objects are written where there is none yet (``If-None-Match``), so that what was decided first
stays, whoever else runs the same. Nothing here does I/O: these are performances, as steps are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from orchestration.execution.effects import Outputs, Performance, Request, ServiceError
from orchestration.execution.sending import sent
from orchestration.expressions import Json
from orchestration.graph import ErrorPattern, Retry

FOLDER = ".journal/"
"""Below a run's own prefix; no stage's name begins with a dot."""

_EXISTS = ErrorPattern("PreconditionFailed")
# Two writers at the same moment: S3 asks to try again, and then answers that the object exists.
_CONFLICT = ErrorPattern("ConditionalRequestConflict")
# About three minutes in all, since what cannot be kept ends the run.
_RETRY = Retry(attempts=8, errors=(_CONFLICT,))

_RUN, _OUTCOME = "run", "outcome"
_ATTEMPTS = "attempts/"
_WAITING = "waiting/"
_ACQUIRING = "acquiring/"


@dataclass(slots=True)
class Journal:
    """The journal of one attempt at a run, below a prefix of a bucket."""

    bucket: str
    prefix: str
    attempt: int = 1
    """The number of the attempt: a failed one may be followed by another."""
    resumed: bool = False
    """True if an earlier process began the attempt."""
    _names: frozenset[str] = field(default_factory=frozenset)
    """The names of the outputs that earlier processes had kept when this one began."""
    _waiting: set[str] = field(default_factory=set)
    """The names under which this process has kept since when steps wait."""

    def opened(self, run: Mapping[str, Json]) -> Performance[Mapping[str, Any]]:
        """Write down what the run is; returns what an earlier process wrote, if one did."""
        kept = yield from self._decided(_RUN, dict(run))
        if kept is None:
            return run
        self.resumed = True
        self._names = yield from self._listed()
        return cast("Mapping[str, Any]", kept)

    def ending(self) -> Performance[Mapping[str, Any] | None]:
        """Return the outcome of a run that has ended already."""
        if _OUTCOME not in self._names:
            return None
        return cast("Mapping[str, Any]", (yield from self._read(_OUTCOME)))

    def ended(self, outcome: Mapping[str, Any]) -> Performance[Mapping[str, Any]]:
        """Keep the outcome; returns the one that counts."""
        kept = yield from self._decided(_OUTCOME, dict(outcome))
        return outcome if kept is None else cast("Mapping[str, Any]", kept)

    def following(self) -> Journal:
        """Return the journal of the next attempt, which finds nothing that this one has kept."""
        number = self.attempt + 1
        run = self.prefix.removesuffix(f"{_ATTEMPTS}{self.attempt}/")
        return Journal(self.bucket, f"{run}{_ATTEMPTS}{number}/", number)

    def recalled(self, path: str) -> Performance[Outputs | None]:
        """Return the outputs that an earlier process has kept of a step."""
        name = step_name(path)
        if name not in self._names:
            return None
        return cast(Outputs, (yield from self._read(name)))

    def kept(self, path: str, outputs: Outputs) -> Performance[Outputs | None]:
        """Keep the outputs of a step; returns those that another process kept before."""
        decided = yield from self._decided(step_name(path), dict(outputs))
        return cast("Outputs | None", decided)

    def waits(self, path: str, since: float) -> Performance[None]:
        """Keep the moment, in seconds since 1970, since which a step waits for capacity."""
        name = _WAITING + step_name(path)
        if name not in self._waiting:
            yield from self._decided(name, {"since": since})
            self._waiting.add(name)

    def waits_since(self, path: str) -> Performance[float | None]:
        """Return the moment since which a step waits, if an earlier process has kept it."""
        name = _WAITING + step_name(path)
        if name not in self._names:
            return None
        return cast("Mapping[str, float]", (yield from self._read(name)))["since"]

    def acquires(self, path: str, *, anew: bool) -> Performance[bool]:
        """Return whether an earlier process was about to acquire something; if not, keep it.

        ``anew`` is false if this process is not about to.
        """
        name = _ACQUIRING + step_name(path)
        earlier = name in self._names
        if anew and not earlier:
            yield from self._decided(name, {})
        return earlier

    def _decided(self, name: str, value: Json) -> Performance[Json]:
        """Write an object where there is none; returns what it holds already, else ``None``."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        parameters = {**self._object(name), "Body": body, "IfNoneMatch": "*"}
        parameters["ContentType"] = "application/json"
        try:
            yield from sent(Request("s3", "PutObject", parameters), _RETRY)
        except ServiceError as error:
            if not _EXISTS.matches(error.code, error.message):
                raise
            return (yield from self._read(name))
        return None

    def _read(self, name: str) -> Performance[Json]:
        response = yield from sent(Request("s3", "GetObject", self._object(name)), _RETRY)
        return cast(Json, json.loads(cast("Mapping[str, str]", response)["Body"]))

    def _listed(self) -> Performance[frozenset[str]]:
        names: set[str] = set()
        page: dict[str, Json] = {"Bucket": self.bucket, "Prefix": self.prefix}
        while True:
            response: Any = yield from sent(Request("s3", "ListObjectsV2", page), _RETRY)
            keys = (item["Key"] for item in response.get("Contents", ()))
            names |= {key.removeprefix(self.prefix).removesuffix(".json") for key in keys}
            if not response.get("NextContinuationToken"):
                return frozenset(names)
            page = {**page, "ContinuationToken": response["NextContinuationToken"]}

    def _object(self, name: str) -> dict[str, Json]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}{name}.json"}


def journal(workspace: str, token: str) -> Journal:
    """Return the journal of the run with a token, in a workspace (``s3://bucket/prefix``)."""
    bucket, _, prefix = workspace.removeprefix("s3://").rstrip("/").partition("/")
    start = f"{prefix}/" if prefix else ""
    return Journal(bucket, f"{start}{token}/{FOLDER}")


def step_name(path: str) -> str:
    """Return the object's name for a step: ``evaluate.each[2]/evaluate.job`` has elements.

    >>> step_name("evaluate.each[2]/evaluate.job")
    'steps/evaluate.each/2/evaluate.job'
    """
    return "steps/" + path.replace("[", "/").replace("]/", "/")
