"""Stages with ``for_each``: their loops, their names, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.cli.values import parameters
from orchestration.expressions import (
    Apply,
    Field,
    Function,
    Item,
    Parameter,
    Result,
    join,
    run_id,
    walk,
)
from orchestration.graph import Call, Choose, ForEach, ParameterSpec, Require, Workflow, upstream
from tests.guides import FOR_EACH, shown
from tests.pipeline.building import Data, deployment, evaluation, job, lustre, named, pipeline

MARKETS = {"items": {"parameter": "markets"}, "max_concurrency": 2, "at_most": 10}
PARAMETERS: Data = {
    "parameters": {
        "markets": {"type": "array", "default": ["de", "fr"]},
        "mode": {"default": "full"},
        "days": {"type": "number", "default": 1},
    }
}
EACH = {"each": "item"}


def lowered(*stages: Data) -> Workflow:
    return pipeline(*stages, **PARAMETERS).lower()


def refused(*stages: Data, **further: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(*stages, **{**PARAMETERS, **further})
    return [str(problem) for problem in error.value.problems]


def test_a_stage_is_the_body_of_a_loop_over_a_parameter() -> None:
    workflow = lowered(job("a", for_each=MARKETS, hyperparameters={"market": EACH}))
    few, each = workflow.graph.steps
    assert isinstance(few, Require)
    assert isinstance(each, ForEach)
    assert (each.name, each.items, each.max_concurrency, each.at_most) == (
        "a.each",
        Parameter("markets"),
        2,
        10,
    )
    assert upstream(workflow.graph)["a.each"] == {"a.elements"}
    [call] = each.body.steps
    assert isinstance(call, Call)
    request: Any = call.operation.request
    element = Apply(Function.TEXT, (Item(),))
    token = Apply(Function.HASH, (join(run_id(), "/", element),))
    assert request["TrainingJobName"] == join("pipeline-a-", token)
    assert Item() in set(walk(request["HyperParameters"]["market"]))
    # Whatever the run writes to S3, it writes apart for each element.
    places = (request["OutputDataConfig"], request["CheckpointConfig"])
    assert all(token in set(walk(place)) for place in places)


def test_outputs_are_lists_of_what_is_read() -> None:
    workflow = lowered(job("a", for_each=MARKETS))
    each = named(workflow.graph, "a.each")
    assert isinstance(each, ForEach)
    shown: Any = workflow.outputs["a"]
    assert set(each.collect) == set(shown)
    assert shown["model_artifacts"] == Apply(
        Function.COLUMN, (Result("a.each", "items"), "model_artifacts")
    )


def test_one_loop_goes_over_what_another_gave() -> None:
    second = {"items": {"ref": "a.model_artifacts"}}
    stage = {**deployment("d", "a"), "model_data": EACH, "for_each": second}
    stage["endpoint_name"] = EACH
    workflow = lowered(job("a", for_each=MARKETS), stage)
    each = named(workflow.graph, "d.each")
    assert isinstance(each, ForEach)
    assert isinstance(each.items, Apply)
    assert upstream(workflow.graph)["d.elements"] == {"a.each"}


def test_a_condition_stands_around_a_loop() -> None:
    when = {"equal": [{"parameter": "mode"}, "full"]}
    [choice] = lowered(job("a", for_each=MARKETS, when=when)).graph.steps
    assert isinstance(choice, Choose)
    assert [step.name for step in choice.then.steps] == ["a.elements", "a.each"]


@pytest.mark.parametrize(
    ("stage", "problem"),
    [
        (
            job("a", for_each={"items": {"parameter": "mode"}}),
            "for_each.items: mode is not a list; give a parameter with type: array, or a list",
        ),
        (
            job("a", for_each={"items": {"ref": "first.job_name"}}),
            "for_each.items: first.job_name is not a list; give a parameter with type: array, or a "
            "list",
        ),
        (
            job("a", for_each={"items": "de"}),
            "for_each.items: expected a list, or a reference to one, got 'de'",
        ),
        (job("a", for_each={"items": ["de", "de"]}), "for_each.items: 'de' stands there twice"),
        (
            job("a", for_each={"items": ["de", "fr"], "at_most": 1}),
            "for_each.items: has 2 elements; at_most is 1",
        ),
        (
            job("a", hyperparameters={"market": EACH}),
            "hyperparameters.market: there is no element here; {each: item} is for the fields of a "
            "stage with for_each",
        ),
        (
            job("a", hyperparameters={"market": {"parameter": "markets"}}),
            "hyperparameters.market: is a list, and one value is expected; give the stage for_each "
            "over it",
        ),
        (
            job("a", hyperparameters={"model": {"ref": "lists.model_artifacts"}}),
            "hyperparameters.model: is a list, and one value is expected; give the stage for_each "
            "over it",
        ),
        (
            job("a", when={"equal": [{"ref": "lists.job_name"}, "x"]}),
            "when.equal: lists.job_name is a list and 'x' is a string: they are never equal",
        ),
        (
            evaluation("a", "first", None, for_each=MARKETS),
            "for_each: the stage goes through a list of its own; write one stage for each element",
        ),
        (
            {"kind": "approval", "name": "a", "question": "?", "for_each": MARKETS},
            "for_each: a person answers once for the whole stage; remove it",
        ),
        (
            lustre("a", for_each=MARKETS),
            "for_each: a stage that creates a file system for others can't have it; give it to the "
            "readers",
        ),
    ],
)
def test_wrong_loops_are_named_with_their_paths(stage: Data, problem: str) -> None:
    assert f"stages.a.{problem}" in refused(job("first"), job("lists", for_each=MARKETS), stage)


ROWS = {"type": "array", "default": [{"market": "de", "days": 3}, {"market": "fr", "days": 1}]}
FIELDS = {"fields": {"market": "string", "days": "number"}, "key": "market"}
OBJECTS = {"items": {"parameter": "rows"}, **FIELDS}


def test_fields_of_objects_are_checked_before_the_loop_and_named_by_their_key() -> None:
    days = {"days": {"each": "days"}}
    made = pipeline(job("a", for_each=OBJECTS, hyperparameters=days), parameters={"rows": ROWS})
    few, shaped, each = made.lower().graph.steps
    assert isinstance(few, Require)
    assert isinstance(shaped, Require)
    assert isinstance(each, ForEach)
    assert (shaped.error, shaped.after, each.after) == (
        "WrongElements",
        ("a.elements",),
        ("a.fields",),
    )
    [call] = each.body.steps
    assert isinstance(call, Call)
    request: Any = call.operation.request
    element = Apply(Function.TEXT, (Field(Item(), "market"),))
    token = Apply(Function.HASH, (join(run_id(), "/", element),))
    assert request["TrainingJobName"] == join("pipeline-a-", token)
    assert Field(Item(), "days") in set(walk(request["HyperParameters"]["days"]))
    # What a file holds is checked before the run.
    written = {"items": ROWS["default"], **FIELDS}
    [loop] = pipeline(job("a", for_each=written, hyperparameters=days)).lower().graph.steps
    assert isinstance(loop, ForEach)


EXPECTED = (
    "; for_each expects objects with market: string, days: number, and another market in each"
)


@pytest.mark.parametrize(
    ("loop", "fields", "problem"),
    [
        (
            {"items": [{"market": "de"}], **FIELDS},
            {},
            f"items: element 1 has no number days{EXPECTED}",
        ),
        ({"items": ["de"], **FIELDS}, {}, f"items: element 1 is not an object{EXPECTED}"),
        (
            {"items": [{"market": "de", "days": 1}, {"market": "de", "days": 2}], **FIELDS},
            {},
            f"items: two elements have the same market{EXPECTED}",
        ),
        (
            {"items": {"parameter": "rows"}, "fields": {"market": "string", "n": "number"}}
            | {"key": "market"},
            {},
            "items: by the default of rows, element 1 has no number n; element 2 has no number n; "
            "for_each expects objects with market: string, n: number, and another market in each",
        ),
        (
            {"items": {"parameter": "rows"}},
            {},
            "items: by the default of rows, element 1 is an object; say which fields each has: "
            "for_each: {fields: {<name>: string}, key: <name>}",
        ),
        (
            {**OBJECTS, "items": {"ref": "lists.job_name"}},
            {},
            "fields: the elements of an output of lists are no objects; remove it",
        ),
        ({**OBJECTS, "key": None}, {}, "has fields and no key; name the field that tells elements"),
        ({**OBJECTS, "key": "days"}, {}, "expected the key days among the fields, as a string"),
        ({**OBJECTS, "key": "mrket"}, {}, "expected the key mrket among the fields, as a string"),
        (
            OBJECTS,
            {"hyperparameters": {"days": {"each": "day"}}},
            "hyperparameters.days: the elements have no field 'day'; did you mean 'days'?",
        ),
        (
            OBJECTS,
            {"hyperparameters": {"days": EACH}},
            "hyperparameters.days: the elements have no field 'item'",
        ),
        (
            {"items": ["de"]},
            {"hyperparameters": {"days": {"each": "days"}}},
            "hyperparameters.days: {each: days} is a field of elements that are objects; name it "
            "in for_each.fields, or write {each: item} for the element itself",
        ),
    ],
)
def test_elements_without_their_fields_are_named(loop: Data, fields: Data, problem: str) -> None:
    parameters = {**PARAMETERS["parameters"], "rows": ROWS}
    stages = (job("lists", for_each=MARKETS), job("a", for_each=loop, **fields))
    found = refused(*stages, parameters=parameters)
    assert any(text.startswith("stages.a.") and problem in text for text in found), found


@pytest.mark.parametrize(
    ("field", "starts"),
    [("schedule", {"cron": "0 6 * * *"}), ("trigger", {"model_package": {"group": "models"}})],
)
def test_lists_of_runs_that_start_by_themselves_are_checked(field: str, starts: Data) -> None:
    parameters = {"rows": {"type": "array"}}
    rows = {"rows": [{"market": "de"}]}
    started = {field: {**starts, "parameters": rows}}
    [problem] = refused(job("a", for_each=OBJECTS), parameters=parameters, **started)
    assert problem == (
        f"stages.a.for_each.items: by {field}.parameters.rows, element 1 has no number days"
        f"{EXPECTED}"
    )


def test_a_list_is_no_part_of_a_place() -> None:
    place = {"join": ["s3://bucket/", {"parameter": "markets"}]}
    assert refused(job("a"), workspace=place) == ["workspace: is a list, and one value is expected"]


def test_the_default_of_an_array_is_a_list() -> None:
    [problem] = refused(job("a"), parameters={"markets": {"type": "array", "default": "de"}})
    assert problem == "parameters.markets: expected an array as the default, got 'de'"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("de,fr", ["de", "fr"]),
        ('["a,b", 2]', ["a,b", 2]),
        ('[{"market": "de", "days": 3}]', [{"market": "de", "days": 3}]),
        ("", []),
        ("one", ["one"]),
    ],
)
def test_arrays_are_read_from_a_command_line(text: str, value: list[Any]) -> None:
    specs = [ParameterSpec(name="markets", type="array")]
    assert parameters(specs, [f"markets={text}"]) == {"markets": value}


def test_the_guide_s_pipeline_trains_once_for_each_market(tmp_path: Any) -> None:
    [text] = shown(FOR_EACH, "yaml")
    file = tmp_path / "markets.yaml"
    file.write_text(text, encoding="utf-8")
    graph = Pipeline.load(file).lower().graph
    assert [step.name for step in graph.steps if isinstance(step, ForEach)] == [
        "train.each",
        "announce.each",
    ]
