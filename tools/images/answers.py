"""Write, as JSON, what the installed SageMaker Python SDK answers for every image it knows.

Runs inside an environment with the SDK, V2 or V3, and takes the file to write; ``refresh.py``
starts it. The SDK logs to standard output, so that is not used.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

try:
    from sagemaker.core import common_utils as sdk_utils
    from sagemaker.core import image_uris

    PACKAGE = "sagemaker-core"
except ImportError:
    from sagemaker import image_uris
    from sagemaker import utils as sdk_utils

    PACKAGE = "sagemaker"

# Both read files afresh for every question.
image_uris.config_for_framework = functools.cache(image_uris.config_for_framework)
sdk_utils._botocore_resolver = functools.cache(sdk_utils._botocore_resolver)

INSTANCES = {
    "cpu": "ml.m5.xlarge",
    "gpu": "ml.g5.xlarge",
    "inf": "ml.inf1.xlarge",
    "trn": "ml.trn1.2xlarge",
    "neuronx": None,  # no instance type leads there; it is the only processor where it occurs
    "": None,
}
# Families that some versions have an image of their own for, or none, though they know "gpu".
GPU_FAMILIES = ("p2", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "g4dn", "g6")
SMP = {
    "torch_distributed": {"enabled": True},
    "smdistributed": {"modelparallel": {"enabled": True}},
}
# Its table has versions of the library beside those of PyTorch; images are named by PyTorch's, and
# these would give tags that nobody published.
SMP_LIBRARY = frozenset({"2.5.0", "2.7.0", "2.8.0"})


class Entry(NamedTuple):
    framework: str
    scope: str
    version: str
    version_shown: str
    base: str
    base_shown: str
    python: str
    config: dict[str, Any]
    processors: list[str]


def scopes(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The part of a framework's configuration for each of its scopes."""
    if "versions" not in config:
        return config
    return {scope: config for scope in config.get("scope", ["training"])}


def entries(framework: str) -> Iterator[Entry]:
    """Everything one may ask about a framework."""
    for scope, part in scopes(image_uris.config_for_framework(framework)).items():
        aliases = part.get("version_aliases", {})
        for version in dict.fromkeys([*part["versions"], *aliases]):
            if framework == "pytorch-smp" and version in SMP_LIBRARY:
                continue
            full = aliases.get(version, version)
            for base, base_full, config in bases(part["versions"][full]):
                pythons = config.get("py_versions") or [""]
                by_python = {} if "repository" in config else config
                for python in by_python or pythons:
                    leaf = by_python.get(python, config)
                    processors = part.get("processors") or leaf.get("processors") or [""]
                    yield Entry(
                        framework, scope, version, full, base, base_full, python, leaf, processors
                    )


def bases(config: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The base framework's versions of a Hugging Face version; one without name elsewhere."""
    names = [name for name in config if re.match("pytorch|tensorflow", name)]
    if not names:
        yield "", "", config
    for name in names:
        yield name, name, config[name]
    for alias, name in config.get("version_aliases", {}).items():
        if alias not in names:
            yield alias, name, config[name]


def ask(entry: Entry, region: str, instance_type: str | None) -> str:
    """What the SDK's estimators would run."""
    if entry.framework == "sagemaker-base-python":
        return str(image_uris.get_base_python_image_uri(region, entry.python.removeprefix("py")))
    if entry.framework == "pytorch-smp":
        return str(
            image_uris.get_training_image_uri(
                region,
                "pytorch",
                entry.version,
                entry.python,
                distribution=SMP,
                instance_type=instance_type,
            )
        )
    options: dict[str, Any] = {
        "version": entry.version,
        "py_version": entry.python or None,
        "image_scope": entry.scope,
        "instance_type": instance_type,
        "base_framework_version": entry.base or None,
    }
    framework = entry.framework
    special = re.fullmatch("(huggingface|pytorch)-(neuronx?|training-compiler)", framework)
    if special:
        framework = special[1]
        if special[2] == "training-compiler":
            options["training_compiler_config"] = object()
        else:
            options["inference_tool"] = special[2]
    if framework == "huggingface" and special is None and not entry.config.get("container_version"):
        # Its estimator says so for GPUs.
        on_gpu = instance_type is not None and instance_type[3] in "gp"
        options["container_version"] = "cu110-ubuntu18.04" if on_gpu else None
    if framework == "spark":
        options["py_version"] = None  # its processor gives a Python only beside a build
    return str(image_uris.retrieve(framework, region, **options))


def trainium_tag(entry: Entry) -> str:
    """The tag of Hugging Face's Trainium images, for which the SDK refuses every instance type."""
    system = next(iter(entry.config["container_version"].values()))
    sdk = sorted(entry.config["sdk_versions"])[-1]
    base = re.sub("^[a-z]+", "", entry.base_shown)
    return f"{base}-transformers{entry.version_shown}-neuronx-{entry.python}-{sdk}-{system}"


def tags(entry: Entry, region: str) -> dict[str, str | None]:
    """``repository:tag`` by processor, ``None`` where the SDK refuses an instance family."""
    if entry.framework == "huggingface-neuronx" and entry.scope == "training":
        return {"trn": f"{entry.config['repository']}:{trainium_tag(entry)}"}
    found: dict[str, str | None] = {}
    for processor in entry.processors:
        instance_type = INSTANCES.get(processor, f"ml.{processor}.xlarge")
        if entry.scope == "inference_graviton":
            instance_type = "ml.c6g.xlarge"
        found[processor] = ask(entry, region, instance_type).split("/")[1]
    if "gpu" in found:
        for family in GPU_FAMILIES:
            try:
                answer = ask(entry, region, f"ml.{family}.xlarge").split("/")[1]
            except ValueError:
                answer = None
            if answer != found["gpu"] and family not in entry.processors:
                found[family] = answer
    return found


def suffix(region: str) -> str:
    """The DNS suffix of a region's registries."""
    endpoint = sdk_utils._botocore_resolver().construct_endpoint("ecr", region)
    return str(endpoint["hostname"]).removeprefix(f"ecr.{region}.")


def frameworks() -> list[str]:
    """Every framework with a configuration of its own."""
    folder = Path(image_uris.__file__).with_name("image_uri_config")
    names = sorted(path.stem for path in folder.glob("*.json"))
    return [name for name in names if name != "instance_gpu_info"]


def main() -> None:
    logging.disable(logging.CRITICAL)
    rows: list[dict[str, Any]] = []
    for framework in frameworks():
        for entry in entries(framework):
            if framework == "sagemaker-base-python":
                pythons = ["py310", "py38"]
            elif framework == "spark":
                pythons = [""]
            else:
                pythons = [entry.python]
            accounts = entry.config["registries"]
            for python in pythons:
                asked = entry._replace(python=python)
                row = asked._asdict() | {"tags": tags(asked, min(accounts)), "accounts": accounts}
                del row["config"], row["processors"]
                if row not in rows[-1:]:
                    rows.append(row)
    regions = sorted({region for row in rows for region in row["accounts"]})
    answer = {
        "sdk": f"{PACKAGE} {installed(PACKAGE)}",
        "suffixes": {region: suffix(region) for region in regions},
        "rows": rows,
    }
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
