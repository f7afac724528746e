"""Stages that go through a list together: one loop, whose stages read each other's elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.expressions import Apply, Function, Result, walk
from orchestration.graph import Call, Choose, ForEach, Graph, all_steps, trees
from tests.conformance.test_together import MARKET, OUTER
from tests.pipeline.building import Data, job, named, pipeline
from tests.pipeline.test_nesting import written

LOOP: Data = {"items": ["de", "fr"], "together": "market"}
EACH = {"each": "item"}


def data(stage: str) -> Data:
    return {"training": {"ref": f"{stage}.model_artifacts"}}


def refused(*stages: Data, **further: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(*stages, **further)
    return [str(problem) for problem in error.value.problems]


def test_stages_of_a_group_read_the_outputs_of_their_own_element() -> None:
    first = job("a", for_each=LOOP, hyperparameters={"market": EACH})
    workflow = pipeline(first, job("b", for_each=LOOP, channels=data("a"))).lower()
    loop = named(workflow.graph, "market.each")
    assert isinstance(loop, ForEach)
    assert [step.name for step in loop.body.steps] == ["market.element", "a.job", "b.job"]
    reads = {n for t in trees(loop.body.steps[2]) for n in walk(t) if isinstance(n, Result)}
    assert Result("a.job", "model_artifacts") in reads
    shown: Any = workflow.outputs
    for stage in ("a", "b"):
        listed = Apply(
            Function.COLUMN, (Result("market.each", "items"), f"{stage}.model_artifacts")
        )
        assert shown[stage]["model_artifacts"] == listed


def test_names_hold_the_element_of_the_group_in_loops_of_its_stages_too() -> None:
    workflow = pipeline(
        job("a", for_each=LOOP),
        {
            "name": "fetch",
            "kind": "data_staging",
            "source": {"join": ["s3://b/", EACH]},
            "for_each": LOOP,
        },
    ).lower()
    [copy] = [s for s in all_steps(workflow.graph) if isinstance(s, Call) and "CopyO" in str(s)]
    assert Result("market.element", "item") in set(walk(copy.operation.request["Key"]))


def test_a_condition_on_the_element_stands_inside_of_the_loop() -> None:
    skipped = job("b", for_each=LOOP, when={"equal": [EACH, "de"]})
    graph = pipeline(job("a", for_each=LOOP), skipped).lower().graph
    loop = named(graph, "market.each")
    assert isinstance(loop, ForEach)
    choice = named(Graph(loop.body.steps), "b.when")
    assert isinstance(choice, Choose)
    assert choice.collect.keys() == choice.absent.keys() != set()


def test_what_all_of_them_have_for_a_condition_decides_on_the_loop() -> None:
    when = {"equal": [{"parameter": "mode"}, "full"]}
    stages = [job(name, for_each=LOOP, when=when) for name in ("a", "b")]
    graph = pipeline(*stages, parameters={"mode": {}}).lower().graph
    assert [step.name for step in graph.steps] == ["market.when"]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            [job("a", for_each=LOOP), job("b", for_each={**LOOP, "items": ["it"]})],
            "stages.b.for_each: goes through another list than a, or otherwise; stages together "
            "have the same for_each",
        ),
        (
            [job("a", for_each={**LOOP, "together": "a"})],
            "stages.a.for_each.together: there is a stage a; a group has a name of its own",
        ),
        (
            [job("a", for_each=LOOP), job("b", channels=data("a"))],
            "stages.b.channels.training.uri: is a list, and one value is expected; give the stage "
            "for_each over it",
        ),
        (
            [
                job("a", for_each=LOOP),
                job("x", after=["a"]),
                job("b", for_each=LOOP, after=["x"]),
            ],
            "stages: stages wait for each other: market -> x -> market",
        ),
        (
            [job("a", for_each=LOOP, after=["b"]), job("b", for_each=LOOP, after=["a"])],
            "stages.a: stages wait for each other: a -> b -> a",
        ),
        (
            [{"name": "a", "kind": "approval", "question": "?", "for_each": LOOP}],
            "stages.a.for_each: a person answers once for the whole stage; remove it",
        ),
    ],
)
def test_a_group_that_is_none_is_refused(stages: list[Data], message: str) -> None:
    assert message in refused(*stages)


def test_a_group_after_the_end_is_refused() -> None:
    last = {"a": {k: v for k, v in job("a", for_each=LOOP).items() if k != "name"}}
    message = (
        "always.a.for_each.together: belongs to `stages`; what follows the end of a run has no "
        "groups"
    )
    assert message in refused(job("z"), always=last)


def test_a_nested_pipeline_with_a_list_of_its_own_has_no_other_around_it(tmp_path: Path) -> None:
    own = {**MARKET["stages"]["tell"], "for_each": {"items": ["a"]}}
    inner = {**MARKET, "stages": {**MARKET["stages"], "tell": own}}
    with pytest.raises(
        PipelineError, match=r"stage tell of market\.yaml goes through a list itself"
    ):
        Pipeline.load(written(tmp_path, market=inner, outer=OUTER))
