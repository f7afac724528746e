"""Checkpoints are whole or passed over, whatever happens."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration.runtime import Best, CheckpointError, Checkpoints, Folders
from tests.patience import PATIENCE_S

CRASHES = Path(__file__).with_name("crashes.py")
MEMORY = Path("/dev/shm")

on_memory = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk in memory, where there is one: fsync takes no time there."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def text(content: str, name: str = "weights") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "deep").mkdir(exist_ok=True)
        (folder / "deep" / name).write_text(content)

    return write


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_checkpoint_is_a_folder_with_metrics_and_a_manifest(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, prefix="epoch-", sha256=True)
    saved = checkpoints.save(7, text("x"), {"accuracy": 0.5, "loss": float("nan")})
    assert saved is not None
    assert names(tmp_path) == ["epoch-00000007"]
    assert json.loads((saved.path / "metrics.json").read_text()) == {
        "step": 7,
        "accuracy": 0.5,
        "loss": None,
    }
    manifest = json.loads((saved.path / "manifest.json").read_text())
    assert (
        sorted(manifest["files"])
        == sorted(manifest["sha256"])
        == [
            "deep/weights",
            "metrics.json",
        ]
    )
    assert saved.metrics == {"accuracy": 0.5}
    assert saved.is_whole(verify=True)


def test_the_prefix_is_what_checkpoint_evaluation_lists(tmp_path: Path) -> None:
    """S3's listing by prefix and delimiter finds checkpoints, and no temporary name."""
    checkpoints = Checkpoints(tmp_path, prefix="step-")

    def write(folder: Path) -> None:
        listed.extend(name for name in names(tmp_path) if name.startswith("step-"))
        assert folder.name.startswith(".tmp-")

    listed: list[str] = []
    checkpoints.save(1, write)
    assert listed == []


def test_the_greatest_number_is_newest_however_many_digits(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for number in (9, 123_456_789, 10):
        checkpoints.save(number, text(str(number)))
    assert [one.number for one in checkpoints.whole()] == [9, 10, 123_456_789]
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.number == 123_456_789


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3}', '{"files": {"../x": 1}}', "{"])
def test_a_strange_manifest_makes_no_whole_checkpoint(tmp_path: Path, content: str) -> None:
    checkpoints = Checkpoints(tmp_path / "here")
    (tmp_path / "x").write_text("1")
    saved = checkpoints.save(1, text("x"))
    assert saved is not None
    (saved.path / "manifest.json").write_text(content)
    assert checkpoints.newest() is None


@on_memory
@given(damage=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("lose", "cut"))), max_size=6))
def test_what_s3_holds_in_part_is_passed_over(memory: Path, damage: list[tuple[int, str]]) -> None:
    shutil.rmtree(memory / "c", ignore_errors=True)
    checkpoints = Checkpoints(memory / "c")
    for number in (1, 2):
        checkpoints.save(number, text("content"), {"loss": 1.0})
    paths = sorted(path for path in (memory / "c").rglob("*") if path.is_file())
    for index, how in damage:
        if how == "lose":
            paths[index].unlink(missing_ok=True)
        elif paths[index].exists():
            paths[index].write_bytes(paths[index].read_bytes()[:-3])
    damaged = {index // 3 + 1 for index, _ in damage}
    assert [one.number for one in checkpoints.whole()] == sorted({1, 2} - damaged)


def test_a_digest_finds_what_sizes_do_not(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, sha256=True)
    checkpoints.save(1, text("good"))
    saved = checkpoints.save(2, text("good"))
    assert saved is not None
    (saved.path / "deep/weights").write_text("evil")
    unverified, verified = checkpoints.newest(), checkpoints.newest(verify=True)
    assert unverified is not None
    assert verified is not None
    assert (unverified.number, verified.number) == (2, 1)


def test_a_failed_save_leaves_the_older_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, text("x"))

    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoints.save(2, fail)
    assert [one.number for one in checkpoints.whole()] == [1]
    checkpoints.save(3, text("x"))
    assert names(tmp_path) == ["checkpoint-00000001", "checkpoint-00000003"]


def test_only_rank_0_writes(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path, rank=1).save(1, text("x")) is None
    assert names(tmp_path) == []


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    best = Best("loss", "min", count=2)
    checkpoints = Checkpoints(tmp_path, keep_last=2, keep_best=best)
    for number, loss in enumerate((0.5, 0.1, 0.4, float("nan"), 0.3, 0.9, 0.8)):
        checkpoints.save(number, text("x"), {"loss": loss})
    assert [one.number for one in checkpoints.whole()] == [1, 4, 5, 6]
    assert names(tmp_path) == [f"checkpoint-{number:08}" for number in (1, 4, 5, 6)]
    found = checkpoints.best("loss", "min")
    assert found is not None
    assert found.number == 1
    assert checkpoints.best("accuracy", "max") is None


@on_memory
@given(
    losses=st.lists(st.floats(0, 1, width=16), min_size=1, max_size=8),
    last=st.integers(1, 3),
    count=st.integers(1, 3),
    direction=st.sampled_from(("min", "max")),
)
def test_pruning_never_loses_the_best_or_the_newest(
    memory: Path, losses: list[float], last: int, count: int, direction: str
) -> None:
    shutil.rmtree(memory / "c", ignore_errors=True)
    best = Best("loss", direction, count)
    checkpoints = Checkpoints(memory / "c", keep_last=last, keep_best=best)
    for number, loss in enumerate(losses):
        checkpoints.save(number, text(""), {"loss": loss})
    left = {one.number: one.metrics["loss"] for one in checkpoints.whole()}
    assert set(range(len(losses))[-last:]) <= set(left)
    assert len(left) <= last + count
    extreme = min(losses) if direction == "min" else max(losses)
    assert extreme in left.values()


def test_parts_older_than_the_newest_are_removed_and_strangers_stay(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep_last=1)
    for name in ("checkpoint-00000001", "checkpoint-99999999", "checkpoint-best", "logs"):
        (tmp_path / name).mkdir()
    checkpoints.save(2, text("x"))
    assert names(tmp_path) == [
        "checkpoint-00000002",
        "checkpoint-99999999",
        "checkpoint-best",
        "logs",
    ]


@pytest.mark.parametrize("prefix", ["", ".tmp-", "a/b", "epoch1"])
def test_prefixes_that_would_confuse_are_refused(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        Checkpoints(tmp_path, prefix=prefix)


def test_what_can_not_be_asked_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Checkpoints(tmp_path, keep_last=0)
    with pytest.raises(ValueError, match="keep_last"):
        Checkpoints(tmp_path, keep_best=Best("loss", "min"))
    with pytest.raises(ValueError, match="direction"):
        Best("loss", "down")
    with pytest.raises(ValueError, match="less than 0"):
        Checkpoints(tmp_path).save(-1, text("x"))
    with pytest.raises(ValueError, match="'step'"):
        Checkpoints(tmp_path).save(1, text("x"), {"step": 2})
    with pytest.raises(CheckpointError, match=r"metrics\.json"):
        Checkpoints(tmp_path).save(1, lambda folder: (folder / "metrics.json").touch())


def test_the_directory_is_sagemakers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAGEMAKER_BASE_DIR", raising=False)
    assert Checkpoints().directory == Path("/opt/ml/checkpoints")


def test_folders_follow_the_toolkit() -> None:
    environ = {"SAGEMAKER_BASE_DIR": "/b", "SM_MODEL_DIR": "/m", "SM_OUTPUT_DATA_DIR": "/o"}
    folders = Folders.from_environment(environ)
    assert (folders.model, folders.output) == (Path("/m"), Path("/o"))
    assert folders.channel("train") == Path("/b/input/data/train")
    assert folders.failure == Path("/b/output/failure")


def test_a_channel_is_where_its_variable_says() -> None:
    environ = {"SM_CHANNEL_TRAINING": "/data", "SM_CHANNEL_EMPTY": ""}
    folders = Folders.from_environment(environ)
    assert folders.channel("training") == Path("/data")
    assert folders.channel("empty") == Path("/opt/ml/input/data/empty")
    assert hash(folders) == hash(Folders.from_environment(environ))


def test_numbers_count_what_they_are_said_to(tmp_path: Path) -> None:
    epochs = Checkpoints(tmp_path, prefix="epoch-", counts="epoch")
    epochs.save(2, text("x"), {"step": 2**60 + 1, "loss": 0.5})
    [saved] = epochs.whole()
    written = json.loads((saved.path / "metrics.json").read_text())
    assert written == {"epoch": 2, "step": 2**60 + 1, "loss": 0.5}
    assert saved.metrics == {"step": float(2**60), "loss": 0.5}
    with pytest.raises(ValueError, match="'epoch' is the checkpoint's number, 3, and can't be 2"):
        epochs.save(3, text("x"), {"epoch": 2})
    epochs.save(3, text("x"), {"epoch": 3})


def test_two_kinds_of_checkpoints_share_a_directory(tmp_path: Path) -> None:
    epochs = Checkpoints(tmp_path, prefix="epoch-", keep_last=1)
    stopped = Checkpoints(tmp_path, prefix="stopped-", keep_last=1)
    for number in (1, 2):
        epochs.save(number, text("x"))
        stopped.save(10 * number, text("x"))
    assert names(tmp_path) == ["epoch-00000002", "stopped-00000020"]


def test_a_checkpoint_is_copied_without_what_only_training_needs(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "code").mkdir()
        for name in ("weights", "trainer.pt", "code/inference.py", "code/manifest.json"):
            (folder / name).write_text(name)

    saved = Checkpoints(tmp_path / "checkpoints").save(1, write)
    assert saved is not None
    (tmp_path / "model").mkdir()
    (tmp_path / "model/vocabulary").write_text("a b")
    saved.copy_to(tmp_path / "model", without=["trainer.*"])
    copied = (path for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert {path.relative_to(tmp_path / "model").as_posix() for path in copied} == {
        "vocabulary",
        "weights",
        "metrics.json",
        "code/inference.py",
        "code/manifest.json",
    }


class Ranks:
    """Threads that stand for ranks, and a barrier among them."""

    def __init__(self, directory: Path, size: int) -> None:
        self._size = size
        self._barrier = threading.Barrier(size, timeout=PATIENCE_S)
        self.all = [Checkpoints(directory, rank=rank) for rank in range(size)]

    def save(self, number: int, write: Callable[[int, Path], None]) -> list[object]:
        def one(rank: int) -> object:
            try:
                return (
                    self.all[rank]
                    .save_sharded(
                        number,
                        lambda folder: write(rank, folder),
                        lambda: (self._barrier.wait(), None)[1],
                        world_size=self._size,
                        metrics={"loss": 1.0},
                    )
                    .number
                )
            except (CheckpointError, OSError) as error:
                return type(error)

        with ThreadPoolExecutor(self._size) as pool:
            return list(pool.map(one, range(self._size)))


def test_ranks_write_one_checkpoint_together(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 4)
    assert ranks.save(3, lambda rank, folder: text("x", f"shard-{rank}")(folder)) == [3] * 4
    newest = ranks.all[2].newest()
    assert newest is not None
    assert names(newest.path) == ["deep", "manifest.json", "metrics.json"]
    assert names(newest.path / "deep") == [f"shard-{rank}" for rank in range(4)]
    assert newest.metrics == {"loss": 1.0}


@pytest.mark.parametrize("failing", [0, 2])
def test_a_rank_that_fails_fails_all_and_hangs_none(tmp_path: Path, failing: int) -> None:
    ranks = Ranks(tmp_path, 3)

    def write(rank: int, folder: Path) -> None:
        if rank == failing:
            raise OSError("disk full")
        text("new", f"shard-{rank}")(folder)

    ranks.save(1, lambda rank, folder: text("old", f"shard-{rank}")(folder))
    ends = ranks.save(1, write)
    expected: list[object] = [CheckpointError] * 3
    expected[failing] = OSError
    assert ends == expected
    (kept,) = ranks.all[0].whole()
    assert (kept.path / "deep/shard-1").read_text() == "old"


@pytest.mark.parametrize("what", ["saving", "preparing"])
def test_killed_at_any_moment_there_is_something_whole(memory: Path, what: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(CRASHES), what, str(memory)],
        cwd=root,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15
