"""Options of mpirun that the toolkit would not survive, with mpirun and the toolkit as oracles."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise

import pytest

from orchestration.strategies import MPI, SMDDP, Use, findings
from orchestration.strategies.mpi_options import SMDDP_PARAMETERS, TOOLKIT_PARAMETERS
from tests.patience import PATIENCE_S

# What the toolkit's mpirun is told before the user's options (sagemaker-training 5.1.4, mpi.py).
TOOLKIT = [
    *("mpirun", "--host", "localhost:2", "-np", "2", "--allow-run-as-root", "--tag-output"),
    *("-mca", "btl_tcp_if_include", "lo", "-mca", "oob_tcp_if_include", "lo"),
    *("-mca", "plm_rsh_no_tree_spawn", "1", "-bind-to", "none", "-map-by", "slot"),
    *("-mca", "pml", "ob1", "-mca", "btl", "^openib", "-mca", "orte_abort_on_non_zero_status", "1"),
    *("-mca", "btl_vader_single_copy_mechanism", "none", "-x", "NCCL_DEBUG=INFO", "-x", "PATH"),
]
ABORTING = [
    "-mca btl_vader_single_copy_mechanism none",
    "--mca pml ob1",
    "-mca coll tuned -mca coll basic",
    "--mca mca_base_env_list A=1",
]
FINE = [
    "-verbose",
    "-x A=1 -x A=2 -x NCCL_DEBUG=WARN",
    "-mca coll tuned --mca orte_base_help_aggregate 0",
    "--oversubscribe",
]


def certain(options: str) -> list[str]:
    found = findings(MPI(custom_mpi_options=options), Use())
    return [each.message for each in found if each.certain]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs Open MPI")
@pytest.mark.parametrize("options", ABORTING + FINE)
def test_mpirun_aborts_where_we_say_so(options: str) -> None:
    run = subprocess.run(
        [*TOOLKIT, *options.split(), "true"], capture_output=True, timeout=PATIENCE_S
    )
    assert (run.returncode != 0) == bool(certain(options)), run.stderr


@pytest.mark.parametrize("options", ABORTING)
def test_a_repeated_parameter_is_certain(options: str) -> None:
    assert len(certain(options)) == 1


@pytest.mark.parametrize("options", [*FINE, "--NCCL_DEBUG INFO", "--NCCL_DEBUG=WARN -verbose"])
def test_other_options_pass(options: str) -> None:
    assert findings(MPI(custom_mpi_options=options), Use()) == []


@pytest.mark.toolkit
@pytest.mark.parametrize("options", ["--NCCL_DEBUG", "--NCCL_DEBUG -verbose", "-host a", "-h"])
def test_options_that_the_toolkit_itself_stumbles_over_are_certain(options: str) -> None:
    mpi = pytest.importorskip("sagemaker_training.mpi")
    with pytest.raises(SystemExit):
        mpi._parse_custom_mpi_options(options)
    assert certain(options)


@pytest.mark.toolkit
@pytest.mark.parametrize("options", [*FINE, "--host a:2", "-H a:2"])
def test_options_that_the_toolkit_passes_on_are_not_held_against_its_parser(options: str) -> None:
    mpi = pytest.importorskip("sagemaker_training.mpi")
    _, further = mpi._parse_custom_mpi_options(options)
    assert further == options.split()
    assert not any("stops" in message for message in certain(options))


@pytest.mark.toolkit
def test_the_parameters_of_the_toolkit_are_those_in_its_source() -> None:
    mpi = pytest.importorskip("sagemaker_training.mpi")
    smdataparallel = pytest.importorskip("sagemaker_training.smdataparallel")
    for module, ours in ((mpi, TOOLKIT_PARAMETERS), (smdataparallel, SMDDP_PARAMETERS)):
        with open(module.__file__, encoding="utf-8") as source:
            words = [line.strip().strip('",') for line in source]
        theirs = {name for word, name in pairwise(words) if word == "-mca"}
        assert theirs == ours


def test_smddp_has_a_parameter_more() -> None:
    options = "-mca plm_rsh_num_concurrent 4"
    assert certain(options) == []
    assert [each.certain for each in findings(SMDDP(custom_mpi_options=options), Use())] == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('-x A="1 2"', "quotes stay in the values"),
        ("-np 4", "-np changes the hosts or processes"),
        ("--hostfile mine", "--hostfile changes the hosts or processes"),
    ],
)
def test_what_may_go_wrong_is_a_warning(options: str, message: str) -> None:
    [found] = findings(MPI(custom_mpi_options=options), Use())
    assert not found.certain
    assert message in found.message


def test_options_of_mpirun_do_not_reach_torchrun() -> None:
    smddp = SMDDP(launcher="torchrun", custom_mpi_options="-verbose")
    [found] = findings(smddp, Use())
    assert (found.path, found.certain) == ("strategy.custom_mpi_options", True)


def test_mxnet_is_sent_options_with_a_process_count_only() -> None:
    use = Use(framework="mxnet")
    [found] = findings(MPI(custom_mpi_options="-verbose"), use)
    assert "with processes_per_host only" in found.message
    assert findings(MPI(custom_mpi_options="-verbose", processes_per_host=1), use) == []
