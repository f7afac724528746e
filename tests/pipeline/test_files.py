"""Pipelines in files, their folders of code, and lock files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestration import Pipeline, PipelineError, Source, TrainingJob
from orchestration.deploy.sources import folders
from orchestration.pipeline.files import lock, stale
from orchestration.pipeline.pinning.lock_file import lock_path
from orchestration.stages import vendoring
from orchestration.stages.packing import archive, digest

FILE = """
name: p
workspace: s3://bucket/p
role: arn:aws:iam::111122223333:role/Execution
stages:
  train:
    kind: training_job
    image: image
    source: {directory: src, entry_point: train.py}
    cluster: {instance_type: ml.m5.xlarge}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "p.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path / "p.yaml"


def test_a_stand_in_s_folder_lies_beside_the_file(path: Path) -> None:
    local = "    local: {command: [python3, run.py], directory: local}\n"
    path.write_text(FILE + local, encoding="utf-8")
    [stage] = Pipeline.load(path).stages
    assert isinstance(stage, TrainingJob)
    assert stage.local is not None
    assert stage.local.directory == str((path.parent / "local").resolve())


def write_lock(path: Path) -> None:
    lock_path(path).write_text(json.dumps(lock(path)), encoding="utf-8")


def sha256(path: Path) -> str | None:
    [stage] = Pipeline.load(path).stages
    assert isinstance(stage, TrainingJob)
    assert stage.source is not None
    return stage.source.sha256


def test_a_folder_is_known_by_its_digest(path: Path) -> None:
    assert sha256(path) == digest(path.parent / "src")


def test_a_lock_file_stands_for_the_folder(path: Path) -> None:
    write_lock(path)
    before = sha256(path)
    shutil.rmtree(path.parent / "src")
    assert sha256(path) == before


def test_a_lock_file_goes_before_a_folder_that_changed(path: Path) -> None:
    write_lock(path)
    before = sha256(path)
    (path.parent / "src" / "train.py").write_text("print(2)\n", encoding="utf-8")
    assert sha256(path) == before


def test_a_change_makes_a_lock_file_stale(path: Path) -> None:
    write_lock(path)
    assert stale(path) == []
    (path.parent / "src" / "more.py").touch()
    assert stale(path) == ["train.source"]


def test_without_a_lock_file_nothing_is_stale(path: Path) -> None:
    assert stale(path) == []


@pytest.fixture
def shared(path: Path) -> Path:
    """A folder beside the code, which the pipeline packs with it."""
    (path.parent / "shared").mkdir()
    (path.parent / "shared/data.py").write_text("x = 1\n")
    packed = "source: {directory: src, dependencies: [shared], entry_point"
    path.write_text(FILE.replace("source: {directory: src, entry_point", packed))
    return path.parent / "shared"


def test_dependencies_lie_beside_the_file_and_are_pinned_with_the_code(
    path: Path, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    before = sha256(path)
    assert before == digest(path.parent / "src", dependencies=[str(shared)])
    write_lock(path)
    (shared / "data.py").write_text("x = 2\n")
    assert (sha256(path), stale(path)) == (before, ["train.source"])


def test_dependencies_are_uploaded_and_written_with_the_code(path: Path, shared: Path) -> None:
    pipeline = Pipeline.load(path)
    [folder] = folders(pipeline, {})
    names = {key.partition("/files/")[2] for key in folder.contents()}
    assert {"shared/data.py", "train.py"} <= names
    again = path.with_name("again.yaml")
    again.write_text(pipeline.to_yaml(path.parent))
    assert "dependencies:" in again.read_text()
    assert str(path.parent) not in again.read_text()
    assert sha256(again) == sha256(path)


def test_a_dependency_that_is_a_link_keeps_its_own_name(path: Path, shared: Path) -> None:
    shared.rename(shared.with_name("shared-v2"))
    shared.symlink_to("shared-v2")
    pipeline = Pipeline.load(path)
    [folder] = folders(pipeline, {})
    names = {key.partition("/files/")[2] for key in folder.contents()}
    assert {"shared/data.py", "train.py"} <= names
    pinned = sha256(path)
    assert pinned == digest(path.parent / "src", dependencies=[str(shared)])
    named = Source.at(path.parent / "src", "train.py", dependencies=[shared])
    assert (named.sha256, named.dependencies) == (pinned, (str(shared),))
    assert Source(
        path.parent / "src", entry_point="train.py", dependencies=[shared]
    ).dependencies == (str(shared),)


def test_dependencies_that_are_missing_are_reported(path: Path, shared: Path) -> None:
    shutil.rmtree(shared)
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    assert [(problem.path, problem.message) for problem in error.value.problems] == [
        (
            "stages.train.source.dependencies[0]",
            f"there is no folder or file {shared}; there is p.yaml, src",
        )
    ]


LONG = "a" * 300
TEXT = "expected text"
TOO_LONG = "holds a name of more than 255 characters"


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("[shared, 5]", {"dependencies[1]": TEXT}),
        ("[5, nowhere]", {"dependencies[0]": TEXT}),
        ("[shared, {parameter: data}]", {"dependencies[1]": TEXT}),
        (f"[shared, {LONG}]", {"dependencies[1]": TOO_LONG}),
        (f"[{LONG}, 5]", {"dependencies[0]": TOO_LONG, "dependencies[1]": TEXT}),
        (f"[shared], include: [{LONG}]", {"include": f"the folder holds no '{LONG}'"}),
    ],
)
def test_no_dependency_is_left_out_because_it_is_wrong(
    path: Path, shared: Path, written: str, wrong: dict[str, str]
) -> None:
    path.write_text(path.read_text().replace("[shared]", written))
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    found = {each.path.partition(".source.")[2]: each.message for each in error.value.problems}
    assert found.keys() == wrong.keys()
    assert all(found[place].startswith(message) for place, message in wrong.items()), found


def test_a_dependency_that_no_path_can_be_is_not_locked(path: Path, shared: Path) -> None:
    path.write_text(path.read_text().replace("[shared]", f"[shared, {LONG}]"))
    with pytest.raises(PipelineError, match=r"dependencies\[1\]: holds a name of more"):
        lock(path)
    path.write_text(path.read_text().replace(LONG, "5"))
    assert lock(path)["sources"] == {}


def test_a_missing_folder_is_reported_beside_other_mistakes(path: Path) -> None:
    shutil.rmtree(path.parent / "src")
    path.write_text(FILE + "    after: [nowhere]\n", encoding="utf-8")
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    messages = {problem.path: problem.message for problem in error.value.problems}
    assert "orchestrate lock" in messages["stages.train.source.directory"]
    assert "nowhere" in messages["stages.train.after"]


def test_a_folder_without_its_entry_point_is_reported(path: Path) -> None:
    path.write_text(FILE.replace("train.py", "trian.py"), encoding="utf-8")
    with pytest.raises(PipelineError, match=r"source\.entry_point: src holds no 'trian\.py'; did"):
        Pipeline.load(path)


def test_a_lock_file_in_the_folder_of_code_is_no_code(path: Path) -> None:
    path.write_text(FILE.replace("directory: src", "directory: ."), encoding="utf-8")
    shutil.copy(path.parent / "src" / "train.py", path.parent)
    write_lock(path)
    assert not stale(path)


def test_an_entry_point_may_be_written_with_its_folder(path: Path) -> None:
    path.write_text(FILE.replace("train.py", "./train.py"), encoding="utf-8")
    assert Pipeline.load(path).lower().graph.steps


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sources": 3}', "{}"])
def test_a_broken_lock_file_says_how_to_mend_it(path: Path, text: str) -> None:
    lock_path(path).write_text(text, encoding="utf-8")
    with pytest.raises(
        PipelineError, match=r"p\.lock\.json: is not a lock file.*orchestrate lock p"
    ):
        Pipeline.load(path)


def test_locking_names_every_missing_folder(path: Path) -> None:
    shutil.rmtree(path.parent / "src")
    with pytest.raises(PipelineError, match="there is no folder src"):
        lock(path)


def test_a_file_in_the_place_of_the_folder_is_told_where_it_stands(path: Path) -> None:
    path.write_text(FILE.replace("directory: src", "directory: p.yaml"), encoding="utf-8")
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    [problem] = error.value.problems
    assert problem.path == "stages.train.source.directory"
    assert problem.message == "p.yaml is a file; give the folder that holds it"


@pytest.fixture
def with_runtime(path: Path) -> Path:
    path.write_text(FILE.replace("entry_point: train.py", "entry_point: train.py, runtime: true"))
    return path


def test_the_runtime_counts_in_the_digest(with_runtime: Path) -> None:
    assert sha256(with_runtime) == digest(with_runtime.parent / "src", runtime=True)
    assert lock(with_runtime)["sources"] == {"train.source": sha256(with_runtime)}


def test_another_runtime_makes_a_lock_file_stale(
    with_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lock(with_runtime)
    newer = shutil.copytree(vendoring._RUNTIME, with_runtime.parent / "newer")
    (newer / "files.py").write_text("newer = True\n")
    assert stale(with_runtime) == []
    monkeypatch.setattr(vendoring, "_RUNTIME", newer)
    assert stale(with_runtime) == ["train.source"]


def test_a_second_runtime_is_reported_where_the_folder_is_named(with_runtime: Path) -> None:
    vendoring.vendor(with_runtime.parent / "src")
    with pytest.raises(PipelineError) as loading:
        Pipeline.load(with_runtime)
    with pytest.raises(PipelineError) as locking:
        lock(with_runtime)
    for error in (loading, locking):
        [problem] = error.value.problems
        assert problem.path == "stages.train.source.directory"
        assert "already holds orchestration_runtime" in problem.message


@pytest.mark.parametrize("packed", ["uri: s3://bucket/code.tar.gz", "archive: code.tar.gz"])
def test_the_runtime_is_refused_beside_code_that_is_packed_already(
    with_runtime: Path, packed: str
) -> None:
    text = with_runtime.read_text().replace("directory: src", packed)
    with_runtime.write_text(text)
    (with_runtime.parent / "code.tar.gz").write_bytes(archive(with_runtime.parent / "src"))
    with pytest.raises(PipelineError) as error:
        Pipeline.load(with_runtime)
    [problem] = error.value.problems
    assert problem.path == "stages.train.source.runtime"
    assert "vendor-runtime" in problem.message
