"""The records of a batch transform: split, filtered, joined and put together again.

https://docs.aws.amazon.com/sagemaker/latest/dg/batch-transform-data-processing.html
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestration.checks import jsonpath
from orchestration.local.sagemaker.outcomes import JobFailed

_MEGABYTE = 1024 * 1024
_CSV = "text/csv"
_OF_LINES = (_CSV, "application/jsonlines")


class Records:
    """The way in which a transform job reads records and writes answers."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        filters = request.get("DataProcessing", {})
        self._input = filters.get("InputFilter", "$")
        self._output = filters.get("OutputFilter", "$")
        self._joins = filters.get("JoinSource") == "Input"
        self._kind = request["TransformInput"].get("ContentType", "")
        self._splits = request["TransformInput"].get("SplitType") == "Line"
        self._assembles = request["TransformOutput"].get("AssembleWith") == "Line"
        self._is_single = request.get("BatchStrategy") == "SingleRecord"
        payload = request.get("MaxPayloadInMB", 6)
        self._most = payload * _MEGABYTE if payload else None
        self._changes = self._joins or self._input != "$" or self._output != "$"

    def batches(self, content: bytes) -> Iterator[list[bytes]]:
        """Yield the records of an object, as many together as a request takes."""
        records = content.splitlines() if self._splits else [content]
        if self._is_single or not self._splits:
            for record in records:
                yield self._small_enough([record])
            return
        batch: list[bytes] = []
        for record in records:
            if batch and self._most is not None and _size([*batch, record]) > self._most:
                yield batch
                batch = []
            batch = self._small_enough([*batch, record])
        if batch:
            yield batch

    def _small_enough(self, batch: list[bytes]) -> list[bytes]:
        if self._most is not None and _size(batch) > self._most:
            raise JobFailed(
                "ClientError: too much data for max payload size; MaxPayloadInMB is "
                f"{self._most // _MEGABYTE}"
            )
        return batch

    def body(self, batch: Sequence[bytes]) -> bytes:
        """Return the body of the request for some records."""
        if self._input == "$":
            return b"\n".join(batch)
        return b"\n".join(
            self._written(_selected(self._input, value)) for value in self._values(batch)
        )

    def answered(self, batch: Sequence[bytes], answer: bytes) -> bytes:
        """Return what is written of the answer to some records."""
        if self._changes:
            answer = b"\n".join(self._joined(batch, answer))
        return answer.removesuffix(b"\n") + b"\n" if self._assembles else answer

    def _joined(self, batch: Sequence[bytes], answer: bytes) -> Iterator[bytes]:
        records = self._values(batch)
        answers = self._values([answer])
        if self._joins and len(records) != len(answers):
            raise JobFailed(
                f"ClientError: the model gave {len(answers)} answers to {len(records)} records, "
                "which can't be joined"
            )
        pairs = zip(records, answers, strict=True) if self._joins else ((None, a) for a in answers)
        for record, each in pairs:
            whole = self._beside(record, each) if self._joins else each
            yield self._written(_selected(self._output, whole))

    def _beside(self, record: Any, answer: Any) -> Any:
        if self._kind == _CSV:
            return [*record, *answer]
        if isinstance(record, dict):
            return {**record, "SageMakerOutput": answer}
        return {"SageMakerInput": record, "SageMakerOutput": answer}

    def _values(self, parts: Sequence[bytes]) -> list[Any]:
        text = b"\n".join(parts).decode()
        try:
            if self._kind == _CSV:
                return list(csv.reader(io.StringIO(text)))
            lines = text.splitlines() if self._kind in _OF_LINES else [text]
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise JobFailed(f"ClientError: a record is not {self._kind}: {error}") from error

    def _written(self, value: Any) -> bytes:
        if self._kind != _CSV:
            return json.dumps(value).encode()
        row = io.StringIO()
        csv.writer(row, lineterminator="").writerow(value if isinstance(value, list) else [value])
        return row.getvalue().encode()


def _selected(path: str, value: Any) -> Any:
    try:
        return jsonpath.select(path, value)
    except ValueError as error:
        raise JobFailed(f"ClientError: {path} selects nothing of a record: {error}") from error


def _size(batch: Sequence[bytes]) -> int:
    return sum(map(len, batch)) + len(batch) - 1
