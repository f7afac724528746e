"""The digits example: trained, resumed, stopped, measured and served as SageMaker would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestration.local.processes.ports import free_ports
from tests.examples import jobs

# Tests that share a trained model run in one worker.
pytestmark = [pytest.mark.xdist_group("digits"), pytest.mark.toolkit]

DATA = jobs.EXAMPLES / "digits/data"
SERVABLE = {
    *("model.pt", "metrics.json", "code/inference.py"),
    *(f"code/shared/{name}.py" for name in ("__init__", "digits", "model")),
}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> jobs.Finished:
    """Three epochs on two replicas."""
    return jobs.train(tmp_path_factory.mktemp("digits"), "digits", {"epochs": 3}, processes=2)


def test_training_succeeds_and_later_epochs_are_better(trained: jobs.Finished) -> None:
    assert trained.succeeded, trained.log
    metrics = trained.checkpoints
    assert list(metrics) == ["epoch-00000001", "epoch-00000002", "epoch-00000003"]
    losses = [metrics[name]["validation_loss"] for name in metrics]
    assert losses == sorted(losses, reverse=True)
    assert metrics["epoch-00000003"]["validation_accuracy"] >= 0.93


def test_metrics_are_printed_as_the_regular_expressions_expect(trained: jobs.Finished) -> None:
    printed = re.findall(r"train:loss=([0-9.]+).* validation:accuracy=([0-9.]+)", trained.log)
    wanted = trained.checkpoints.values()
    assert [float(loss) for loss, _ in printed] == pytest.approx(
        [metrics["train_loss"] for metrics in wanted], abs=1e-6
    )
    assert len(printed) == 3


def test_each_checkpoint_is_a_model_that_can_be_served(trained: jobs.Finished) -> None:
    for name in trained.checkpoints:
        folder = trained.base / "checkpoints" / name
        assert files(folder) == SERVABLE | {"trainer.pt", "manifest.json"}
    assert files(trained.base / "model") == SERVABLE
    summary = json.loads((trained.base / "output/data/summary.json").read_text())
    assert (summary["epoch"], summary["world_size"], summary["global_batch"]) == (3, 2, 64)


def test_evaluation_measures_digits_never_trained_on(
    trained: jobs.Finished, tmp_path: Path
) -> None:
    evaluation = jobs.evaluate("digits", trained.base / "checkpoints/epoch-00000003", tmp_path)
    assert evaluation["count"] == 360
    assert evaluation["metrics"]["accuracy"] >= 0.93
    assert 0 < evaluation["metrics"]["loss"] < 0.4


def test_checkpoint_answers_the_sample_request(trained: jobs.Finished) -> None:
    folder = trained.base / "checkpoints/epoch-00000003"
    with jobs.imported(folder / "code", "inference") as inference:
        network = inference.model_fn(str(folder))
        instances = inference.input_fn((DATA / "sample.json").read_bytes(), "application/json")
        answer = json.loads(inference.output_fn(inference.predict_fn(instances, network), "*/*"))
    (prediction,) = answer["predictions"]
    assert prediction["label"] == json.loads((DATA / "sample-label.json").read_text())["label"]
    assert sum(prediction["probabilities"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("[", "not JSON"),
        ({"inputs": []}, '"instances"'),
        ({"instances": []}, "at least one image"),
        ({"instances": [[0] * 64, [0] * 63]}, r"instances\[1\] must be 64 numbers: it has 63"),
        ({"instances": [[0] * 63 + ["1"]]}, r"instances\[0\].*\[63\] is '1'"),
        ({"instances": [[0] * 63 + [1e999]]}, "not finite"),
    ],
)
def test_wrong_requests_are_refused_by_name(body: Any, complaint: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    with (
        jobs.imported(jobs.source("digits"), "inference") as inference,
        pytest.raises(ValueError, match=complaint),
    ):
        inference.input_fn(text, "application/json")


@pytest.mark.slow
@pytest.mark.thorough
def test_stopped_training_leaves_a_checkpoint_that_more_replicas_go_on_from(
    tmp_path: Path,
) -> None:
    stopped = jobs.train(
        tmp_path,
        "digits",
        {"epochs": 1000},
        terminate_when=lambda base: (base / "checkpoints/epoch-00000001").exists(),
    )
    assert not stopped.succeeded
    # Sorted, so what the stop left comes after the epochs, where it is there at all.
    last = list(stopped.checkpoints)[-1]
    epoch, step = stopped.checkpoints[last]["epoch"], stopped.checkpoints[last]["step"]
    assert last in (f"stopped-{step:08}", f"epoch-{epoch:08}")

    resumed = jobs.train(tmp_path, "digits", {"epochs": epoch + 1}, processes=2)
    assert resumed.succeeded, resumed.log
    assert f"{last}: epoch={epoch} step={step}" in resumed.log
    assert stopped.checkpoints.items() <= resumed.checkpoints.items()
    # 1,293 images in steps of 32, then of 64: what the first run did is not done again.
    half_done = step - epoch * 41
    whole = f"epoch-{epoch + 1:08}"
    assert resumed.checkpoints[whole]["step"] == step + (41 - half_done + 1) // 2

    again = jobs.train(tmp_path, "digits", {"epochs": epoch + 1})
    assert f"{whole}: epoch={epoch + 1} " in again.log, "a whole epoch is newer than its part"


def test_replicas_that_mpirun_starts_stop_together(tmp_path: Path) -> None:
    """Only one of them is told to; both end with the status of a stop, which is no failure."""
    host = {
        **os.environ,
        "SAGEMAKER_BASE_DIR": str(tmp_path),
        "SM_CHANNEL_TRAINING": str(DATA),
        "SM_NETWORK_INTERFACE_NAME": "lo",
        "MASTER_PORT": str(*free_ports()),
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    script = str(jobs.source("digits") / "train.py")
    processes = [
        subprocess.Popen(
            [sys.executable, script, "--epochs", "1000"],
            env={**host, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank},
        )
        for rank in ("0", "1")
    ]
    try:
        jobs.wait_for((tmp_path / "checkpoints/epoch-00000001").exists)
        processes[1].terminate()
        assert [process.wait(jobs.TIMEOUT_S) for process in processes] == [143, 143]
    finally:
        for process in processes:
            process.kill()
    assert not (tmp_path / "output").exists()


def test_drill_fails_with_a_message_and_keeps_earlier_checkpoints(tmp_path: Path) -> None:
    failed = jobs.train(tmp_path, "digits", {"epochs": 3, "fail_at_epoch": 2})
    assert not failed.succeeded
    assert failed.failure.startswith("RuntimeError: training failed on purpose in epoch 2")
    assert list(failed.checkpoints) == ["epoch-00000001"]


def test_unknown_hyperparameters_are_errors_but_not_those_of_launchers() -> None:
    with jobs.imported(jobs.source("digits"), "train") as train:
        options = train.hyperparameters(["--epochs", "2", "--mp_parameters", "{}"])
        assert options.epochs == 2
        with pytest.raises(SystemExit):
            train.hyperparameters(["--epoch", "2"])
