"""Folders of code: equal files give equal bytes and equal digests."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from orchestration import PipelineError, Source, runtime
from orchestration.stages import vendoring
from orchestration.stages.packing import archive, digest, files
from orchestration.stages.vendoring import FOLDER

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


def test_dependencies_keep_their_names_and_count(tmp_path: Path) -> None:
    made = folder(tmp_path / "train", ["train.py"])
    shared = folder(tmp_path / "shared", ["lib/__init__.py", "lib/data.py"])
    one = tmp_path / "more.py"
    one.write_text("y = 1\n")
    with_them: Any = {"dependencies": [str(shared), str(one)]}
    packed = {name: path.read_text() for name, path in files(made, **with_them)}
    assert packed == {
        "more.py": "y = 1\n",
        "shared/lib/__init__.py": "",
        "shared/lib/data.py": "x = 1\n",
        "train.py": "print(1)\n",
    }
    before = digest(made), digest(made, **with_them)
    (shared / "lib/data.py").write_text("x = 2\n")
    assert digest(made) == before[0]
    assert digest(made, **with_them) != before[1]


def test_all_that_is_wrong_with_dependencies_is_told_at_once(tmp_path: Path) -> None:
    made = folder(tmp_path / "train", ["train.py", "lib/data.py"])
    (tmp_path / "lib").mkdir()
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/id_rsa").touch()
    names = [str(tmp_path / name) for name in ("lib", "gone", "keys")]
    with pytest.raises(PipelineError) as error:
        list(files(made, dependencies=names))
    told = {problem.field: problem.message for problem in error.value.problems}
    assert told["dependencies[0]"] == "the code already holds 'lib'; rename one of them"
    missing = f"there is no folder or file {tmp_path}/gone; there is keys, lib, train"
    assert told["dependencies[1]"] == missing
    assert "keys/id_rsa looks like a secret" in told["dependencies[2]"]
    assert told["dependencies[2]"].endswith("include: [keys/id_rsa]")
    with pytest.raises(PipelineError, match=r"/kyes; did you mean 'keys'\?"):
        list(files(made, dependencies=[str(tmp_path / "kyes")]))
    allowed = files(made, dependencies=names[2:], include=["keys/id_rsa"])
    assert "keys/id_rsa" in dict(allowed)


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


def test_the_runtime_is_packed_byte_for_byte(tmp_path: Path) -> None:
    made = folder(tmp_path, list(FILES))
    with tarfile.open(fileobj=io.BytesIO(archive(made, runtime=True)), mode="r:gz") as tar:
        packed = {entry.name: tar.extractfile(entry) for entry in tar}
        added = {name: file.read() for name, file in packed.items() if file is not None}
    assert {name for name in added if not name.startswith(f"{FOLDER}/")} == set(FILES)
    original = Path(runtime.__path__[0])
    assert {name: content for name, content in added.items() if name not in FILES} == {
        f"{FOLDER}/{path.name}": path.read_bytes() for path in original.glob("*.py")
    }


def test_a_packed_runtime_can_be_imported(tmp_path: Path) -> None:
    packed = archive(folder(tmp_path / "code", ["train.py"]), runtime=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    script = (
        "import orchestration_runtime as r; print(r.global_batch(8, per_replica=32), r.__file__)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "unpacked", capture_output=True, text=True
    )
    assert ran.stdout.split() == ["256", str(tmp_path / "unpacked" / FOLDER / "__init__.py")]


def test_a_change_of_the_runtime_gives_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder(tmp_path / "code", list(FILES))
    alone, before = digest(made), digest(made, runtime=True)
    newer = shutil.copytree(runtime.__path__[0], tmp_path / "runtime")
    monkeypatch.setattr(vendoring, "_RUNTIME", newer)
    assert digest(made, runtime=True) == before != alone
    (newer / "files.py").write_text("newer = True\n")
    assert digest(made, runtime=True) != before
    assert digest(made) == alone


@pytest.mark.parametrize("name", [f"{FOLDER}/__init__.py", f"{FOLDER}.py"])
def test_a_runtime_that_the_folder_has_already_is_refused(tmp_path: Path, name: str) -> None:
    made = folder(tmp_path, list(FILES))
    (made / name).parent.mkdir(exist_ok=True)
    (made / name).touch()
    refusal = rf"already holds {name.partition('/')[0]}, which `runtime: true` adds; delete it"
    with pytest.raises(PipelineError, match=refusal):
        Source.at(made, "train.py", runtime=True)
    assert Source.at(made, "train.py").sha256 == digest(made)


def test_bytecode_left_by_a_deleted_copy_is_no_runtime(tmp_path: Path) -> None:
    made = folder(tmp_path, list(FILES))
    before = digest(made, runtime=True)
    (made / FOLDER / "__pycache__").mkdir(parents=True)
    (made / FOLDER / "__pycache__" / "files.pyc").touch()
    assert digest(made, runtime=True) == before
