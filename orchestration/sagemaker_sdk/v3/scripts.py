"""V3's source code and launchers as the training toolkit starts them."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orchestration.errors import PipelineError
from orchestration.sagemaker_sdk import sources
from orchestration.sagemaker_sdk.collected import Copying, collected, copied
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.v3.shapes import plain, setting
from orchestration.stages.packing import files
from orchestration.stages.training.container import Framework
from orchestration.stages.values import Source
from orchestration.strategies import MPI, NoStrategy, SMPv2, Strategy, TorchDistributed

_TOOLKIT: Final = {
    "pytorch-training": ("pytorch", None),
    "pytorch-training-neuron": ("pytorch", None),
    "pytorch-training-neuronx": ("pytorch", None),
    "smdistributed-modelparallel": ("pytorch", None),
    "tensorflow-training": ("tensorflow", None),
    "mxnet-training": ("mxnet", None),
    "huggingface-pytorch-training": ("huggingface", "pytorch"),
    "huggingface-pytorch-training-neuronx": ("huggingface", "pytorch"),
    "huggingface-tensorflow-training": ("huggingface", "tensorflow"),
    "sagemaker-scikit-learn": ("sklearn", None),
    "sagemaker-xgboost": ("xgboost", None),
}
"""Repositories of AWS's containers with the training toolkit, with framework and base. Source:
https://docs.aws.amazon.com/sagemaker/latest/dg-ecr-paths/sagemaker-algo-docker-registry-paths.html
and https://github.com/aws/deep-learning-containers, read November 2026."""


@dataclass(frozen=True, slots=True)
class Script:
    """The code, its framework, and the way it is distributed."""

    source: Source | None = None
    framework: Framework | None = None
    strategy: Strategy = field(default_factory=NoStrategy)


def script(
    trainer: Any,
    code: str | Path | None,
    toolkit: bool | None,
    findings: Findings,
    *,
    include: Collection[str] = (),
) -> Script:
    """Read the source code of a trainer as the toolkit starts it."""
    code_settings = setting(trainer, "source_code")
    if code_settings is None:
        if setting(trainer, "distributed") is not None:
            findings.add("distributed", "needs source_code, which is missing")
        return Script()
    framework = _framework(setting(trainer, "training_image"))
    if framework is None and toolkit is not True:
        findings.add(
            "training_image",
            "is not known to have the SageMaker training toolkit, which starts source_code here; "
            "if it has: from_model_trainer(…, toolkit=True)",
        )
    _check(code_settings, findings)
    entry = setting(code_settings, "entry_script")
    if not entry:
        return Script(framework=framework)
    return Script(
        _source(code_settings, entry, code, findings, include),
        framework,
        _strategy(setting(trainer, "distributed"), findings),
    )


def _check(code_settings: Any, findings: Findings) -> None:
    if setting(code_settings, "command"):
        findings.add(
            "source_code.command",
            "has no counterpart: the toolkit starts a script; put the command into a .sh file of "
            "source_dir, and name that as entry_script",
        )
    elif setting(code_settings, "args"):
        findings.add("source_code.args", "are ignored by V3 without a command; remove them")
    requirements = setting(code_settings, "requirements")
    if requirements is not None and posixpath.normpath(requirements) != "requirements.txt":
        findings.add(
            "source_code.requirements",
            f"is {requirements!r}; the toolkit installs requirements.txt of source_dir only",
        )
    entry = setting(code_settings, "entry_script")
    if entry and not entry.endswith((".py", ".sh")):
        findings.add(
            "source_code.entry_script",
            f"{entry} is neither a .py nor a .sh file, which V3 requires",
        )


def _framework(image: object) -> Framework | None:
    """Return the framework in one of AWS's images."""
    match = re.fullmatch(r"\d{12}\.dkr\.ecr\.[^/]+/([^:@]+)(?::(\d[\d.]*\d|\d))?.*", str(image))
    name, base = _TOOLKIT.get(match[1], (None, None)) if match else (None, None)
    if match is None or name is None:
        return None
    version = match[2]
    return Framework(
        name=name,
        version=None if base else version,
        base=f"{base}{version or ''}" if base else None,
        # V3 does not pass model_dir to TensorFlow scripts.
        model_dir=False if name == "tensorflow" else None,
    )


def _source(
    code_settings: Any,
    entry: str,
    code: str | Path | None,
    findings: Findings,
    include: Collection[str],
) -> Source | None:
    place, path = setting(code_settings, "source_dir"), "source_code.source_dir"
    if not place:
        findings.add(path, "is needed: the folder that holds entry_script")
        return None
    if place.startswith("s3://"):
        return sources.in_s3(entry, place, path, findings)
    if place.endswith(sources.ARCHIVES):
        return sources.archive(entry, place, path, findings)
    patterns = setting(code_settings, "ignore_patterns") or ()
    if not Path(place).is_dir() or not _ignored(Path(place), patterns):
        return sources.folder(entry, place, path, findings, include)
    ignored = shutil.ignore_patterns(*patterns)

    def copy(folder: Path) -> None:
        copied(Path(place), folder, ignored)
        sources.refuse_absent(entry, folder, f"{place}, without ignore_patterns,", include)

    target = collected(copy, Copying(code, include), path, findings)
    return None if target is None else sources.folder(entry, target, path, findings, include)


def _ignored(folder: Path, patterns: Sequence[str]) -> bool:
    """Return whether patterns exclude files that would be sent, or refused, otherwise."""
    try:
        sent = list(files(folder))
    except PipelineError:
        # The patterns may exclude what is refused; what they leave is looked at again.
        return bool(patterns)
    return any(
        fnmatch.fnmatch(part, pattern)
        for name, _ in sent
        for part in Path(name).parts
        for pattern in patterns
    )


def _strategy(distributed: Any, findings: Findings) -> Strategy:
    if distributed is None:
        return NoStrategy()
    kind = type(distributed).__name__
    processes = setting(distributed, "process_count_per_node")
    made: Strategy | None = None
    if kind == "Torchrun" and setting(distributed, "smp") is not None:
        if processes is not None:
            findings.add(
                "distributed.process_count_per_node",
                "has no counterpart with smp: one process per device is started; leave it out",
            )
        parameters = {
            name: setting(distributed.smp, name) for name in type(distributed.smp).model_fields
        }
        made = findings.made("distributed.smp", lambda: SMPv2(**parameters))
    elif kind == "Torchrun":
        made = findings.made("distributed", lambda: TorchDistributed(processes_per_host=processes))
    elif kind == "MPI":
        made = _mpi(distributed, processes, findings)
    else:
        findings.add("distributed", f"is a {kind} with your own driver, which has no counterpart")
    return made or NoStrategy()


def _mpi(distributed: Any, processes: int | None, findings: Findings) -> Strategy | None:
    options = plain(setting(distributed, "mpi_additional_options")) or []
    for number, option in enumerate(options):
        if option.split() != [option]:
            findings.add(
                f"distributed.mpi_additional_options[{number}]",
                f"{option!r} holds white space, at which the toolkit splits",
            )
    return findings.made(
        "distributed",
        lambda: MPI(processes_per_host=processes, custom_mpi_options=" ".join(options) or None),
    )
