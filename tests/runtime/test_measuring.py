"""What a training script measures of itself: step time, throughput, memory and MFU."""

from __future__ import annotations

import datetime
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestration.catalog import accelerators, instances
from orchestration.execution.reading.metrics import final_metrics
from orchestration.runtime import StepMeter
from orchestration.runtime.measuring import _PEAK_TFLOPS, PROBE
from orchestration.stages.training.runtime_metrics import RUNTIME_METRICS
from orchestration.stages.vendoring import vendor
from tests.patience import PATIENCE_S

TWO = {
    "SM_HOSTS": '["algo-1", "algo-2"]',
    "SM_CURRENT_HOST": "algo-1",
    "SM_NUM_GPUS": "8",
    "SM_CURRENT_INSTANCE_TYPE": "ml.p4d.24xlarge",
    "WORLD_SIZE": "16",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "8",
}


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def train(meter: StepMeter, clock: Clock, seconds: Sequence[float]) -> None:
    for each in seconds:
        clock.now += each
        meter.step()


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, float]]:
    lines = [line for line in capsys.readouterr().out.splitlines() if "orchestration:" in line]
    return [
        {name: float(value) for name, value in re.findall(r"(\w+)=(\S+)", line)} for line in lines
    ]


def test_the_first_steps_are_left_out_and_the_median_counts() -> None:
    clock = Clock()
    meter = StepMeter(every=1, environ={}, clock=clock)
    train(meter, clock, [60, 9, 9, 9, 9, 2, 2, 2, 50])
    assert meter.figures()["step_time_s"] == 2


def test_throughput_and_mfu_count_the_whole_cluster() -> None:
    clock = Clock()
    environ = {**TWO, "RANK": "0"}
    # 16 devices at half of 312 TFLOP/s for two seconds.
    meter = StepMeter(
        tokens=4096, samples=4, flops=16 * 312e12, every=1, environ=environ, clock=clock
    )
    train(meter, clock, [2] * 6)
    figures = meter.figures()
    assert (figures["tokens_per_s"], figures["samples_per_s"], figures["mfu"]) == (2048, 2, 0.5)


def test_time_between_two_loops_is_no_part_of_a_step() -> None:
    clock = Clock()
    meter = StepMeter(every=1, warm_up=0, environ={}, clock=clock)
    train(meter, clock, [1, 1])
    clock.now += 500
    meter.begin()
    train(meter, clock, [1])
    assert meter.figures() == {"step_time_s": 1, "steps": 3}


def test_only_the_first_rank_prints(capsys: pytest.CaptureFixture[str]) -> None:
    for rank in ("3", "0"):
        clock = Clock()
        meter = StepMeter(warm_up=0, environ={**TWO, "RANK": rank, "LOCAL_RANK": rank}, clock=clock)
        train(meter, clock, [1, 2])
        meter.finish()
    assert [line["steps"] for line in printed(capsys)] == [2]


def test_a_probe_ends_the_script_after_its_steps_on_every_rank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for rank in ("3", "0"):
        clock = Clock()
        environ = {**TWO, "RANK": rank, "LOCAL_RANK": rank, PROBE: "20"}
        meter = StepMeter(environ=environ, clock=clock)
        with pytest.raises(SystemExit) as end:
            train(meter, clock, [30] * 5 + [1] * 100)
        assert end.value.code == 0
    [line] = printed(capsys)
    assert (line["steps"], line["step_time_s"]) == (20, 1)


def test_sagemaker_reads_every_figure_from_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    meter = StepMeter(
        tokens=10, samples=1, flops=1e15, warm_up=0, environ={**TWO, "RANK": "0"}, clock=clock
    )
    train(meter, clock, [1e-5, 1e-5])
    meter.finish()
    log = "[1,mpirank:0,algo-1]<stdout>:" + capsys.readouterr().out
    definitions = [{"Name": name, "Regex": regex} for name, regex in RUNTIME_METRICS.items()]
    kept = final_metrics(definitions, log, datetime.datetime.now(datetime.UTC))
    metrics = {metric["MetricName"]: metric["Value"] for metric in kept}
    assert metrics.keys() == RUNTIME_METRICS.keys()
    assert metrics["orchestration:step_time_s"] == pytest.approx(1e-5)


def test_peaks_are_those_of_the_catalog() -> None:
    families = {}
    for name, each in instances().items():
        device = accelerators().get(each.accelerator or "")
        peak = device and (device.bf16_tflops or device.fp16_tflops)
        if each.training and peak:
            families[name.split(".")[1]] = peak
    assert families == _PEAK_TFLOPS


SCRIPT = """
import sys
from pathlib import Path
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from orchestration_runtime import measured_steps

dist.init_process_group("gloo")
torch.manual_seed(0)
mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
model = fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(3):
    for batch in measured_steps(torch.randn(8, 16, 64), samples=32):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
Path(sys.argv[1], f"end-{dist.get_rank()}").touch()
dist.destroy_process_group()
"""


def launched(folder: Path, **environ: str) -> str:
    vendor(folder)
    (folder / "train.py").write_text(SCRIPT)
    command = [
        str(Path(sys.executable).parent / "torchrun"),
        "--standalone",
        "--nproc_per_node",
        "2",
    ]
    done = subprocess.run(
        [*command, "train.py", str(folder)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_one_line_measures_sharded_training_and_ends_a_probe(tmp_path: Path) -> None:
    log = launched(tmp_path, **{PROBE: "12"})
    counts = [int(count) for count in re.findall(r"orchestration: .*steps=(\d+)", log)]
    assert counts == [8, 12]
    assert list(tmp_path.glob("end-*")) == []
