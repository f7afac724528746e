"""``Source(folder, …)`` is relative to the file that says so, wherever Python was started."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestration import Source, StandIn
from tests.patience import PATIENCE_S

MODULE = """\
from orchestration import Cluster, Pipeline, Source, TrainingJob

def job(folder):
    return TrainingJob(
        name="train",
        image="111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        source=Source(folder, entry_point="train.py", runtime=True),
        cluster=Cluster(instance_type="ml.m5.xlarge"),
    )

pipeline = Pipeline(name="p", workspace="s3://bucket/p", stages=[job("src")])
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pipeline's module and its code; the current folder is another."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("print(1)\n")
    (folder / "churn.py").write_text(MODULE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def loaded(file: Path) -> Any:
    """Import a file by its path, as Airflow's DAG processor does."""
    spec = importlib.util.spec_from_file_location("churn_by_path", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_is_relative_to_the_file_that_names_it(project: Path) -> None:
    source = loaded(project / "churn.py").pipeline.stages[0].source
    assert source == Source.at(project / "src", "train.py", runtime=True)


def test_the_file_is_the_one_with_the_call_and_not_its_caller_s(project: Path) -> None:
    job = loaded(project / "churn.py").job
    assert job("src").source.directory == str(project / "src")


def test_at_a_prompt_it_is_relative_to_the_current_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    text = (
        "from orchestration import Source; print(Source('src', entry_point='train.py').directory)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.strip() == str(project / "src")


def test_a_missing_folder_is_told_with_what_it_is_relative_to(project: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder scr, relative to") as error:
        loaded(project / "churn.py").job("scr")
    place = project / "scr"
    assert str(error.value) == f"there is no folder scr, relative to churn.py: {place}"
    names: dict[str, Any] = {}
    exec(compile(MODULE.partition("pipeline =")[0], "<cell>", "exec"), names)
    with pytest.raises(ValueError, match="the current folder, as the call is in no file"):
        names["job"]("src")


def test_a_missing_script_is_told_with_the_nearest(project: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no trian\.py; did you mean 'train\.py'\?"):
        Source(project / "src", entry_point="trian.py")


def test_a_folder_goes_with_no_other_place(project: Path) -> None:
    with pytest.raises(ValueError, match="and uri; give one of them"):
        Source(project / "src", entry_point="train.py", uri="s3://bucket/code")


def test_mistakes_in_other_fields_keep_their_place(project: Path) -> None:
    with pytest.raises(ValidationError) as error:
        Source(project / "src", entry_point="train.py", runtme=True)  # type: ignore[call-arg]  # the mistake
    assert [each["loc"] for each in error.value.errors()] == [("runtme",)]


def test_the_folder_of_a_stand_in_is_relative_too_and_may_be_missing(project: Path) -> None:
    (project / "alone.py").write_text(
        "from orchestration import StandIn\n"
        "local = StandIn(command=('sh', 'fit'), directory='bin')\n"
    )
    assert loaded(project / "alone.py").local.directory == str(project / "bin")
    anywhere = StandIn(command=("true",), directory=str(project / "src"))
    assert anywhere.directory == str(project / "src")
    assert StandIn.model_validate(anywhere.model_dump()) == anywhere
