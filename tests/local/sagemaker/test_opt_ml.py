"""A script that names `/opt/ml` itself reaches its job's directory, never this machine's."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from orchestration.local.processes import opt_ml
from orchestration.local.sagemaker.hosts.host_opt_ml import Watch
from tests.local.conftest import (
    BUCKET,
    IMAGE,
    ROLE,
    finished_training,
    put,
    read,
    tar_gz,
    training_request,
    wait,
)

ROOT = Path(__file__).parents[3]
BECOME = [sys.executable, "-P", "-S", opt_ml.__file__]
namespaces = pytest.mark.skipif(
    not opt_ml.can_be_own(), reason="this system lets no process make a mount namespace"
)

TRAIN = """
    import json, os, pathlib
    given = json.loads(pathlib.Path("/opt/ml/input/config/hyperparameters.json").read_text())
    pathlib.Path("/opt/ml/model/own-opt-ml").write_text(json.loads(given["colour"]))
    there = pathlib.Path(os.environ["SM_MODEL_DIR"], "own-opt-ml")
    assert there.read_text() == "red", "both names are of the same directory"
"""
# The words of an entry point are rewritten where they say /opt/ml/, and have one line each.
PROCESS = (
    "import json, pathlib; "
    "config = json.load(open('/opt/./ml/config/processingjobconfig.json')); "
    "out = pathlib.Path('/opt/./ml/processing/out/name'); "
    "out.write_text(config['ProcessingJobName'])"
)
SERVE = """
    import pathlib

    def model_fn(model_dir):
        return float(pathlib.Path("/opt/ml/model/factor").read_text())

    def predict_fn(data, model):
        return data * model
"""


def _training(aws: EmbeddedAws, name: str, script: str) -> dict[str, Any]:
    uri = put(aws, f"code/{name}.tar.gz", tar_gz({"train.py": script}))
    request = training_request(name, uri, HyperParameters={"colour": '"red"'})
    aws.client("sagemaker").create_training_job(**request)
    return finished_training(aws, name)


def run_processing(aws: EmbeddedAws, name: str, script: str) -> dict[str, Any]:
    client = aws.client("sagemaker")
    output = {
        "S3Uri": f"s3://{BUCKET}/out/{name}",
        "LocalPath": "/opt/ml/processing/out",
        "S3UploadMode": "EndOfJob",
    }
    machine = {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 10}
    client.create_processing_job(
        ProcessingJobName=name,
        RoleArn=ROLE,
        AppSpecification={"ImageUri": IMAGE, "ContainerEntrypoint": ["python3", "-c", script]},
        ProcessingOutputConfig={"Outputs": [{"OutputName": "out", "S3Output": output}]},
        ProcessingResources={"ClusterConfig": machine},
    )
    return wait(
        lambda: client.describe_processing_job(ProcessingJobName=name),
        lambda job: job["ProcessingJobStatus"] in ("Completed", "Failed", "Stopped"),
    )


@namespaces
def test_a_training_script_reads_and_writes_its_own(aws: EmbeddedAws) -> None:
    before = Path("/opt/ml").exists()
    job = _training(aws, "own-opt-ml", TRAIN)
    assert job["TrainingJobStatus"] == "Completed", aws.logs("own-opt-ml")
    model = read(aws, "output/own-opt-ml/output/model.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(model)) as archive:
        assert archive.getnames() == ["own-opt-ml"]
    assert Path("/opt/ml").exists() == before
    assert not Path("/opt/ml/model/own-opt-ml").exists()


@namespaces
def test_a_processing_script_reads_and_writes_its_own(aws: EmbeddedAws) -> None:
    job = run_processing(aws, "own-opt-ml", PROCESS)
    assert job["ProcessingJobStatus"] == "Completed", aws.logs("own-opt-ml")
    assert read(aws, "out/own-opt-ml/name") == b"own-opt-ml"


@namespaces
def test_a_model_reads_its_own(aws: EmbeddedAws) -> None:
    client = aws.client("sagemaker")
    content = {"factor": "2", "code/inference.py": SERVE}
    uri = put(aws, "models/own-opt-ml/model.tar.gz", tar_gz(content))
    name = "own-opt-ml"
    container = {"Image": IMAGE, "ModelDataUrl": uri}
    client.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
    variant = {"VariantName": "main", "ModelName": name, "InstanceType": "ml.m5.large"}
    client.create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )
    client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    endpoint = wait(
        lambda: client.describe_endpoint(EndpointName=name),
        lambda now: now["EndpointStatus"] != "Creating",
    )
    client.delete_endpoint(EndpointName=name)
    assert endpoint["EndpointStatus"] == "InService", endpoint


@namespaces
def test_the_rest_of_opt_stays_and_the_exit_status_passes(tmp_path: Path) -> None:
    command = [*BECOME, str(tmp_path), "/bin/sh", "-c", "ls /opt; pwd; exit 7"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    *entries, working = ended.stdout.splitlines()
    assert (ended.returncode, working) == (7, str(tmp_path))
    assert set(entries) == {*os.listdir("/opt"), "ml"}


@namespaces
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root has a right to drop"
)
def test_a_user_without_rights_gets_one_too(tmp_path: Path) -> None:
    drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all"]
    command = [*drop, *BECOME, str(tmp_path), "/bin/sh", "-c", "echo there > /opt/ml/x; id -u"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode and "cannot" in ended.stderr:
        pytest.skip("this system lets no user make a namespace")
    assert (ended.stdout, (tmp_path / "x").read_text()) == ("0\n", "there\n")


# In a namespace whose /opt/ml is the test's directory, so this machine's own is safe.
WITHOUT_NAMESPACES = """
import json
from orchestration.local import EmbeddedAws
from tests.local.conftest import prepare
from tests.local.sagemaker.test_opt_ml import run_processing, _training
writes = "import pathlib; pathlib.Path('/opt/ml/model').mkdir(); "
writes += "pathlib.Path('/opt/ml/model/x').write_text('x')"
reads = "open('/opt/ml/input/data/train/a.csv')"
with EmbeddedAws(time_scale=0.005) as aws:
    prepare(aws)
    print(json.dumps([
        _training(aws, "reads", reads)["FailureReason"],
        _training(aws, "writes", writes)["FailureReason"],
        run_processing(aws, "writes", "import shutil; shutil.rmtree('/opt/./ml/model')"),
        _training(aws, "behaves", "print('fine')")["TrainingJobStatus"],
    ], default=str))
"""


@namespaces
def test_without_namespaces_the_job_fails_and_says_what_to_use(tmp_path: Path) -> None:
    command = [*BECOME, str(tmp_path), sys.executable, "-c", WITHOUT_NAMESPACES]
    environment = {**os.environ, opt_ml.SWITCH: "off"}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    reads, writes, processing, behaves = json.loads(ended.stdout)
    assert 'os.environ["SM_CHANNEL_TRAIN"] instead of /opt/ml/input/data/train' in reads
    assert writes.startswith("AlgorithmError: /opt/ml/model/x of this machine changed")
    assert 'os.environ["SM_MODEL_DIR"] instead of /opt/ml/model' in writes
    assert processing["ProcessingJobStatus"] == "Failed"
    assert 'os.environ["SAGEMAKER_BASE_DIR"]' in processing["FailureReason"]
    assert behaves == "Completed"


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        ("model/x", "SM_MODEL_DIR"),
        ("output/data/x", "SM_OUTPUT_DATA_DIR"),
        ("input/data/train/x", "SM_CHANNEL_TRAIN"),
        ("checkpoints/x", "SAGEMAKER_BASE_DIR"),
    ],
)
def test_a_change_names_the_path_and_the_variable(tmp_path: Path, path: str, variable: str) -> None:
    watch = Watch.begin(has_toolkit=True, root=tmp_path)
    assert watch.change() is None
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("x")
    change = watch.change() or ""
    assert change.startswith(f"{tmp_path / path} of this machine changed")
    assert f'os.environ["{variable}"]' in change


def test_a_changed_file_is_noticed_in_a_directory_of_any_size(tmp_path: Path) -> None:
    for number in range(10_100):
        (tmp_path / f"{number:05}").touch()
    watch = Watch.begin(has_toolkit=True, root=tmp_path)
    assert watch.change() is None
    (tmp_path / "99999").touch()
    assert (watch.change() or "").startswith(f"{tmp_path} of this machine changed")
