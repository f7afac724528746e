"""Conditions of stages: which steps stand in which choice, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import AwsCall, Pipeline, PipelineError, parameter
from orchestration.expressions import Apply, Compare, Function, Parameter, Result, first_of
from orchestration.graph import Choose, Graph, Guarded, Step, upstream
from orchestration.pipeline.conditions.logic import always_holds
from orchestration.refs import Ref
from orchestration.stages.stage import Stage
from tests.guides import CONDITIONS, shown
from tests.pipeline.building import (
    Data,
    deployment,
    evaluation,
    job,
    lustre,
    named,
    pipeline,
    reader,
    stages_in,
)

FULL = {"equal": [{"parameter": "mode"}, "full"]}
QUICK = {"not_equal": [{"parameter": "mode"}, "full"]}
PARAMETERS: Data = {
    "parameters": {
        "mode": {"default": "full"},
        "checked": {"type": "boolean", "default": True},
        "limit": {"type": "number", "default": 1},
    }
}


def lowered(*stages: Data) -> Graph:
    return pipeline(*stages, **PARAMETERS).lower().graph


def refused(*stages: Data) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(*stages, **PARAMETERS)
    return [str(problem) for problem in error.value.problems]


def choice(step: Step) -> Choose:
    assert isinstance(step, Choose)
    return step


def test_a_condition_is_a_choice_around_the_stage() -> None:
    [step] = lowered(job("a", when=FULL)).steps
    whole = choice(step)
    assert (whole.name, whole.condition) == ("a.when", Compare("eq", Parameter("mode"), "full"))
    assert (stages_in(whole.then), whole.otherwise) == ({"a"}, Graph())


def test_a_stage_is_skipped_with_those_that_it_refers_to() -> None:
    graph = lowered(job("a", when=FULL), evaluation("e", "a", None), deployment("d", "e"))
    assert [step.name for step in graph.steps] == ["a.when", "e.when", "d.when"]
    assert len({str(repr(choice(step).condition)) for step in graph.steps}) == 1
    assert upstream(graph) == {
        "a.when": frozenset(),
        "e.when": {"a.when"},
        "d.when": {"e.when"},
    }


def test_a_stage_that_only_waits_is_not_skipped() -> None:
    graph = lowered(job("a", when=FULL), job("b", after=["a"]))
    assert upstream(graph)["b.job"] == {"a.when"}


def test_the_condition_of_a_file_system_holds_for_its_readers() -> None:
    graph = lowered(lustre("fs", when=FULL), reader("train", "fs"))
    [step] = graph.steps
    [guard] = choice(step).then.steps
    assert isinstance(guard, Guarded)
    assert [s.name for s in guard.body.steps if isinstance(s, Choose)] == []
    assert "train" in stages_in(guard.body)


def test_a_conditional_stage_inside_a_guard_is_a_choice_in_its_body() -> None:
    graph = lowered(
        lustre("fs"),
        reader("always", "fs"),
        reader("some", "fs", when=FULL),
        evaluation("e", "some", None),
    )
    guard = named(graph, "fs.guard")
    assert isinstance(guard, Guarded)
    assert "some.when" in {step.name for step in guard.body.steps}
    assert upstream(graph)["e.when"] == {"fs.guard"}


def test_a_file_system_whose_readers_may_all_be_skipped_is_refused() -> None:
    [problem] = refused(lustre("fs"), reader("train", "fs", when=FULL))
    assert problem == (
        "stages.fs.when: a condition may skip every stage that reads it, and it would be paid for "
        "nothing; give it the `when` of train"
    )


def test_the_gate_of_a_skipped_stage_stops_nothing() -> None:
    graph = lowered(job("a"), evaluation("e", "a", when=FULL), job("b", after=["e"]))
    gate = choice(named(graph, "e.passed_b"))
    assert gate.condition == Result("e.when", "gate__")
    assert choice(named(graph, "e.when")).absent["gate__"] is True
    assert gate.after == ("e.when",)


def test_a_deployment_behind_the_gates_of_two_branches() -> None:
    model = {"first_of": [{"ref": "e.best_checkpoint"}, {"ref": "f.best_checkpoint"}]}
    graph = lowered(
        job("a", when=FULL),
        job("b", when=QUICK),
        evaluation("e", "a"),
        evaluation("f", "b"),
        {**deployment("d", "e"), "model_data": model},
    )
    outer = choice(named(graph, "e.passed_d"))
    assert [step.name for step in outer.then.steps] == ["f.passed_d"]
    assert outer.condition == Result("e.when", "gate__")


def test_the_first_that_is_there_is_read_from_the_choices() -> None:
    graph = lowered(
        job("a", when=FULL),
        job("b", when=QUICK),
        evaluation("e", "a", None),
        job("c", environment={"M": first_of(Ref("e", "best_checkpoint"), "none")}),
    )
    [call] = [step for step in graph.steps if step.name == "c.job"]
    environment: Any = call.operation.request["Environment"]  # type: ignore[union-attr]
    assert environment["M"] == Apply(
        Function.FIRST_OF, (Result("e.when", "best_checkpoint"), "none")
    )


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ({"parameter": "mode"}, "when: parameter 'mode' is a string, and a condition is true or"),
        ({"equal": [{"parameter": "limit"}, "1"]}, "when.equal: parameter 'limit' is a number and"),
        (
            {"all": [FULL, {"less": [{"parameter": "mode"}, 3]}]},
            "when.all[1].less: parameter 'mode' is a string; only numbers are less or greater",
        ),
        ({"not": {"equal": [1, 2]}}, "when.not.equal: compares two values that are known already"),
        ({"less": [{"ref": "e.best_checkpoint"}, 3]}, "when.less: e.best_checkpoint is a string;"),
        ({"equal": [{"parameter": "mod"}, "x"]}, "when: there is no parameter 'mod'; did you mean"),
        ({"equals": [1, 2]}, "when: there is no condition 'equals'; did you mean 'equal'?"),
        ({"equal": [1]}, "when: expected a list of two values after equal, got [1]"),
        ({"any": []}, "when: expected a list after any, got []"),
        (True, "when: is always true; compare something: {equal: [{parameter: mode}, full]}"),
        ("full", "when: expected a condition with one key, got 'full'; write {equal:"),
    ],
)
def test_wrong_conditions_are_named_with_their_paths(when: Any, problem: str) -> None:
    [message] = refused(job("a"), evaluation("e", "a", None), job("b", when=when, after=["e"]))
    assert message.startswith(f"stages.b.{problem}")


def test_a_condition_on_what_a_skipped_stage_would_give_is_refused() -> None:
    stages = [job("a", when=FULL), evaluation("e", "a", None)]
    metric = {"ref": "e.best_metric"}
    assert refused(*stages, job("b", when={"greater": [metric, 0.5]})) == [
        "stages.b.when: stage 'e' may be skipped, and then there is no best_metric to compare; say "
        "what counts then: {first_of: [{ref: e.best_metric}, <value>]}"
    ]
    lowered(*stages, job("b", when={"greater": [{"first_of": [metric, 0]}, 0.5]}))


def test_first_of_must_have_one_that_is_there() -> None:
    stages = [job("a", when=FULL), job("b", when={"equal": [{"parameter": "mode"}, "quick"]})]
    value = {"first_of": [{"ref": "a.checkpoints"}, {"ref": "b.checkpoints"}]}
    assert refused(*stages, job("c", environment={"M": value})) == [
        "stages.c.environment.M: it may be that none of a.checkpoints, b.checkpoints is there; "
        "give first_of a last value that always is, or one of the stages the opposite condition: "
        "when: {not: <condition>}"
    ]
    stages[1] = job("b", when={"not": FULL})
    lowered(*stages, job("c", environment={"M": value}))


def test_first_of_takes_one_type_and_ends_with_what_is_always_there() -> None:
    value = {"first_of": [{"ref": "e.best_metric"}, "none"]}
    stages = [job("a"), evaluation("e", "a", None, when=FULL)]
    assert refused(*stages, job("c", environment={"M": value})) == [
        "stages.c.environment.M: expected values of one type in first_of, got others: "
        "e.best_metric is a number, 'none' is a string"
    ]
    value = {"first_of": [{"ref": "a.checkpoints"}, "none"]}
    assert refused(job("a"), job("c", environment={"M": value})) == [
        "stages.c.environment.M: a.checkpoints is always there; leave out what follows it in "
        "first_of"
    ]


@pytest.mark.parametrize("name", ["limit", "checked"])
def test_a_time_is_a_text(name: str) -> None:
    time = {"time_text": {"of": {"parameter": name}, "format": "%Y"}}
    kind = PARAMETERS["parameters"][name]["type"]
    message = f"parameter '{name}' is a {kind}, and a time is a text; declare it with type: string"
    [inside] = refused(job("a", environment={"YEAR": {"join": ["y", time]}}))
    assert inside == f"stages.a.environment.YEAR: {message}"
    [compared] = refused(job("a", when={"equal": [time, "2027"]}))
    assert compared == f"stages.a.when: {message}"
    time["time_text"]["of"] = {"parameter": "mode"}
    assert lowered(job("a", environment={"YEAR": time})).steps


def test_a_stage_that_may_end_the_run_early_has_no_condition() -> None:
    staging = {
        "kind": "data_staging",
        "name": "s",
        "source": "s3://source/data",
        "unless_unchanged": "end_run",
        "when": FULL,
    }
    assert refused(staging) == [
        "stages.s.when: unless_unchanged: end_run is decided before any condition; remove the one "
        "or the other"
    ]


@pytest.mark.parametrize(
    "when",
    [
        FULL,
        {"all": [{"parameter": "checked"}, {"at_most": [{"parameter": "limit"}, 2]}]},
        {"any": [{"equal": [{"parameter": "mode"}, "a"]}, {"not": {"parameter": "checked"}}]},
        {"equal": [{"first_of": [{"ref": "e.best_metric"}, 0]}, 1]},
    ],
)
def test_conditions_are_written_as_they_were_read(when: Any) -> None:
    read = job("x", when=when)
    stages = pipeline(job("a"), evaluation("e", "a", None, when=FULL), read, **PARAMETERS).stages
    whole: Stage = stages[2]
    assert whole.model_dump(mode="json")["when"] == when


def test_in_is_one_of_several() -> None:
    among = {"in": [{"parameter": "mode"}, ["full", "quick"]]}
    [step] = lowered(job("a", when=among)).steps
    assert choice(step).condition.conditions == (  # type: ignore[attr-defined]
        Compare("eq", Parameter("mode"), "full"),
        Compare("eq", Parameter("mode"), "quick"),
    )


def test_the_guide_s_pipeline_trains_one_way_or_the_other(tmp_path: Path) -> None:
    text, guarded = shown(CONDITIONS, "yaml")
    file = tmp_path / "models.yaml"
    file.write_text(guarded, encoding="utf-8")
    assert "enough.when" in {step.name for step in Pipeline.load(file).lower().graph.steps}
    file.write_text(text, encoding="utf-8")
    graph = Pipeline.load(file).lower().graph
    assert {"full.when", "quick.when"} <= {step.name for step in graph.steps}
    before = upstream(graph)
    assert before["full.when"] == before["quick.when"] == frozenset()


@pytest.mark.parametrize(
    ("when", "always"),
    [
        ({"any": [FULL, {"not": FULL}]}, True),
        ({"any": [FULL, QUICK]}, True),
        ({"any": [FULL, {"equal": [{"parameter": "mode"}, "quick"]}]}, False),
        (
            {
                "any": [
                    {"less": [{"parameter": "limit"}, 3]},
                    {"at_least": [{"parameter": "limit"}, 3]},
                ]
            },
            True,
        ),
        ({"any": [{"parameter": "checked"}, {"equal": [{"parameter": "checked"}, False]}]}, True),
        ({"any": [{"all": [FULL, {"parameter": "checked"}]}, QUICK]}, False),
    ],
)
def test_a_proof_tries_all_ways(when: Any, always: bool) -> None:
    [stage] = pipeline(job("a", when=when), **PARAMETERS).stages
    assert stage.when is not None
    assert always_holds(stage.when) is always


def test_a_stage_made_in_python_takes_a_condition_over_references() -> None:
    first = AwsCall(
        name="first", service="sns", operation="Publish", request={"Message": "m", "TopicArn": "t"}
    )
    made = AwsCall.model_validate(
        {
            "name": "second",
            "service": "sns",
            "operation": "Publish",
            "request": {"Message": "m", "TopicArn": "t"},
            "when": {"equal": [parameter("mode"), "full"]},
        }
    )
    stages = (first, made)
    pipeline = Pipeline(name="p", workspace="s3://bucket", stages=stages, parameters={"mode": {}})
    assert [each.name for each in pipeline.stages if each.when is not None] == ["second"]
