"""What a new file system may be asked to be, and what it is asked for then."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import LustreLink, NewFileSystem, parameter
from orchestration.checks.requests import violations
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call
from orchestration.stages.stage import SAMPLE

PERSISTENT = {"deployment_type": "PERSISTENT_2", "throughput_mbps_per_tib": 250}


def new(**fields: Any) -> NewFileSystem:
    return NewFileSystem.model_validate(
        {"subnet": "subnet-0123abcd", "security_groups": ("sg-0123abcd",), **fields}
    )


def asked(**fields: Any) -> Any:
    guard = new(**fields).lower("fs", "s3://source/set", SAMPLE).guard
    assert guard is not None
    request = evaluate(guard.acquire.operation.request, Values({}, {}))
    assert [*violations("fsx", "CreateFileSystem", request)] == []  # type: ignore[arg-type]  # an object
    return request


def problems(**fields: Any) -> list[str]:
    return [str(problem) for problem in new(**fields).check("s3://source/set")]


def link(path: str, uri: str = "s3://other/words") -> LustreLink:
    return LustreLink(path=path, uri=uri)


@pytest.mark.parametrize(
    ("fields", "lustre"),
    [
        ({}, {"DeploymentType": "SCRATCH_2"}),
        (
            {"deployment_type": "PERSISTENT_1", "throughput_mbps_per_tib": 50},
            {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 50},
        ),
        (
            {**PERSISTENT, "compression": "LZ4", "metadata_iops": "automatic", "efa": True},
            {
                "DeploymentType": "PERSISTENT_2",
                "PerUnitStorageThroughput": 250,
                "DataCompressionType": "LZ4",
                "MetadataConfiguration": {"Mode": "AUTOMATIC"},
                "EfaEnabled": True,
            },
        ),
        (
            {**PERSISTENT, "metadata_iops": 24_000},
            {
                "DeploymentType": "PERSISTENT_2",
                "PerUnitStorageThroughput": 250,
                "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 24_000},
            },
        ),
    ],
)
def test_every_kind_is_asked_for_with_a_version_that_links(fields: Any, lustre: Any) -> None:
    assert problems(**fields) == []
    request = asked(**fields)
    assert request["LustreConfiguration"] == lustre
    assert request["FileSystemTypeVersion"] == "2.15"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"storage_capacity_gib": 3600}, "multiple of 2400"),
        ({"throughput_mbps_per_tib": 125}, "not SCRATCH_2; remove it"),
        ({"deployment_type": "PERSISTENT_1"}, "is required for PERSISTENT_1: 50, 100, 200"),
        ({"deployment_type": "PERSISTENT_2"}, "is required for PERSISTENT_2: 125, 250"),
        ({**PERSISTENT, "throughput_mbps_per_tib": 200}, "is 200; PERSISTENT_2 takes 125"),
        ({"metadata_iops": "automatic"}, "is for PERSISTENT_2 only, not SCRATCH_2"),
        ({**PERSISTENT, "metadata_iops": 7000}, "is 7000; FSx takes 1500"),
        ({**PERSISTENT, "efa": True}, "needs deployment_type: PERSISTENT_2 and metadata_iops"),
        ({"extra_request": {"StorageType": "INTELLIGENT_TIERING"}}, "INTELLIGENT_TIERING with S3"),
        ({"links": [link("/data/words")]}, "/data/words and /data overlap"),
        ({"links": [link("/words", "s3://source/set/a")]}, "s3://source/set/a and"),
        ({"links": [link("/a", "s3://a/b"), link("/a/b", "s3://c")]}, "/a/b and /a overlap"),
        ({"links": [link("words")]}, "expected a directory, /name, got 'words'"),
        ({"export": ["/other"]}, "expected one of /data, or a directory below, got '/other'"),
        ({"export": ["data"]}, "expected one of /data, or a directory below, got 'data'"),
        ({"export": ["/data/../x"]}, "expected one of /data, or a directory below"),
    ],
)
def test_what_fsx_refuses_is_refused_in_words(fields: Any, words: str) -> None:
    [problem] = problems(**fields)
    assert words in problem


def test_further_links_are_made_one_after_the_other_each_with_a_token_of_its_own() -> None:
    fragment = new(links=[link("/words")]).lower("fs", "s3://source/set", SAMPLE)
    calls = {step.name: step for step in fragment.steps if isinstance(step, Call)}
    assert calls["fs.associate_2"].after == ("fs.verified",)
    env = Values({"fs.create": {"file_system_id": "fs-1"}}, {})
    tokens = [
        evaluate(calls[f"fs.{step}"].operation.request["ClientRequestToken"], env)
        for step in ("associate", "associate_2", "import", "import_2")
    ]
    assert len(set(tokens)) == 4
    imported: Any = evaluate(calls["fs.import_2"].operation.request, env)
    assert imported["Paths"] == ["s3://other/words/"]
    assert fragment.outputs["file_system_root"] != fragment.outputs["file_system"]


def test_a_directory_for_results_is_linked_with_the_runs_own_place_and_nothing_is_imported() -> (
    None
):
    system = new(links=[LustreLink(path="/results")], export=["/results", "/data/checkpoints"])
    assert [*system.check("s3://source/set")] == []
    fragment = system.lower("fs", "s3://source/set", SAMPLE)
    calls = {step.name: step for step in fragment.steps if isinstance(step, Call)}
    assert "fs.import_2" not in calls
    assert "fs.list_2" not in calls
    env = Values({"fs.create": {"file_system_id": "fs-1"}}, {}, "0123456789ab")
    linked: Any = evaluate(calls["fs.associate_2"].operation.request, env)
    assert linked["FileSystemPath"] == "/results"
    assert linked["DataRepositoryPath"] == "s3://bucket/0123456789ab/fs/results/"
    assert "S3" not in linked, "automatic export excludes an export task"


def test_a_link_with_a_prefix_can_be_for_results_only() -> None:
    archive = LustreLink(path="/results", uri="s3://archive/results", imports=False)
    fragment = new(links=[archive]).lower("fs", "s3://source/set", SAMPLE)
    assert "fs.import_2" not in {step.name for step in fragment.steps}


def test_without_an_export_nothing_is_marked_or_asked() -> None:
    guard = new().lower("fs", "s3://source/set", SAMPLE).guard
    assert guard is not None
    assert guard.saving.steps == ()
    assert [step.name for step in guard.cleanup.steps] == ["fs.running", "fs.busy", "fs.delete"]
    assert "arn" not in guard.acquire.outputs


def kept(
    run: str = "0" * 12, source: Any = "s3://source/set", **fields: Any
) -> tuple[str, dict[str, Any]]:
    """The token of a file system that is kept, and what is asked for with it."""
    guard = new(keep_for_h=24, **fields).lower("fs", source, SAMPLE).guard
    assert guard is not None
    parameters = {"subnet": "subnet-0123456789abcdef0", "data": "s3://a/b"}
    request: Any = evaluate(guard.acquire.operation.request, Values({}, parameters, run))
    assert [*violations("fsx", "CreateFileSystem", request)] == []
    return request.pop("ClientRequestToken"), request


def test_every_run_asks_for_the_same_kept_file_system() -> None:
    # An equal token with another request is refused.
    assert kept() == kept("1" * 12)
    assert kept(source=parameter("data")) == kept("1" * 12, source=parameter("data"))


@pytest.mark.parametrize(
    "fields",
    [
        {"storage_capacity_gib": 2400},
        {"source": "s3://source/other"},
        {"source": parameter("data")},
        {"links": [link("/words")]},
        {"subnet": parameter("subnet")},
        {"extra_request": {"KmsKeyId": "key"}},
        {"compression": "LZ4"},
    ],
)
def test_another_definition_asks_for_another_one(fields: Any) -> None:
    assert kept(**fields)[0] != kept()[0]


def test_what_is_exported_makes_no_other_one() -> None:
    assert kept() == kept(export=["/data"])


def test_a_kept_file_system_is_linked_with_places_that_later_runs_share() -> None:
    [problem] = problems(keep_for_h=24, links=[LustreLink(path="/results")])
    assert problem.startswith("links[0].uri: is required with keep_for_h")


def test_links_of_a_kept_file_system_are_found_again_and_imports_are_not() -> None:
    fragment = new(keep_for_h=24).lower("fs", "s3://source/set", SAMPLE)
    calls = {step.name: step for step in fragment.steps if isinstance(step, Call)}
    first, second = (Values({"fs.create": {"file_system_id": "fs-1"}}, {}, r) for r in "ab")
    linked, imported = calls["fs.associate"].operation, calls["fs.import"].operation
    assert evaluate(linked.request, first) == evaluate(linked.request, second)
    assert evaluate(imported.request, first) != evaluate(imported.request, second)
    # Without paths, what is in the directories for results would be imported, too.
    sent: Any = evaluate(imported.request, first)
    assert sent["Paths"] == ["s3://source/set/"]
