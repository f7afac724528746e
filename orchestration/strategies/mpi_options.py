"""Options of ``mpirun`` that a user adds to those of the toolkit.

The toolkit's options were read in sagemaker-training 5.1.4 (``mpi.py``, ``smdataparallel.py``);
``mpirun``'s reaction to repeated ones was measured with Open MPI 4.1.4. Both 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from orchestration.strategies.models import SMDDP, PyTorchDDP
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.use import Finding, Use

_PATH = "strategy.custom_mpi_options"

TOOLKIT_PARAMETERS = frozenset(
    [
        "btl",
        "btl_tcp_if_include",
        "btl_vader_single_copy_mechanism",
        "oob_tcp_if_include",
        "orte_abort_on_non_zero_status",
        "plm_rsh_no_tree_spawn",
        "pml",
    ]
)
"""MCA parameters that the toolkit sets for every mpirun."""

SMDDP_PARAMETERS = TOOLKIT_PARAMETERS | {"plm_rsh_num_concurrent"}

_PARAMETER = ("-mca", "--mca", "-gmca", "--gmca")
_COUNTS = ("-np", "--np", "-n", "--n", "-c", "-H", "--host", "--hostfile", "--machinefile")
_NCCL_DEBUG = "--NCCL_DEBUG"


def mpi_findings(strategy: Strategy, use: Use) -> Iterator[Finding]:
    """Find problems of a strategy's own options of mpirun."""
    options: str | None = getattr(strategy, "custom_mpi_options", None)
    if not options:
        return
    match strategy:
        case SMDDP(launcher="torchrun"):
            yield Finding(_PATH, "torchrun takes none; leave it out, or use mpirun", True)
            return
        case PyTorchDDP() if use.framework == "huggingface":
            yield Finding(
                _PATH,
                "for Hugging Face the SageMaker SDK sends none with pytorchddp: they have no "
                "effect; use smddp or mpi",
                False,
            )
            return
        case SMDDP() | PyTorchDDP():
            taken = SMDDP_PARAMETERS
        case _:
            taken = TOOLKIT_PARAMETERS
    for message in _aborting(options.split(), taken):
        yield Finding(_PATH, message, True)
    for message in _doubtful(options):
        yield Finding(_PATH, message, False)
    processes = getattr(strategy, "processes_per_host", None)
    if use.framework == "mxnet" and processes is None:
        unsent = "for MXNet the SageMaker SDK sends them with processes_per_host only; give both"
        yield Finding(_PATH, unsent, False)


def _aborting(words: Sequence[str], taken: frozenset[str]) -> Iterator[str]:
    names = set()
    for word, name in pairwise([*words, ""]):
        if word in _PARAMETER and name == "mca_base_env_list":
            yield "mca_base_env_list does not go with the toolkit's -x; use -x NAME=value"
        elif word in _PARAMETER and name in taken:
            yield f"{word} {name} is the toolkit's own, and mpirun aborts where it comes twice"
        elif word in _PARAMETER and name in names:
            yield f"{word} {name} comes twice, and mpirun aborts then; give it once"
        elif word == _NCCL_DEBUG and (not name or name.startswith("-")):
            yield f"{_NCCL_DEBUG} needs a value: {_NCCL_DEBUG} INFO"
        elif word.startswith("-h"):
            # argparse reads -host as -h with a value.
            yield f"the toolkit takes {word} for a request for help and stops; write --{word[1:]}"
        if word in _PARAMETER:
            names.add(name)


def _doubtful(options: str) -> Iterator[str]:
    if '"' in options or "'" in options:
        yield "is split at white space, and quotes stay in the values; leave them out"
    counts = [word for word in options.split() if word in _COUNTS]
    for word in dict.fromkeys(counts):
        yield (
            f"{word} changes the hosts or processes that the toolkit has counted; use "
            "processes_per_host"
        )
