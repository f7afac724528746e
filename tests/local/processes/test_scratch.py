"""Nothing stays in the temporary directory, whether a run ends or is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from orchestration.local import EmbeddedAws
from orchestration.local.processes.scratch import Scratch
from tests.local.conftest import prepare
from tests.local.sagemaker.test_opt_ml import run_processing

OWNER = """
import sys, time
from pathlib import Path
from orchestration.local.processes.scratch import Scratch
scratch = Scratch("ours-", Path(sys.argv[1]))
(scratch.temporary / "torchelastic_x").mkdir()
print(scratch.path, flush=True)
time.sleep(600)
"""


def test_a_directory_goes_with_all_that_children_left_in_it(tmp_path: Path) -> None:
    scratch = Scratch("ours-", tmp_path)
    (scratch.temporary / "left").write_text("x")
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_one_of_a_killed_owner_goes_when_the_next_is_made(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        path = Path(owner.stdout.readline().strip())
        while_it_lives = Scratch("ours-", tmp_path)
        assert path.is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    Scratch("other-", tmp_path).close()
    assert path.is_dir()
    Scratch("ours-", tmp_path).close()
    assert not path.exists()
    assert while_it_lives.path.is_dir()
    while_it_lives.close()


def test_a_directory_that_nobody_locked_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ours-strange").mkdir()
    Scratch("ours-", tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == ["ours-strange"]


def test_an_embedded_aws_and_its_jobs_have_one_directory(tmp_path: Path) -> None:
    with EmbeddedAws(directory=tmp_path) as aws:
        prepare(aws)
        [directory] = tmp_path.iterdir()
        run_processing(aws, "prints", "import os; print(os.environ['TMPDIR'])")
        assert aws.logs("prints").strip() == str(directory / "tmp")
        assert aws.calls() == []
    assert list(tmp_path.iterdir()) == []
