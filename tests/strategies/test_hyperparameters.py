"""Strategies become the hyperparameters that SageMaker's own SDK sends."""

from __future__ import annotations

import json

import pytest

from orchestration import parameter
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
    hyperparameters,
)
from orchestration.strategies.distribution import from_distribution
from tests.strategies.captured import Captured, captured

CASES = captured()
WRITTEN: dict[str, Strategy] = {
    "efa_p4d_torchrun_env": TorchDistributed(),
    "fsx_lustre_vpc": TorchDistributed(),
    "hetero_mpi": MPI(processes_per_host=8, instance_group="gpu"),
    "hetero_torchrun": TorchDistributed(),
    "hf_pytorchddp": PyTorchDDP(),
    "hf_torchrun": TorchDistributed(),
    "mx_mpi": Horovod(processes_per_host=8),
    "mx_ps": ParameterServer(),
    "pt_mpi": MPI(processes_per_host=8, custom_mpi_options="--NCCL_DEBUG INFO"),
    "pt_ps": ParameterServer(),
    "pt_pytorchddp": PyTorchDDP(custom_mpi_options="-verbose"),
    "pt_smddp": SMDDP(),
    "pt_smddp_image_uri_pt251": SMDDP(),
    "pt_smp_v1_mpi": SMPv1(
        processes_per_host=8,
        custom_mpi_options="-mca btl_vader_single_copy_mechanism none",
        microbatches=4,
        placement_strategy="spread",
        pipeline="interleaved",
        optimize="speed",
        partitions=2,
        ddp=True,
    ),
    "pt_smp_v2_torchrun": SMPv2(
        hybrid_shard_degree=8,
        sm_activation_offloading=True,
        activation_loading_horizon=2,
        fsdp_cache_flush_warnings=True,
        allow_empty_shards=True,
        expert_parallel_degree=2,
        random_seed=123456,
    ),
    "pt_torchrun_gpu": TorchDistributed(),
    "pt_torchrun_trn1": TorchDistributed(),
    "pt_torchrun_trn1_image_uri": TorchDistributed(),
    "spot_checkpoint": TorchDistributed(),
    "tf_mpi": Horovod(processes_per_host=8),
    "tf_ps": ParameterServer(),
    "tf_smddp": SMDDP(),
}


def sent(strategy: Strategy, case: Captured) -> dict[str, object]:
    """What we tell the toolkit where that estimator runs, through JSON as on the way."""
    told = hyperparameters(
        strategy,
        framework=case.framework,
        instance_type=case.instance_type,
        heterogeneous=case.heterogeneous,
    )
    return {name: json.loads(json.dumps(value)) for name, value in told.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_toolkit_hears_what_the_sdk_tells_it(case: Captured) -> None:
    assert sent(WRITTEN.get(case.name, NoStrategy()), case) == case.told


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_so_it_does_from_the_distribution_of_the_estimator(case: Captured) -> None:
    # The framework is left out where the SDK sends what no container reads.
    framework = None if case.name == "pt_ps" else case.framework
    strategy = from_distribution(case.distribution, framework=framework)
    assert sent(strategy, case) == case.told


def test_every_captured_strategy_is_written_down() -> None:
    distributed = {case.name for case in CASES if case.distribution}
    assert distributed == WRITTEN.keys()


def test_an_instance_type_from_a_parameter_is_sent_as_it_is() -> None:
    chosen = parameter("instance_type")
    told = hyperparameters(TorchDistributed(), framework="pytorch", instance_type=chosen)
    assert told["sagemaker_instance_type"] is chosen


def test_processes_chosen_for_torchrun_are_told_by_the_key_that_every_runner_reads() -> None:
    told = hyperparameters(TorchDistributed(processes_per_host=2), "ml.c5.xlarge")
    assert told["sagemaker_mpi_num_of_processes_per_host"] == 2


def test_smddp_over_torchrun_is_torchrun_for_the_toolkit() -> None:
    here = {"framework": "pytorch", "instance_type": "ml.p4d.24xlarge"}
    over = hyperparameters(SMDDP(launcher="torchrun"), **here)  # type: ignore[arg-type]  # two strings
    assert over == hyperparameters(TorchDistributed(), **here)  # type: ignore[arg-type]  # two strings


def test_a_library_on_one_group_says_null_for_the_instance_type_as_the_sdk_does() -> None:
    told = hyperparameters(SMDDP(instance_group="gpu"), framework="pytorch", heterogeneous=True)
    assert told == {
        "sagemaker_distribution_instance_groups": ["gpu"],
        "sagemaker_distributed_dataparallel_enabled": True,
        "sagemaker_instance_type": None,
        "sagemaker_distributed_dataparallel_custom_mpi_options": "",
    }


def test_mxnet_gets_no_options_without_a_process_count() -> None:
    options = {"custom_mpi_options": "-verbose"}
    assert hyperparameters(MPI.model_validate(options), framework="mxnet") == {
        "sagemaker_mpi_enabled": True
    }


def test_tensorflow_is_told_of_its_mirrored_strategy() -> None:
    assert hyperparameters(MultiWorkerMirrored(), framework="tensorflow") == {
        "sagemaker_multi_worker_mirrored_strategy_enabled": True
    }


def test_what_was_not_set_is_not_sent() -> None:
    assert "mp_parameters" not in hyperparameters(SMPv2(), framework="pytorch")
    told = hyperparameters(SMPv1(ddp=False, extra_parameters={"herring": True}))
    assert told["mp_parameters"] == {"ddp": False, "herring": True}
