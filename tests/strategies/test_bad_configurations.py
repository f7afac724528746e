"""What can't work is found before it is paid for, also where the SageMaker SDK says nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestration.errors import PipelineError
from orchestration.strategies import Use, findings
from orchestration.strategies.distribution import from_distribution
from tests.strategies.captured import Bad, bad_configurations

CASES = bad_configurations()

# Strategy, framework, version and machines do not fit: a certain finding. The message of ours.
REFUSED = {
    "smddp_p5": "SMDDP does not run on ml.p5.48xlarge",
    "smddp_single_gpu_1_instance": "SMDDP does not run on ml.p3.2xlarge",
    "smddp_pt280": "SMDDP is not in AWS's container of PyTorch 2.8.0",
    "smddp_and_smp": "holds dataparallel and modelparallel; keep one",
    "smdistributed_unknown": "unknown library",
    "smdistributed_not_dict": "expected a mapping, got True",
    "smp_without_mpi_or_torchrun": "lacks its launcher",
    "smp_partitions_0": "is 0; the least is 1",
    "smp_bad_pipeline": "expected 'simple', 'interleaved'",
    "smp_auto_partition_false": "is needed where auto_partition is false",
    "smp_ddp_and_horovod": "does not go with ddp",
    "smp_unknown_param": "nonsense: is no parameter of smp_v1",
    "torchrun_pt1121_gpu": "from PyTorch 1.13.1 on; this is 1.12.1",
    "trn1_mpi": "on Trainium (ml.trn1.32xlarge) SageMaker knows no strategy but",
    "trn1_two_strategies": "enables mpi and torch_distributed at once",
    "trn1_tensorflow": "images for Trainium (ml.trn1.32xlarge) with PyTorch",
    "torchrun_sh_entry": "torchrun starts Python scripts; run.sh is none",
    "pytorchddp_and_smdistributed": "enables pytorchddp and dataparallel at once",
    "pytorchddp_pt280": "sends pytorchddp as SMDDP, and SMDDP is not in",
    "pytorchddp_cpu": "ml.c5.2xlarge has none",
    "torchrun_and_mpi": "enables torch_distributed and mpi at once",
    "mpi_and_ps": "enables mpi and parameter_server at once",
    "mpi_pph_99": "99 is more than the 96 vCPUs of ml.p4d.24xlarge",
    "enabled_missing": "lacks enabled",
    "groups_unknown_in_distribution": "there is no instance group 'b'; there is a, c",
    "groups_not_in_distribution": "one of the instance groups trains; name a, c",
    "p2_pt1131": "P2 instances (ml.p2.xlarge) ended with PyTorch 1.12",
    "mwms_and_ps": "enables multi_worker_mirrored_strategy and parameter_server at once",
    "pt201_cu121_smddp": "CUDA 12.1 has no SMDDP",
    "mxnet_bad_strategy": "mxnet's container ignores it",
    "tf_torchrun": "tensorflow's container ignores it",
}
# The SDK refuses these, and they work: torchrun on CPUs (measured), AWS's short tags.
WORKS = ["torchrun_cpu", "torchrun_cpu_image_uri", "torchrun_alias_28"]


def found(case: Bad, *, certain: bool) -> Iterator[str]:
    """What is said to a configuration."""
    given = case.arguments
    framework = None if case.framework == "estimator" else case.framework
    try:
        strategy = from_distribution(given.get("distribution", {}), framework=framework)
    except PipelineError as error:
        yield from map(str, error.problems)
        return
    groups = given.get("instance_groups", [])
    use = Use(
        framework=framework,
        framework_version=given.get("framework_version"),
        image=given.get("image_uri"),
        instance_types=(given["instance_type"],) if "instance_type" in given else (),
        instance_count=given.get("instance_count"),
        groups={g.instance_group_name: (g.instance_type, g.instance_count) for g in groups},
        entry_point=given.get("entry_point", "train.py"),
        has_source=True,
    )
    for finding in findings(strategy, use):
        if finding.certain == certain:
            yield f"{finding.path}: {finding.message}"


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_work_is_certain(name: str) -> None:
    said = list(found(CASES[name], certain=True))
    assert any(REFUSED[name] in message for message in said), said


@pytest.mark.parametrize("name", WORKS)
def test_what_works_is_not_refused(name: str) -> None:
    assert list(found(CASES[name], certain=True)) == []


def test_every_configuration_with_a_strategy_is_judged() -> None:
    # A strategy that the plain Estimator takes and drops is for the bridge to see.
    with_strategy = {name for name, case in CASES.items() if "distribution" in case.arguments}
    assert with_strategy - {"estimator_distribution_kw"} == REFUSED.keys() - {
        "trn1_tensorflow",
        "p2_pt1131",
    } | set(WORKS)
