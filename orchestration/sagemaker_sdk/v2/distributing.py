"""The distribution of an estimator's training, and its hyperparameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration import strategies
from orchestration.errors import PipelineError, Problem
from orchestration.sagemaker_sdk import hyperparameters
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.hyperparameters import TOOLKIT, as_json, as_text
from orchestration.sagemaker_sdk.v2 import attributes
from orchestration.strategies import NoStrategy, Strategy
from orchestration.strategies.distribution import from_distribution

_SMDDP: Final = "dataparallel"
_METHODS: Final = (
    "_pytorch_distribution_configuration",
    "_huggingface_distribution_configuration",
    "_distribution_configuration",
)
"""The estimators' methods that convert a distribution, the most specific first."""
_FRAMEWORKS: Final = ("pytorch", "tensorflow", "mxnet", "huggingface")
_MXNET: Final = {
    "sagemaker_parameter_server_enabled": ("parameter_server", "enabled"),
    "sagemaker_mpi_enabled": ("mpi", "enabled"),
    "sagemaker_mpi_num_of_processes_per_host": ("mpi", "processes_per_host"),
    "sagemaker_mpi_custom_mpi_options": ("mpi", "custom_mpi_options"),
}
"""MXNet's estimator keeps only the hyperparameters of its distribution."""
_CHAINER: Final = {
    "sagemaker_use_mpi": "use_mpi",
    "sagemaker_num_processes": "num_processes",
    "sagemaker_process_slots_per_host": "process_slots_per_host",
    "sagemaker_additional_mpi_options": "additional_mpi_options",
}


@dataclass(frozen=True, slots=True)
class Distributed:
    """The strategy, the job's hyperparameters, and those for its ``extra_request``."""

    strategy: Strategy
    own: Mapping[str, Any]
    extra: Mapping[str, str]

    def request(self) -> dict[str, Any]:
        """Return the part of the ``extra_request``."""
        return {"HyperParameters": dict(self.extra)} if self.extra else {}


def distributed(estimator: Any, has_source: bool, findings: Findings) -> Distributed:
    """Read the strategy and the hyperparameters of an estimator."""
    read = strategy_of(estimator, findings)
    strategy = read or NoStrategy()
    own, extra = hyperparameters.split(_given(estimator, findings), encoded=has_source)
    if read is None and _distribution(estimator):
        # It was refused, and the SDK may not be able to read it either.
        return Distributed(strategy, own, extra)
    wanted = _sent_by_sdk(estimator, findings)
    if wanted is None:
        return Distributed(strategy, own, extra)
    sent = as_json(_sent_by_us(estimator, strategy))
    for name in sent.keys() - wanted.keys():
        findings.add("distribution", f"the SDK does not send {name}, which {strategy.kind} sends")
    for name, text in wanted.items():
        if name not in sent:
            extra[name] = text
        elif json.loads(sent[name]) != json.loads(text) and not _as_text(sent[name], text):
            findings.add(
                "distribution", f"the SDK sends {name}={text}, {strategy.kind} {sent[name]}"
            )
    for name in sent.keys() & extra.keys():
        del extra[name]
    return Distributed(strategy, own, extra | _of_special_estimators(estimator, findings))


def _as_text(ours: str, theirs: str) -> bool:
    """Return whether the SDK sends true or a number as text, as it was given."""
    return bool(json.loads(theirs.lower()) == ours)


def strategy_of(estimator: Any, findings: Findings) -> Strategy | None:
    """Read an estimator's distribution as a strategy."""
    distribution = _distribution(estimator)
    if not distribution:
        return None
    own = estimator._framework_name
    problems: tuple[Problem, ...] = ()
    # The pipeline refuses what can't work with the framework, in its own words; the SDK sends it.
    for framework in (own, *(name for name in _FRAMEWORKS if name != own)):
        try:
            return from_distribution(distribution, framework=framework)
        except PipelineError as error:
            problems = problems or error.problems
    renamed = own == "pytorch" and _SMDDP in _mapping(distribution.get("smdistributed"))
    findings.under("", map(_under_both_names, problems) if renamed else problems)
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _under_both_names(problem: Problem) -> Problem:
    """Return a problem with the name that may have been written for SMDDP.

    V2's ``PyTorch`` keeps ``pytorchddp`` as ``smdistributed.dataparallel``, and nothing tells which
    one it was given.
    """
    field = problem.field.replace(f"smdistributed.{_SMDDP}", f"pytorchddp (smdistributed.{_SMDDP})")
    message = problem.message.replace(
        f"enables {_SMDDP} ", f"enables pytorchddp (smdistributed.{_SMDDP}) "
    )
    return replace(problem, field=field, message=message)


def _distribution(estimator: Any) -> dict[str, Any]:
    distribution = dict(getattr(estimator, "distribution", None) or {})
    distribution.pop("pytorchxla", None)
    if getattr(estimator, "_framework_name", None) == "mxnet":
        for name, (kind, key) in _MXNET.items():
            if name in estimator._hyperparameters:
                distribution.setdefault(kind, {})[key] = estimator._hyperparameters[name]
    processes = _mapping(distribution.get("mpi")).get("processes_per_host")
    if isinstance(processes, str) and processes.isascii() and processes.isdigit():
        # The SDK takes a number's text, and the toolkit reads it as the number.
        distribution["mpi"] = {**distribution["mpi"], "processes_per_host": int(processes)}
    return distribution


def _given(estimator: Any, findings: Findings) -> dict[str, str]:
    """Return the user's hyperparameters as the SDK sends them."""
    raw = dict(estimator._hyperparameters)
    for name, definition in getattr(estimator, "hyperparameter_definitions", {}).items():
        # AlgorithmEstimator fills in the algorithm's defaults when it is fitted.
        if name not in raw and "DefaultValue" in definition["spec"]:
            raw[name] = definition["spec"]["DefaultValue"]
    if estimator.entry_point:
        # Left by an earlier fit(), be it of another estimator with the same dict; set anew by each.
        reserved = TOOLKIT & raw.keys()
        for name in sorted(reserved if reserved != TOOLKIT else ()):
            findings.add(
                f"hyperparameters.{name}",
                f"is overridden by the SDK, so {raw[name]!r} never reaches the job; remove it",
            )
        raw = {name: value for name, value in raw.items() if name not in TOOLKIT}
    if getattr(estimator, "_framework_name", None) == "mxnet":
        for name in _MXNET.keys() & raw.keys():
            del raw[name]
    if "model_dir" in raw and getattr(estimator, "model_dir", False) is not False:
        findings.add("hyperparameters.model_dir", "is overridden by the SDK; give model_dir")
    if not hasattr(estimator, "_framework_name"):
        return as_text(raw)
    return as_json(hyperparameters.checked(raw, findings))


def _sent_by_sdk(estimator: Any, findings: Findings) -> dict[str, str] | None:
    """Return the hyperparameters that the SDK derives from the distribution; None if it refuses."""
    if getattr(estimator, "_framework_name", None) == "mxnet":
        return as_json(
            {
                name: estimator._hyperparameters[name]
                for name in _MXNET
                if name in estimator._hyperparameters
            }
        )
    distribution = getattr(estimator, "distribution", None)
    if not distribution:
        return {}
    for method in _METHODS:
        configured = getattr(estimator, method, None)
        if configured is not None:
            try:
                return as_json(configured(distribution=distribution))
            except (ValueError, TypeError) as error:
                findings.add("distribution", f"is refused by the SDK: {error}")
                return None
    return {}


def _sent_by_us(estimator: Any, strategy: Strategy) -> Mapping[str, object]:
    name = getattr(estimator, "_framework_name", None)
    return strategies.hyperparameters(
        strategy,
        None if estimator.instance_groups else estimator.instance_type,
        framework=name,
        heterogeneous=bool(estimator.instance_groups),
    )


def _of_special_estimators(estimator: Any, findings: Findings) -> dict[str, str]:
    """Return the hyperparameters of Training Compiler, Chainer and reinforcement learning."""
    own: dict[str, object] = {}
    compiler = getattr(estimator, "compiler_config", None)
    if compiler is not None:
        own |= compiler._to_hyperparameter_dict()
    own |= {
        name: value
        for name, attribute in _CHAINER.items()
        if (value := getattr(estimator, attribute, None))
    }
    if type(estimator).__name__ == "RLEstimator":
        output = attributes.output_path(estimator)
        if output is None:
            findings.add("output_path", "is a hyperparameter of an RLEstimator's container; set it")
        own |= {"sagemaker_s3_output": output, "sagemaker_estimator": "RLEstimator"}
    return as_json(own)
