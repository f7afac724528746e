"""Two executions are one run where their input says so, and two elements of a Map never are."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.parameters import ATTEMPT, RUN
from orchestration.deploy import step_functions
from orchestration.expressions import run_attempt, run_id
from orchestration.expressions.evaluate import run_token
from orchestration.local import EmbeddedAws
from tests.backends.workflows import workflow
from tests.direct.conftest import SIDE_BY_SIDE
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

TIME = "2026-11-22T06:00:00Z"
IDENTITY = stepfunctions.render(workflow(outputs={"run": run_id()}))
NUMBERED = stepfunctions.render(workflow(outputs={"attempt": run_attempt()}))
PARAMETERS = {"bucket": "workspace", "data": "s3://incoming/set", "role": ROLE}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005) as embedded:
        embedded.client("s3").create_bucket(Bucket="workspace")
        embedded.provide(roles=[ROLE])
        yield embedded


def outputs(aws: EmbeddedAws, machine: str, *inputs: Any) -> list[Any]:
    """Start an execution for each input, all at once, and return what each came to."""
    states = aws.client("stepfunctions")
    arns = [
        states.start_execution(stateMachineArn=machine, input=json.dumps(given))["executionArn"]
        for given in inputs
    ]
    ended = [
        wait(
            partial(states.describe_execution, executionArn=arn),
            lambda run: run["status"] != "RUNNING",
        )
        for arn in arns
    ]
    return [json.loads(run["output"]) if "output" in run else run["error"] for run in ended]


def created(aws: EmbeddedAws, definition: Any) -> str:
    response = aws.client("stepfunctions").create_state_machine(
        name=f"m-{uuid.uuid4().hex[:12]}", definition=json.dumps(definition), roleArn=ROLE
    )
    return str(response["stateMachineArn"])


def test_executions_of_one_name_are_one_run(aws: EmbeddedAws) -> None:
    machine = created(aws, IDENTITY)
    first, second, other, none = outputs(
        aws, machine, {RUN: TIME}, {RUN: TIME}, {RUN: "2026-11-23T06:00:00Z"}, {}
    )
    assert first == second == {"run": run_token(TIME)}
    assert len({each["run"] for each in (first, other, none)}) == 3


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_name_is_none(aws: EmbeddedAws, empty: Any) -> None:
    one, two = outputs(aws, created(aws, IDENTITY), {RUN: empty}, {RUN: empty})
    assert one["run"] != two["run"]


def test_a_name_is_a_text(aws: EmbeddedAws) -> None:
    assert outputs(aws, created(aws, IDENTITY), {RUN: 3}) == ["InvalidInput"]


def test_an_attempt_is_told_by_its_number_from_the_second_on(aws: EmbeddedAws) -> None:
    named = {RUN: TIME}
    numbers = [{}, *({ATTEMPT: number} for number in (None, 1, 2, 2.5, 0, "2"))]
    attempts = outputs(aws, created(aws, NUMBERED), *({**named, **number} for number in numbers))
    own = run_token(TIME)
    expected = [own, own, own, f"{own}-2", f"{own}-2", own]
    assert attempts == [*({"attempt": each} for each in expected), "InvalidInput"]


def mapped(processor: Any, items: Any, passing: Any = ()) -> dict[str, Any]:
    return {
        "StartAt": "Each",
        "QueryLanguage": "JSONata",
        "States": {
            "Each": {
                "Type": "Map",
                "Items": items,
                "ItemSelector": dict(passing),
                "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, **processor},
                "End": True,
            }
        },
    }


def test_the_elements_of_a_map_are_runs_of_their_own(aws: EmbeddedAws) -> None:
    inner = {"StartAt": IDENTITY["StartAt"], "States": IDENTITY["States"]}
    [runs] = outputs(aws, created(aws, mapped(inner, ["a", "a", "b"])), {})
    assert len({each["run"] for each in runs}) == 3
    [alone] = outputs(aws, created(aws, IDENTITY), {})
    assert alone["run"] not in {each["run"] for each in runs}


def test_so_are_those_of_a_map_in_a_map(aws: EmbeddedAws) -> None:
    inner = {"StartAt": IDENTITY["StartAt"], "States": IDENTITY["States"]}
    rows = mapped(inner, "{% $states.input.row %}")
    rows["States"] = {"Row": rows["States"]["Each"]}
    del rows["QueryLanguage"]
    row = {"row": "{% $states.context.Map.Item.Value %}"}
    whole = mapped({**rows, "StartAt": "Row"}, [["a", "b"], ["c", "d"]], row)
    [runs] = outputs(aws, created(aws, whole), {})
    assert len({each["run"] for row in runs for each in row}) == 4


def test_a_schedule_that_starts_a_run_twice_pays_once(aws: EmbeddedAws, tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    schedule = f"schedule: {{cron: 0 6 * * *, parameters: {json.dumps(PARAMETERS)}}}\n"
    # By default the second execution would be skipped while the first is under way.
    path.write_text(SIDE_BY_SIDE.replace('"600"', '"1"') + schedule + "overlap: allow\n")
    deployed = step_functions(
        Pipeline.load(path), session=aws, parameters=PARAMETERS, sleep=lambda _: None
    )
    scheduled = aws.client("scheduler").get_schedule(Name="pair")["Target"]["Input"]
    assert json.loads(scheduled)[RUN] == "pair/<aws.scheduler.scheduled-time>"
    given = json.loads(scheduled.replace("<aws.scheduler.scheduled-time>", TIME))
    first, second = outputs(aws, deployed.state_machine_arn, given, given)
    assert first == second
    assert isinstance(first, dict)
    jobs = aws.state()["sagemaker"]["TrainingJobs"]
    assert len([name for name in jobs if name.startswith("pair-")]) == 2
    (third,) = outputs(aws, deployed.state_machine_arn, given)
    assert third == first
    accepted = [c for c in aws.calls() if c.operation == "CreateTrainingJob" and not c.error_code]
    assert len(accepted) == 2
