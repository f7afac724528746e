"""Folders of code: equal files give equal bytes and equal digests."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from orchestration import Source
from orchestration.stages.packing import archive, digest, files

FILES = {"train.py": "print(1)\n", "lib/__init__.py": "", "lib/data.py": "x = 1\n", "a b.txt": "é"}


def folder(path: Path, names: list[str]) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(FILES[name], encoding="utf-8")
    return path


def test_order_and_times_of_files_do_not_matter(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", list(FILES))
    other = folder(tmp_path / "other", list(FILES)[::-1])
    os.utime(other / "train.py", (1, 1))
    assert digest(one) == digest(other)
    assert archive(one) == archive(other)


def test_modes_do_not_matter_either(tmp_path: Path) -> None:
    made = folder(tmp_path, list(FILES))
    before = digest(made), archive(made)
    (made / "train.py").chmod(0o755)
    assert (digest(made), archive(made)) == before


@pytest.mark.parametrize(
    "name", ["__pycache__/a.pyc", "lib/__pycache__/b.pyc", "c.pyc", ".git/HEAD", ".DS_Store"]
)
def test_what_only_this_machine_has_does_not_travel(tmp_path: Path, name: str) -> None:
    made = folder(tmp_path, list(FILES))
    before = digest(made), archive(made)
    (made / name).parent.mkdir(exist_ok=True)
    (made / name).write_bytes(b"x")
    assert (digest(made), archive(made)) == before


@pytest.mark.parametrize("change", ["content", "name", "more", "less", "moved"])
def test_any_other_change_gives_another_digest(tmp_path: Path, change: str) -> None:
    made = folder(tmp_path, list(FILES))
    before = digest(made)
    script = made / "train.py"
    match change:
        case "content":
            script.write_text("print(2)\n", encoding="utf-8")
        case "name":
            script.rename(made / "train2.py")
        case "more":
            (made / "empty").touch()
        case "less":
            script.unlink()
        case _:
            script.rename(made / "lib" / "train.py")
    assert digest(made) != before


def test_the_archive_holds_the_files_as_the_toolkit_wants_them(tmp_path: Path) -> None:
    made = folder(tmp_path, list(FILES))
    with tarfile.open(fileobj=io.BytesIO(archive(made)), mode="r:gz") as tar:
        entries = tar.getmembers()
        script = tar.extractfile("train.py")
        assert script is not None
        assert script.read().decode() == FILES["train.py"]
    assert [entry.name for entry in entries] == [name for name, _ in files(made)]
    assert {(e.mtime, e.uid, e.uname, e.mode) for e in entries} == {(0, 0, "", 0o755)}


def test_a_source_is_taken_as_the_folder_is_now(tmp_path: Path) -> None:
    made = folder(tmp_path, list(FILES))
    assert Source.at(made, "train.py").sha256 == digest(made)


def test_a_source_needs_its_folder_and_its_entry_point(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no trian\.py; did you mean 'train\.py'\?"):
        Source.at(folder(tmp_path, list(FILES)), "trian.py")
    with pytest.raises(ValueError, match="there is no folder"):
        Source.at(tmp_path / "none", "train.py")
