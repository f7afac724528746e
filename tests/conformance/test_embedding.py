"""A pipeline inside larger state machines, as the guide shows it: one state, or an execution."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.embedding import fragment
from orchestration.cli.app import app
from orchestration.local import EmbeddedAws
from tests.guides import EMBEDDING, shown
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow

(MARKET,) = shown(EMBEDDING, "yaml")
NESTED, TEMPLATE = (json.loads(text) for text in shown(EMBEDDING, "json"))


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        embedded.client("sns").create_topic(Name="news")
        embedded.provide(roles=[ROLE])
        yield embedded


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "market.yaml"
    path.write_text(MARKET)
    return path


TOPIC = "arn:aws:sns:us-east-1:123456789012:news"


def created(aws: EmbeddedAws, definition: Any, name: str | None = None) -> str:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    response = aws.client("stepfunctions").create_state_machine(
        name=name or f"m-{uuid.uuid4().hex[:12]}", definition=text, roleArn=ROLE
    )
    return str(response["stateMachineArn"])


def ended(aws: EmbeddedAws, machine: str, given: Any) -> Any:
    states = aws.client("stepfunctions")
    arn = states.start_execution(stateMachineArn=machine, input=json.dumps(given))["executionArn"]
    run = wait(lambda: states.describe_execution(executionArn=arn), _is_over)
    return json.loads(run["output"]) if run.get("output") else (run["error"], run.get("cause"))


def _is_over(run: Any) -> bool:
    return bool(run["status"] != "RUNNING")


def published(aws: EmbeddedAws) -> list[str]:
    # The engine's calls are among those of executions.
    return [call.request["Message"] for call in aws.calls(service="sns")][-10:]


def test_the_guides_larger_machine_runs_each_market(aws: EmbeddedAws, file: Path) -> None:
    rendered = file.with_name("market.asl.json")
    command = ["render", "step-functions", str(file), "--fragment", "market", "-o", str(rendered)]
    app(command, standalone_mode=False)
    [larger, _] = shown(EMBEDDING, "python")
    file.with_name("larger.py").write_text(larger)
    subprocess.run([sys.executable, "larger.py"], cwd=file.parent, check=True)
    machine = created(aws, file.with_name("larger.asl.json").read_text())
    both = ended(aws, machine, {"markets": ["de", "fr"], "topic": TOPIC})
    assert len({each["announce"]["message"] for each in both}) == 2
    assert sorted(published(aws)[-2:]) == ["de", "fr"]
    wrong = ended(aws, machine, {"markets": ["de"], "topic": f"{TOPIC}-too"})
    assert wrong[0] == "OneMarketFailed"


def test_fragments_of_one_pipeline_run_side_by_side_in_a_machine_of_jsonpath(
    aws: EmbeddedAws, file: Path
) -> None:
    workflow = Pipeline.load(file).lower()
    machine = {
        "StartAt": "Both",
        "States": {
            "Both": {
                "Type": "Parallel",
                "Branches": [fragment(workflow, prefix) for prefix in ("one", "two")],
                "ResultPath": "$.both",
                "Next": "Then",
            },
            "Then": {"Type": "Pass", "InputPath": "$.both", "End": True},
        },
    }
    given = {"market": "it", "topic": TOPIC}
    found = ended(aws, created(aws, machine), given)
    assert len({each["announce"]["message"] for each in found}) == 2
    assert published(aws)[-2:] == ["it", "it"]


def test_a_fragment_fails_as_its_pipeline_does(aws: EmbeddedAws, file: Path) -> None:
    machine: Any = fragment(Pipeline.load(file).lower(), "market")
    machine["States"]["market"] |= {
        "Arguments": {"market": "{% $states.input.where.market %}"},
        "Catch": [{"ErrorEquals": ["InvalidInput"], "Next": "Caught"}],
    }
    machine["States"]["Caught"] = {"Type": "Pass", "End": True}
    caught = ended(aws, created(aws, machine), {"where": {"market": "de"}})
    assert caught["Cause"] == "parameter topic is missing"


def test_an_execution_of_its_own_gives_its_output_and_its_error(
    aws: EmbeddedAws, file: Path
) -> None:
    created(aws, stepfunctions.render(Pipeline.load(file).lower()), "market")
    larger = created(aws, NESTED)
    assert ended(aws, larger, {"market": "es", "topic": TOPIC})["announce"]["message"]
    assert published(aws)[-1] == "es"
    error, cause = ended(aws, larger, {"market": "es", "topic": f"{TOPIC}-too"})
    assert (error, "does not exist" in cause) == ("NotFound", True)


def test_executions_of_their_own_run_inside_a_map_and_beside_it(
    aws: EmbeddedAws, file: Path
) -> None:
    name = "market-mapped"
    inner = created(aws, stepfunctions.render(Pipeline.load(file).lower()), name)
    states = json.loads(json.dumps(NESTED["States"]))
    states["Train"]["Arguments"]["StateMachineArn"] = inner
    each = {
        "Type": "Map",
        "Items": "{% $states.input.markets %}",
        "ItemSelector": {"market": "{% $states.context.Map.Item.Value %}", "topic": TOPIC},
        "ItemProcessor": {"StartAt": "Train", "States": states},
        "End": True,
    }
    beside = json.loads(json.dumps(states).replace("Train", "Alone"))
    beside["LuFailed"] = beside.pop("Failed")
    beside["Alone"]["Catch"][0]["Next"] = "LuFailed"
    branches = [
        {"StartAt": "Each", "States": {"Each": each}},
        {"StartAt": "Alone", "States": beside},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "Both", "States": {"Both": both}}
    given = {"markets": ["nl", "be"], "market": "lu", "topic": TOPIC}
    mapped, alone = ended(aws, created(aws, machine), given)
    messages = [output["announce"]["message"] for output in (*mapped, alone)]
    assert len(set(messages)) == 3
    listed = aws.client("stepfunctions").list_executions(stateMachineArn=inner)["executions"]
    assert len(listed) == 3


INNER = """
name: inner
workspace: s3://my-bucket/market
parameters: {topic: {}, text: {}}
stages:
  hold:
    kind: aws_call
    service: sns
    operation: Publish
    request: {TopicArn: {parameter: topic}, Message: {parameter: text}}
    results: {message: MessageId}
"""
OUTER = """
name: outer
region: us-east-1
workspace: s3://my-bucket/market
role: arn:aws:iam::123456789012:role/SageMakerExecution
parameters: {market: {}, news: {}, topic: {}}
stages:
  first:
    kind: pipeline
    file: inner.yaml
    parameters: {topic: {parameter: news}, text: {parameter: market}}
  second:
    kind: pipeline
    file: inner.yaml
    after: [first]
    parameters: {topic: {parameter: topic}, text: {join: [second, " ", {parameter: market}]}}
on_failure:
  lost:
    kind: aws_call
    service: sns
    operation: Publish
    request: {TopicArn: {parameter: news}, Message: {join: ["lost ", {parameter: market}]}}
always:
  tidy:
    kind: aws_call
    service: sns
    operation: Publish
    request:
      TopicArn: {parameter: news}
      Message: {join: ["tidied ", {ref: first_hold.message}, " of ", {parameter: market}]}
  checked:
    kind: aws_call
    service: sns
    operation: Publish
    request:
      TopicArn: {parameter: news}
      Message: {join: ["checked ", {ref: second_hold.message}]}
"""


def test_fragments_with_pipelines_in_them_and_stages_after_their_end_run_in_maps(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    (tmp_path / "outer.yaml").write_text(OUTER)
    workflow = Pipeline.load(tmp_path / "outer.yaml").lower()
    value = "$states.context.Map.Item.Value"
    each = {
        "Type": "Map",
        "Items": ["ro", "bg"],
        "ItemSelector": {
            "market": f"{{% {value} %}}",
            "news": TOPIC,
            "topic": f"{{% '{TOPIC}' & ({value} = 'bg' ? '-too' : '') %}}",
            "orchestration:run": f"{{% $states.context.Execution.Id & {value} %}}",
        },
        # Both elements come to their end: Map cancels the others where one fails.
        "ItemProcessor": caught(fragment(workflow, "in_map")),
        "End": True,
    }
    beside = fragment(workflow, "beside")
    given = {"market": "gr", "news": TOPIC, "topic": TOPIC}
    beside["States"]["beside"]["Arguments"] = given  # type: ignore[index, call-overload]  # JSON
    branches = [{"StartAt": "Each", "States": {"Each": each}}, beside]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "Both", "States": {"Both": both}}
    before = len(aws.calls(service="sns"))
    mapped, alone = ended(aws, created(aws, machine), {})
    held = {"ro": mapped[0], "gr": alone}
    sent = [c.request["Message"] for c in aws.calls(service="sns")[before:] if not c.error_code]
    for market, outputs in held.items():
        assert f"tidied {outputs['first_hold']['message']} of {market}" in sent
        assert f"checked {outputs['second_hold']['message']}" in sent
    assert mapped[1] == {"failed": "NotFound"}
    assert [text for text in sent if text.startswith("lost")] == ["lost bg"]
    assert len([text for text in sent if text.endswith(" of bg")]) == 1
    assert len([text for text in sent if text.startswith("checked")]) == 2


def caught(machine: Any) -> Any:
    """Let a machine of one state end well with the error that its state fails with."""
    [state] = machine["States"].values()
    failed = "{% {'failed': $states.errorOutput.Error} %}"
    state["Catch"] = [{"ErrorEquals": ["States.ALL"], "Output": failed, "Next": "Over"}]
    over = {"Type": "Pass", "QueryLanguage": "JSONata", "End": True}
    return {**machine, "States": {**machine["States"], "Over": over}}


def problems(template: Any) -> list[str]:
    from cfnlint.api import lint_all

    found = [match.rule.id for match in lint_all(json.dumps(template))]
    return [rule for rule in found if not rule.startswith("I")]


def test_cloudformation_takes_the_definition_as_it_is(file: Path) -> None:
    rendered = stepfunctions.dumps(stepfunctions.render(Pipeline.load(file).lower()))
    # Whatever may be substituted in a template's text begins so.
    assert "${" not in rendered
    template = json.loads(json.dumps(TEMPLATE))
    properties = template["Resources"]["Market"]["Properties"]
    properties["DefinitionString"] = rendered
    assert problems(template) == []
    properties["DefinitionString"] = "{}"
    assert "E3601" in problems(template)
