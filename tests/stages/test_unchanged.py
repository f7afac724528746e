"""What a stage does about a source that is unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import (
    DataStaging,
    ExistingFileSystem,
    Expression,
    NewFileSystem,
    Pipeline,
    S3Destination,
    join,
    parameter,
    run_id,
)
from orchestration.backends import airflow, stepfunctions
from orchestration.errors import PipelineError
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Choose, Graph, all_steps

ROLE = "arn:aws:iam::123456789012:role/SageMaker"
LASTING = S3Destination(uri="s3://lasting/copy")
NEW = NewFileSystem(subnet="subnet-0123abcd", security_groups=("sg-0123abcd",))


def staging(name: str = "staging", source: Any = "s3://incoming/set", **fields: Any) -> DataStaging:
    return DataStaging(name=name, source=source, **{"unless_unchanged": "end_run", **fields})


def pipeline(*stages: DataStaging, **fields: Any) -> Pipeline:
    given = {"name": "p", "role": ROLE, "workspace": "s3://w/p", "region": "us-east-1"}
    return Pipeline(**{**given, "stages": list(stages), **fields})


@pytest.mark.parametrize(
    "destination", [S3Destination(), NEW, S3Destination(uri=join("s3://b/", run_id()))]
)
def test_only_a_copy_that_outlives_its_run_can_be_skipped(destination: Any) -> None:
    (found,) = staging(unless_unchanged="skip", destination=destination).check()
    assert found.field == "unless_unchanged"
    assert "outlives the run" in found.message
    assert not list(staging(unless_unchanged="skip", destination=LASTING).check())


@pytest.mark.parametrize("asked", [{"fingerprint": True}, {"unless_unchanged": "end_run"}])
def test_a_file_system_that_exists_has_no_source_to_look_at(asked: dict[str, Any]) -> None:
    existing = ExistingFileSystem(file_system_id="fs-0123456789abcdef0")
    stage = DataStaging(name="staging", destination=existing, **asked)
    assert [(p.field, p.message) for p in stage.check()] == [
        (next(iter(asked)), "a file system without a source is attached as it is; remove this")
    ]


def test_what_other_stages_make_can_be_skipped_and_cannot_end_the_run() -> None:
    first = staging("first")
    (found,) = staging(source=first.outputs.location).check()
    assert "first has to run first" in found.message
    again = staging(source=first.outputs.location, unless_unchanged="skip", destination=LASTING)
    assert not list(again.check())
    pipeline(first, again)


def test_a_stage_may_not_be_called_as_the_choice() -> None:
    with pytest.raises(PipelineError, match="call the stage otherwise"):
        pipeline(staging("sources_changed"))


def test_nothing_is_looked_at_unless_asked_for() -> None:
    plain = pipeline(DataStaging(name="staging", source="s3://incoming/set")).lower()
    assert not [s for s in all_steps(plain.graph) if "fingerprint" in s.name]
    asked = pipeline(DataStaging(name="staging", source="s3://incoming/set", fingerprint=True))
    shown = asked.lower().outputs["staging"]
    assert isinstance(shown, dict)
    assert "fingerprint" in shown


def _calls(graph: Graph, *operations: str) -> Iterator[Call]:
    for step in all_steps(graph):
        if isinstance(step, Call) and step.operation.name in operations:
            yield step


def _goes_on(made: Pipeline, sources: dict[str, str], records: dict[str, str]) -> Any:
    """Whether a run goes on, and the tokens of what it saw."""
    workflow = made.lower()
    (choice,) = (s for s in workflow.graph.steps if isinstance(s, Choose))
    results: dict[str, Any] = {f"{n}.fingerprint": {"fingerprint": f} for n, f in sources.items()}
    results |= {f"{n}.last_seen": {"body": body} for n, body in records.items()}
    values = Values(results, {p.name: p.default for p in workflow.parameters})
    written = {
        call.name.partition(".")[0]: call.operation.request["Body"]
        for call in _calls(choice.then, "PutObject")
    }
    return evaluate(choice.condition, values), {
        n: str(evaluate(b, values)) for n, b in written.items()
    }


def test_a_run_ends_if_all_sources_are_as_the_last_successful_run_saw_them() -> None:
    made = pipeline(staging("a"), staging("b", "s3://incoming/other"))
    none = {"a": "", "b": ""}
    goes_on, seen = _goes_on(made, {"a": "1", "b": "2"}, none)
    assert goes_on
    assert not _goes_on(made, {"a": "1", "b": "2"}, seen)[0]
    assert _goes_on(made, {"a": "1", "b": "3"}, seen)[0]
    assert _goes_on(made, {"a": "3", "b": "2"}, seen)[0]
    assert _goes_on(made, {"a": "2", "b": "1"}, seen)[0]


def test_another_parameter_or_pipeline_is_not_the_same_run() -> None:
    def made(rate: float, **fields: Any) -> Pipeline:
        return pipeline(staging(**fields), parameters={"rate": {"type": "number", "default": rate}})

    source = {"staging": "1"}
    seen = _goes_on(made(0.1), source, {"staging": ""})[1]
    assert not _goes_on(made(0.1), source, seen)[0]
    assert _goes_on(made(0.2), source, seen)[0]
    assert _goes_on(made(0.1, destination=S3Destination(max_concurrency=2)), source, seen)[0]


def test_pages_are_counted_as_events() -> None:
    by_service = S3Destination(copy_by="datasync", uri="s3://lasting/copy")
    lists = [staging(f"s{n}", destination=by_service) for n in range(4)]
    stepfunctions.render(pipeline(*lists[:3]).lower())
    with pytest.raises(Exception, match="ends an execution at 25000"):
        stepfunctions.render(pipeline(*lists).lower())


def test_the_record_lies_in_the_workspace() -> None:
    workspace: Expression[str] = join("s3://", parameter("bucket"), "/p")
    made = pipeline(staging(), workspace=workspace, parameters={"bucket": {"type": "string"}})
    keys = {
        evaluate(call.operation.request["Key"], Values({}, {"bucket": "b"}))
        for call in _calls(made.lower().graph, "GetObject", "PutObject")
    }
    assert keys == {"p/fingerprints/p/staging.json"}


def test_a_success_is_recorded_behind_the_deletion_of_what_the_run_made() -> None:
    transfer = staging(destination=S3Destination(copy_by="datasync"))
    workflow = pipeline(transfer).lower()
    tasks = {task.task_id: task for task in airflow.render(workflow).tasks}
    (deletion,) = [task.task_id for task in tasks.values() if task.teardown_of]
    assert deletion in tasks["staging.record"].upstream
    assert tasks["staging.record"].trigger_rule == "all_success"
