"""The preparation of an account for a run: buckets, data and code."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import ExpressionError, LocalError
from orchestration.expressions import Join, Json, Tree, evaluate, walk
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, NotifySpec, Workflow, all_steps, operations, trees
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.server.embedded import EmbeddedAws

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.stages.stage import Stage

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")
_SUBNET = re.compile(r"subnet-[0-9a-z]+")
_GROUP = re.compile(r"(?:.*:security-group/)?(sg-[0-9a-z]+)")


def prepare(
    aws: EmbeddedAws,
    pipeline: Pipeline,
    workflow: Workflow,
    values: Mapping[str, Json],
    uploads: Mapping[str, Path],
) -> None:
    """Create what a run writes to or acts as or in; upload the data and the code.

    A bucket that is only read and that no upload fills must exist, as on AWS.
    """
    from orchestration.deploy import sources
    from orchestration.local.run.writing import written

    s3 = aws.client("s3")
    workspace, _ = sources.workspace(pipeline, values)
    known = frozenset(_known(workflow, values))
    assumed = frozenset(_assumed(workflow, values))
    _make_assumed(aws.client("iam"), assumed)
    aws.provide(
        roles=filter(_ROLE.fullmatch, known - assumed),
        subnets=filter(_SUBNET.fullmatch, known),
        security_groups=(match[1] for match in map(_GROUP.fullmatch, known) if match),
        stand_ins=stand_ins(pipeline),
    )
    filled = {_bucket(uri) for uri in uploads}
    _make_buckets(s3, {workspace, *written(workflow, values), *filled} - {""})
    if workflow.notify is not None:
        _make_topics(aws.client("sns"), workflow.notify)
    for uri, path in uploads.items():
        _upload(s3, uri, path)
    sources.upload(pipeline, values, s3)


def stand_ins(pipeline: Pipeline) -> Iterator[StandIn]:
    """Yield the programs that run in the place of images; raise where a folder is missing."""
    for stage in pipeline.every_stage:
        if not hasattr(stage, "local"):
            continue
        transform = getattr(stage, "transform", None)
        if transform is None:
            yield _stand_in(pipeline, stage, stage.local)
        else:
            yield _stand_in(pipeline, stage, stage.local, serves=False)
            yield _stand_in(pipeline, stage, transform.local, serves=True)


def _stand_in(pipeline: Pipeline, stage: Stage, local: Any, serves: bool | None = None) -> StandIn:
    if local is None:
        # An earlier run in this account may have had one.
        return StandIn(pipeline.name, stage.name, (), None, serves)
    folder = None if local.directory is None else Path(local.directory).resolve()
    if folder is not None and not folder.is_dir():
        field = "transform.local" if serves else "local"
        raise LocalError(f"stage {stage.name}: there is no folder {folder}, named in `{field}`")
    where = None if folder is None else str(folder)
    return StandIn(pipeline.name, stage.name, tuple(local.command), where, serves)


def _make_buckets(s3: Any, names: set[str]) -> None:
    existing = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    region = s3.meta.region_name
    # us-east-1 is the only region that must not be named.
    location = {"LocationConstraint": region} if region != "us-east-1" else None
    more = {"CreateBucketConfiguration": location} if location else {}
    for name in sorted(names - existing):
        try:
            s3.create_bucket(Bucket=name, **more)
        except s3.exceptions.BucketAlreadyExists:
            continue  # It belongs to another account.
        except s3.exceptions.ClientError as error:
            raise LocalError(f"the bucket {name!r} cannot be created: {error}") from error


def _make_topics(sns: Any, notify: NotifySpec) -> None:
    """Create the topics; one of another account stays missing, and is told nothing."""
    for arn in {*notify.on_failure, *notify.on_success}:
        sns.create_topic(Name=arn.rpartition(":")[2])


def _known(workflow: Workflow, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield every text of the requests and parameters that is known before the run."""
    environment = Values({}, values)
    for tree in [*values.values(), *(t for step in all_steps(workflow.graph) for t in trees(step))]:
        for part in _texts(tree):
            # An output of an earlier step is in a bucket that exists by then.
            with contextlib.suppress(ExpressionError):
                value = evaluate(part, environment)
                if isinstance(value, str):
                    yield value


def _assumed(workflow: Workflow, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the roles that a run assumes."""
    environment = Values({}, values)
    for step in all_steps(workflow.graph):
        for operation in operations(step) if isinstance(step, Call) else ():
            if operation.assumes is not None:
                with contextlib.suppress(ExpressionError):
                    yield str(evaluate(operation.assumes, environment))


def _make_assumed(iam: Any, roles: Iterable[str]) -> None:
    """Create the roles of this account that a run assumes; others belong to whoever trusts it."""
    principal = {"AWS": f"arn:aws:iam::{ACCOUNT_ID}:root", "Service": "sagemaker.amazonaws.com"}
    trusting = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trusting]})
    for role in roles:
        _, own, path = role.partition(f"arn:aws:iam::{ACCOUNT_ID}:role")
        if not own:
            continue
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            iam.create_role(RoleName=name, Path=f"{folder}/", AssumeRolePolicyDocument=document)


def _texts(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from _texts(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _texts(value)
    else:
        for node in walk(tree):
            yield node
            if isinstance(node, Join):
                # The ARN of a security group has parts that only the run knows.
                texts = (part for part in node.parts if isinstance(part, str))
                yield from filter(_GROUP.fullmatch, texts)


def _bucket(uri: str) -> str:
    return uri.removeprefix("s3://").partition("/")[0]


def _upload(s3: Any, uri: str, path: Path) -> None:
    for each, file in objects(uri, path):
        bucket, _, key = each.removeprefix("s3://").partition("/")
        s3.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())


def objects(uri: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the S3 URI and the file of each object that an upload becomes."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if path.is_file():
        whole = f"{key}{path.name}" if key.endswith("/") or not key else key
        yield f"s3://{bucket}/{whole}", path
        return
    if not path.is_dir():
        raise LocalError(f"missing file or folder {path}, to be uploaded to {uri}")
    prefix = f"{key.rstrip('/')}/" if key else ""
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield f"s3://{bucket}/{prefix}{file.relative_to(path).as_posix()}", file
