"""A reader of YAML on pages, who takes each block for what it is.

A block is a whole pipeline, a `run.yaml`, or a part: fields of a pipeline, stages, or fields of one
stage. A part is put into a pipeline around it, as the stage `part` if it is of one; a block in a
comment before it holds further stages. A key that repeats begins an alternative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions
from orchestration.cli import run_file
from orchestration.errors import PipelineError
from orchestration.stages.kinds import OWN, Kinds

ROOT = Path(__file__).parents[2]
AROUND = yaml.safe_load("""\
name: around
region: us-east-1
workspace: s3://my-bucket/around
role: arn:aws:iam::123456789012:role/SageMakerExecution
parameters: {image: {}, data: {default: s3://my-data/set}}
stages:
  train: {kind: training_job, image: {parameter: image}, cluster: {instance_type: ml.m5.xlarge}}
""")
"""What stands around fields of a pipeline, and around stages."""
_DEPLOYMENT = {
    "kind": "deployment",
    "model_data": "s3://my-bucket/models/best",
    "image": {"parameter": "image"},
    "instance_type": "ml.m5.xlarge",
    "endpoint_name": "around",
}
STAGES: tuple[Mapping[str, Any], ...] = (
    {"kind": "data_staging", "source": "s3://raw/digits"},
    {
        "kind": "training_job",
        "image": {"parameter": "image"},
        "cluster": {"instance_type": "ml.m5.xlarge"},
        "vpc": {"subnets": ["subnet-0123abcd"], "security_groups": ["sg-0123abcd"]},
    },
    {"kind": "training_job", "image": {"parameter": "image"}},
    _DEPLOYMENT,
    {**_DEPLOYMENT, "update": {}},
)
"""What stands around fields of a stage: the first that has them all, and takes them."""


def alternatives(text: str) -> list[str]:
    """Part a text where a key at its margin repeats."""
    parts: list[list[str]] = [[]]
    seen: set[str] = set()
    for line in text.splitlines(keepends=True):
        key = re.match(r"([\w-]+):", line)
        if key and key[1] in seen:
            parts.append([])
            seen = set()
        if key:
            seen.add(key[1])
        parts[-1].append(line)
    return ["".join(lines) for lines in parts]


def read(text: str, folder: Path, others: str = "") -> str:
    """Read a text of YAML for what it is, and return that; raises an error if it is not right.

    ``others`` are further stages around a part.
    """
    data = yaml.safe_load(text)
    if "name" in data and "stages" in data:
        load(text, folder / f"{data['name']}.yaml")
        return "pipeline"
    if "pipeline" in data and "kind" not in data:
        _run_file(text, data, folder)
        return "run.yaml"
    return _part(data, folder, AROUND["stages"] | (yaml.safe_load(others) or {}))


def load(text: str, path: Path) -> None:
    """Load a pipeline with empty scripts in its folders of code, and render it everywhere."""
    path.write_text(text, "utf-8")
    for source in _sources(yaml.safe_load(text)):
        script = path.parent / source["directory"] / source["entry_point"]
        script.parent.mkdir(parents=True, exist_ok=True)
        script.touch()
    try:
        pipeline = Pipeline.load(path)
    except PipelineError as error:
        # Planning is told of in other tests; all else that is wrong is told with it.
        if all("is not planned yet" in problem.message for problem in error.problems):
            return
        raise
    workflow = pipeline.lower()
    stepfunctions.render(workflow)
    airflow.render(workflow)


def _sources(data: object) -> Iterator[Mapping[str, str]]:
    match data:
        case {"directory": str(directory), "entry_point": str(entry_point)}:
            yield {"directory": directory, "entry_point": entry_point}
        case dict():
            for value in data.values():
                yield from _sources(value)
        case list():
            for value in data:
                yield from _sources(value)


def _run_file(text: str, data: Mapping[str, Any], folder: Path) -> None:
    """Read a `run.yaml` beside the pipeline that it names, with the files that it uploads."""
    for name in data.get("uploads", {}):
        # What a page has at the root of a machine lies in the folder.
        local = folder / name.lstrip("/").replace("*", "1")
        local.parent.mkdir(parents=True, exist_ok=True)
        local.touch()
    path = folder / "run.yaml"
    path.write_text(text.replace("  /", "  "), "utf-8")
    given = run_file.load(path)
    name = data["pipeline"]
    shown, *others = folder / name, ROOT / "dags" / name, *(ROOT / "examples").glob(f"*/{name}")
    pipeline = next(path for path in (shown, *others) if path.exists())
    given.parameters_of(Pipeline.load(pipeline).parameter_specs())


def _part(data: Mapping[str, Any], folder: Path, beside: Mapping[str, Any]) -> str:
    keys = set(data)
    if keys <= set(Pipeline.model_fields):
        load(yaml.safe_dump(AROUND | data), folder / "around.yaml")
        return "fields of a pipeline"
    if all(isinstance(value, dict) and value.get("kind") in OWN for value in data.values()):
        stages = {"stages": {**beside, **data}}
        load(yaml.safe_dump(AROUND | stages), folder / "around.yaml")
        return "stages"
    return _stage(data, folder, beside)


def _stage(data: Mapping[str, Any], folder: Path, beside: Mapping[str, Any]) -> str:
    kinds = Kinds()
    refusals = []
    for around in STAGES:
        kind = kinds.get(around["kind"])
        if kind is None or not set(data) <= set(kind.model_fields):
            continue
        stages = {"stages": {**beside, "part": {**around, **data}}}
        try:
            load(yaml.safe_dump(AROUND | stages), folder / "around.yaml")
        except PipelineError as error:
            refusals.append(str(error))
        else:
            return f"fields of a {around['kind']}"
    raise AssertionError("\n".join(refusals) or f"no stage has {sorted(data)}")


def within(part: object, whole: object) -> bool:
    """Return whether a file holds an excerpt of it."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and within(value, whole[key]) for key, value in part.items())
    return part == whole
