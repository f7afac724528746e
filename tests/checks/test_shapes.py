"""The shapes that requests are checked against are botocore's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel

from orchestration.checks.shapes import Shape, service_model
from tests.patience import PATIENCE_S

# Those of our stages, one whose model is corrected by an extra file, and one of several versions.
SERVICES = ("sagemaker", "sagemaker-runtime", "s3", "fsx", "docdb", "lambda")
MARKS = ("min", "max", "pattern", "enum")
DIGITS = Path(__file__).parents[2] / "dags" / "digits.yaml"


class Compared:
    """A walk through two descriptions of a shape, each structure once."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def shapes(self, ours: Shape | None, theirs: Any) -> None:
        assert (ours is None) == (theirs is None)
        if ours is None or ours.name in self.seen:
            return
        self.seen.add(ours.name)
        assert (ours.name, ours.type_name) == (theirs.name, theirs.type_name)
        assert self.marks(ours.metadata) == self.marks(theirs.metadata)
        match ours.type_name:
            case "structure":
                assert list(ours.members) == list(theirs.members)
                assert list(ours.required_members) == theirs.required_members
                assert ours.is_tagged_union == theirs.is_tagged_union
                for name, member in ours.members.items():
                    self.shapes(member, theirs.members[name])
            case "list":
                self.shapes(ours.member, theirs.member)
            case "map":
                self.shapes(ours.key, theirs.key)
                self.shapes(ours.value, theirs.value)

    def marks(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {mark: metadata[mark] for mark in MARKS if mark in metadata}


@pytest.mark.parametrize("service", SERVICES)
def test_every_operation_has_the_shapes_that_botocore_gives_it(service: str) -> None:
    ours = service_model(service)
    theirs = ServiceModel(Loader().load_service_model(service, "service-2"), service)
    assert ours is not None
    assert sorted(ours.operations) == sorted(theirs.operation_names)
    compared = Compared()
    for name in theirs.operation_names:
        operation = ours.operation(name)
        assert operation is not None
        compared.shapes(operation.input_shape, theirs.operation_model(name).input_shape)
        compared.shapes(operation.output_shape, theirs.operation_model(name).output_shape)
    assert len(compared.seen) > 20


def test_what_is_added_to_botocores_events_is_what_it_says_of_them_in_words() -> None:
    model = Loader().load_service_model("events", "service-2")
    entry = service_model("events")
    assert entry is not None
    shape = entry.shape({"shape": "PutEventsRequestEntry"})
    told = model["shapes"]["PutEventsRequestEntry"]["members"]
    sentence = "<code>{}</code>, <code>{}</code>, and <code>{}</code> are required for EventBridge"
    assert sentence.format(*shape.required_members) in told["Source"]["documentation"]
    longest = shape.members["DetailType"].metadata["max"]
    assert f"with a maximum of {longest} characters" in told["DetailType"]["documentation"]


@pytest.mark.parametrize("name", ["sagemakr", "", "..", "s3/2006-03-01", "S3"])
def test_an_unknown_service_has_no_model(name: str) -> None:
    assert service_model(name) is None


def test_a_pipeline_is_checked_and_rendered_without_loading_botocore() -> None:
    code = (
        "import sys; from orchestration import Pipeline\n"
        "from orchestration.backends import airflow, stepfunctions\n"
        f"workflow = Pipeline.load({str(DIGITS)!r}).lower()\n"
        "airflow.render(workflow), stepfunctions.render(workflow)\n"
        "print(*(name for name in ('botocore', 'urllib3') if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.stdout.split() == []
