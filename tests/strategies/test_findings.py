"""What is found about a strategy where it is to work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestration.catalog import instances
from orchestration.strategies import (
    MPI,
    SMDDP,
    Horovod,
    MultiWorkerMirrored,
    NoStrategy,
    ParameterServer,
    PyTorchDDP,
    SMPv1,
    SMPv2,
    Strategy,
    TorchDistributed,
    Use,
    findings,
)

PYTORCH = Use(framework="pytorch", framework_version="2.2.0", instance_count=2)
P4D = replace(PYTORCH, instance_types=("ml.p4d.24xlarge",))
TENSORFLOW = Use(
    framework="tensorflow",
    framework_version="2.11.0",
    instance_types=("ml.p3.16xlarge",),
    instance_count=2,
)
GROUPS = {"gpu": ("ml.p4d.24xlarge", 2), "cpu": ("ml.c5.18xlarge", 1)}
HETEROGENEOUS = replace(PYTORCH, groups=GROUPS, instance_count=None)


def said(strategy: Strategy, use: Use) -> list[tuple[str, bool]]:
    return [(found.path, found.certain) for found in findings(strategy, use)]


@pytest.mark.parametrize(
    ("strategy", "use"),
    [
        (SMDDP(), P4D),
        (SMDDP(), replace(P4D, framework_version="2.3.0")),
        (SMDDP(launcher="torchrun"), P4D),
        (SMDDP(instance_group="gpu"), HETEROGENEOUS),
        (PyTorchDDP(custom_mpi_options="-verbose"), P4D),
        (TorchDistributed(), P4D),
        (TorchDistributed(), replace(P4D, framework_version="2.8")),
        (TorchDistributed(processes_per_host=8), P4D),
        (
            TorchDistributed(processes_per_host=4),
            replace(PYTORCH, instance_types=("ml.c5.xlarge",)),
        ),
        (TorchDistributed(), Use(image="mine:1", instance_types=("ml.trn1.32xlarge",))),
        (TorchDistributed(), Use()),
        (MPI(processes_per_host=8, custom_mpi_options="--NCCL_DEBUG INFO -x A=1 -x A=2"), P4D),
        (MPI(instance_group="gpu"), HETEROGENEOUS),
        (Horovod(processes_per_host=8), TENSORFLOW),
        (ParameterServer(), replace(TENSORFLOW, instance_types=("ml.c5.2xlarge",))),
        (MultiWorkerMirrored(), TENSORFLOW),
        (SMPv1(partitions=2, ddp=True), replace(P4D, framework_version="1.13.1")),
        (SMPv2(hybrid_shard_degree=8, tensor_parallel_degree=2), P4D),
        (SMPv2(), replace(P4D, image="658645717510.dkr.ecr.x/smdistributed-modelparallel:2.5.1")),
        (NoStrategy(), replace(PYTORCH, instance_types=("ml.p5.48xlarge",))),
        (NoStrategy(), HETEROGENEOUS),
    ],
)
def test_what_works_raises_nothing(strategy: Strategy, use: Use) -> None:
    assert findings(strategy, use) == []


@pytest.mark.parametrize(
    ("strategy", "use", "message"),
    [
        (SMDDP(), replace(PYTORCH, instance_types=("ml.g5.48xlarge",)), "SMDDP does not run on"),
        (SMDDP(), replace(P4D, framework_version="2.3.1"), "the last one that has it is 2.3.0"),
        (SMDDP(), replace(P4D, framework="mxnet"), "mxnet has no build of it"),
        (SMDDP(), replace(TENSORFLOW, framework_version="2.12.0"), "it ended with 2.11.0"),
        (
            SMDDP(launcher="torchrun"),
            replace(PYTORCH, instance_types=("ml.p3dn.24xlarge",)),
            "AllGather, which is for P4 alone",
        ),
        (PyTorchDDP(), replace(PYTORCH, instance_types=("ml.p5.48xlarge",)), "it refuses on"),
        (SMPv1(partitions=2, ddp=True), replace(P4D, framework_version="2.0.1"), "SMP v1 ended"),
        (SMPv2(), replace(P4D, framework_version="2.8.0"), "no SMP image for PyTorch 2.8.0"),
        (SMPv2(), replace(P4D, framework="huggingface", base="pytorch"), "none of the parameters"),
        (SMPv2(), HETEROGENEOUS, "on one instance group, not with smp_v2"),
        (ParameterServer(), P4D, "ignores parameter_server"),
        (MultiWorkerMirrored(), replace(TENSORFLOW, framework_version="2.8"), "2.9 on"),
        (Horovod(), replace(PYTORCH, instance_types=("ml.trn2.48xlarge",)), "on Trainium"),
        (NoStrategy(), replace(TENSORFLOW, instance_types=("ml.trn1.2xlarge",)), "Trainium"),
        (MPI(instance_group="gpu"), P4D, "the cluster has no instance groups"),
        (MPI(instance_group="gpus"), HETEROGENEOUS, "did you mean 'gpu'?"),
        (SMPv1(partitions=2, ddp=True), HETEROGENEOUS, "name gpu, cpu"),
        (
            SMDDP(launcher="torchrun", instance_group="gpu"),
            HETEROGENEOUS,
            "no hyperparameter can name a group",
        ),
        (
            MPI(instance_group="cpu", processes_per_host=73),
            HETEROGENEOUS,
            "73 is more than the 72 vCPUs of ml.c5.18xlarge",
        ),
        (TorchDistributed(), replace(HETEROGENEOUS, framework_version="1.9.1"), "PyTorch 1.10"),
    ],
)
def test_what_can_not_work_is_certain(strategy: Strategy, use: Use, message: str) -> None:
    certain = [found.message for found in findings(strategy, use) if found.certain]
    assert any(message in each for each in certain), certain


@pytest.mark.parametrize(
    ("strategy", "use", "message"),
    [
        (SMDDP(), replace(P4D, instance_count=1), "there is one host"),
        (
            SMDDP(),
            replace(PYTORCH, instance_types=("ml.p3.16xlarge",)),
            "of today does not name it",
        ),
        (
            SMDDP(),
            replace(P4D, framework_version=None, image="1.dkr.ecr.us-west-2.amazonaws.com/mine:1"),
            "whether mine:1 has it, no source says",
        ),
        (TorchDistributed(), replace(P4D, framework_version="2.10.0"), "no source says"),
        (TorchDistributed(), HETEROGENEOUS, "trains by itself"),
        (
            PyTorchDDP(custom_mpi_options="-verbose"),
            replace(P4D, framework="huggingface", base="pytorch", framework_version="2.5.1"),
            "they have no effect",
        ),
        (MPI(processes_per_host=9), P4D, "more than the 8 accelerators of ml.p4d.24xlarge"),
        (MPI(processes_per_host=2), P4D, "6 of the 8 accelerators of ml.p4d.24xlarge stay idle"),
        (ParameterServer(), TENSORFLOW, "has 8 accelerators"),
        (SMPv1(partitions=2, ddp=True), replace(P4D, framework_version="1.12.2"), "does not name"),
        (SMPv1(partitions=2), replace(P4D, framework_version="1.13.1"), "8 copies of the model"),
        (MPI(), replace(P4D, framework="xgboost"), "whether xgboost's container starts mpirun"),
    ],
)
def test_what_no_source_says_is_a_warning(strategy: Strategy, use: Use, message: str) -> None:
    found = findings(strategy, use)
    assert [each for each in found if each.certain] == []
    assert any(message in each.message for each in found), found


def test_every_candidate_is_judged() -> None:
    use = replace(PYTORCH, instance_types=("ml.p4d.24xlarge", "ml.g5.48xlarge", "ml.p5.48xlarge"))
    about = [found.message.split()[5].rstrip(":;") for found in findings(SMDDP(), use)]
    assert about == ["ml.g5.48xlarge", "ml.p5.48xlarge"]


def test_degrees_are_held_against_each_cluster_with_its_own_count() -> None:
    smp = SMPv1(pipeline_parallel_degree=2, tensor_parallel_degree=8, ddp=True)
    use = replace(PYTORCH, framework_version="1.13.1", instance_count=2)
    use = replace(use, instance_types=("ml.p4d.24xlarge", "ml.g4dn.12xlarge"))
    fits = replace(use, clusters=(("ml.p4d.24xlarge", 2), ("ml.g4dn.12xlarge", 4)))
    assert findings(smp, fits) == []
    [found] = findings(
        smp, replace(use, clusters=(("ml.p4d.24xlarge", 2), ("ml.g4dn.12xlarge", 3)))
    )
    assert found.certain
    assert "16 processes (pipeline times tensor parallelism), and the 12 pro" in found.message


def test_an_entry_point_that_nothing_starts_is_not_judged() -> None:
    assert said(TorchDistributed(), replace(P4D, entry_point="run.sh")) == []
    use = replace(P4D, entry_point="run.sh", has_source=True)
    assert said(TorchDistributed(), use) == [("source.entry_point", True)]
    assert said(MPI(), use) == []


def test_no_instance_type_breaks_a_rule_of_no_strategy_but_old_gpus() -> None:
    for name in instances():
        newest = replace(PYTORCH, framework_version="2.10.0", instance_types=(name,))
        refused = name.startswith(("ml.p2.", "ml.p6e-gb200."))
        assert bool(findings(NoStrategy(), newest)) == refused, name


def test_a_finding_is_said_once() -> None:
    use = replace(P4D, framework="mxnet", instance_types=("ml.p4d.24xlarge", "ml.p4de.24xlarge"))
    assert len(findings(SMDDP(), use)) == 1
