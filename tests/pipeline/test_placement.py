"""Guards, gates and edges: which stages stand where."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Choose, Graph, Guarded, upstream
from tests.pipeline.building import (
    Data,
    deployment,
    evaluation,
    exporting,
    job,
    lustre,
    named,
    outline,
    pipeline,
    reader,
    stages_in,
    writer,
)


def placed(*stages: Data) -> list[Any]:
    return outline(pipeline(*stages).lower().graph)


def test_independent_stages_have_no_edge_between_them() -> None:
    edges = upstream(pipeline(job("a"), job("b")).lower().graph)
    assert edges == {"a.job": frozenset(), "b.job": frozenset()}


def test_after_is_an_edge_without_data() -> None:
    edges = upstream(pipeline(job("a"), job("b", after=["a"])).lower().graph)
    assert edges["b.job"] == {"a.job"}


def test_the_order_of_stages_in_the_file_does_not_matter_for_edges() -> None:
    stages = [job("a"), evaluation("b", "a"), deployment("c", "b")]
    one, other = (upstream(pipeline(*s).lower().graph) for s in (stages, stages[::-1]))
    assert one == other


def test_a_file_system_lives_around_its_readers_only() -> None:
    stages = [lustre("fs"), reader("train", "fs"), evaluation("evaluate", "train", "fail")]
    graph = pipeline(*stages, job("apart")).lower().graph
    guard = named(graph, "fs.guard")
    assert isinstance(guard, Guarded)
    assert (stages_in(guard.body), stages_in(guard.cleanup)) == ({"fs", "train"}, {"fs"})


def test_evaluation_begins_after_the_file_system_is_deleted() -> None:
    stages = [lustre("fs"), reader("train", "fs"), evaluation("evaluate", "train")]
    assert upstream(pipeline(*stages).lower().graph)["evaluate.list"] == {"fs.guard"}


def test_an_export_begins_after_the_last_reader_and_ends_before_the_deletion() -> None:
    stages = [exporting("fs", "/results"), writer("train", "fs"), writer("next", "fs")]
    guard = named(pipeline(*stages).lower().graph, "fs.guard")
    assert isinstance(guard, Guarded)
    before = upstream(guard.body)
    assert before["fs.keep"] == {"train.job", "next.job"}
    assert before["fs.export"] == {"fs.keep"}
    assert before["fs.saved"] == {"fs.exported"}


def test_an_export_of_what_a_gate_may_keep_from_being_written_is_refused() -> None:
    stages = [
        job("first"),
        evaluation("judge", "first"),
        exporting("fs", "/results"),
        writer("train", "fs", after=["judge"]),
    ]
    with pytest.raises(PipelineError, match="judge may stop every stage that reads it"):
        pipeline(*stages).lower()
    stages[2] = exporting("fs", "/results", after=["judge"])
    pipeline(*stages).lower()


def test_what_stands_between_two_readers_is_inside() -> None:
    between = evaluation("middle", "first", "fail")
    last = reader("last", "fs", hyperparameters={"from": {"ref": "middle.best_checkpoint"}})
    assert placed(lustre("fs"), reader("first", "fs"), between, last) == [
        ["fs.guard", ["fs", "first", "middle", "last"]]
    ]


def test_what_only_waits_for_a_file_system_runs_after_its_deletion() -> None:
    graph = pipeline(lustre("fs"), reader("t", "fs"), job("later", after=["fs"])).lower().graph
    assert upstream(graph)["later.job"] == {"fs.guard"}


def test_two_file_systems_of_one_reader_live_one_inside_the_other() -> None:
    assert placed(lustre("a"), lustre("b"), reader("t", "a", "b")) == [
        ["a.guard", ["a", ["b.guard", ["b", "t"]]]]
    ]


def test_two_file_systems_of_two_readers_live_side_by_side() -> None:
    assert placed(lustre("a"), lustre("b"), reader("s", "a"), reader("t", "b")) == [
        ["a.guard", ["a", "s"]],
        ["b.guard", ["b", "t"]],
    ]


def test_three_file_systems_that_overlap_in_pairs_nest() -> None:
    systems = [lustre("a"), lustre("b"), lustre("c")]
    assert placed(*systems, reader("s", "a", "b"), reader("t", "b", "c")) == [
        ["a.guard", ["a", ["b.guard", ["b", ["c.guard", ["c", "t"]], "s"]]]]
    ]


def test_a_file_system_staged_after_a_reader_of_another_that_is_read_later_nests() -> None:
    # The stage between leaves the inner file system's reader and leads to the outer one's.
    stages = [
        lustre("a"),
        reader("s", "a"),
        lustre("b", after=["s"]),
        reader("t", "b", after=["q"]),
        job("q", after=["s"]),
        reader("u", "a", after=["b"]),
    ]
    [[outer, inside]] = placed(*stages)
    assert (outer, inside[:2]) == ("a.guard", ["a", "s"])
    assert ["b.guard", ["b", "t"]] in inside
    assert {"q", "u"} <= {name for name in inside if isinstance(name, str)}


def test_a_miss_that_fails_stops_what_follows_without_a_branch() -> None:
    assert placed(job("t"), evaluation("e", "t", "fail"), deployment("d", "e")) == ["t", "e", "d"]
    graph = pipeline(job("t"), evaluation("e", "t", "fail"), deployment("d", "e")).lower().graph
    assert "e.gate" in upstream(graph)["d.fingerprint"]


def test_a_miss_that_stops_puts_what_follows_into_a_branch() -> None:
    stages = [job("t"), evaluation("e", "t"), deployment("d", "e"), job("apart")]
    assert placed(*stages) == ["t", "apart", "e", ["e.passed_d", ["d"]]]


def test_outputs_behind_a_gate_are_absent_where_it_stops() -> None:
    stages = [job("t"), evaluation("e", "t"), deployment("d", "e"), job("apart")]
    workflow = pipeline(*stages).lower()
    assert set(workflow.outputs) == {"t", "e", "d", "apart"}
    gate = named(workflow.graph, "e.passed_d")
    assert isinstance(gate, Choose)
    shown: Any = workflow.outputs["d"]
    assert {value.step for value in shown.values()} == {"e.passed_d"}
    assert set(gate.absent) == {f"d__{name}" for name in shown}
    assert set(gate.absent.values()) == {None}


def test_a_stage_behind_two_gates_needs_both() -> None:
    stages = [job("t"), evaluation("e", "t"), evaluation("f", "t"), job("x", after=["e", "f"])]
    assert placed(*stages) == ["t", "e", "f", ["e.passed_x", [["f.passed_x", ["x"]]]]]


def test_a_stage_behind_two_gates_joins_what_it_needs_behind_one_of_them() -> None:
    gates = [job("t"), evaluation("e", "t"), evaluation("f", "t")]
    stages = [*gates, deployment("y", "f"), job("x", after=["e", "y"])]
    assert placed(*stages) == ["t", "e", "f", ["f.passed_y", ["y", ["e.passed_x", ["x"]]]]]


def test_needing_what_two_gates_may_stop_apart_is_refused() -> None:
    gates = [job("t"), evaluation("e", "t"), evaluation("f", "t")]
    with pytest.raises(PipelineError, match=r"stages\.x: .*y waits for e; z waits for f"):
        pipeline(*gates, deployment("y", "e"), deployment("z", "f"), job("x", after=["y", "z"]))


def test_a_reader_behind_a_gate_keeps_what_depends_on_it_inside() -> None:
    first = [lustre("fs"), reader("t", "fs"), evaluation("e", "t")]
    second = [reader("u", "fs", after=["e"]), evaluation("v", "u", None)]
    assert placed(*first, *second) == [["fs.guard", ["fs", "t", "e", ["e.passed_u", ["u", "v"]]]]]


def test_a_file_system_behind_a_gate_is_not_created_on_a_miss() -> None:
    stages = [job("t"), evaluation("e", "t"), lustre("fs", after=["e"]), reader("u", "fs")]
    assert placed(*stages) == ["t", "e", ["e.passed_fs", [["fs.guard", ["fs", "u"]]]]]


def test_a_file_system_that_always_exists_lives_around_one_behind_a_gate() -> None:
    stages = [job("t"), evaluation("e", "t"), lustre("a", after=["e"]), lustre("b")]
    assert placed(*stages, reader("r", "a", "b"), reader("u", "b")) == [
        "t",
        ["b.guard", ["b", "u", ["e.passed_a", [["a.guard", ["a", "r"]]]]]],
        "e",
    ]


def test_a_stage_that_a_gate_would_stop_by_accident_is_refused() -> None:
    gates = [job("t"), evaluation("e", "t"), evaluation("f", "t")]
    systems = [lustre("a", after=["e"]), lustre("b", after=["f"]), reader("r", "a", "b")]
    with pytest.raises(
        PipelineError, match=r"stages\.u: shares what 'a' creates .*add after: \[e\]"
    ):
        pipeline(*gates, *systems, reader("u", "b"))


def composition(seed: int) -> list[Data]:
    """Stages of every kind over each other, in any order."""
    rng = random.Random(seed)
    stages: list[Data] = []
    made: dict[str, list[str]] = {"job": [], "lustre": [], "evaluation": []}
    for number in range(rng.randint(5, 11)):
        name, names = f"s{number}", [stage["name"] for stage in stages]
        after = rng.sample(names, min(len(names), rng.choice([0, 0, 1, 2])))
        kinds = ["job", "job", "lustre", *["evaluation"] * 2 * bool(made["job"])]
        kind = rng.choice([*kinds, *["deployment"] * bool(made["evaluation"])])
        made.setdefault(kind, []).append(name)
        match kind:
            case "lustre":
                stages.append(lustre(name, after=after))
            case "job":
                count = min(len(made["lustre"]), rng.choice([0, 1, 1, 2]))
                stages.append(reader(name, *rng.sample(made["lustre"], count), after=after))
            case "evaluation":
                miss = rng.choice(["stop", "stop", "fail"])
                stages.append(evaluation(name, rng.choice(made["job"]), miss, after=after))
            case _:
                stages.append(deployment(name, rng.choice(made["evaluation"]), after=after))
    rng.shuffle(stages)
    return stages


REFUSED = (
    "depends on stages that go on after different",
    "shares what",
    "creates a file system that no stage reads",
)
REFUSED_WHEN = (
    *REFUSED,
    "a condition may skip every stage that reads it",
    "stands between stages that need what",
)
MODES = ("full", "quick")


def needed(stage: Data) -> set[str]:
    """The stages whose outputs a stage reads."""
    places = [channel["file_system"] for channel in stage.get("channels", {}).values()]
    places += [stage[key] for key in ("checkpoints", "model_data") if key in stage]
    return {place["ref"].partition(".")[0] for place in places if place}


def running(graph: Graph, mode: str) -> Iterator[str]:
    """The stages that run where every gate lets them."""
    values = Values({}, {"mode": mode})
    for step in graph.steps:
        stage, _, rest = step.name.partition(".")
        if isinstance(step, Choose) and (rest == "when" or rest.startswith("passed_")):
            if rest != "when" or evaluate(step.condition, values):
                yield from running(step.then, mode)
        elif isinstance(step, Guarded):
            yield stage
            yield from running(step.body, mode)
        else:
            yield stage


@pytest.mark.parametrize("seed", range(60))
def test_a_stage_runs_where_its_conditions_and_those_of_what_it_reads_hold(seed: int) -> None:
    rng, stages = random.Random(seed), composition(seed)
    for stage in rng.sample(stages, rng.randint(1, len(stages))):
        stage["when"] = {"equal": [{"parameter": "mode"}, rng.choice(MODES)]}
    try:
        graph = pipeline(*stages, parameters={"mode": {}}).lower().graph
    except PipelineError as error:
        wrong = [p for p in error.problems if not p.message.startswith(REFUSED_WHEN)]
    else:
        wrong = []
        assert running_by_mode(graph) == {mode: expected(stages, mode) for mode in MODES}
    assert wrong == []


def running_by_mode(graph: Graph) -> dict[str, set[str]]:
    """The stages that run in each mode."""
    return {mode: set(running(graph, mode)) for mode in MODES}


def expected(stages: list[Data], mode: str) -> set[str]:
    """The stages that are not skipped by their own condition or with one that they read."""
    names = {stage["name"] for stage in stages}
    own = {stage["name"]: stage["when"]["equal"][1] for stage in stages if "when" in stage}
    skipped = {name for name, wanted in own.items() if wanted != mode}
    while more := {stage["name"] for stage in stages if needed(stage) & skipped} - skipped:
        skipped |= more
    return names - skipped
