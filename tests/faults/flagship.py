"""The pipeline of the fault matrix: FSx with export, spot, fallbacks, checkpoints, an endpoint."""

from __future__ import annotations

from orchestration import (
    AwsCall,
    Cluster,
    DataStaging,
    FileSystemChannel,
    LustreLink,
    ManagedSpot,
    NewFileSystem,
    NoStrategy,
    Pipeline,
    Vpc,
    join,
    parameter,
    run_outcome,
)
from tests.conformance import pipelines

NAME = "flagship"
ENDPOINT = f"{NAME}-deploy"
SUBNET, GROUP = "subnet-0123abcd", "sg-0123abcd"
FIRST, SECOND = "ml.c5.xlarge", "ml.c5.2xlarge"
BEST = 0.7
OLD = 0.1
"""The score of the model that the endpoint serves before the run."""


def flagship() -> Pipeline:
    """Return the pipeline with everything that can go wrong."""
    staged = DataStaging(
        name="staging",
        source=parameter("data"),
        destination=NewFileSystem(
            subnet=SUBNET,
            security_groups=(GROUP,),
            links=(LustreLink(path="/results"),),
            export=("/results",),
        ),
    )
    train = pipelines.training(
        "train",
        FileSystemChannel(file_system=staged.outputs.file_system, path="/train"),
        vpc=Vpc(subnets=(SUBNET,), security_groups=(GROUP,)),
        strategy=NoStrategy(),
        cluster=Cluster.model_validate(
            {"instance_type": FIRST, "fallbacks": [{"instance_type": SECOND}]}
        ),
        spot=ManagedSpot(max_wait_s=1200),
        hyperparameters={"scores": f"0.5,{BEST}"},
    )
    root = staged.outputs.file_system_root
    results = FileSystemChannel(file_system=root, path="/results", access="rw")
    channels = {**train.channels, "results": results}
    train = train.model_copy(update={"channels": channels})
    evaluate = pipelines.evaluation("evaluate", train)
    deploy = pipelines.deployment("deploy", evaluate.outputs.best_checkpoint)
    return pipelines.pipeline(NAME, staged, train, evaluate, deploy)


def concluded() -> Pipeline:
    """Return it with stages after its end: an alarm where it failed, a record of every run."""
    last = {"on_failure": (_tells("alarm"),), "always": (_tells("record"),)}
    return Pipeline(**{**dict(flagship()), **last})


def topic(name: str) -> str:
    """Return the ARN of the topic that a stage after the end sends to."""
    return f"arn:aws:sns:us-east-1:123456789012:{name}"


def _tells(name: str) -> AwsCall:
    text = join(name, " ", run_outcome("state"), "|", run_outcome("error"))
    request = {"TopicArn": topic(name), "Message": text}
    return AwsCall(name=name, service="sns", operation="Publish", request=request)


HOLDOUT = join(parameter("data"), "/holdout")
