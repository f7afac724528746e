"""Each option of each kind of stage is in what both backends are given, or refused by name."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions
from orchestration.backends.airflow.spec import to_json
from orchestration.checks.requests import operation_model
from orchestration.errors import PipelineError
from orchestration.expressions import Parameter, walk
from orchestration.graph import Call, Operation, all_steps, operations
from orchestration.stages import Stage
from orchestration.stages.kinds import OWN, Kinds

TABLE: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("option_table.yaml").read_text("utf-8")
)
STAGES: Final[dict[str, dict[str, Any]]] = TABLE["stages"]
ROLE: Final[str] = TABLE["definitions"]["role"]
OPTIONS: Final[dict[str, Any]] = {
    "after": ["zero"],
    "tags": {"team": {"parameter": "marked"}},
    "retry": {"attempts": 5},
    "timeout_s": 77777,
    "airflow": {"pool": "marked"},
    "when": {"equal": [{"parameter": "marked"}, "x"]},
    "for_each": {"items": {"parameter": "marked_list"}},
    "extra_request": {"ExperimentConfig": {"ExperimentName": "marked"}},
    "role": ROLE,
}
"""A value of each option that any stage takes, or might be expected to take."""
TRACES: Final[dict[str, tuple[str, str]]] = {
    "retry": ("Number < 5 ", '"tries": 5'),
    "timeout_s": ("77777", "77777"),
}
"""The texts that an option leaves in a state machine and in a DAG's specification."""
REFUSED: Final[dict[tuple[str, str], str]] = {
    (stage, option): message
    for stage, row in STAGES.items()
    for option, message in {
        "role": "is unknown; it is a field of the whole pipeline: write role beside stages",
        **row.get("refused", {}),
    }.items()
}
HONOURED: Final = [(s, o) for s in STAGES for o in OPTIONS if (s, o) not in REFUSED]


def pipeline(folder: Path, stage: str, *options: str) -> Pipeline:
    """Read a pipeline with one stage of a kind, which may have options."""
    row, zero = STAGES[stage], STAGES["aws_call"]["stage"]
    given = {option: row.get(option, OPTIONS[option]) for option in options}
    stages = {"zero": zero, "one": {**row["stage"], **given}}
    if row["stage"].get("destination", {}).get("kind") == "fsx_lustre":  # It needs a reader.
        message = {"Message": {"ref": "one.file_system_id"}}
        stages["reader"] = {**zero, "request": {**zero["request"], **message}}
    document = {
        "name": "p",
        "workspace": "s3://b/w",
        "role": ROLE,
        "parameters": {"marked": {}, "marked_list": {"type": "array"}, "given": {}},
        "stages": stages,
    }
    inner = {"name": "inner", "workspace": "s3://b/i", "stages": {"a": zero}}
    for name, content in (("inner", inner), ("p", document)):
        text = yaml.safe_dump(content, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return Pipeline.load(folder / "p.yaml")


def rendered(made: Pipeline) -> tuple[str, str]:
    """Return the state machine and the DAG's specification, as text."""
    workflow = made.lower()
    definition = stepfunctions.render(workflow)
    del definition["Comment"]  # It carries the file, which differs by the option.
    machine = json.dumps(definition, sort_keys=True)
    return machine, to_json(airflow.render(workflow))


@cache
def without_options(stage: str) -> tuple[str, str]:
    """Return what the backends are given of a stage without any option."""
    with TemporaryDirectory() as folder:
        return rendered(pipeline(Path(folder), stage))


def test_the_table_has_every_kind_and_every_option() -> None:
    assert {row["stage"]["kind"] for row in STAGES.values()} == {*OWN}
    assert {*Stage.model_fields} - {"name"} <= OPTIONS.keys()


@pytest.mark.parametrize(("stage", "option"), HONOURED)
def test_an_option_reaches_both_backends(stage: str, option: str, tmp_path: Path) -> None:
    plain, given = without_options(stage), rendered(pipeline(tmp_path, stage, option))
    tasks = json.loads(given[1])["tasks"].values()
    if option == "airflow":
        assert given[0] == plain[0]  # Step Functions has no pools.
        assert {t["stage"] for t in tasks if t.get("options") == {"pool": "marked"}} == {"one"}
    elif option == "after":
        # It has its turn, and no branch of its own.
        in_turn = ["zero-call" in json.loads(machine)["States"] for machine, _ in (plain, given)]
        assert in_turn == [False, True]
        assert any("zero" in task["upstream"] for task in tasks if task["stage"].startswith("one"))
    else:
        traces = TRACES.get(option, ("marked", "marked"))
        for text, earlier, trace in zip(given, plain, traces, strict=True):
            assert text.count(trace) > earlier.count(trace)


@pytest.mark.parametrize(("stage", "option"), REFUSED)
def test_an_option_that_a_stage_can_not_have_is_refused_by_its_name(
    stage: str, option: str, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(tmp_path, stage, option)
    assert str(error.value).startswith(f"stages.one.{option}: {REFUSED[stage, option]}")


@pytest.mark.parametrize("stage", [stage for stage, option in HONOURED if option == "tags"])
def test_all_that_a_stage_creates_has_its_tags(stage: str, tmp_path: Path) -> None:
    graph = pipeline(tmp_path, stage, "tags").lower().graph
    calls = [step for step in all_steps(graph) if isinstance(step, Call)]
    created = [o for call in calls for o in operations(call) if _makes_tagged(o)]
    assert created
    for operation in created:
        assert Parameter("marked") in {*walk(operation.request["Tags"])}, operation.name


@pytest.mark.parametrize("stage", STAGES)
def test_no_rule_takes_a_reference_for_its_value(stage: str) -> None:
    whole, kinds = STAGES[stage]["stage"], Kinds()
    kind = kinds.get(whole["kind"])
    assert kind is not None
    for field in {*kind.model_fields} - {"name", "kind"}:
        given = {**whole, field: {"parameter": "given"}}
        # Without each field in turn, or on no instances, another rule is the one that refuses.
        lacking = [{k: v for k, v in given.items() if k != other} for other in whole]
        for each in [given, *lacking, {**given, "serverless": {"memory_mib": 2048}}]:
            with suppress(PipelineError):
                Pipeline.parse({"name": "p", "workspace": "s3://b/w", "stages": {"one": each}})


def _makes_tagged(operation: Operation) -> bool:
    if operation.name == "CreateModelPackage":
        return False  # A version has the tags of its group.
    model = operation_model(operation.service, operation.name)
    shape = None if model is None else model.input_shape
    return operation.name.startswith("Create") and shape is not None and "Tags" in shape.members
