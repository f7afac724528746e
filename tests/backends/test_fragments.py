"""A definition as one state of a larger machine: no name of it is anybody else's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.embedding import fragment
from orchestration.backends.stepfunctions.embedding.renaming import Names, variables
from orchestration.errors import PipelineError, UnsupportedError
from orchestration.graph import Workflow
from tests.oracles import AslValidators

DAGS = Path(__file__).parents[2] / "dags"
NAMES = ("digits", "llm_fsx")


def workflow(name: str) -> Workflow:
    return Pipeline.load(DAGS / f"{name}.yaml").lower()


def states(machine: Any) -> list[tuple[str, Any]]:
    found = []
    for name, state in machine["States"].items():
        found.append((name, state))
        for inner in (*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])):
            found += states(inner)
    return found


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return (
        [text for each in values for text in texts(each)] if isinstance(value, dict | list) else []
    )


@pytest.mark.parametrize("name", NAMES)
def test_all_names_begin_with_the_prefix(name: str) -> None:
    made: Any = fragment(workflow(name), "train")
    [(around, state)] = made["States"].items()
    assert (around, made["StartAt"], state["Type"]) == ("train", "train", "Parallel")
    inner = states(state["Branches"][0])
    assert all(name.startswith("train-") for name, _ in inner)
    assert len(inner) == len(states(stepfunctions.render(workflow(name))))
    assert all(state["QueryLanguage"] == "JSONata" for _, state in inner)
    assert all(name.startswith("train__") for name in variables(state["Branches"][0]))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_names_differs(name: str) -> None:
    whole = stepfunctions.render(workflow(name))
    made: Any = fragment(workflow(name), "train")
    again = "\n".join(texts(made["States"]["train"]["Branches"][0]))
    again = again.replace("$train__", "$").replace(" & '/train'", "")
    again = re.sub(r"^train-", "", again, flags=re.MULTILINE)
    expected = [text for text in texts({key: whole[key] for key in ("StartAt", "States")})]
    assert sorted(text for text in again.split("\n") if text != "JSONata") == sorted(
        "\n".join(expected).split("\n")
    )


def test_two_fragments_and_their_machine_share_no_name() -> None:
    made: list[Any] = [fragment(workflow("digits"), prefix) for prefix in ("a", "b")]
    names = [name for each in made for name, _ in states(each)]
    assert len(set(names)) == len(names)
    own = [variables(each) for each in made]
    assert own[0].isdisjoint(own[1])
    assert own[0].isdisjoint(variables(stepfunctions.render(workflow("digits"))))


@pytest.mark.parametrize("name", NAMES)
def test_the_public_validators_accept_it(name: str, asl_validators: AslValidators) -> None:
    assert asl_validators(fragment(workflow(name), "train")) == []


def test_texts_and_fields_are_not_variables() -> None:
    names = Names(state="p-", variable="p__", variables=frozenset({"run", "a"}))
    said = "{% $run & '$run \\' $run' & \"$a\" & $a.`$run` & $runs & $string($a) %}"
    assert names.expression(said) == (
        "{% $p__run & '$run \\' $run' & \"$a\" & $p__a.`$run` & $runs & $string($p__a) %}"
    )
    assert names.expression("costs $run") == "costs $run"


@pytest.mark.parametrize("prefix", ["", "1a", "a b", "a" * 31, "ä"])
def test_a_prefix_that_names_nothing_is_refused(prefix: str) -> None:
    with pytest.raises(PipelineError, match="prefix: expected up to 30 letters"):
        fragment(workflow("digits"), prefix)


def test_a_name_that_gets_too_long_is_refused() -> None:
    stages = {
        "s" * 30: {
            "kind": "checkpoint_evaluation",
            "checkpoints": "s3://a/b",
            "data": "s3://a/c",
            "image": "i",
            "source": {"uri": "s3://a/code", "entry_point": "e.py"},
            "instance_type": "ml.m5.xlarge",
            "metric": "m",
            "direction": "max",
        }
    }
    pipeline = Pipeline.parse({"name": "long", "workspace": "s3://a/w", "stages": stages})
    with pytest.raises(UnsupportedError, match="with the prefix, and the most is 80"):
        fragment(pipeline.lower(), "p" * 30)


def test_the_identity_of_a_run_has_the_place_in_the_larger_machine() -> None:
    text = json.dumps(fragment(workflow("digits"), "first"))
    assert "$states.context.Execution.Id & $string($states.context.Map.Item) & '/first'" in text
