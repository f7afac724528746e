"""Requests and answers of an endpoint that are written to S3.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture-endpoint.html
"""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections import Counter
from typing import Any, Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import Answer, JsonObject, now

_MODES: Final = {"Input": "endpointInput", "Output": "endpointOutput"}
_TEXTS: Final = {"JsonContentTypes": "JSON", "CsvContentTypes": "CSV"}


class Capture:
    """The captured requests of one endpoint; each is an object, where SageMaker gathers several."""

    def __init__(self) -> None:
        self._credits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def write(
        self,
        config: JsonObject | None,
        place: tuple[str, str],
        request: tuple[bytes, str],
        answer: Answer,
    ) -> None:
        """Write a request, of a content type, and its answer, where a configuration wants them.

        `place` are the names of the endpoint and of the variant.
        """
        if not config or not config.get("EnableCapture", True) or not self._turn(config, place[1]):
            return
        headers = {name.lower(): value for name, value in answer.headers}
        contents = {
            "Input": request,
            "Output": (answer.body, headers.get("content-type", "application/octet-stream")),
        }
        modes = [each["CaptureMode"] for each in config["CaptureOptions"]]
        if "InputAndOutput" in modes:
            modes = list(_MODES)
        moment, identifier = now(), str(uuid.uuid4())
        line = {
            "captureData": {
                _MODES[mode]: _captured(mode, *contents[mode], config) for mode in modes
            },
            "eventMetadata": {
                "eventId": identifier,
                "inferenceTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
            },
            "eventVersion": "0",
        }
        name = f"{moment:%M-%S}-{moment.microsecond // 1000:03}-{identifier}.jsonl"
        key = "/".join([*place, f"{moment:%Y/%m/%d/%H}", name])
        prefix = config["DestinationS3Uri"].rstrip("/")
        text = json.dumps(line, separators=(",", ":")) + "\n"
        storage.write(storage.Location.parse(f"{prefix}/{key}"), text.encode())

    def _turn(self, config: JsonObject, variant: str) -> bool:
        """Return whether it is the next request's turn: evenly, where SageMaker draws lots."""
        with self._lock:
            credit = self._credits[variant] + int(config["InitialSamplingPercentage"])
            due, self._credits[variant] = divmod(credit, 100)
        return due > 0


def _captured(mode: str, body: bytes, content_type: str, config: JsonObject) -> dict[str, Any]:
    types = config.get("CaptureContentTypeHeader", {})
    kind = next(
        (word for name, word in _TEXTS.items() if content_type in types.get(name, [])), None
    )
    data = base64.b64encode(body) if kind is None else body
    return {
        "observedContentType": content_type,
        "mode": mode.upper(),
        "data": data.decode(),
        "encoding": kind or "BASE64",
    }
