"""``Source(folder, …)`` is relative to the file that says so, wherever Python was started."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestration import PipelineError, Source, StandIn
from tests.patience import PATIENCE_S

MODULE = """\
from orchestration import Cluster, Pipeline, Source, TrainingJob

def job(folder, script="train.py", **further):
    return TrainingJob(
        name="train",
        image="111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        source=Source(folder, entry_point=script, runtime=True, **further),
        cluster=Cluster(instance_type="ml.m5.xlarge"),
    )

def built(*given, **further):
    return Pipeline(name="p", workspace="s3://bucket/p", stages=[job(*given, **further)])

pipeline = built("src")
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


def test_a_missing_folder_is_told_with_its_whole_path(project: Path) -> None:
    churn, cell = loaded(project / "churn.py"), dict[str, Any]()
    exec(compile(MODULE.partition("pipeline =")[0], "<cell>", "exec"), cell)
    for built, place in ((churn.built, project), (cell["built"], Path.cwd())):
        with pytest.raises(PipelineError) as error:
            built("scr")
        [problem] = error.value.problems
        assert problem.path == "stages.train.source.directory"
        assert problem.message.startswith(f"there is no folder {place / 'scr'}, and no lock file")


@pytest.mark.parametrize("source", ["Source(folder", "Source.at(Path(__file__).parent / folder"])
def test_a_missing_script_is_told_with_the_nearest(project: Path, source: str) -> None:
    text = "from pathlib import Path\n" + MODULE.replace("Source(folder", source)
    (project / "churn.py").write_text(text.replace('script="train.py"', 'script="trian.py"'))
    with pytest.raises(ValueError, match=r"src holds no '?trian\.py'?; did you mean 'train\.py'\?"):
        loaded(project / "churn.py")


def test_what_a_file_says_of_code_in_other_words_is_relative_to_it_too(project: Path) -> None:
    text = MODULE.replace("Source(folder", "Source(directory=folder")
    (project / "worded.py").write_text(text)
    made = [loaded(project / name).pipeline for name in ("churn.py", "worded.py")]
    assert made[0] == made[1]


def test_a_name_that_no_file_can_have_is_told_as_any_mistake(project: Path) -> None:
    (project / "churn.py").write_text(MODULE.replace('name="p"', 'name="p" * 300'))
    with pytest.raises(PipelineError, match="name: "):
        loaded(project / "churn.py")


@pytest.mark.parametrize(
    ("given", "further", "field"),
    [
        (("sr\0c",), {}, "directory"),
        (("src",), {"dependencies": ["shared", "a\0b"]}, "dependencies[1]"),
    ],
)
def test_a_path_that_ends_in_its_middle_is_told_as_any_mistake(
    project: Path, given: tuple[str, ...], further: dict[str, Any], field: str
) -> None:
    (project / "shared").mkdir()
    with pytest.raises(PipelineError) as raised:
        loaded(project / "churn.py").built(*given, **further)
    [problem] = raised.value.problems
    assert (problem.stage, problem.field) == ("train", f"source.{field}")
    assert "U+0000" in problem.message


def test_mistakes_in_code_are_told_beside_others(project: Path) -> None:
    text = MODULE.replace('"ml.m5.xlarge"', '"ml.m5.xlarg"').replace("train.py", "trian.py")
    (project / "churn.py").write_text(text)
    with pytest.raises(PipelineError) as error:
        loaded(project / "churn.py")
    places = [problem.path for problem in error.value.problems]
    assert "stages.train.source.entry_point" in places
    assert len(places) > 1


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
