"""Debugger, profiler and TensorBoard of an estimator, as its ``fit()`` prepares them.

The regions without them are those of the SageMaker Python SDK 2.257.7 (``fw_utils.py``), read
November 2026.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.errors import PipelineError
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.v2.attributes import given_place
from orchestration.stages.training.observability import (
    Collection,
    Debugger,
    Profiler,
    Rule,
    TensorBoard,
)
from orchestration.strategies import images

_WITHOUT: Final = frozenset(
    [
        *("us-iso-east-1", "us-isob-east-1", "us-gov-east-1"),
        *("ap-southeast-3", "ap-southeast-4", "ap-south-2"),
        *("eu-south-2", "eu-central-2", "me-central-1"),
    ]
)
_DETAILED: Final = "DetailedProfilerProcessingJobConfig"
_UNHOOKED: Final = frozenset(["mxnet", "pytorch", "tensorflow"])
"""Frameworks whose Debugger can't go with checkpoints over several processes."""


@dataclass(kw_only=True)
class Observed:
    """Fields of a training job, and settings for its ``extra_request``."""

    debugger: Debugger | None = None
    profiler: Profiler | None = None
    tensorboard: TensorBoard | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def observed(estimator: Any, findings: Findings) -> Observed:
    """Read what an estimator's job records."""
    region = estimator.sagemaker_session.boto_region_name
    observed = Observed()
    rules = [rule for rule in estimator.rules or [] if not _profiles(rule)]
    debug_rules = [
        made
        for number, rule in enumerate(estimator.rules or [])
        if not _profiles(rule)
        and (made := _rule(rule, region, f"rules[{number}]", findings)) is not None
    ]
    hook = _hook(estimator, region, findings)
    if _parameter_server(estimator):
        # The SDK drops both here, with their rules.
        if rules:
            findings.add("rules", "the Debugger does not go with parameter servers; leave them out")
    elif hook is None and debug_rules:
        observed.extra["DebugRuleConfigurations"] = [rule.request() for rule in debug_rules]
    elif hook is not None:
        place = given_place(estimator, hook.s3_output_path)
        observed.debugger = _debugger(hook, place, rules, debug_rules, findings)
    _profile(estimator, region, observed, findings)
    board = estimator.tensorboard_output_config
    if board is not None:
        observed.tensorboard = findings.made(
            "tensorboard",
            lambda: TensorBoard(
                uri=board.s3_output_path, local_path=board.container_local_output_path
            ),
        )
    return observed


class _DefaultHook:
    """Return the default hook of an estimator."""

    s3_output_path = None
    container_local_output_path = None
    hook_parameters = None
    collection_configs = None


def _hook(estimator: Any, region: str, findings: Findings) -> Any:
    """Return the hook's configuration; ``None`` if the request has none."""
    hook = estimator.debugger_hook_config
    if region in _WITHOUT:
        if hook:
            findings.add("debugger_hook_config", f"is not available in {region}; remove it")
        return None
    if hook is False:
        return None
    if _parameter_server(estimator):
        if hook:
            findings.add(
                "debugger_hook_config",
                "the Debugger does not go with parameter servers; leave it out",
            )
        return None
    if _distributed_with_checkpoints(estimator):
        return None
    return hook or _DefaultHook


def _parameter_server(estimator: Any) -> bool:
    if getattr(estimator, "_framework_name", None) != "tensorflow":
        return False
    server = (estimator.distribution or {}).get("parameter_server")
    return isinstance(server, Mapping) and bool(server.get("enabled", False))


def _distributed_with_checkpoints(estimator: Any) -> bool:
    if not (estimator.checkpoint_s3_uri and estimator.checkpoint_local_path):
        return False
    if getattr(estimator, "_framework_name", None) not in _UNHOOKED:
        return False
    # An estimator with a distribution counts as distributed even if that is empty.
    distribution = getattr(estimator, "distribution", None)
    return (
        estimator.instance_count is None
        or estimator.instance_count > 1
        or (distribution is not None)
    )


def _debugger(
    hook: Any,
    place: str | None,
    rules: Iterable[Any],
    debug_rules: list[Rule],
    findings: Findings,
) -> Debugger | None:
    configured = [entry for rule in rules for entry in rule.collection_configs or []]
    configured += list(hook.collection_configs or [])
    collections = {
        (entry.name, *sorted((entry.parameters or {}).items())): Collection(
            name=entry.name, parameters=_texts(entry.parameters)
        )
        for entry in configured
    }
    fields: dict[str, Any] = {
        "uri": place,
        "local_path": hook.container_local_output_path,
        "hook_parameters": _texts(hook.hook_parameters),
        "collections": tuple(collections.values()),
        "rules": tuple(debug_rules),
    }
    return findings.made("debugger", lambda: Debugger(**fields))


def _profile(estimator: Any, region: str, observed: Observed, findings: Findings) -> None:
    config = estimator.profiler_config
    disabled = bool(estimator.disable_profiler)
    if disabled and config is not None and not config.disable_profiler:
        findings.add("profiler_config", "is enabled while disable_profiler is true; choose")
        return
    if disabled and config is None:
        observed.profiler = Profiler(enabled=False)
        return
    if region in _WITHOUT and config is None:
        observed.profiler = Profiler(enabled=False)
        return
    request = config._to_request_dict() if config is not None else {"DisableProfiler": False}
    rules = _profiler_rules(estimator, config, region, findings)
    if request["DisableProfiler"] is not False:
        observed.extra["ProfilerConfig"] = request
        if rules:
            observed.extra["ProfilerRuleConfigurations"] = [rule.request() for rule in rules]
        return
    fields: dict[str, Any] = {
        "uri": given_place(estimator, request.get("S3OutputPath")),
        "interval_ms": request.get("ProfilingIntervalInMilliseconds"),
        "parameters": _texts(request.get("ProfilingParameters")),
        "rules": tuple(rules),
    }
    observed.profiler = findings.made("profiler", lambda: Profiler(**fields))


def _profiler_rules(
    estimator: Any, config: Any, region: str, findings: Findings
) -> tuple[Rule, ...]:
    listed = list(enumerate(estimator.rules or []))
    made = [
        _rule(rule, region, f"rules[{number}]", findings)
        for number, rule in listed
        if _profiles(rule)
    ]
    detailed = config is not None and getattr(config, "profile_params", None)
    if not made and detailed and (estimator.rules is None or estimator.rules):
        made = [_detailed(detailed, region, findings)]
    return tuple(rule for rule in made if rule is not None)


def _detailed(params: Any, region: str, findings: Findings) -> Rule | None:
    image = _evaluator(_DETAILED, region, "profiler_config", findings)
    return findings.made(
        "profiler_config.profile_params",
        lambda: Rule(
            name=_DETAILED,
            image=image,
            parameters={"rule_to_invoke": "DetailedProfilerProcessing"},
            instance_type=params.instanceType,
            volume_gib=params.volumeSizeInGB,
        ),
    )


def _profiles(rule: Any) -> bool:
    return any(kind.__name__ == "ProfilerRule" for kind in type(rule).__mro__)


def _rule(rule: Any, region: str, path: str, findings: Findings) -> Rule | None:
    default = rule.image_uri == "DEFAULT_RULE_EVALUATOR_IMAGE"
    own_machine = not default or rule.name.startswith(_DETAILED)
    parameters = dict(rule.rule_parameters or {})
    parameters.pop("action_json", None)
    local = parameters.get("source_s3_uri")
    if local is not None and not str(local).startswith("s3://"):
        findings.add(f"{path}.rule_parameters.source_s3_uri", "is on this machine; upload it first")
    actions = getattr(rule, "actions", None)
    if actions is not None:
        parameters |= _actions(actions, f"{path}.actions", findings)
    image = _evaluator(rule.name, region, path, findings) if default else rule.image_uri
    fields: dict[str, Any] = {
        "name": rule.name,
        "image": image,
        "parameters": _texts(parameters),
        "uri": rule.s3_output_path,
        "local_path": rule.container_local_output_path,
        "instance_type": rule.instance_type if own_machine else None,
        "volume_gib": rule.volume_size_in_gb if own_machine else None,
    }
    return findings.made(path, lambda: Rule(**fields))


def _actions(actions: Any, path: str, findings: Findings) -> dict[str, str]:
    listed = getattr(actions, "actions", None)
    for action in [actions] if listed is None else listed:
        if getattr(action, "use_default_training_job_prefix", False):
            findings.add(
                path,
                "StopTraining takes the job's name by default, which is derived from the run; give "
                "it a training_job_prefix: <pipeline>-<stage>",
            )
            return {}
    return {"action_json": actions.serialize()}


def _evaluator(name: str, region: str, path: str, findings: Findings) -> str:
    framework = "detailed-profiler" if name.startswith(_DETAILED) else "debugger"
    try:
        return images.uri(framework, None, region=region)
    except PipelineError as error:
        findings.under(path, error.problems)
        return "unknown"


def _texts(values: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in (values or {}).items()}
