"""The records of batch transforms, split, filtered and joined."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.local.sagemaker.jobs.records import Records
from orchestration.local.sagemaker.outcomes import JobFailed


def records(kind: str = "text/csv", *, split: str = "Line", **more: Any) -> Records:
    whole = {"TransformInput": {"ContentType": kind, "SplitType": split}, "TransformOutput": {}}
    return Records({**whole, **more})


def joined(**filters: str) -> dict[str, Any]:
    return {"DataProcessing": {"JoinSource": "Input", **filters}}


def test_an_object_that_is_not_split_is_one_record() -> None:
    assert list(records(split="None").batches(b"a\nb\n")) == [[b"a\nb\n"]]


def test_batches_hold_one_record_or_as_many_as_fit() -> None:
    content = b"\n".join([b"x" * 400_000] * 5)
    assert [len(b) for b in records(MaxPayloadInMB=1).batches(content)] == [2, 2, 1]
    single = records(BatchStrategy="SingleRecord")
    assert [len(b) for b in single.batches(b"a\nb\n")] == [1, 1]


def test_a_record_that_is_too_large_fails_the_job() -> None:
    with pytest.raises(JobFailed, match="too much data for max payload size"):
        list(records(MaxPayloadInMB=1).batches(b"x" * 1_100_000))


def test_a_payload_of_0_has_no_limit() -> None:
    [batch] = records(MaxPayloadInMB=0).batches(b"x" * 7_000_000)
    assert len(batch) == 1


def test_rows_are_filtered_and_joined() -> None:
    made = records(**joined(InputFilter="$[1:]", OutputFilter="$[0,-1]"))
    batch = [b'"a,1",2,3', b"b,4,5"]
    assert made.body(batch) == b"2,3\n4,5"
    assert made.answered(batch, b"5\n9\n") == b'"a,1",5\nb,9'


def test_lines_of_json_get_the_answer_as_an_attribute() -> None:
    made = records("application/jsonlines", **joined(OutputFilter="$['id','SageMakerOutput']"))
    assert made.answered([b'{"id": 1, "x": 2}'], b"[0.5]") == b'{"id": 1, "SageMakerOutput": [0.5]}'


def test_json_that_is_no_object_lies_beside_the_answer() -> None:
    made = records("application/json", split="None", **joined())
    assert made.answered([b"[1, 2]"], b"3") == b'{"SageMakerInput": [1, 2], "SageMakerOutput": 3}'


def test_as_many_answers_as_records_are_joined() -> None:
    with pytest.raises(JobFailed, match="gave 1 answers to 2 records"):
        records(**joined()).answered([b"a", b"b"], b"1\n")


def test_what_is_not_of_the_content_type_fails_the_job() -> None:
    made = records("application/jsonlines", DataProcessing={"InputFilter": "$.a"})
    with pytest.raises(JobFailed, match="a record is not application/jsonlines"):
        made.body([b"{"])
    with pytest.raises(JobFailed, match=r"\$\.a selects nothing of a record"):
        made.body([b"{}"])
