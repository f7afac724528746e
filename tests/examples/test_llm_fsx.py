"""The language model example: trained on two nodes, resumed sharded, measured and served."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestration.local.processes.ports import free_ports
from tests.examples import jobs

# Tests that share a trained model run in one worker.
pytestmark = [pytest.mark.xdist_group("llm_fsx"), pytest.mark.toolkit]

SOURCE = jobs.source("llm_fsx")
DATA = jobs.EXAMPLES / "llm_fsx/data"
TINY = {
    "layers": 2,
    "width": 32,
    "heads": 2,
    "context": 64,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "checkpoint_every": 6,
    "log_every": 6,
    "validation_windows": 16,
}


def arguments(hyperparameters: dict[str, Any]) -> list[str]:
    return [word for name, value in hyperparameters.items() for word in (f"--{name}", str(value))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve steps on two nodes, each with folders of its own.

    torchrun is started here without the toolkit, which would take one fixed port.
    """
    bases = [tmp_path_factory.mktemp(f"node-{rank}") for rank in range(2)]
    port = str(*free_ports())
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"),
                *("--nproc_per_node", "1", "--node_rank", str(rank)),
                *("--master_addr", "127.0.0.1", "--master_port", port),
                *(str(SOURCE / "train.py"), *arguments({**TINY, "max_steps": 12})),
            ],
            env={
                **os.environ,
                "SAGEMAKER_BASE_DIR": str(base),
                "SM_CHANNEL_TRAINING": str(DATA),
                "SM_NETWORK_INTERFACE_NAME": "lo",
            },
        )
        for rank, base in enumerate(bases)
    ]
    try:
        assert [process.wait(jobs.TIMEOUT_S) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    assert not (bases[1] / "checkpoints").exists(), "only the first replica writes"
    return bases[0]


def metrics(checkpoint: Path) -> dict[str, float]:
    read: dict[str, float] = json.loads((checkpoint / "metrics.json").read_text())
    return read


def test_two_nodes_train_one_model_that_improves(trained: Path) -> None:
    first, last = (metrics(trained / f"checkpoints/step-{step:08}") for step in (6, 12))
    assert last["validation_loss"] < first["validation_loss"] < math.log(256)
    summary = json.loads((trained / "output/data/summary.json").read_text())
    assert (summary["world_size"], summary["step"]) == (2, 12)


def test_evaluation_reports_perplexity_per_byte(trained: Path, tmp_path: Path) -> None:
    evaluation = jobs.evaluate("llm_fsx", trained / "checkpoints/step-00000012", tmp_path)
    assert evaluation["count"] == 64 * (((DATA / "holdout.txt").stat().st_size - 1) // 64)
    measured = evaluation["metrics"]
    assert measured["perplexity"] == pytest.approx(math.exp(measured["loss"]))
    assert 1 < measured["perplexity"] < 60


def test_model_continues_the_sample_prompts(trained: Path) -> None:
    with jobs.imported(trained / "model/code", "inference") as inference:
        network = inference.model_fn(str(trained / "model"))
        request = inference.input_fn((DATA / "sample.json").read_text())
        answer = json.loads(inference.output_fn(inference.predict_fn(request, network)))
    assert [len(prediction["text"]) for prediction in answer["predictions"]] == [24, 24]


def test_sharded_training_goes_on_from_a_replicated_checkpoint(trained: Path) -> None:
    """One process without torchrun: what a job on one instance of one GPU is."""
    # As S3 hands it back after an interruption, cut short.
    part = trained / "checkpoints/step-00000099"
    shutil.copytree(trained / "checkpoints/step-00000012", part)
    os.truncate(part / "model.pt", 100)
    hyperparameters = {
        **TINY,
        "max_steps": 14,
        "parallelism": "fsdp",
        "activation_checkpointing": True,
    }
    resumed = subprocess.run(
        [sys.executable, str(SOURCE / "train.py"), *arguments(hyperparameters)],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(trained), "SM_CHANNEL_TRAINING": str(DATA)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=jobs.TIMEOUT_S,
    )
    assert "step-00000012: step=12" in resumed.stdout
    before, after = (metrics(trained / f"checkpoints/step-{step:08}") for step in (12, 14))
    assert after["validation_loss"] == pytest.approx(before["validation_loss"], abs=0.3)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"instances": [""]}, r"instances\[0\] must be a text"),
        ({"instances": ["a"], "parameters": {"tokens": 3}}, "max_new_tokens"),
        ({"instances": ["a"], "parameters": {"max_new_tokens": 0}}, "from 1 to 1024"),
        ({"prompt": "a"}, '"instances"'),
    ],
)
def test_wrong_requests_are_refused_by_name(body: Any, complaint: str) -> None:
    with (
        jobs.imported(SOURCE, "inference") as inference,
        pytest.raises(ValueError, match=complaint),
    ):
        inference.input_fn(json.dumps(body))


def test_every_byte_is_predicted_once_by_consecutive_windows() -> None:
    with jobs.imported(SOURCE, "shared.corpus") as corpus:
        torch = corpus.torch
        text = torch.arange(13, dtype=torch.uint8)
        (windows,) = corpus.Corpus((text,), 5).consecutive(8)
    assert windows[:, 1:].flatten().tolist() == list(range(1, 13))


def test_replicas_split_the_same_windows_whatever_their_number() -> None:
    with jobs.imported(SOURCE, "shared.corpus") as corpus:
        torch = corpus.torch
        texts = corpus.Corpus(tuple(torch.arange(n, dtype=torch.uint8) for n in (20, 90)), 4)
        whole = texts.batch(seed=1, step=5, rank=0, world_size=1, size=8)
        shares = [texts.batch(seed=1, step=5, rank=r, world_size=4, size=2) for r in range(4)]
    assert torch.equal(whole, torch.cat(shares))
