"""Pipelines that are deployed and exported, and the values that both are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestration import DataStaging, Parameter, Pipeline, S3Destination, Schedule, parameter
from tests.deploy import pipelines

ACCOUNT, REGION = "123456789012", "us-east-1"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
OWN_ROLE = f"arn:aws:iam::{ACCOUNT}:role/platform/runner"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NIGHTLY = Schedule(cron="30 6 * * 1-5", timezone="Europe/Berlin")
EVERY = Schedule(
    rate="6 hours",
    timezone="Europe/Berlin",
    start="2097-01-01T06:00",
    end="2098-01-01",
    flexible_window_minutes=15,
)
ONCE = Schedule(at="2097-01-01T06:00", timezone="Europe/Berlin")
ODD = 'Costs ${5}, $${6}, ${!7}, %{8}, {%{9}%} and a \\ and a "'
"""What templates take for expressions."""
GIVEN = {
    "role": "arn:aws:iam::${AWS::AccountId}:role/${RoleName}",
    "bucket": "${Bucket}",
    "data": "s3://${DataBucket}/${DataPrefix}",
}
"""Values as they are exported."""
VALUES = {
    "Bucket": "workspace",
    "DataBucket": "incoming",
    "DataPrefix": "set",
    "RoleName": "SageMakerExecution",
}
"""What a stack of the template is given, so that it is a deployment with PARAMETERS."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline, and the options that it is deployed and exported with."""

    pipeline: Pipeline
    given: Mapping[str, str] = field(default_factory=lambda: GIVEN)
    values: Mapping[str, str] = field(default_factory=lambda: pipelines.PARAMETERS)
    options: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    """The only account and region that it is exported for."""


def digits(code: Path) -> Case:
    folder = pipelines.source_folder(code)
    pipeline = pipelines.digits(folder, schedule=NIGHTLY, tags={"team": "vision"}, description=ODD)
    return Case(pipeline=pipeline)


def lustre(_: Path) -> Case:
    return Case(pipeline=pipelines.lustre(keep_for_h=2), options={"sweep_every_h": 6})


def events(_: Path) -> Case:
    """A trigger, whose template has braces, messages, and an alias that starts runs."""
    trigger = {
        "s3": {"bucket": "incoming", "prefix": "new/"},
        "parameters": {"data": {"event": "object_uri"}},
    }
    notify = {"on_failure": {"sns_topic": TOPIC}, "on_success": {"sns_topic": TOPIC}}
    options = {"alias": {"name": "live"}}
    pipeline = pipelines.copying(
        name="events", trigger=trigger, notify=notify, step_functions=options
    )
    values = {name: value for name, value in pipelines.PARAMETERS.items() if name != "data"}
    given = {name: value for name, value in GIVEN.items() if name != "data"}
    return Case(pipeline=pipeline, given=given, values=values)


def following(_: Path) -> Case:
    """A pipeline that starts after another one in its own region, watched; it tries versions."""
    pipeline = pipelines.copying(
        name="following",
        trigger={"pipeline": "digits"},
        region=REGION,
        step_functions={
            "logging": {"level": "ERROR"},
            "tracing": True,
            "alarms": {"sns_topic": TOPIC},
            "alias": {"name": "live", "canary": {"percent": 10, "minutes": 30}},
        },
    )
    return Case(pipeline=pipeline)


def batch(_: Path) -> Case:
    """A copy by S3 Batch Operations, with keys and a role of the deployment's own."""
    destination = S3Destination(
        copy_by="batch",
        manifest="s3://lists/digits.csv",
        batch_role=f"arn:aws:iam::{ACCOUNT}:role/batch-{REGION}-batch",
        kms_key=KEY,
        source_kms_key=KEY,
    )
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    place = {"account": ACCOUNT, "region": REGION}
    pipeline = pipelines.copying(name="batch", stages=(staging,), schedule=ONCE)
    return Case(pipeline=pipeline, place=place)


def datasync(_: Path) -> Case:
    """A copy by DataSync, whose role a parameter names, and runs that are started by both."""
    destination = S3Destination(copy_by="datasync", datasync_role=parameter("mover"))
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    role = f"role/synced-{REGION}-datasync"
    pipeline = pipelines.copying(
        name="synced",
        stages=(staging,),
        parameters={name: Parameter() for name in ("bucket", "data", "mover")},
        schedule=NIGHTLY,
        notify={"on_failure": {"sns_topic": TOPIC}},
    )
    mover = "arn:aws:iam::${AWS::AccountId}:role/synced-${AWS::Region}-datasync"
    return Case(
        pipeline=pipeline,
        given={**GIVEN, "mover": mover},
        values={**pipelines.PARAMETERS, "mover": f"arn:aws:iam::{ACCOUNT}:{role}"},
    )


def own_role(code: Path) -> Case:
    folder = pipelines.source_folder(code)
    pipeline = pipelines.digits(folder, name="own", schedule=EVERY)
    return Case(pipeline=pipeline, options={"role_arn": OWN_ROLE})


def llm_fsx(_: Path) -> Case:
    """What people start from: it has a schedule, whose runs need values."""
    more = {
        "training_image": "image",
        "subnet": "subnet-0123456789abcdef0",
        "security_group": "sg-0123456789abcdef0",
    }
    return Case(
        pipeline=Pipeline.load(Path("dags/llm_fsx.yaml")),
        given={**GIVEN, **more, "subnet": "${Subnet}"},
        values={**pipelines.PARAMETERS, **more},
    )


CASES = (
    digits,
    events,
    following,
    batch,
    datasync,
    own_role,
    llm_fsx,
    pytest.param(lustre, marks=pytest.mark.thorough),
)
