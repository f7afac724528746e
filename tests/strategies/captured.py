"""What the SageMaker Python SDK 2.257.7 does with estimators, as `tests/data` holds it."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"

# What any script gets, whatever its strategy.
COMMON = frozenset(
    [
        "sagemaker_container_log_level",
        "sagemaker_job_name",
        "sagemaker_program",
        "sagemaker_region",
        "sagemaker_submit_directory",
    ]
)


@dataclass(frozen=True)
class InstanceGroup:
    """As the SDK's class of that name: its `distribution=` holds such objects."""

    instance_group_name: str
    instance_type: str
    instance_count: int


@dataclass(frozen=True)
class Captured:
    """One estimator, and the hyperparameters that the SDK told the toolkit for its strategy."""

    name: str
    framework: str | None
    base: str | None
    distribution: Mapping[str, Any]
    instance_type: str | None
    heterogeneous: bool
    told: Mapping[str, object]


def captured() -> list[Captured]:
    """Every request of a framework's estimator."""
    return [_read(path) for path in sorted((DATA / "sdk_requests").glob("*.json"))]


def _read(path: Path) -> Captured:
    held = json.loads(path.read_text(encoding="utf-8"))
    request = held["request"]
    call, groups = _estimator(held["estimator"])
    arguments = {k.arg: k.value for k in call.keywords}
    for inner in ast.walk(call):
        if isinstance(inner, ast.Call):
            arguments |= {k.arg: k.value for k in inner.keywords}
    given = arguments.get("distribution")
    own = ast.literal_eval(arguments["hyperparameters"]) if "hyperparameters" in arguments else {}
    name = ast.unparse(call.func).lower()
    return Captured(
        name=path.stem,
        framework=None if name == "estimator" else name,
        base="pytorch" if name == "huggingface" else None,
        distribution={} if given is None else _value(given, groups),
        instance_type=request["ResourceConfig"].get("InstanceType"),
        heterogeneous="InstanceGroups" in request["ResourceConfig"],
        told={
            key: json.loads(text)
            for key, text in request.get("HyperParameters", {}).items()
            if key not in COMMON | own.keys() | {"model_dir"}
        },
    )


def _estimator(source: str) -> tuple[ast.Call, dict[str, InstanceGroup]]:
    """The call that makes the estimator, and the instance groups made before it."""
    [function] = ast.parse(source.partition("\n")[2]).body
    assert isinstance(function, ast.FunctionDef)
    groups, made = {}, None
    for statement in ast.walk(function):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        [target] = statement.targets
        if ast.unparse(statement.value.func) == "InstanceGroup":
            values = [ast.literal_eval(each) for each in statement.value.args]
            groups[ast.unparse(target)] = InstanceGroup(*values)
        elif ast.unparse(target) == "est":
            made = statement.value
    assert made is not None
    return made, groups


def _value(node: ast.expr, groups: Mapping[str, InstanceGroup]) -> Any:
    return eval(ast.unparse(node), {"__builtins__": {}}, dict(groups))


@dataclass(frozen=True)
class Bad:
    """A configuration that can't work, and what the SDK says to it."""

    name: str
    framework: str
    arguments: Mapping[str, Any]
    result: str


def bad_configurations() -> dict[str, Bad]:
    """Every one, by name."""
    held = json.loads((DATA / "bad_configurations.json").read_text(encoding="utf-8"))
    smddp = {"smdistributed": {"dataparallel": {"enabled": True}}}
    shared = {
        "framework_version": "2.2.0",
        "py_version": "py310",
        "instance_count": 2,
        "instance_type": "ml.p4d.24xlarge",
    }
    names: dict[str, Any] = {
        "P": lambda **k: {a: b for a, b in {**shared, **k}.items() if b is not ...},
        "SMDDP": smddp,
        "TD": {"torch_distributed": {"enabled": True}},
        "InstanceGroup": InstanceGroup,
        "bad": lambda name, framework, arguments, *_: (framework, arguments),
        **{name: name.lower() for name in ("PyTorch", "TensorFlow", "MXNet", "Estimator")},
    }
    found = {}
    for name, case in held["cases"].items():
        # The channels of a case are no concern here.
        call = ast.parse(case["call"], mode="eval").body
        assert isinstance(call, ast.Call)
        call.args, call.keywords = call.args[:3], []
        try:
            framework, arguments = eval(ast.unparse(call), names)
        except NameError:  # arguments of the SDK's own making, such as rules of its profiler
            continue
        found[name] = Bad(name, framework, arguments, case["result"])
    return found
