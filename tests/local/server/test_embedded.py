"""The embedded AWS as a whole: recorder, faults, isolation, refusal, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from orchestration.errors import LocalError
from orchestration.local import EmbeddedAws, Fault, RecordedCall, refuse_real_aws
from orchestration.local.server.keeper import Keeper
from orchestration.local.server.options import Options
from tests.local.conftest import BUCKET, ROLE, prepare, put, tar_gz, training_request
from tests.patience import PATIENCE_S

CALLS = """
import boto3
s3 = boto3.client("s3")
s3.put_object(Bucket="embedded-bucket", Key="calls/a b.txt", Body=b"hi", ContentType="text/plain")
s3.copy_object(Bucket="embedded-bucket", Key="calls/c", CopySource="embedded-bucket/calls/a b.txt")
s3.get_object(Bucket="embedded-bucket", Key="calls/c")
s3.head_object(Bucket="embedded-bucket", Key="calls/c")
s3.list_objects_v2(Bucket="embedded-bucket", Prefix="calls/", MaxKeys=7)
s3.list_buckets()
iam = boto3.client("iam")
iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}", Tags=[{"Key": "k", "Value": "v"}])
boto3.client("sts").get_caller_identity()
boto3.client("scheduler").create_schedule(
    Name="nightly", ScheduleExpression="rate(1 day)", FlexibleTimeWindow={"Mode": "OFF"},
    Target={"Arn": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
            "RoleArn": "arn:aws:iam::123456789012:role/pipeline", "Input": "{}"})
try:
    boto3.client("sagemaker").describe_endpoint(EndpointName="none")
except Exception:
    pass
"""


def test_every_call_is_recorded_with_botocores_names(aws: EmbeddedAws) -> None:
    before = len(aws.calls())
    _script(CALLS, aws.environment())
    calls = aws.calls()[before:]
    assert [(call.service, call.operation) for call in calls] == [
        ("s3", "PutObject"),
        ("s3", "CopyObject"),
        ("s3", "GetObject"),
        ("s3", "HeadObject"),
        ("s3", "ListObjectsV2"),
        ("s3", "ListBuckets"),
        ("iam", "CreateRole"),
        ("sts", "GetCallerIdentity"),
        ("scheduler", "CreateSchedule"),
        ("sagemaker", "DescribeEndpoint"),
    ]
    where = {"Bucket": BUCKET, "Key": "calls/a b.txt"}
    assert calls[0].request.items() >= {**where, "Body": "hi", "ContentType": "text/plain"}.items()
    assert calls[1].request["CopySource"] == "embedded-bucket/calls/a%20b.txt"
    assert calls[4].request.items() >= {"Prefix": "calls/", "MaxKeys": 7}.items()
    assert calls[6].request["Tags"] == [{"Key": "k", "Value": "v"}]
    assert calls[8].request["Target"]["Input"] == "{}"
    assert (calls[9].status, calls[9].error_code) == (400, "ValidationException")
    assert [call.sequence for call in calls] == sorted(call.sequence for call in calls)
    assert RecordedCall.from_json(calls[0].to_json()) == calls[0]


def test_a_fault_happens_before_or_after_the_effect(aws: EmbeddedAws) -> None:
    client = aws.client("sagemaker")
    request = {"ModelName": "faulty", "PrimaryContainer": {"Image": "i"}, "ExecutionRoleArn": ROLE}
    for after, exists in ((False, False), (True, True)):
        aws.inject(
            Fault(
                "sagemaker",
                "CreateModel",
                "ThrottlingException",
                "Rate exceeded",
                after_effect=after,
                matching={"ModelName": "faulty"},
            )
        )
        client.create_model(**{**request, "ModelName": f"other-{after}"})
        # botocore itself retries throttling: the second try meets no fault.
        if after:
            with pytest.raises(ClientError, match="Cannot create already existing model"):
                client.create_model(**request)
        else:
            aws.inject(Fault("sagemaker", "CreateModel", "Nope", matching={"ModelName": "faulty"}))
            with pytest.raises(ClientError, match="Nope"):
                client.create_model(**request)
        assert ("faulty" in aws.state()["sagemaker"]["Models"]) == exists


def test_faults_of_s3_are_s3_errors(aws: EmbeddedAws) -> None:
    aws.inject(Fault("s3", "GetObject", "AccessDenied", "no", status=403))
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.client("s3").get_object(Bucket=BUCKET, Key="x")


def test_faults_that_are_cleared_are_not_met(aws: EmbeddedAws) -> None:
    client = aws.client("s3")
    denied = Fault("s3", "ListBuckets", "AccessDenied", "no", status=403, times=1000)
    aws.inject(denied)
    with pytest.raises(ClientError, match="AccessDenied"):
        client.list_buckets()
    aws.clear_faults()
    assert client.list_buckets()["Buckets"]


def test_what_is_not_simulated_says_so(aws: EmbeddedAws) -> None:
    with pytest.raises(ClientError, match="does not simulate sagemaker:ListAutoMLJobs"):
        aws.client("sagemaker").list_auto_ml_jobs()


def test_schedules_and_state_machines_can_be_managed(aws: EmbeddedAws) -> None:
    scheduler, sfn = aws.client("scheduler"), aws.client("stepfunctions")
    definition = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}'
    arn = sfn.create_state_machine(
        name="managed", definition=definition, roleArn=ROLE, tags=[{"key": "a", "value": "b"}]
    )["stateMachineArn"]
    sfn.update_state_machine(stateMachineArn=arn, definition=definition.replace('"A"', '"B"'))
    assert '"B"' in sfn.describe_state_machine(stateMachineArn=arn)["definition"]
    sfn.tag_resource(resourceArn=arn, tags=[{"key": "c", "value": "d"}])
    tags = {tag["key"]: tag["value"] for tag in sfn.list_tags_for_resource(resourceArn=arn)["tags"]}
    assert tags == {"a": "b", "c": "d"}
    schedule = {
        "Name": "managed",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": arn, "RoleArn": ROLE, "Input": "{}"},
    }
    scheduler.create_schedule(**schedule, ScheduleExpression="cron(0 3 * * ? *)")
    scheduler.update_schedule(**schedule, ScheduleExpression="rate(1 hour)", State="DISABLED")
    assert scheduler.get_schedule(Name="managed")["State"] == "DISABLED"
    assert "default/managed" in aws.state()["scheduler"]
    scheduler.delete_schedule(Name="managed")
    sfn.delete_state_machine(stateMachineArn=arn)


def test_two_accounts_at_once_do_not_see_each_other(aws: EmbeddedAws) -> None:
    with EmbeddedAws() as other:
        other.client("s3").create_bucket(Bucket="only-there")
        names = [one["Name"] for one in aws.client("s3").list_buckets()["Buckets"]]
        assert "only-there" not in names


def test_the_users_own_configuration_is_ignored(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile work]\nregion = eu-west-1\nendpoint_url = http://192.0.2.1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://192.0.2.1")
    assert aws.client("sts").get_caller_identity()["Account"] == "123456789012"
    _script("import boto3; boto3.client('sts').get_caller_identity()", aws.environment())


def test_an_environment_that_could_reach_aws_is_refused_with_all_reasons(aws: EmbeddedAws) -> None:
    good = aws.environment()
    refuse_real_aws(good)
    bad = {
        **good,
        "AWS_ENDPOINT_URL": "https://example.com",
        "AWS_ENDPOINT_URL_S3": "https://s3.amazonaws.com",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_PROFILE": "production",
        "HTTP_PROXY": "http://proxy:3128",
        "NO_PROXY": "",
        "no_proxy": "",
    }
    with pytest.raises(LocalError) as raised:
        refuse_real_aws(bad)
    message = str(raised.value)
    for name in (
        "AWS_ENDPOINT_URL is",
        "AWS_ENDPOINT_URL_S3",
        "AWS_IGNORE",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "HTTP_PROXY",
    ):
        assert name in message
    with pytest.raises(LocalError, match="AWS_ENDPOINT_URL is not set"):
        refuse_real_aws({})


def test_a_closed_account_says_that_it_is_closed() -> None:
    with pytest.raises(LocalError, match="not running"):
        _ = EmbeddedAws().endpoint_url


PARENT = """
import sys, time
from pathlib import Path
from orchestration.local import EmbeddedAws
from tests.local.conftest import prepare, put, tar_gz, training_request
aws = EmbeddedAws(directory=Path(sys.argv[1]))
aws.start()
prepare(aws)
slow = "import time; print('script-is-up', flush=True); time.sleep(99)"
script = put(aws, "c.tar.gz", tar_gz({"train.py": slow}))
aws.client("sagemaker").create_training_job(**training_request("long", script))
while "script-is-up" not in aws.logs("long"):
    time.sleep(0.05)
print("running", flush=True)
time.sleep(99)
"""


@pytest.mark.parametrize("victim", ["parent", "server"])
def test_nothing_is_left_when_one_is_killed(victim: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    try:
        assert parent.stdout.readline() == b"running\n"
        family = psutil.Process(parent.pid).children(recursive=True)
        # The keeper, the server, the job's leash, the toolkit, and the script.
        assert len(family) >= 5
        keeper, server = (one for one in family if "orchestration.local.server" in one.cmdline())
        assert server.parent() == keeper
        killed = parent if victim == "parent" else server
        os.kill(killed.pid, signal.SIGKILL)
        end = family if victim == "parent" else [one for one in family if one != keeper]
        _, alive = psutil.wait_procs(end, timeout=PATIENCE_S)
        assert not alive
        if victim == "parent":
            _gone(tmp_path)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_accounts_outlive_what_they_are_forked_from_and_the_next_start_begins_another(
    tmp_path: Path,
) -> None:
    forking = Keeper()
    servers, forkers = [], set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        servers.append(forking.start(Options(str(tmp_path / name)), tmp_path))
        forkers.add(forking.pid)
        assert forking.pid is not None
        os.kill(forking.pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(forking.pid)], timeout=PATIENCE_S)
    assert len(forkers) == 2
    for server in servers:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/_embedded/calls") as answer:
            assert json.load(answer) == []
        server.end()
    forking.close()
    assert not list(tmp_path.iterdir())


def test_what_a_versioned_bucket_deleted_is_no_object(aws: EmbeddedAws) -> None:
    storage = aws.client("s3")
    storage.create_bucket(Bucket="versioned")
    storage.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    for key in ("kept", "deleted"):
        storage.put_object(Bucket="versioned", Key=key, Body=b"x")
    storage.delete_object(Bucket="versioned", Key="deleted")
    assert list(aws.state()["s3"]["versioned"]) == ["kept"]


def test_a_control_that_fails_says_why(aws: EmbeddedAws) -> None:
    with pytest.raises(LocalError, match="the embedded AWS failed: ") as failed:
        aws.pass_time(hours="soon")  # type: ignore[arg-type]  # What the server can't multiply.
    assert "TypeError" in str(failed.value)


def test_identifiers_differ_between_accounts() -> None:
    identifiers = set()
    for _ in range(3):
        with EmbeddedAws() as aws:
            made = aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
            identifiers.add(made["Role"]["RoleId"])
    assert len(identifiers) == 3


def _gone(directory: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while list(directory.iterdir()):
        assert time.monotonic() < end, list(directory.rglob("*"))
        time.sleep(0.05)


def test_closing_ends_running_jobs_and_removes_files(tmp_path: Path) -> None:
    script = tar_gz({"train.py": "import time; time.sleep(99)"})
    before = psutil.Process().children(recursive=True)
    with EmbeddedAws(directory=tmp_path) as aws:
        prepare(aws)
        uri = put(aws, "c.tar.gz", script)
        aws.client("sagemaker").create_training_job(**training_request("long", uri))
        while not (family := _with_a_toolkit(before)):
            time.sleep(0.05)
    _, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not alive
    assert not list(tmp_path.iterdir())


def _with_a_toolkit(before: list[psutil.Process]) -> list[psutil.Process]:
    """The new descendants of this process, once one of them runs the training toolkit."""
    family = [one for one in psutil.Process().children(recursive=True) if one not in before]
    with contextlib.suppress(psutil.NoSuchProcess):
        if any("hosts/container.py" in " ".join(one.cmdline()) for one in family):
            return family
    return []


def _script(text: str, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", text], env=environment, check=True, timeout=PATIENCE_S)
