"""The shapes of an estimator's attributes, which V2's SDK checks only when it sends them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestration.sagemaker_sdk.findings import Findings, is_variable, variables
from orchestration.sagemaker_sdk.v2.attributes import CONVERTED, LOCAL_MODE

_MOST_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A description of the values of an attribute, and what is read instead of another value."""

    words: str
    fits: Callable[[Any], bool]
    otherwise: Any = None
    secret: bool = False
    """True if the value may hold what nobody may read in a message."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """The shapes of attributes of the value, or of each entry of a list."""

    def problems(self, path: str, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the place and the message of what does not fit; an unset value always does."""
        if value is None or is_variable(value):
            return
        if not self.fits(value):
            got = f"a {type(value).__name__}" if self.secret else f"{value!r:.{_MOST_SHOWN}}"
            yield path, f"expected {self.words}, got {got}"
            return
        listed = isinstance(value, list | tuple | set)
        for at, entry in enumerate(value) if listed else [(None, value)]:
            place = path if at is None else f"{path}[{at}]"
            for name, shape in self.fields.items():
                yield from shape.problems(f"{place}.{name}", getattr(entry, name, None))


def shaped(estimator: Any, findings: Findings) -> Any:
    """Report attributes of a wrong shape, and return an estimator without them.

    So the others are read, and all problems are told at once. Attributes that hold pipeline
    variables are left out too. The estimator itself stays as it is.
    """
    wrong: dict[str, Any] = {}
    for name, value in vars(estimator).items():
        shape = SHAPES.get(name, _ANY)
        problems = list(shape.problems(name.removeprefix("_"), value))
        for path, message in problems:
            findings.add(path, message)
        if problems or (name in CONVERTED and any(variables(value, name))):
            wrong[name] = shape.otherwise
    if not wrong:
        return estimator
    without = copy.copy(estimator)
    vars(without).update(wrong)
    return without


def _is(*kinds: type) -> Callable[[Any], bool]:
    # True is an int of Python's, and no number of AWS's.
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _has(*names: str) -> Callable[[Any], bool]:
    """Return a check for objects of the SDK's classes, which are not imported here."""
    return lambda value: any(kind.__name__ in names for kind in type(value).__mro__)


def _listed(entry: Callable[[Any], bool]) -> Callable[[Any], bool]:
    # A fitted estimator's collections are a set.
    return lambda value: isinstance(value, list | tuple | set) and all(map(entry, value))


def _pair(key: str, value: str) -> Callable[[Any], bool]:
    def fits(entry: Any) -> bool:
        if not isinstance(entry, Mapping):
            return False
        texts = (entry.get(key), entry.get(value))
        return all(isinstance(text, str) or is_variable(text) for text in texts)

    return fits


def _or_unset(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that also takes what the SDK reads as a default."""
    return lambda value: value is False or value == {} or fits(value)


_ANY: Final = Shape(words="anything", fits=_is(bool, object))
_TEXT: Final = Shape(words="text", fits=_is(str))
_MACHINE: Final = Shape(
    words=f"an instance type; local is {LOCAL_MODE}",
    fits=lambda value: isinstance(value, str) and value not in ("local", "local_gpu"),
)
_PLACE: Final = Shape(
    words=f"s3://…; file:// is {LOCAL_MODE}",
    fits=lambda value: isinstance(value, str) and not value.startswith("file://"),
)
_PATH: Final = Shape(words="a path", fits=_is(str, os.PathLike))
_NUMBER: Final = Shape(words="a whole number", fits=_is(int))
_FLAG: Final = Shape(words="True or False", fits=_is(bool))
# Pydantic tells which entry of it is wrong.
_TEXTS: Final = Shape(words="a list of text", fits=_is(list, tuple), otherwise=())
_MAPPING: Final = Shape(words="a mapping", fits=_is(Mapping), otherwise={})
_COLLECTIONS: Final = Shape(
    words="a list of CollectionConfig",
    fits=_listed(_has("CollectionConfig")),
    fields={"name": _TEXT, "parameters": _MAPPING},
)


def _all(names: Iterable[str], shape: Shape) -> dict[str, Shape]:
    return dict.fromkeys(names, shape)


SHAPES: Final[Mapping[str, Shape]] = {
    **_all(
        (
            *("volume_kms_key", "training_plan", "checkpoint_s3_uri", "checkpoint_local_path"),
            *("input_mode", "model_channel_name", "output_kms_key", "role", "image_uri"),
            "algorithm_arn",
            *("training_repository_access_mode", "framework_version", "py_version"),
            *("training_repository_credentials_provider_arn", "pytorch_version"),
            *("tensorflow_version", "base_framework_name", "base_framework_version"),
        ),
        _TEXT,
    ),
    "instance_type": _MACHINE,
    **_all(("model_uri", "output_path"), _PLACE),
    **_all(("source_dir", "entry_point"), _PATH),
    **_all(
        (
            *("instance_count", "keep_alive_period_in_seconds", "volume_size", "max_run"),
            *("max_wait", "max_retry_attempts", "container_log_level"),
        ),
        _NUMBER,
    ),
    **_all(
        (
            *("use_spot_instances", "disable_output_compression", "enable_sagemaker_metrics"),
            *("encrypt_inter_container_traffic", "_enable_network_isolation", "disable_profiler"),
            *("enable_infra_check", "_enable_remote_debug", "_enable_session_tag_chaining"),
        ),
        _FLAG,
    ),
    **_all(
        ("subnets", "security_group_ids", "container_entry_point", "container_arguments"), _TEXTS
    ),
    **_all(("environment", "_hyperparameters"), replace(_MAPPING, secret=True)),
    **_all(("distribution", "instance_placement_config"), _MAPPING),
    "dependencies": Shape(
        words="a list of paths", fits=_listed(_is(str, os.PathLike)), otherwise=()
    ),
    "tags": Shape(
        words="a list of {Key, Value}, both text", fits=_listed(_pair("Key", "Value")), otherwise=()
    ),
    "metric_definitions": Shape(
        words="a list of {Name, Regex}, both text",
        fits=_listed(_pair("Name", "Regex")),
        otherwise=(),
    ),
    "instance_groups": Shape(
        words="a list of InstanceGroup", fits=_listed(_has("InstanceGroup")), otherwise=()
    ),
    "rules": Shape(
        words="a list of Rule and ProfilerRule",
        fits=_listed(_has("Rule", "ProfilerRule")),
        otherwise=(),
        fields={"name": _TEXT, "rule_parameters": _MAPPING, "collection_configs": _COLLECTIONS},
    ),
    "debugger_hook_config": Shape(
        words="a DebuggerHookConfig, or False for none",
        fits=_or_unset(_has("DebuggerHookConfig")),
        fields={"hook_parameters": _MAPPING, "collection_configs": _COLLECTIONS},
    ),
    "profiler_config": Shape(words="a ProfilerConfig", fits=_has("ProfilerConfig")),
    "tensorboard_output_config": Shape(
        words="a TensorBoardOutputConfig", fits=_has("TensorBoardOutputConfig")
    ),
    "compiler_config": Shape(words="a TrainingCompilerConfig", fits=_has("TrainingCompilerConfig")),
}
