"""Claims about `orchestrate probe`: what it runs, what it may cost, and what it measures."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import yaml

from orchestration import Pipeline, TrainingJob
from orchestration.errors import PipelineError
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from orchestration.local.run.executions import role
from orchestration.pipeline.description import PIPELINE_NAME
from orchestration.pipeline.probing.jobs import Asked
from orchestration.pipeline.probing.runs import Ran, ran
from orchestration.pipeline.probing.together import named
from orchestration.planning.model.measurements import read
from orchestration.planning.search.amounts import duration
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.measured.deciding import chance_of, deciding
from orchestration.refs import STAGE_NAME
from tests.cli.conftest import Command
from tests.patience import PATIENCE_S
from tests.planning.search.questions import measurement, task

PIPELINE = """\
name: tiny
region: us-east-1
parameters: {bucket: {}, unused: {}}
workspace: {join: ["s3://", {parameter: bucket}, /tiny]}
stages:
  train:
    kind: training_job
    framework: {name: pytorch, version: 2.5.1}
    source: {directory: src, entry_point: train.py, runtime: true}
    hyperparameters: {data_order: 7}
    checkpoints: {uri: "s3://kept/checkpoints"}
    max_runtime_s: 86400
    strategy:
      kind: auto
      model: {layers: 12, hidden: 768, heads: 12, vocabulary: 50257}
      sequence: 1024
      batch: {samples: 8}
      data: {samples: 100000}
      instances: {types: [ml.g5.xlarge, ml.g6.xlarge, ml.g4dn.xlarge, ml.g5.12xlarge], counts: [1]}
      tell: {micro_batch: batch_size}
  register:
    kind: model_registration
    model_artifacts: {ref: train.model_artifacts}
"""
# A stand-in for training: it sleeps, and runs out of memory on machines whose CUDA cores are fewer.
SCRIPT = """\
import argparse, os, time
from orchestration_runtime import measured_steps

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, required=True)
parser.parse_known_args()
if os.environ["SM_CURRENT_INSTANCE_TYPE"].startswith("ml.g6."):
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
for _ in measured_steps(range(10_000), samples=8):
    time.sleep(0.5)
raise RuntimeError("a probe ends inside of the loop")
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(SCRIPT)
    path = tmp_path / "tiny.yaml"
    path.write_text(PIPELINE)
    return path


@pytest.mark.toolkit
@pytest.mark.slow
def test_a_probe_measures_what_the_plan_then_knows(pipeline: Path, orchestrate: Command) -> None:
    file = pipeline.parent / "measured.json"
    where = ("-p", "bucket=work", "-p", "unused=x", "--jobs", 2, "--steps", 4)
    said = orchestrate("probe", pipeline, *where, "--measurements", file)
    assert said.status == 0, said.err
    slow, lacking = sorted(read(file), key=lambda each: each.out_of_memory)
    assert lacking.instance_type == "ml.g6.xlarge"
    assert slow.instance_type == "ml.g5.xlarge"
    # A step sleeps so long; how much longer it takes is up to how busy this machine is.
    assert slow.step_time_s is not None
    assert 0.4 < slow.step_time_s < 50
    assert slow.job.startswith("tiny-probe-")
    assert slow.billable_s is not None
    planned = orchestrate("plan", pipeline, "--measurements", file)
    measured = f"8 at a time: steps of {duration(slow.step_time_s)}"
    assert f"1 x ml.g5.xlarge, data parallel, {measured}" in planned.out
    assert "1 x ml.g6.xlarge, data parallel, 8 at a time: out of memory" in planned.out


# Really trains, on random images: a perceptron's gradient steps, one sample at a time.
VISION = """\
import argparse
import numpy as np
from orchestration_runtime import measured_steps

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, required=True)
size = parser.parse_known_args()[0].batch_size
random = np.random.default_rng(7)
weights = np.zeros((32 * 32 * 3, 10))
for _ in measured_steps(range(10_000), samples=64):
    for _ in range(size):
        image, label = random.normal(size=32 * 32 * 3), random.integers(10)
        scores = np.exp(image @ weights)
        scores /= scores.sum()
        scores[label] -= 1
        weights -= 1e-4 * np.outer(image, scores)
"""


@pytest.mark.toolkit
@pytest.mark.slow
def test_a_model_without_a_formula_is_planned_by_its_probe(
    pipeline: Path, orchestrate: Command
) -> None:
    data = yaml.safe_load(PIPELINE)
    data["stages"]["train"]["strategy"] = {
        "kind": "auto",
        "model": {"custom": True, "name": "perceptron", "parameters": 30720},
        "batch": {"samples": 64},
        "data": {"samples": 1e6},
        "instances": {"types": ["ml.g5.xlarge", "ml.g5.12xlarge", "ml.g6.xlarge"], "counts": [1]},
        "tell": {"micro_batch": "batch_size"},
    }
    del data["stages"]["register"]
    pipeline.write_text(yaml.safe_dump(data))
    (pipeline.parent / "src" / "train.py").write_text(VISION)
    before = orchestrate("plan", pipeline)
    assert before.status == 1
    assert "run `orchestrate probe`" in before.out
    shown = orchestrate("probe", pipeline, "--aws", "--dry-run", "--jobs", 1)
    assert shown.err.startswith("1 x ml.g")
    assert "20 steps, 60 min at most, $" in shown.err
    file = pipeline.parent / "measured.json"
    run_yaml = pipeline.parent / "run.yaml"
    run_yaml.write_text("parameters: {bucket: work, unused: x, other: y}")
    probe = ("probe", pipeline, "--jobs", 1, "--steps", 4, "--measurements", file)
    refused = orchestrate(*probe)
    assert refused.status == 1
    assert "run.yaml: parameters.other: unknown parameter" in refused.err
    run_yaml.write_text("parameters: {bucket: work, unused: x}")
    said = orchestrate(*probe)
    assert said.status == 0, said.err
    [measured] = read(file)
    planned = orchestrate("plan", pipeline, "--measurements", file, "--json").document["train"]
    chosen = planned["chosen"]
    assert chosen["instance_type"] == measured.instance_type
    assert chosen["step_s"]["total"] == pytest.approx(measured.step_time_s, rel=0.05)
    assert chosen["mfu"] is None
    assert orchestrate("plan", pipeline, "--measurements", file, "--update").status == 0
    settled = Pipeline.load(pipeline).stages[0]
    assert isinstance(settled, TrainingJob)
    assert settled.cluster.instance_type == measured.instance_type
    assert settled.hyperparameters["batch_size"] == measured.micro_batch


# Goes on once a job of another instance type has come as far.
MEETING = """\
import os, pathlib, signal, time
from orchestration_runtime import measured_steps

place, mine = pathlib.Path(PLACE), os.environ["SM_CURRENT_INSTANCE_TYPE"]
(place / mine).touch()
until = time.monotonic() + PATIENCE
while len(list(place.iterdir())) < 2:
    if time.monotonic() > until:
        raise SystemExit("no other job came")
    time.sleep(0.05)
LEAVE
for _ in measured_steps(range(10_000), samples=8):
    time.sleep(0.01)
"""


def meeting(pipeline: Path, leave: str = "") -> None:
    """Let the jobs of a pipeline wait for each other."""
    place = pipeline.parent / "place"
    place.mkdir()
    patient = MEETING.replace("PATIENCE", str(PATIENCE_S))
    script = patient.replace("PLACE", repr(str(place))).replace("LEAVE", leave)
    (pipeline.parent / "src" / "train.py").write_text(script)


def in_account(account: EmbeddedAws, bucket: str) -> tuple[object, ...]:
    """Return what probes in an account are given, after making it there."""
    account.client("s3").create_bucket(Bucket=bucket)
    arn = role(account, "ProbedSageMaker", "sagemaker.amazonaws.com")
    given = (f"bucket={bucket}", f"role={arn}", "unused=x")
    pairs = [each for pair in given for each in ("-p", pair)]
    return (*pairs, "--aws", "--yes", "--jobs", 2)


@pytest.mark.toolkit
@pytest.mark.slow
def test_jobs_in_an_account_run_side_by_side(
    pipeline: Path, orchestrate: Command, account: EmbeddedAws
) -> None:
    meeting(pipeline)
    pipeline.write_text(PIPELINE.replace("max_runtime_s", "poll_interval_s: 2\n    max_runtime_s"))
    said = orchestrate("probe", pipeline, *in_account(account, "side-by-side"), "--steps", 4)
    assert said.status == 0, said.err
    found = read(pipeline.with_suffix(".measurements.json"))
    assert sorted(each.instance_type for each in found) == ["ml.g5.xlarge", "ml.g6.xlarge"]


@pytest.mark.toolkit
@pytest.mark.slow
def test_an_interruption_stops_the_jobs_of_all_probes(
    pipeline: Path, orchestrate: Command, account: EmbeddedAws
) -> None:
    pipeline.write_text(PIPELINE.replace("name: tiny", "name: stopped"))
    meeting(
        pipeline,
        f"if 'g5' in mine: os.kill({os.getpid()}, signal.SIGINT)\n"
        "time.sleep(60)",
    )  # fmt: skip
    said = orchestrate("probe", pipeline, *in_account(account, "interrupted"))
    assert said.status == 130
    assert said.err.count("was interrupted: stopped ") == 2
    client = account.client("sagemaker")
    jobs = client.list_training_jobs(NameContains="stopped-probe")["TrainingJobSummaries"]
    assert len(jobs) == 2
    assert {job["TrainingJobStatus"] for job in jobs} <= {"Stopping", "Stopped"}


def test_only_jobs_and_their_bounded_cost_are_shown_on_a_dry_run(
    pipeline: Path, orchestrate: Command
) -> None:
    said = orchestrate("probe", pipeline, "--aws", "--dry-run", "-p", "bucket=work")
    assert said.status == 0
    lines = said.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("1 x ml.g5.xlarge: one device, 20 steps of about ")
    assert all("min at most, $" in line and line.endswith(" at most") for line in lines)
    for options in (("--aws", "--dry-run"), ("--dry-run",)):
        made = orchestrate("probe", pipeline, *options, "-p", "bucket=work", "--json").document
        assert [each["instance_type"] for each in made["probes"]][:1] == ["ml.g5.xlarge"]
        assert all(each["max_runtime_s"] and each["most_usd"] for each in made["probes"])


def test_probes_become_a_pipeline_of_their_own(pipeline: Path, orchestrate: Command) -> None:
    file = pipeline.parent / "tiny.probe.yaml"
    command = ("probe", pipeline, "--jobs", 2, "--to", file)
    shown = orchestrate(*command, "--dry-run", "--json").document
    assert not file.exists()
    said = orchestrate(*command)
    assert said.status == 0, said.err
    assert said.err.splitlines()[0].endswith(" at most")
    assert str(file) in said.err.splitlines()[-1]
    written = Pipeline.load(file)
    assert (written.name, [stage.name for stage in written.stages]) == (
        "tiny-probe",
        ["train_1", "train_2"],
    )
    assert orchestrate(*command, "--json").document == shown
    assert (shown["pipeline"], shown["file"]) == ("tiny-probe", str(file))
    assert [each["instance_type"] for each in shown["probes"]] == ["ml.g5.xlarge", "ml.g6.xlarge"]
    assert orchestrate("validate", file).status == 0
    file.write_text("mine: 1")
    refused = orchestrate(*command)
    assert (refused.status, file.read_text()) == (2, "mine: 1")
    assert orchestrate(*command, "--yes").status == 0
    assert Pipeline.load(file) == written


LONG_NAMES = (
    PIPELINE.replace("name: tiny", "name: customer-support-chat")
    .replace("train:", "fine_tune_the_whole_one:")
    .replace("ref: train.", "ref: fine_tune_the_whole_one.")
)


def test_names_of_probes_are_cut_where_they_are_too_long(
    pipeline: Path, orchestrate: Command
) -> None:
    pipeline.write_text(LONG_NAMES)
    file = pipeline.parent / "probes.yaml"
    said = orchestrate("probe", pipeline, "--jobs", 1, "--to", file)
    assert said.status == 0, said.err
    written = Pipeline.load(file)
    probing, begin = named("customer-support-chat", "fine_tune_the_whole_one")
    assert (written.name, [each.name for each in written.stages]) == (probing, [f"{begin}_1"])
    assert re.fullmatch("customer-[0-9a-f]{6}-probe", probing)
    assert re.fullmatch("fine_tune_th_[0-9a-f]{6}", begin)
    assert named("p" * 26, "train") == ("p" * 26 + "-probe", "train")


def test_given_parameters_are_defaults_of_a_pipeline_of_probes(
    pipeline: Path, orchestrate: Command
) -> None:
    file = pipeline.parent / "probes.yaml"
    command = ("probe", pipeline, "--jobs", 1, "--to", file)
    given = ("-p", "bucket=work", "-p", "unused=x", "-p", "role=arn:aws:iam::123456789012:role/r")
    assert orchestrate(*command, *given).status == 0
    specs = {spec.name: spec.default for spec in Pipeline.load(file).parameter_specs()}
    assert specs == {"bucket": "work", "role": "arn:aws:iam::123456789012:role/r"}
    refused = orchestrate(*command, "-p", "buckets=work", "--yes")
    assert refused.status == 2
    assert "unknown parameter 'buckets'" in refused.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--to", "no/probes.yaml"), ("--to", "no is no folder")),
        (("--measurements", "no/file"), ("for --measurements", "no is no folder")),
        (("--to", "x.yaml", "--aws", "--parallel", "3"), ("for --parallel / --aws", "with --to")),
        (("--to", "x.yaml", "--region", "eu-west-1"), ("for --region", "with --to")),
        (("--from-runs", "--to", "x.yaml"), ("for --to", "with --from-runs")),
        (("--from-runs", "-p", "bucket=b", "--dry-run"), ("--dry-run", "with --from-runs")),
    ],
)
def test_options_without_an_effect_are_refused(
    pipeline: Path, orchestrate: Command, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused = orchestrate("probe", pipeline, *options)
    assert refused.status == 2
    assert [each for each in words if each not in refused.err] == []
    assert not Path("x.yaml").exists()


def test_names_of_probes_are_allowed() -> None:
    for longest, other in product(range(1, 33), range(1, 31)):
        if longest + other <= 44:
            name, stage = ("a-bc" * 8)[:longest].rstrip("-"), ("x_yz" * 8)[:other].rstrip("_")
            probing, begin = named(name, stage)
            most = f"{begin}_16"
            assert max(len(probing) - 32, len(most) - 30, len(probing) + len(most) - 44) <= 0
            assert re.fullmatch(PIPELINE_NAME, probing)
            assert STAGE_NAME.fullmatch(most)


def test_two_long_names_have_two_pipelines_of_probes() -> None:
    same = "a-name-of-twenty-six-letters"
    assert len({named(f"{same}-{end}", "train")[0] for end in ("a", "b")}) == 2


def test_jobs_in_an_account_need_a_yes(
    pipeline: Path, orchestrate: Command, account: EmbeddedAws
) -> None:
    said = orchestrate("probe", pipeline, "--aws", "-p", "bucket=work")
    assert said.err.startswith(f"account 123456789012, region {account.region}\n")
    assert said.status == 2
    assert "--yes" in said.err


def test_the_choice_and_what_may_well_be_better_decide(pipeline: Path) -> None:
    asked = Asked(pipeline, None)
    plans = find_plans(asked.task, asked.request.space(), asked.request.goal())
    assert plans.chosen is not None
    chosen, *others = deciding(plans, 3)
    assert chosen == plans.chosen
    chances = [chance_of(plan, chosen, plans) for plan in others]
    assert chances
    assert all(chance >= 0.05 for chance in chances)
    types = [plan.instance_type for plan in (chosen, *others)]
    for is_new in (True, False):  # of each type one comes first, the likelier before others
        same = [
            chance
            for number, chance in enumerate(chances, 1)
            if (types[number] not in types[:number]) is is_new
        ]
        assert same == sorted(same, reverse=True)


def test_a_probe_is_the_training_itself_but_short_and_without_its_checkpoints(
    pipeline: Path,
) -> None:
    asked = Asked(pipeline, "train")
    plans = find_plans(asked.task, asked.request.space(), asked.request.goal())
    assert plans.chosen is not None
    made = asked.probe(plans.chosen, asked.request.space(), 20, {})
    [stage] = made.data["stages"].values()
    assert stage["hyperparameters"] == {"data_order": 7, "batch_size": 8}
    assert stage["environment"] == {"ORCHESTRATION_PROBE_STEPS": "20"}
    assert stage["cluster"] == {"instance_type": "ml.g5.xlarge", "instance_count": 1}
    assert stage["max_runtime_s"] == made.max_runtime_s < 1300
    assert "checkpoints" not in stage
    assert set(made.data["parameters"]) == {"bucket"}
    price = plans.chosen.price
    assert price is not None
    assert price.estimate
    hours = (made.max_runtime_s + 120) / 3600
    assert made.most_usd == pytest.approx(1.1 * price.usd_per_hour * hours)


def test_a_probe_is_bounded_by_the_price_on_demand(pipeline: Path) -> None:
    pipeline.write_text(
        PIPELINE.replace("counts: [1]", "counts: [1], spot: true, spot_saving: 0.6")
    )
    spot = Asked(pipeline, None)
    plan = find_plans(spot.task, spot.request.space(), spot.request.goal()).chosen
    assert plan is not None
    assert plan.price is not None
    made = spot.probe(plan, spot.request.space(), 20, {})
    assert made.usd_per_h is not None
    assert made.usd_per_h >= plan.price.usd_per_hour


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"source": {"directory": "src", "entry_point": "train.py"}}, "runtime: true"),
        ({"strategy": {"kind": "none"}}, "nothing to probe"),
    ],
)
def test_stages_that_cannot_be_probed_are_refused(
    pipeline: Path, change: dict[str, object], expected: str
) -> None:
    data = yaml.safe_load(PIPELINE)
    data["stages"]["train"] |= change
    pipeline.write_text(yaml.safe_dump(data))
    with pytest.raises(PipelineError, match=expected):
        Asked(pipeline, None)


def test_what_other_stages_make_has_to_be_given(pipeline: Path) -> None:
    data = yaml.safe_load(PIPELINE)
    data["stages"]["train"]["channels"] = {"texts": {"ref": "clean.location"}}
    pipeline.write_text(yaml.safe_dump(data))
    asked = Asked(pipeline, None)
    plans = find_plans(asked.task, asked.request.space(), asked.request.goal())
    assert plans.chosen is not None
    with pytest.raises(PipelineError, match="--channel texts=s3://"):
        asked.probe(plans.chosen, asked.request.space(), 20, {})
    made = asked.probe(plans.chosen, asked.request.space(), 20, {"texts": "s3://b/texts"})
    assert made.data["stages"]["probe"]["channels"] == {"texts": "s3://b/texts"}


def test_what_is_measured_is_not_probed_again(pipeline: Path) -> None:
    asked = Asked(pipeline, None)
    space, goal = asked.request.space(), asked.request.goal()
    first = find_plans(asked.task, space, goal)
    assert first.chosen is not None
    seconds = first.chosen.prediction.step_time_s
    known = measurement(first.chosen, step_time_s=seconds)
    again = find_plans(replace(asked.task, measurements=(known,)), space, goal)
    assert again.chosen is not None
    assert again.chosen.configuration == first.chosen.configuration
    assert first.chosen.configuration not in [plan.configuration for plan in deciding(again, 3)]


@pytest.mark.toolkit
@pytest.mark.slow
def test_past_runs_are_measurements_too(
    pipeline: Path, orchestrate: Command, account: EmbeddedAws
) -> None:
    none = orchestrate("probe", pipeline, "--from-runs")
    assert none.status == 1
    assert "no past job of train says how long its steps took" in none.err
    data = yaml.safe_load(PIPELINE)
    del data["stages"]["register"]
    pipeline.write_text(yaml.safe_dump(data))
    ends = SCRIPT.replace("10_000", "7").replace('raise RuntimeError("a probe', 'print("')
    (pipeline.parent / "src" / "train.py").write_text(ends)
    assert orchestrate("plan", pipeline, "--update").status == 0
    report = run(Pipeline.load(pipeline), parameters={"bucket": "past", "unused": "x"}, aws=account)
    assert report.state == "succeeded", report.cause
    said = orchestrate("probe", pipeline, "--from-runs")
    assert said.status == 0, said.err
    [past] = read(pipeline.with_suffix(".measurements.json"))
    assert past.job == report.stages[0].job_names[0]
    assert (past.source, past.layout.family, past.micro_batch) == ("run", "single", 8)
    assert past.step_time_s is not None
    assert 0.4 < past.step_time_s < 50
    measured = f"8 at a time: steps of {duration(past.step_time_s)}"
    assert f"measured    1 x ml.g5.xlarge, data parallel, {measured}" in said.out


LAUNCHED = {"sagemaker_torch_distributed_enabled": "true", "sagemaker_instance_type": "x"}


def job(*, on: str = "1 ml.g5.12xlarge", **hyperparameters: str) -> dict[str, object]:
    """Return the part of a described job that says how it trained."""
    count, name = on.split()
    machines = {"InstanceType": name, "InstanceCount": int(count)}
    return {"ResourceConfig": machines, "HyperParameters": hyperparameters}


TELL = {"micro_batch": "batch_size", "accumulation": "accumulation", "zero": "zero_stage"}


def test_a_past_job_trained_as_it_was_told_and_started() -> None:
    told = job(batch_size="4", zero_stage="3", **LAUNCHED)
    way = ran(told, task(batch=64), TELL, None)
    assert isinstance(way, Ran)
    assert (way.configuration.zero, way.configuration.micro_batch) == (3, 4)
    assert way.configuration.machine.devices == 4
    by_accumulation = ran(
        job(accumulation="8", zero_stage="1", **LAUNCHED), task(batch=64), TELL, None
    )
    assert isinstance(by_accumulation, Ran)
    assert by_accumulation.configuration.micro_batch == 2


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (job(batch_size="4", **LAUNCHED), "it does not say its zero; add that to strategy.tell"),
        (job(zero_stage="3", **LAUNCHED), "it does not say its batch or micro-batch"),
        (job(on="1 ml.m5.xlarge"), "it ran on instances that are unknown, or have no accelerator"),
        (
            job(zero_stage="3", batch_size="4", on="3 ml.g5.12xlarge"),
            "no layout of the model is started as it was",
        ),
    ],
)
def test_jobs_that_do_not_say_how_they_trained_are_left_out(
    described: dict[str, object], expected: str
) -> None:
    reason = ran(described, task(batch=64), TELL, None)
    assert isinstance(reason, str)
    assert reason.startswith(expected)


def test_the_pinned_plan_counts_for_what_a_job_was_not_told() -> None:
    tells = {"micro_batch": 2, "zero": 2, "tensor": 1, "pipeline": 1, "context": 1, "expert": 1}
    pin = {"cluster": {"instance_type": "ml.g5.12xlarge", "instance_count": 1}, "tells": tells}
    way = ran(job(**LAUNCHED), task(batch=64), {}, pin)
    assert isinstance(way, Ran)
    assert (way.configuration.zero, way.configuration.micro_batch) == (2, 2)
    assert isinstance(ran(job(on="2 ml.g5.12xlarge", **LAUNCHED), task(batch=64), {}, pin), str)
