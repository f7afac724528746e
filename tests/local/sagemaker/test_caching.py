"""Jobs that would do what others have done are not run again, where results are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from orchestration.local.sagemaker.jobs.caching import USED
from tests.local.conftest import BUCKET, ROLE, finished_training, keys, prepare, put, read, wait

TRAIN = """\
import os, pathlib
ran = pathlib.Path(os.environ["RAN"])
ran.write_text(ran.read_text() + "x")
base = pathlib.Path(os.environ["BASE"])
data = (base / "input/data/train/a.txt").read_text()
(base / "model/model.txt").write_text(data)
(base / "checkpoints/1.txt").write_text(data)
print("loss: 0.5")
"""
JUDGE = """\
import os, pathlib
ran = pathlib.Path(os.environ["RAN"])
ran.write_text(ran.read_text() + "p")
base = pathlib.Path(os.environ["BASE"])
(base / "report/out.txt").write_text((base / "in/a.txt").read_text())
"""


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file in which the programs beside it note that they run."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "judge.py").write_text(JUDGE)
    made = tmp_path / "ran.txt"
    made.write_text("")
    return made


def _command(ran: Path, script: str) -> list[str]:
    return ["python3", str(ran.with_name(script))]


def _train(aws: EmbeddedAws, ran: Path, *, name: str = "once", **more: Any) -> dict[str, Any]:
    aws.client("sagemaker").create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "image",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": _command(ran, "train.py"),
            "MetricDefinitions": [{"Name": "loss", "Regex": r"loss: ([0-9.]+)"}],
        },
        InputDataConfig=[
            {
                "ChannelName": "train",
                "DataSource": {
                    "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/"}
                },
            }
        ],
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/checkpoints"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
        Environment={"RAN": str(ran), "BASE": "/opt/ml/", **more},
    )
    job = finished_training(aws, name)
    assert job["TrainingJobStatus"] == "Completed", aws.logs(name)
    return job


def _process(aws: EmbeddedAws, ran: Path) -> None:
    client = aws.client("sagemaker")
    client.create_processing_job(
        ProcessingJobName="judged",
        RoleArn=ROLE,
        AppSpecification={"ImageUri": "image", "ContainerEntrypoint": _command(ran, "judge.py")},
        Environment={"RAN": str(ran), "BASE": "/opt/ml/processing/"},
        ProcessingResources={
            "ClusterConfig": {
                "InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1,
            }
        },
        ProcessingInputs=[
            {
                "InputName": "in",
                "S3Input": {
                    "S3Uri": f"s3://{BUCKET}/data/", "LocalPath": "/opt/ml/processing/in",
                    "S3DataType": "S3Prefix", "S3InputMode": "File",
                },
            }
        ],
        ProcessingOutputConfig={
            "Outputs": [
                {
                    "OutputName": "report",
                    "S3Output": {
                        "S3Uri": f"s3://{BUCKET}/report", "S3UploadMode": "EndOfJob",
                        "LocalPath": "/opt/ml/processing/report",
                    },
                }
            ]
        },
    )  # fmt: skip
    job = wait(
        lambda: client.describe_processing_job(ProcessingJobName="judged"),
        lambda found: found["ProcessingJobStatus"] in ("Completed", "Failed"),
    )
    assert job["ProcessingJobStatus"] == "Completed", aws.logs("judged")


def _left(aws: EmbeddedAws) -> dict[str, bytes]:
    """Return the objects that the jobs have written, but for the archive, which has its time."""
    found = [key for key in keys(aws, "") if not key.startswith("data/")]
    return {key: read(aws, key) for key in found if not key.endswith(".tar.gz")}


def test_a_job_that_reads_the_same_runs_once_and_leaves_the_same(ran: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    jobs, left, logs = [], [], []
    for data in ("first", "first", "other"):
        with EmbeddedAws(time_scale=0.005, job_cache=cache) as aws:
            prepare(aws)
            put(aws, "data/a.txt", data)
            jobs.append(_train(aws, ran))
            _process(aws, ran)
            left.append(_left(aws))
            logs.append(aws.logs("once"))
            assert "out/once/output/model.tar.gz" in keys(aws, "out")
            events = aws.client("logs").filter_log_events(
                logGroupName="/aws/sagemaker/TrainingJobs"
            )["events"]
            assert [event["message"] for event in events] == ["loss: 0.5"]
            # Another environment is another job; its own earlier checkpoints are read, too.
            if len(jobs) == 3:
                assert sorted(path.name for path in (cache / USED).iterdir()) == ["judged", "once"]
                _train(aws, ran, name="other", SEED="2")
    assert ran.read_text() == "xp" + "xp" + "x"
    assert left[0] == left[1] == {"checkpoints/1.txt": b"first", "report/out.txt": b"first"}
    assert left[2] == {"checkpoints/1.txt": b"other", "report/out.txt": b"other"}
    assert logs[0] == logs[1] == "loss: 0.5\n"
    assert [job["FinalMetricDataList"][0]["Value"] for job in jobs] == [0.5] * 3


def test_without_a_folder_each_job_runs(aws: EmbeddedAws, ran: Path) -> None:
    put(aws, "data/a.txt", "first")
    for name in ("again-1", "again-2"):
        _train(aws, ran, name=name)
    assert ran.read_text() == "xx"
