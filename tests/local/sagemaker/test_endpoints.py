"""Endpoints answer, are updated, and roll back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.processes.children import Children
from orchestration.local.sagemaker.serving.model_host import ModelHost, ModelHostFailed
from tests.local.conftest import BUCKET, IMAGE, ROLE, put, tar_gz, wait

INFERENCE = """
    import json, pathlib

    def model_fn(model_dir):
        return float(pathlib.Path(model_dir, "factor").read_text())

    def predict_fn(data, model):
        if data == "bad":
            raise ValueError("not a number")
        return {"prediction": data * model}
"""


@pytest.fixture
def endpoint(aws: EmbeddedAws, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of an endpoint that is gone after the test."""
    name = request.node.name.replace("_", "-")[:40].strip("-")
    yield name
    client = aws.client("sagemaker")
    if any(one["EndpointName"] == name for one in client.list_endpoints()["Endpoints"]):
        _settled(aws, name)
        client.delete_endpoint(EndpointName=name)


def _model(aws: EmbeddedAws, name: str, **files: str) -> str:
    content = {"factor": "2", "code/inference.py": INFERENCE, **files}
    uri = put(aws, f"models/{name}/model.tar.gz", tar_gz(content))
    return _config(aws, name, {"Image": IMAGE, "ModelDataUrl": uri})


def _config(aws: EmbeddedAws, name: str, container: dict[str, Any]) -> str:
    client = aws.client("sagemaker")
    client.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
    client.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "VariantName": "main",
                "ModelName": name,
                "InstanceType": "ml.m5.large",
                "InitialInstanceCount": 1,
            }
        ],
    )
    return name


def _settled(aws: EmbeddedAws, name: str) -> dict[str, Any]:
    return wait(
        lambda: aws.client("sagemaker").describe_endpoint(EndpointName=name),
        lambda one: one["EndpointStatus"] not in ("Creating", "Updating"),
    )


def _invoke(aws: EmbeddedAws, name: str, value: Any) -> Any:
    answer = aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=name, ContentType="application/json", Body=json.dumps(value)
    )
    return json.loads(answer["Body"].read())


def test_an_endpoint_is_created_updated_and_rolled_back(aws: EmbeddedAws, endpoint: str) -> None:
    client = aws.client("sagemaker")
    client.create_endpoint(EndpointName=endpoint, EndpointConfigName=_model(aws, "twice"))
    assert client.describe_endpoint(EndpointName=endpoint)["EndpointStatus"] == "Creating"
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        client.update_endpoint(EndpointName=endpoint, EndpointConfigName="twice")
    assert _settled(aws, endpoint)["EndpointStatus"] == "InService"
    assert _invoke(aws, endpoint, 21) == {"prediction": 42.0}

    thrice = _model(aws, "thrice", factor="3")
    client.update_endpoint(EndpointName=endpoint, EndpointConfigName=thrice)
    assert _settled(aws, endpoint)["EndpointConfigName"] == "thrice"
    assert _invoke(aws, endpoint, 5) == {"prediction": 15.0}

    broken = _model(aws, "broken", **{"code/inference.py": "raise RuntimeError('no such layer')"})
    client.update_endpoint(EndpointName=endpoint, EndpointConfigName=broken)
    after = _settled(aws, endpoint)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", "thrice")
    assert _invoke(aws, endpoint, 1) == {"prediction": 3.0}
    assert "no such layer" in aws.logs(endpoint)


def test_a_model_that_does_not_load_fails_the_creation(aws: EmbeddedAws, endpoint: str) -> None:
    config = _model(aws, "unloadable", **{"code/inference.py": "import no_such_module"})
    aws.client("sagemaker").create_endpoint(EndpointName=endpoint, EndpointConfigName=config)
    failed = _settled(aws, endpoint)
    assert failed["EndpointStatus"] == "Failed"
    assert "no_such_module" in failed["FailureReason"]


def test_a_model_that_hangs_does_not_start_in_its_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    process = Children().start(command, environment={}, directory=tmp_path, log=tmp_path / "log")
    with pytest.raises(ModelHostFailed, match="it did not answer GET /ping within 0 s"):
        ModelHost(process, tmp_path).wait_until_ready(within_s=0.01)
    assert process.exit_status is not None


def test_what_does_nothing_waits_for_seconds_of_aws_and_what_works_for_real_ones(
    tmp_path: Path,
) -> None:
    children = Children()
    for busy in (True, False):
        script = f"import time\nwhile {busy}: pass\ntime.sleep(600)"
        command = [sys.executable, "-c", script]
        log = tmp_path / "log"
        process = children.start(command, environment={}, directory=tmp_path, log=log)
        began = time.monotonic()
        within_s, host = 1 if busy else 3600, ModelHost(process, tmp_path)
        with pytest.raises(ModelHostFailed, match="GET /ping within"):
            host.wait_until_ready(within_s=within_s, scale=0.0001)
        assert time.monotonic() - began >= (1 if busy else 0)


ECHO = """
import http.server, os

class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ping" else 404)
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode() + b" " + body)

port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
http.server.HTTPServer(("127.0.0.1", port), Echo).serve_forever()
"""


def test_a_container_of_ones_own_answers_a_transform_job(aws: EmbeddedAws, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    command = (sys.executable, "echo.py")
    aws.provide(stand_ins=[StandIn("own", "predict", command, str(tmp_path))])
    stage = {"orchestration:pipeline": "own", "orchestration:stage": "predict"}
    client, tags = aws.client("sagemaker"), [{"Key": k, "Value": v} for k, v in stage.items()]
    put(aws, "echoed/in/0", "hi")
    client.create_model(
        ModelName="echo", PrimaryContainer={"Image": IMAGE}, ExecutionRoleArn=ROLE, Tags=tags
    )
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/echoed/in/"}
    client.create_transform_job(
        TransformJobName="echo",
        ModelName="echo",
        TransformInput={"DataSource": {"S3DataSource": source}},
        TransformOutput={"S3OutputPath": f"s3://{BUCKET}/echoed/out"},
        TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
    )
    ended = wait(
        lambda: client.describe_transform_job(TransformJobName="echo"),
        lambda job: job["TransformJobStatus"] != "InProgress",
    )
    assert (ended["TransformJobStatus"], ended.get("FailureReason")) == ("Completed", None)
    answer = aws.client("s3").get_object(Bucket=BUCKET, Key="echoed/out/0.out")["Body"].read()
    assert answer == b"/invocations hi"


def test_an_uncompressed_model_answers_and_its_errors_are_model_errors(
    aws: EmbeddedAws, endpoint: str
) -> None:
    from textwrap import dedent

    put(aws, "models/plain/factor", "10")
    put(aws, "models/plain/code/inference.py", dedent(INFERENCE))
    source = {
        "S3Uri": f"s3://{BUCKET}/models/plain/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }
    config = _config(aws, "plain", {"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}})
    aws.client("sagemaker").create_endpoint(EndpointName=endpoint, EndpointConfigName=config)
    _settled(aws, endpoint)
    assert _invoke(aws, endpoint, 4) == {"prediction": 40.0}
    with pytest.raises(ClientError) as raised:
        _invoke(aws, endpoint, "bad")
    assert raised.value.response["Error"]["Code"] == "ModelError"
    assert raised.value.response["OriginalMessage"] == "ValueError: not a number"


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("describe_endpoint", {"EndpointName": "none"}, 'Could not find endpoint "arn:aws:'),
        (
            "create_endpoint",
            {"EndpointName": "none", "EndpointConfigName": "none"},
            'Could not find endpoint configuration "arn:aws:',
        ),
        ("update_endpoint", {"EndpointName": "none", "EndpointConfigName": "x"}, "Could not find"),
        ("delete_endpoint", {"EndpointName": "none"}, "Could not find endpoint"),
        ("describe_model", {"ModelName": "none"}, 'Could not find model "arn:aws:'),
        (
            "create_model",
            {"ModelName": "m", "PrimaryContainer": {"ModelDataUrl": f"s3://{BUCKET}/none"}},
            "Could not find model data",
        ),
    ],
)
def test_what_is_missing_is_told_as_sagemaker_tells_it(
    aws: EmbeddedAws, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError) as raised:
        getattr(aws.client("sagemaker"), operation)(**request_)
    error = raised.value.response["Error"]
    assert error["Code"] == "ValidationException"
    assert message in error["Message"]


def test_names_of_models_and_configurations_are_taken_once(aws: EmbeddedAws) -> None:
    _model(aws, "once")
    with pytest.raises(ClientError, match="Cannot create already existing model"):
        _model(aws, "once")
    aws.client("sagemaker").delete_model(ModelName="once")
    with pytest.raises(ClientError, match="Cannot create already existing endpoint config"):
        _model(aws, "once")
