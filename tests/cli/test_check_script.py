"""A stage's script runs alone, with its container's variables, on data of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

PIPELINE = """\
name: means
region: us-east-1
parameters:
  bucket: {}
  data: {}
  times: {type: number, default: 3}
  list: {type: array}
workspace: {join: ["s3://", {parameter: bucket}, /means]}
stages:
  staging: {kind: data_staging, source: {parameter: data}}
  train:
    kind: training_job
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: train.py, runtime: true}
    hyperparameters: {times: {parameter: times}}
    channels: {train: {join: [{ref: staging.location}, /train]}}
    cluster: {instance_type: ml.m5.large}
    checkpoints: {}
    spot: {max_wait_s: 90000}
    metrics: {mean: 'mean=([0-9.]+)', loss: 'loss=([0-9.]+)'}
  evaluate:
    kind: checkpoint_evaluation
    checkpoints: {ref: train.checkpoints}
    data: {join: [{ref: staging.location}, /holdout]}
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: evaluate.py}
    instance_type: ml.m5.large
    metric: error
    direction: min
    threshold: {value: 0.0}
  deploy:
    kind: deployment
    model_data: {ref: train.model_artifacts}
    model_archive: true
    framework: {name: sklearn, version: 1.2-1}
    environment: {SAGEMAKER_PROGRAM: inference.py, SAGEMAKER_SUBMIT_DIRECTORY: /opt/ml/model/code}
    instance_type: ml.m5.large
  score:
    kind: batch_transform
    model_data: {ref: train.model_artifacts}
    model_archive: true
    image: 111122223333.dkr.ecr.us-east-1.amazonaws.com/serving:1
    environment: {SAGEMAKER_PROGRAM: inference.py, SAGEMAKER_SUBMIT_DIRECTORY: /opt/ml/model/code}
    data: s3://given/requests/
    content_type: application/json
    instance_type: ml.m5.large
  markets: &markets
    kind: training_job
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: train.py}
    hyperparameters: {times: {each: times}}
    channels: {train: {join: [{ref: staging.location}, /train]}}
    cluster: {instance_type: ml.m5.large}
    for_each:
      items: [{name: de, times: 1}, {name: fr, times: 2}]
      fields: {name: string, times: number}
      key: name
  given:
    <<: *markets
    for_each: {items: {parameter: list}, fields: {name: string, times: number}, key: name}
"""
TRAIN = """\
import argparse, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--times", type=int)
times = parser.parse_args().times
files = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.txt")
numbers = [float(file.read_text()) for file in files]
mean = sum(numbers) / len(numbers)
print(f"mean={mean}")
base = pathlib.Path(os.environ["SM_INPUT_DIR"]).parent
for step in range(times):
    (base / f"checkpoints/step-{step}").mkdir(parents=True)
    (base / f"checkpoints/step-{step}/mean").write_text(str(mean + step))
model = pathlib.Path(os.environ["SM_MODEL_DIR"])
(model / "mean").write_text(str(mean))
"""
EVALUATE = """\
import argparse, json, pathlib
parser = argparse.ArgumentParser()
for name in ("checkpoint", "data", "output"):
    parser.add_argument(f"--{name}", type=pathlib.Path)
given = parser.parse_args()
truth = float((given.data / "truth.txt").read_text())
error = abs(float((given.checkpoint / "mean").read_text()) - truth)
(given.output / "evaluation.json").write_text(json.dumps({"metrics": {"error": error}}))
"""
INFERENCE = """\
import json, pathlib
def model_fn(directory):
    return float((pathlib.Path(directory) / "mean").read_text())
def input_fn(body, content_type):
    return json.loads(body)
def predict_fn(data, model):
    return [model - each for each in data]
def output_fn(prediction, accept):
    return json.dumps(prediction)
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A pipeline whose scripts need the standard library only."""
    files = {
        "means.yaml": PIPELINE,
        "src/train.py": TRAIN,
        "src/evaluate.py": EVALUATE,
        "data/train/a.txt": "2",
        "data/train/b.txt": "4",
        "data/holdout/truth.txt": "3.5",
        "run.yaml": "parameters: {bucket: work, data: s3://given/set}\nuploads: {data: s3://given/set}",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path / "means.yaml"


@pytest.mark.toolkit
@pytest.mark.thorough
def test_scripts_are_checked_one_after_the_other(orchestrate: Command, pipeline: Path) -> None:
    # The threshold that no checkpoint keeps is about the run, and not about the script.
    said = orchestrate("check-script", pipeline, "train", "--json", "-p", "times=2")
    assert said.status == 0
    trained = said.document
    assert trained["inputs"] == [
        {"name": "train", "place": "/opt/ml/input/data/train", "files": 2, "size": 2}
    ]
    assert trained["environment"]["SM_CHANNEL_TRAIN"] == "/opt/ml/input/data/train"
    assert trained["environment"]["SM_HP_TIMES"] == "2"
    assert trained["metrics"] == {"mean": 3.0}
    assert trained["missing_metrics"] == ["loss"]
    assert trained["checkpoints"] == ["step-0", "step-1"]
    assert trained["model"] == [{"path": "mean", "size": 3}]
    said = orchestrate("check-script", pipeline, "evaluate")
    assert said.status == 0
    assert "checkpoints: /opt/ml/processing/input/checkpoint (2 files, 6 bytes)" in said.err
    for number in range(2):
        line = f'evaluation.json of step-{number}: {{"metrics": {{"error": 0.5}}}}\n'
        assert line in said.out
    assert (pipeline.parent / ".orchestration/.gitignore").read_text() == "*\n"


@pytest.mark.thorough
def test_a_model_of_a_folder_is_loaded_and_answers(
    orchestrate: Command, pipeline: Path, tmp_path: Path
) -> None:
    (tmp_path / "model/code").mkdir(parents=True)
    (tmp_path / "model/mean").write_text("7")
    (tmp_path / "model/code/inference.py").write_text(INFERENCE)
    (tmp_path / "request.json").write_text("[1, 2]")
    said = orchestrate(
        *("check-script", pipeline, "deploy", "--channel", f"model={tmp_path / 'model'}"),
        *("--request", f"@{tmp_path / 'request.json'}"),
    )
    assert said.status == 0
    assert "answer: [6.0, 5.0]" in said.out


@pytest.mark.toolkit
def test_a_script_that_fails_shows_its_traceback(orchestrate: Command, pipeline: Path) -> None:
    (pipeline.parent / "src/train.py").write_text("import os\nos.environ['SM_CHANNEL_TRAIM']\n")
    said = orchestrate("check-script", pipeline, "train", "--json")
    assert said.status == 1
    assert said.document["state"] == "failed"
    [log] = (pipeline.parent / ".orchestration/scripts/train/logs/train").iterdir()
    for told in (said.document["cause"], said.err, log.read_text("utf-8")):
        # The toolkit breaks the error's text where it came in pieces, and drops colons there.
        assert "KeyError'SM_CHANNEL_TRAIM'" in "".join(told.replace(":", "").split())
    assert any(line.startswith("Traceback") for line in said.document["log"])


@pytest.mark.thorough
def test_a_model_answers_for_a_batch_of_data(
    orchestrate: Command, pipeline: Path, tmp_path: Path
) -> None:
    (tmp_path / "model/code").mkdir(parents=True)
    (tmp_path / "model/mean").write_text("7")
    (tmp_path / "model/code/inference.py").write_text(INFERENCE)
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests/one.json").write_text("[1, 2]")
    said = orchestrate(
        *("check-script", pipeline, "score", "--channel", f"model={tmp_path / 'model'}"),
        *("--channel", f"data={tmp_path / 'requests'}", "--json"),
    )
    assert said.status == 0
    assert [(each["name"], each["files"]) for each in said.document["inputs"]] == [
        *(("model", 1), ("data", 1)),
    ]
    [answer] = (tmp_path / ".orchestration/scripts/score").rglob("one.json.out")
    assert answer.read_text() == "[6.0, 5.0]"


CLEAN = """\
  clean:
    kind: processing_job
    framework: {name: sklearn, version: 1.2-1}
    source: {directory: src, entry_point: clean.py}
    cluster: {instance_type: ml.m5.xlarge}
"""
FEATURES = """\
    extra_request:
      ProcessingOutputConfig:
        Outputs:
          - {OutputName: rows, AppManaged: true, FeatureStoreOutput: {FeatureGroupName: rows}}
"""


@pytest.mark.parametrize(
    ("further", "state", "cause"),
    [("", "succeeded", None), (FEATURES, "failed", "output 'rows' has no S3Output")],
)
def test_a_job_that_writes_nothing_to_s3_is_reported(
    orchestrate: Command, pipeline: Path, further: str, state: str, cause: str | None
) -> None:
    (pipeline.parent / "src/clean.py").write_text("print('cleaned')\n")
    pipeline.write_text(PIPELINE + CLEAN + further)
    report = orchestrate("check-script", pipeline, "clean", "--json").document
    assert (report["state"], report["evaluations"]) == (state, {})
    assert (cause or "") in (report["cause"] or "")


@pytest.mark.toolkit
def test_a_stage_in_a_loop_is_checked_with_the_first_element(
    orchestrate: Command, pipeline: Path
) -> None:
    said = orchestrate("check-script", pipeline, "markets", "--json")
    assert said.status == 0
    assert said.document["environment"]["SM_HP_TIMES"] == "1"
    unknown = orchestrate("check-script", pipeline, "given", "--json")
    assert unknown.status == 1
    assert "for_each.items: no element is known, and a check takes the first one; give -p" in (
        unknown.err
    )


@pytest.mark.toolkit
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tran"], "there is no stage 'tran'; did you mean 'train'?"),
        (["staging"], "stages.staging.kind: a data_staging has no script of its own"),
        (["deploy"], "stages.deploy.model_data: reads train.model_artifacts; check train first"),
        (["train", "--channel", "trian=."], "has no input 'trian'; did you mean 'train'?"),
        (["train", "--channel", "train=nowhere"], "there is no file or folder nowhere"),
        (["train", "-p", "data=s3://other/set"], "channels.train.uri: no file is given for 's3://"),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(
    orchestrate: Command, pipeline: Path, arguments: list[str], message: str
) -> None:
    said = orchestrate("check-script", pipeline, *arguments)
    assert said.status == 1
    assert message in said.err


def test_what_no_channel_or_request_is_is_a_usage_error(
    orchestrate: Command, pipeline: Path
) -> None:
    said = orchestrate("check-script", pipeline, "train", "--channel", "train=s3://bucket/train")
    assert said.status == 2
    assert "of this machine" in said.err
    said = orchestrate("check-script", pipeline, "deploy", "--request", "{")
    assert said.status == 2
    assert "--content-type" in said.err
