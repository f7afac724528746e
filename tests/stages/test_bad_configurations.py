"""Configurations that can't work, or that the SageMaker SDK refuses: what we say of each.

``tests/data/bad_configurations.json`` holds each call with what the SageMaker Python SDK 2.257.7
says to it (read November 2026); many it accepts without a word.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration import PipelineError
from orchestration.errors import Problem
from tests.stages.sdk_calls import read

CASES = json.loads((Path(__file__).parent.parent / "data/bad_configurations.json").read_text())[
    "cases"
]
WORKING = {
    "torchrun_cpu": "torchrun runs on CPUs, one process a host or as many as are asked for",
    "torchrun_cpu_image_uri": "the same in an image of the user's own",
    "torchrun_alias_28": "2.8 is AWS's own tag for its newest 2.8",
    "no_instance_count": "no count means one instance here",
    "estimator_distribution_kw": "the SDK drops distribution here; we send it",
}
"""What works here, and why."""
MODEL_PARALLEL = "distribution.smdistributed.modelparallel"
PATHS = {
    "smddp_p5": "strategy",
    "smddp_single_gpu_1_instance": "strategy",
    "smddp_pt280": "strategy",
    "smddp_and_smp": "distribution.smdistributed",
    "smdistributed_unknown": "distribution.smdistributed.dp",
    "smdistributed_not_dict": "distribution.smdistributed",
    "smp_without_mpi_or_torchrun": MODEL_PARALLEL,
    "smp_partitions_0": f"{MODEL_PARALLEL}.parameters.partitions",
    "smp_bad_pipeline": f"{MODEL_PARALLEL}.parameters.pipeline",
    "smp_auto_partition_false": f"{MODEL_PARALLEL}.parameters.default_partition",
    "smp_ddp_and_horovod": f"{MODEL_PARALLEL}.parameters.horovod",
    "smp_unknown_param": f"{MODEL_PARALLEL}.parameters.nonsense",
    "torchrun_pt1121_gpu": "strategy",
    "trn1_mpi": "strategy",
    "trn1_two_strategies": "distribution",
    "trn1_tensorflow": "strategy",
    "torchrun_sh_entry": "source.entry_point",
    "pytorchddp_and_smdistributed": "distribution",
    "pytorchddp_pt280": "strategy",
    "pytorchddp_cpu": "strategy",
    "torchrun_and_mpi": "distribution",
    "mpi_and_ps": "distribution",
    "mpi_pph_99": "strategy.processes_per_host",
    "enabled_missing": "distribution.torch_distributed",
    "spot_no_max_wait": "spot.max_wait_s",
    "max_wait_without_spot": "extra_request.StoppingCondition.MaxWaitTimeInSeconds",
    "fsx_without_vpc": "vpc",
    "fsx_bad_mode": "channels.training.access",
    "fastfile_manifest": "channels.training.data_type",
    "bad_input_mode": "channels.training.input_mode",
    "input_https_uri": "channels.training.uri",
    "channel_bad_name": "channels.my channel/1",
    "job_name_64": "name",
    "job_name_underscore": "name",
    "hp_value_2501": "hyperparameters.x",
    "env_101": "environment",
    "tags_51": "tags",
    "keepalive_3601": "cluster.keep_alive_s",
    "keepalive_spot": "cluster.keep_alive_s",
    "max_run_31d": "max_runtime_s",
    "instance_type_no_ml": "cluster.instance_type",
    "instance_type_typo": "cluster.instance_type",
    "groups_and_type": "cluster",
    "groups_unknown_in_distribution": "strategy.instance_group",
    "groups_not_in_distribution": "strategy.instance_group",
    "py_version_wrong": "framework.python_version",
    "no_version_no_image": "framework.version",
    "entry_point_missing": "source",
    "p2_pt1131": "strategy",
    "mwms_and_ps": "distribution",
    "pt201_cu121_smddp": "image",
    "profiler_disabled_with_rules": "profiler.rules",
    "graviton_pt_training": "cluster.instance_type",
    "mxnet_bad_strategy": "distribution.torch_distributed",
    "tf_torchrun": "distribution.torch_distributed",
    "role_no_arn": "role",
}
"""Where we say it of those that can't work."""
WAYS_OUT = (
    *("use ", "; give ", "write ", "; add ", "leave ", "did you mean", "; there is ", "keep "),
    *(
        "it must be",
        "expected ",
        "the most is",
        "the least is",
        "choose",
        "is needed",
        "is required: ",
    ),
    *("needs ", "name ", "is made of", "put it", "takes "),
)


def said(name: str) -> list[Problem]:
    """What is wrong with a case, with paths into the stage."""
    try:
        read(CASES[name]["call"]).build()
    except PipelineError as error:
        return [Problem(p.path.removeprefix("stages.train."), p.message) for p in error.problems]
    except ValueError as error:  # Source.at, which a user calls before there is a pipeline
        return [Problem("source", str(error))]
    return []


def test_every_case_is_judged() -> None:
    assert CASES.keys() == PATHS.keys() | WORKING.keys()
    assert not PATHS.keys() & WORKING.keys()


@pytest.mark.parametrize("name", PATHS)
def test_what_can_not_work_is_refused_with_its_place_and_a_way_out(name: str) -> None:
    found = said(name)
    assert PATHS[name] in [problem.path for problem in found]
    for problem in found:
        assert any(way in f"; {problem.message}" for way in WAYS_OUT), problem


@pytest.mark.parametrize("name", PATHS)
def test_a_mistake_is_reported_once(name: str) -> None:
    paths = [problem.path for problem in said(name)]
    follow = {"groups_and_type": 2, "trn1_tensorflow": 2, "p2_pt1131": 2, "fsx_bad_mode": 2}
    assert len(paths) == follow.get(name, 1), paths


@pytest.mark.parametrize("name", WORKING)
def test_what_works_is_not_refused(name: str) -> None:
    assert said(name) == []
    assert read(CASES[name]["call"]).build().warnings() == []


def test_the_guide_states_how_many_are_refused() -> None:
    accepted = {name for name, case in CASES.items() if case["result"] == "ACCEPTED"}
    guide = Path(__file__).parents[2] / "docs" / "distributed_training.md"
    text = " ".join(guide.read_text(encoding="utf-8").split())
    assert f"Of the {len(CASES)} bad configurations" in text
    only_here = len(PATHS.keys() & accepted)
    assert f"{len(PATHS)} can't work and are refused, {only_here} of which the SageMaker" in text
