"""The buckets that a run writes to, as far as they are known before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from orchestration.deploy.identities.touched import touched
from orchestration.deploy.permissions.patterns import Known, listings, pattern
from orchestration.deploy.permissions.requests import calls
from orchestration.expressions import Json, Result, Tree, join
from orchestration.graph import Operation, Workflow, all_steps
from orchestration.refs import Expression

_PLACE: Final = re.compile(r'"?(?:s3://|arn:aws[a-z-]*:s3:::)([a-z0-9.-]+)(?=["/]|$)')
_READING: Final = ("Describe", "Get", "Head", "List")
_READ: Final = ("CopySource", "ManifestGenerator")
"""Fields with what an operation reads; for SageMaker's, ``touched`` knows."""


def written(workflow: Workflow, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names of the buckets; those that are only read must exist, as on AWS.

    Where nobody knows which fields of a service's requests name inputs, all buckets count.
    """
    steps = {step.name: step for step in all_steps(workflow.graph)}
    known = Known(parameters=values, listings=listings(workflow.graph), steps=steps)
    every = list(calls(workflow.graph, known))
    operations = [operation for _, operation, _ in every]
    sources = set(_sources(operations))
    exports = list(_exports(operations))
    for step, operation, inside in every:
        if step in sources or operation.name.startswith(_READING):
            continue
        for tree in _places(operation, exports):
            match = _PLACE.match(pattern(tree, inside))
            if match is not None:
                yield match[1]


def _places(operation: Operation, exports: list[PurePosixPath]) -> Iterator[Tree]:
    """Yield what names the places that an operation writes to."""
    request = operation.request
    match operation.service, operation.name:
        case (("sagemaker" | "sagemaker-runtime"), _):
            yield from (each.value for each in touched(request) if each.use == "write")
        case "s3", _:
            bucket = request.get("Bucket")
            if isinstance(bucket, str | Expression):
                yield join("s3://", bucket)
        case "fsx", "CreateDataRepositoryAssociation":
            folder = PurePosixPath(str(request.get("FileSystemPath")))
            if any(folder in (path, *path.parents) or path in folder.parents for path in exports):
                yield request.get("DataRepositoryPath")
        case _:
            yield from _leaves(request)


def _leaves(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name not in _READ:
                yield from _leaves(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _leaves(value)
    else:
        yield tree


def _sources(operations: list[Operation]) -> Iterator[str]:
    """Yield the steps that make the locations which DataSync reads."""
    for operation in operations:
        location = operation.request.get("SourceLocationArn")
        if isinstance(location, Result):
            yield location.step


def _exports(operations: list[Operation]) -> Iterator[PurePosixPath]:
    """Yield the paths of file systems that are exported to what is linked there."""
    for operation in operations:
        if operation.request.get("Type") == "EXPORT_TO_REPOSITORY":
            paths = operation.request.get("Paths")
            for path in paths if isinstance(paths, list | tuple) else ():
                yield PurePosixPath("/", str(path))
