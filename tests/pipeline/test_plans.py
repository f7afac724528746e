"""``strategy: {kind: auto}``: planned, pinned in the lock file, and never changed by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import from_data
from orchestration.pipeline.files import lock, planned
from orchestration.pipeline.pinning.lock_file import lock_path
from orchestration.pipeline.plans import searches
from orchestration.strategies import Strategy

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_attention_heads": 32,
    "num_hidden_layers": 22,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}


def described(**auto: Any) -> dict[str, Any]:
    strategy = {
        "kind": "auto",
        "model": {"config": "tiny/config.json"},
        "sequence": 2048,
        "batch": {"samples": 64},
        "data": {"tokens": 1e9},
        "instances": {"types": ["ml.g5.*", "ml.p4d.*"], "counts": [1, 2]},
        "tell": {"micro_batch": "batch_size", "accumulation": "accumulation"},
        **auto,
    }
    stage = {
        "kind": "training_job",
        "framework": {"name": "pytorch", "version": "2.8.0"},
        "source": {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"},
        "hyperparameters": {"epochs": 1},
        "cluster": {"volume_gib": 100},
        "strategy": strategy,
    }
    return {
        "name": "p",
        "workspace": "s3://bucket",
        "region": "us-east-1",
        "stages": {"train": stage},
    }


def written(folder: Path, data: dict[str, Any]) -> Path:
    (folder / "tiny").mkdir(exist_ok=True)
    (folder / "tiny/config.json").write_text(json.dumps(CONFIG))
    path = folder / "p.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def pin(path: Path) -> dict[str, Any]:
    _, content = planned(path)
    lock_path(path).write_text(json.dumps(content))
    return content


def refusal(path: Path) -> dict[str, str]:
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    return {problem.path: problem.message for problem in error.value.problems}


def test_a_region_that_does_not_exist_has_no_prices(tmp_path: Path) -> None:
    path = written(tmp_path, {**described(), "region": "us-moon-1"})
    with pytest.raises(PipelineError, match=r"region: unknown region 'us-moon-1'"):
        planned(path)


def test_what_is_not_planned_yet_is_not_run(tmp_path: Path) -> None:
    [(path, message)] = refusal(written(tmp_path, described())).items()
    assert path == "stages.train.strategy"
    assert "`orchestrate plan FILE --update`" in message


def test_a_plan_takes_the_place_of_auto(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    plan = pin(path)["plans"]["train"]
    [stage] = Pipeline.load(path).stages
    job: Any = stage
    assert job.cluster.instance_type == plan["cluster"]["instance_type"]
    assert job.cluster.instance_count == plan["cluster"]["instance_count"]
    assert job.cluster.volume_gib == 100
    assert isinstance(job.strategy, Strategy.__origin__)  # type: ignore[attr-defined]  # Annotated
    assert job.strategy.kind == plan["strategy"]["kind"]
    told = plan["tells"]
    assert job.hyperparameters == {
        "epochs": 1,
        "batch_size": told["micro_batch"],
        "accumulation": told["accumulation"],
    }
    assert told["global_batch"] == 64


def test_the_same_file_is_planned_alike_and_rendered_with_what_was_picked(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    assert pin(path) == pin(path)
    workflow = Pipeline.load(path).lower()
    picked = lock(path)["plans"]["train"]["cluster"]["instance_type"]
    assert picked in json.dumps(stepfunctions.render(workflow))
    assert picked in str(airflow.render(workflow))


def test_to_ask_for_something_else_needs_a_new_plan(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    pin(path)
    written(tmp_path, described(objective="fastest"))
    assert "stages.train.strategy" in refusal(path)
    pin(path)
    Pipeline.load(path)


def test_another_model_under_the_same_path_needs_a_new_plan(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    pin(path)
    (tmp_path / "tiny/config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": 24}))
    assert "stages.train.strategy" in refusal(path)


def test_a_scheduler_needs_no_model(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    pin(path)
    (tmp_path / "tiny/config.json").unlink()
    assert Pipeline.load(path).lower().name == "p"


def test_what_is_carried_elsewhere_has_its_plan_wherever_the_model_lay(tmp_path: Path) -> None:
    absolute = {"config": str(tmp_path / "tiny/config.json")}
    path = written(tmp_path, described(model=absolute))
    pin(path)
    definition = stepfunctions.render(Pipeline.load(path).lower())
    assert str(tmp_path) not in json.dumps(definition)
    imported = from_data(definition)
    assert imported.notes == ()
    assert imported.description["stages"]["train"]["strategy"]["model"] == {
        "config": "tiny/config.json"
    }


def test_locking_the_code_keeps_the_plans(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    assert lock(path) == {"sources": {}}
    content = pin(path)
    assert lock(path) == content


def test_a_first_lock_file_pins_the_code_and_later_ones_keep_it(tmp_path: Path) -> None:
    data = described()
    data["stages"]["train"]["source"] = {"entry_point": "train.py", "directory": "src"}
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("one = 1")
    path = written(tmp_path, data)
    first = pin(path)["sources"]
    assert set(first) == {"train.source"}
    (tmp_path / "src/train.py").write_text("one = 2")
    assert pin(path)["sources"] == first


@pytest.mark.parametrize("given", ["ml.p4d.24xlarge", {"parameter": "machine"}])
def test_what_the_planner_picks_is_not_given_too(tmp_path: Path, given: Any) -> None:
    data = described()
    data["parameters"] = {"machine": {}}
    data["stages"]["train"]["cluster"]["instance_type"] = given
    found = refusal(written(tmp_path, data))
    assert found["stages.train.cluster.instance_type"] == "is what the planner picks; leave it out"


def test_a_model_that_can_not_be_read_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, described())
    (tmp_path / "tiny/config.json").unlink()
    assert "stages.train.strategy.model.config" in refusal(path)
    with pytest.raises(PipelineError):
        planned(path)


def test_a_request_that_is_wrong_is_refused_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, described(precision="int3"))
    assert "stages.train.strategy.precision" in refusal(path)
    with pytest.raises(PipelineError) as error:
        planned(path)
    assert error.value.problems[0].path == "stages.train.strategy.precision"


def test_what_is_given_beside_a_plan_that_is_pinned_is_not_dropped(tmp_path: Path) -> None:
    pin(written(tmp_path, described()))
    data = described()
    stage = data["stages"]["train"]
    stage["cluster"] |= {
        "instance_type": "ml.p4d.24xlarge",
        "fallbacks": [{"instance_type": "ml.m5.xlarge"}],
    }
    stage["hyperparameters"]["batch_size"] = 3
    found = refusal(written(tmp_path, data))
    assert found["stages.train.cluster.instance_type"] == "is what the planner picks; leave it out"
    assert found["stages.train.cluster.fallbacks"] == "is what the planner picks; leave it out"
    told = found["stages.train.hyperparameters.batch_size"]
    assert told == "is what strategy.tell sets from the plan; leave out the one or the other"


def test_a_search_runs_many_jobs_with_the_plan_and_tunes_nothing_that_it_tells(
    tmp_path: Path,
) -> None:
    data = described()
    data["stages"]["train"] |= {
        "kind": "tuning_job",
        "objective": {"metric": "loss", "direction": "min", "regex": "loss=([0-9.]+)"},
        "ranges": {"learning_rate": {"continuous": [0.001, 0.1]}},
        "limits": {"jobs": 8},
    }
    assert searches(data) == {"train": 8}
    plan = pin(written(tmp_path, data))["plans"]["train"]
    [stage] = Pipeline.load(written(tmp_path, data)).stages
    job: Any = stage
    assert job.cluster.instance_type == plan["cluster"]["instance_type"]
    assert job.hyperparameters["batch_size"] == plan["tells"]["micro_batch"]
    data["stages"]["train"]["ranges"]["batch_size"] = {"integer": [1, 4]}
    told = "is what strategy.tell sets from the plan; leave out the one or the other"
    assert refusal(written(tmp_path, data)) == {"stages.train.ranges.batch_size": told}
    data["stages"]["train"] |= {"ranges": 3, "limits": {"jobs": {"parameter": "jobs"}}}
    assert searches(data) == {}
    assert "expected a mapping" in refusal(written(tmp_path, data))["stages.train.ranges"]


@pytest.mark.parametrize("field", ["cluster", "hyperparameters"])
def test_a_field_that_is_wrong_is_said_beside_a_plan(tmp_path: Path, field: str) -> None:
    pin(written(tmp_path, described()))
    data = described()
    data["stages"]["train"][field] = "large"
    assert "expected a mapping" in refusal(written(tmp_path, data))[f"stages.train.{field}"]


@pytest.mark.parametrize("broken", ["large", {}, {"strategy": "mpi"}, {"cluster": None}])
def test_a_plan_that_is_none_is_told_with_the_way_out(tmp_path: Path, broken: Any) -> None:
    path = written(tmp_path, described())
    content = pin(path)
    plan = content["plans"]["train"]
    content["plans"]["train"] = {**plan, **broken} if broken and broken != "large" else broken
    lock_path(path).write_text(json.dumps(content))
    [message] = refusal(path).values()
    assert "remove it, and write it again" in message
    lock_path(path).unlink()
    pin(path)
    Pipeline.load(path)


def test_the_stages_own_container_rules_machines_out(tmp_path: Path) -> None:
    data = described(instances={"types": ["ml.p6-b200.48xlarge"], "counts": [1]})
    data["stages"]["train"]["framework"]["version"] = "2.5.1"
    answer = planned(written(tmp_path, data))[0]["train"]
    assert answer.chosen is None
    assert "CUDA 12.8" in " ".join(answer.missing)
