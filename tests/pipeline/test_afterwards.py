"""The stages after the end of a run: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import AwsCall, Pipeline, PipelineError, run_outcome
from orchestration.errors import ExpressionError
from orchestration.expressions import Compare, Function, Result, apply, walk
from orchestration.graph import Call, Choose, Concluded, Kept, Workflow, all_steps, trees
from tests.guides import AFTER_THE_END, shown
from tests.pipeline.building import Data, deployment, evaluation, job, lustre, pipeline, reader

OUTCOME = {"outcome": "cause"}


def tells(name: str, message: Any = "ended", **further: Any) -> Data:
    return {
        "kind": "aws_call",
        "name": name,
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": "arn:aws:sns:us-east-1:111122223333:news", "Message": message},
        "results": {"message": "MessageId"},
        **further,
    }


def refused(*stages: Data, **last: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(*stages, **last)
    return [str(problem) for problem in error.value.problems]


def concluded(workflow: Workflow) -> Concluded:
    [step] = workflow.graph.steps
    assert isinstance(step, Concluded)
    return step


def test_stages_follow_the_state_of_the_run_that_they_are_for() -> None:
    last = concluded(
        pipeline(
            job("train"),
            on_failure=[tells("alarm", OUTCOME)],
            on_success=[tells("praise", {"ref": "train.model_artifacts"})],
            always=[tells("note")],
        ).lower()
    )
    assert [step.name for step in last.body.steps] == ["train.job"]
    alarm, praise, note, *_ = last.conclusion.steps
    assert isinstance(alarm, Choose)
    assert isinstance(praise, Choose)
    assert isinstance(note, Call)
    assert Result("outcome", "state") in set(walk(alarm.condition))
    assert Result("outcome", "cause") in {n for t in trees(alarm.then.steps[0]) for n in walk(t)}
    [read] = [n for t in trees(praise.then.steps[0]) for n in walk(t)]
    assert read == Result("train.job", "model_artifacts")


def test_a_pipeline_without_them_is_as_it_was() -> None:
    assert not any(
        isinstance(step, Concluded) for step in all_steps(pipeline(job("train")).lower().graph)
    )


def test_python_says_the_same_as_yaml() -> None:
    stage = AwsCall(
        name="alarm",
        service="sns",
        operation="Publish",
        request={"TopicArn": "arn:aws:sns:us-east-1:111122223333:news", "Message": "m"},
    )
    request = {**stage.request, "Message": run_outcome("cause")}
    written = pipeline(job("train"), on_failure=[{**tells("alarm", OUTCOME), "results": {}}])
    in_python = pipeline(job("train"), on_failure=[stage.model_copy(update={"request": request})])
    assert in_python.lower() == written.lower()
    assert in_python.every_stage[-1].name == "alarm"
    assert Pipeline.parse(written.model_dump(mode="json")).lower() == written.lower()


def test_an_outcome_has_three_fields() -> None:
    with pytest.raises(ExpressionError, match="no 'reason'"):
        run_outcome("reason")  # type: ignore[arg-type]  # what is tested


def test_conditions_of_their_own_count_beside_the_state() -> None:
    when = {"equal": [{"outcome": "error"}, "BelowThreshold"]}
    last = concluded(pipeline(job("a"), on_failure=[tells("alarm", when=when)]).lower())
    [choice] = last.conclusion.steps
    assert isinstance(choice, Choose)
    read = {node for node in walk(choice.condition) if isinstance(node, Result)}
    assert read == {Result("outcome", "state"), Result("outcome", "error")}


def test_jobs_have_names_of_their_own_in_each_attempt() -> None:
    last = concluded(pipeline(job("a"), always=[job("b")]).lower())
    [call] = last.conclusion.steps
    assert isinstance(call, Call)
    named = set(walk(call.operation.request["TrainingJobName"]))
    assert Result("outcome", "attempt") in named


def test_a_condition_that_comes_along_reads_outputs_of_other_stages() -> None:
    when = {"greater": [{"ref": "a.billable_time_s"}, 60]}
    last = concluded(
        pipeline(
            job("a"),
            job("b", when=when),
            on_success=[tells("praise", {"ref": "b.model_artifacts"})],
        ).lower()
    )
    [praise] = last.conclusion.steps
    assert isinstance(praise, Choose)
    assert Result("a.job", "billable_time_s") in set(walk(praise.condition))


def test_a_stage_is_skipped_with_the_one_that_it_reads() -> None:
    when = {"equal": [{"parameter": "mode"}, "full"]}
    last = concluded(
        pipeline(
            job("a", when=when),
            parameters={"mode": {"default": "full"}},
            on_success=[tells("praise", {"ref": "a.model_artifacts"})],
        ).lower()
    )
    [praise] = last.conclusion.steps
    assert isinstance(praise, Choose)
    assert len(set(walk(praise.condition))) > 3
    [read] = [n for t in trees(praise.then.steps[0]) for n in walk(t)]
    assert read == Result("a.when", "model_artifacts")


@pytest.mark.parametrize(
    ("stages", "last", "problems"),
    [
        pytest.param(
            [job("a", tags={"why": OUTCOME})],
            {},
            [
                "stages.a.tags.why: the outcome is known after the end of a run; {outcome: …} is "
                "for the stages of on_failure, on_success and always"
            ],
            id="an outcome during the run",
        ),
        pytest.param(
            [job("a")],
            {
                "on_failure": [
                    tells("alarm", when={"equal": [{"ref": "a.model_artifacts"}, "s3://old"]})
                ]
            },
            [
                "on_failure.alarm.when: a run that failed may not have come to a, and then there "
                "is no model_artifacts to compare; say what counts then: {first_of: "
                "[{ref: a.model_artifacts}, <value>]}"
            ],
            id="a condition on an output that may be absent",
        ),
        pytest.param(
            [job("a"), job("b")],
            {
                "always": [
                    tells(
                        "note",
                        {"first_of": [{"ref": "a.model_artifacts"}, {"ref": "b.model_artifacts"}]},
                    )
                ]
            },
            [
                "always.note.request.Message: it may be that none of a.model_artifacts, "
                "b.model_artifacts is there; give first_of a last value that always is"
            ],
            id="no value at all",
        ),
        pytest.param(
            [lustre("fs"), reader("a", "fs")],
            {"always": [tells("note", {"ref": "fs.file_system"})]},
            [
                "always.note.request.Message: what fs creates is deleted before the end of a run; "
                "remove the reference"
            ],
            id="a file system that is gone",
        ),
        pytest.param(
            [job("a", hyperparameters={"x": {"ref": "note.message"}})],
            {"always": {"note": {k: v for k, v in tells("note").items() if k != "name"}}},
            [
                "stages.a.hyperparameters.x: note runs after the end (always), so no other stage "
                "can read it"
            ],
            id="a later stage",
        ),
        pytest.param(
            [job("a")],
            {
                "on_success": [tells("praise")],
                "on_failure": [tells("alarm", {"ref": "praise.message"})],
            },
            [
                "on_failure.alarm.request.Message: praise runs on_success only, so a stage of "
                "on_failure can't read it"
            ],
            id="the other end",
        ),
        pytest.param(
            [job("a")],
            {"always": [tells("note", after=["a"])]},
            ["always.note.after: runs after all of them have ended; remove a"],
            id="after an ordinary stage",
        ),
        pytest.param(
            [job("a", after=["note"])],
            {"always": [tells("note")]},
            ["stages.a.after: note runs after the end (always), so no stage can wait for it"],
            id="before the end",
        ),
        pytest.param(
            [job("a")],
            {"always": [tells("note", after=["other"]), tells("other", after=["note"])]},
            ["always.note: stages wait for each other: note -> other -> note"],
            id="a circle",
        ),
        pytest.param(
            [job("outcome")],
            {"always": [tells("note")]},
            [
                "stages.outcome.name: is what the end of a run is called where stages follow it; "
                "rename the stage"
            ],
            id="a name",
        ),
        pytest.param(
            [job("a")],
            {"always": [tells("a")]},
            ["stages.a: 2 stages have this name"],
            id="a name twice",
        ),
        pytest.param(
            [job("a")],
            {"always": [lustre("fs")]},
            [
                "always.fs: creates something for the stages that read it, and here is none; "
                "remove it"
            ],
            id="a file system",
        ),
        pytest.param(
            [job("a"), evaluation("e", "a"), deployment("d", "e")],
            {"on_success": [tells("praise", {"ref": "d.endpoint_name"})]},
            [
                "on_success.praise.request.Message: e may end a run before d, and that run has "
                "succeeded without it; move this to `stages`, where it is left out with d"
            ],
            id="an output behind a gate",
        ),
        pytest.param(
            [job("a")],
            {"always": [{**tells("note"), "operations": "x"}]},
            ["always.note.operations: is unknown; did you mean 'operation'?"],
            id="an unknown field",
        ),
        pytest.param(
            [job("a")],
            {"always": {"note": "text"}},
            ["always.note: expected a mapping with a kind, got 'text'"],
            id="no mapping",
        ),
        pytest.param(
            [job("a")],
            {"always": [tells("note", {"join": [OUTCOME, {"outcome": "reason"}]})]},
            [
                "always.note: Publish Message: expected a reference, got {'outcome': 'reason'}; a "
                "run's outcome has state, error, cause"
            ],
            id="no such field",
        ),
    ],
)
def test_mistakes_are_refused_with_their_place(
    stages: list[Data], last: Data, problems: list[str]
) -> None:
    assert refused(*stages, **last) == problems


@pytest.mark.parametrize("section", ["always", "on_failure"])
def test_a_stage_is_skipped_where_what_it_reads_is_absent(section: str) -> None:
    note = tells("note", {"ref": "a.model_artifacts"})
    last = concluded(pipeline(job("a"), **{section: [note]}).lower())
    value = Result("outcome", "a__model_artifacts")
    assert last.kept == {
        "a__model_artifacts": Kept(value=Result("a.job", "model_artifacts"), steps=("a.job",))
    }
    [choice] = last.conclusion.steps
    assert isinstance(choice, Choose)
    assert Compare("ne", value, None) in set(walk(choice.condition))
    assert value in {n for t in trees(choice.then.steps[0]) for n in walk(t)}


def test_another_value_stands_for_what_is_absent() -> None:
    either = {"first_of": [{"ref": "a.model_artifacts"}, "nothing"]}
    when = {"not_equal": [either, "s3://bucket/old"]}
    last = concluded(pipeline(job("a"), always=[tells("note", either, when=when)]).lower())
    [choice] = last.conclusion.steps
    assert isinstance(choice, Choose)
    value = apply(Function.FIRST_OF, Result("outcome", "a__model_artifacts"), "nothing")
    assert choice.condition == Compare("ne", value, "s3://bucket/old")


def test_an_output_behind_a_gate_is_read_where_it_stands() -> None:
    last = concluded(
        pipeline(
            job("a"),
            evaluation("e", "a"),
            deployment("d", "e"),
            always=[tells("note", {"ref": "d.endpoint_name"})],
        ).lower()
    )
    [kept] = last.kept.values()
    assert {step.partition(".")[0] for step in kept.steps} == {"d"}


def test_the_guide_s_pipeline_is_valid(tmp_path: Path) -> None:
    [text] = shown(AFTER_THE_END, "yaml")
    path = tmp_path / "recorded.yaml"
    path.write_text(text, encoding="utf-8")
    last = concluded(Pipeline.load(path).lower())
    assert {step.name.partition(".")[0] for step in all_steps(last.conclusion)} == {
        "alarm",
        "register",
        "tidy",
    }
