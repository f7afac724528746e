"""What of a folder of code is sent, and what is refused: nothing is dropped in silence."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from orchestration import Pipeline, PipelineError, Source
from orchestration.deploy.sources import folders
from orchestration.pipeline.files import lock
from orchestration.stages import folders as walking
from orchestration.stages.packing import archive, digest, files

YAML = """\
name: p
workspace: s3://b/p
stages:
  train:
    kind: training_job
    image: i
    cluster: {{instance_type: ml.c5.xlarge}}
    source: {{directory: code, entry_point: train.py{more}}}
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("import pkg\n")
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    shared = tmp_path / "shared" / "pkg"
    shared.mkdir(parents=True)
    (shared / "__init__.py").write_text("x = 1\n")
    return shared


def names(folder: Path, *include: str) -> list[str]:
    return [name for name, _ in files(folder, include=include)]


def refusals(folder: Path, *include: str) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        names(folder, *include)
    return [problem.message for problem in caught.value.problems]


def test_a_link_to_a_folder_inside_is_followed(code: Path) -> None:
    (code / "real").mkdir()
    (code / "real" / "a.py").write_text("a = 1\n")
    (code / "also").symlink_to("real")
    assert names(code) == ["also/a.py", "real/a.py", "train.py"]
    before = digest(code)
    (code / "real" / "a.py").write_text("a = 2\n")
    assert digest(code) != before
    with tarfile.open(fileobj=io.BytesIO(archive(code))) as tar:
        assert {entry.name for entry in tar if entry.isfile()} == set(names(code))


def test_a_link_that_leaves_the_folder_is_refused_unless_it_is_named(
    code: Path, outside: Path
) -> None:
    (code / "pkg").symlink_to(outside)
    [message] = refusals(code)
    assert message == (
        f"code/pkg is a link to {outside}, outside of the folder; move it elsewhere, or name it to "
        "send it all the same: include: [pkg]"
    )
    assert names(code, "pkg") == ["pkg/__init__.py", "train.py"]
    before = digest(code, include=["pkg"])
    (outside / "__init__.py").write_text("x = 2\n")
    assert digest(code, include=["pkg"]) != before


@pytest.mark.parametrize("target", ["/etc/passwd", "../shared/pkg/__init__.py"])
def test_so_is_a_link_to_a_file_outside(code: Path, outside: Path, target: str) -> None:
    (code / "linked").symlink_to(target)
    [message] = refusals(code)
    assert "outside of the folder" in message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nothing", "is a link to something missing; delete it"),
        ("circle", "is a link to something missing; delete it"),
        (".", "is a link to a folder around it, which has no end; delete it"),
        ("..", "outside of the folder"),
    ],
)
def test_a_link_without_an_end_is_refused(code: Path, target: str, message: str) -> None:
    (code / "circle").symlink_to(target)
    [refusal] = refusals(code)
    assert message in refusal


@pytest.mark.parametrize(
    "name",
    [".env", ".env.production", "deep/down/.env", "server.pem", "tls.key", "id_rsa", "id_ed25519",
     ".aws/credentials", ".ssh/config", ".netrc", ".pypirc", "store.p12"],
)  # fmt: skip
def test_what_looks_like_a_secret_is_refused_unless_it_is_named(code: Path, name: str) -> None:
    (code / name).parent.mkdir(parents=True, exist_ok=True)
    (code / name).write_text("secret")
    [message] = refusals(code)
    assert "looks like a secret" in message
    named = message.partition("include: [")[2].rstrip("]")
    assert names(code, named) == sorted(["train.py", name])


def test_an_example_of_one_is_sent(code: Path) -> None:
    (code / ".env.example").write_text("TOKEN=\n")
    assert names(code) == [".env.example", "train.py"]


def test_what_is_no_file_is_refused(code: Path) -> None:
    os.mkfifo(code / "pipe")
    assert refusals(code) == ["code/pipe is neither a file nor a folder; delete it"]


def test_a_name_that_names_nothing_is_refused(code: Path) -> None:
    [message] = refusals(code, "trian.py")
    assert message == "the folder holds no 'trian.py'; did you mean 'train.py'?"


def test_a_folder_of_far_too_many_files_is_refused(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MOST_FILES", 5)
    for number in range(6):
        (code / f"{number}.txt").touch()
    assert refusals(code) == ["code/. holds more than 5 files; name the folder of code"]


def test_a_yaml_file_names_what_is_sent_all_the_same(code: Path) -> None:
    (code / ".env").write_text("TOKEN=1\n")
    path = code.parent / "p.yaml"
    path.write_text(YAML.format(more=""))
    for act in (Pipeline.load, lock):
        with pytest.raises(PipelineError) as caught:
            act(path)
        assert str(caught.value).startswith("stages.train.source.directory: code/.env looks like")
    path.write_text(YAML.format(more=", include: [.env]"))
    pipeline = Pipeline.load(path)
    assert lock(path)["sources"] == {"train.source": digest(code, include=[".env"])}
    role = {"role": "arn:aws:iam::123456789012:role/r"}
    [folder] = folders(pipeline, role)
    assert any(key.endswith("/files/.env") for key in folder.contents())
    assert Source.at(code, "train.py", include=[".env"]).sha256 == folder.sha256


def test_only_a_directory_takes_names(code: Path) -> None:
    path = code.parent / "p.yaml"
    text = YAML.format(more=", include: [.env]").replace("directory: code", "uri: s3://b/code")
    path.write_text(text)
    with pytest.raises(PipelineError, match="include: is for a directory; remove it"):
        Pipeline.load(path)
