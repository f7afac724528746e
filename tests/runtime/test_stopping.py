"""A stop is noticed, told to all, and never looks like success; a failure leaves its reason."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from orchestration.runtime import (
    Stopped,
    StopSignal,
    default_grace_s,
    graceful_stop,
    reported_failures,
    write_failure,
)
from orchestration.runtime.failures import shortened
from orchestration.stages.vendoring import vendor
from tests.patience import PATIENCE_S

LOOP = """
import sys, time
from pathlib import Path
from orchestration_runtime import Checkpoints, Folders, graceful_stop, reported_failures

checkpoints = Checkpoints()
with reported_failures(), graceful_stop() as stop:
    for step in range(1, 10_000):
        if step == 3:
            print("training", flush=True)
        time.sleep(0.01)
        if stop:
            assert 0 < stop.remaining_s <= 120
            checkpoints.save(step, lambda folder: None, {"loss": 1.0})
            break
    END
print("finished")
"""


def run(tmp_path: Path, end: str) -> tuple[int, str]:
    """Run a training loop that is told to stop; its exit status and output."""
    vendor(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "SAGEMAKER_BASE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", LOOP.replace("END", end)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        process.terminate()
        out, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "sys.exit()"])
def test_an_interrupted_run_saves_and_does_not_look_like_success(tmp_path: Path, end: str) -> None:
    code, out = run(tmp_path, end)
    assert (code, out) == (128 + signal.SIGTERM, "")
    assert len(list((tmp_path / "checkpoints").glob("checkpoint-*/manifest.json"))) == 1
    assert not (tmp_path / "output/failure").exists()


def test_a_run_that_was_complete_succeeds(tmp_path: Path) -> None:
    assert run(tmp_path, "stop.complete()") == (0, "finished\n")


def test_an_error_of_an_interrupted_run_stays_one(tmp_path: Path) -> None:
    code, out = run(tmp_path, "raise ValueError('no disk')")
    assert code == 1
    assert "ValueError: no disk" in out
    assert (tmp_path / "output/failure").read_text().startswith("ValueError: no disk (<string>:")


def test_another_exit_status_stays(tmp_path: Path) -> None:
    assert run(tmp_path, "sys.exit(3)")[0] == 3
    assert (tmp_path / "output/failure").read_text().startswith("exit status 3")


def stopped(body: Callable[[StopSignal], None], **options: Any) -> int:
    """The exit status of a block that is left although it was told to stop."""

    def block() -> None:
        with graceful_stop(**options) as stop:
            body(stop)

    with pytest.raises(Stopped) as raised:
        block()
    assert isinstance(raised.value.code, int)
    return raised.value.code


def test_an_earlier_handler_is_called_and_comes_back() -> None:
    heard: list[int] = []

    def earlier(number: int, _frame: FrameType | None) -> None:
        heard.append(number)

    def body(stop: StopSignal) -> None:
        assert not stop
        assert stop.remaining_s == float("inf")
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
        assert 4 < stop.remaining_s <= 5
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, earlier)
    try:
        assert stopped(body, grace_s=5) == 143
        assert signal.getsignal(signal.SIGTERM) is earlier
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM] * 2


def test_other_signals_can_be_asked_for() -> None:
    def body(stop: StopSignal) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.signal_number == signal.SIGUSR1

    signals = (signal.SIGTERM, signal.SIGUSR1)
    assert stopped(body, signals=signals) == 128 + signal.SIGUSR1


def test_a_rank_that_was_not_told_stops_with_the_others() -> None:
    def body(stop: StopSignal) -> None:
        assert not stop.agreed(lambda own: own)
        assert stop.agreed(lambda own: own or True)
        # From then on, whatever the others say.
        assert stop.agreed(lambda own: own)

    assert stopped(body) == 143


def test_the_main_thread_only() -> None:
    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with graceful_stop():
                pass
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])


@pytest.mark.parametrize(
    ("more", "expected"), [("", 30.0), ("90", 90.0), ("1000", 120.0), ("soon", 30.0)]
)
def test_torchrun_kills_earlier(more: str, expected: float) -> None:
    environ = {"TORCHELASTIC_RUN_ID": "none", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": more}
    assert default_grace_s(environ) == expected


def test_the_first_reason_stays(tmp_path: Path) -> None:
    path = tmp_path / "output/failure"
    assert write_failure("rank 3 ran out of memory", path)
    assert not write_failure("rank 0: connection closed by peer", path)
    assert path.read_text() == "rank 3 ran out of memory"
    assert [entry.name for entry in path.parent.iterdir()] == ["failure"]


@pytest.mark.parametrize("length", [0, 1023, 1024, 1025, 5000])
def test_a_reason_has_at_most_1024_characters(tmp_path: Path, length: int) -> None:
    reason = "".join(chr(ord("a") + index % 26) for index in range(length))
    write_failure(reason, tmp_path / "failure")
    written = (tmp_path / "failure").read_text()
    assert len(written) == min(length, 1024)
    assert (written == reason) is (length <= 1024)
    assert shortened(reason, 20)[:5] == reason[:5]


def test_reasons_of_a_decorated_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(tmp_path))

    @reported_failures()
    def main(error: BaseException | None) -> None:
        if error is not None:
            raise error

    main(None)
    for silent in (SystemExit(0), SystemExit(), Stopped(15), KeyboardInterrupt()):
        with pytest.raises(type(silent)):
            main(silent)
    assert not (tmp_path / "output").exists()
    with pytest.raises(SystemExit):
        main(SystemExit("no data in the channel"))
    written = (tmp_path / "output/failure").read_text()
    assert written.startswith("no data in the channel (test_stopping.py:")


def test_a_processing_job_has_another_place_for_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/processingjobconfig.json").write_text("{}")
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(tmp_path))
    with pytest.raises(ValueError, match="no rows"), reported_failures():
        raise ValueError("no rows")
    assert (tmp_path / "output/message").read_text().startswith("ValueError: no rows (")


def test_what_a_script_printed_before_it_exited_is_the_reason(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    with pytest.raises(SystemExit), reported_failures(tmp_path / "failure"):
        parser.parse_args(["--epochs", "many"])
    assert (
        "exit status 2: argparse.ArgumentError: argument --epochs: invalid int value"
        in (tmp_path / "failure").read_text()
    )


def test_an_unknown_hyperparameter_is_the_reason(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser(prog="train.py")
    with pytest.raises(SystemExit), reported_failures(tmp_path / "failure"):
        parser.parse_args(["--epoch", "3"])
    reason = (tmp_path / "failure").read_text()
    said = "exit status 2: train.py: error: unrecognized arguments: --epoch 3 (test_stopping.py:"
    assert reason.startswith(said)


def test_a_reason_that_can_not_be_written_hides_no_error(tmp_path: Path) -> None:
    (tmp_path / "output").touch()
    with (
        pytest.raises(ValueError, match="the real one"),
        reported_failures(tmp_path / "output/failure"),
    ):
        raise ValueError("the real one")
