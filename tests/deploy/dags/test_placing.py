"""A folder of DAGs holds what Airflow needs, and nothing of others is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestration.deploy.dags import (
    Bucket,
    FileChange,
    Folder,
    Placement,
    Store,
    contents,
    placement,
    warnings,
)
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.patience import PATIENCE_S

DAGS = Path(__file__).parents[3] / "dags"
PARSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1], safe_mode=True)
print(json.dumps({"dags": sorted(bag.dags), "errors": bag.import_errors}))
"""
FILES = {"a.yaml": b"name: a\n", "a.lock.json": b"{}\n", "a.py": b"# a dag\n"}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        embedded.client("s3").create_bucket(Bucket="airflow")
        yield embedded


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, aws: EmbeddedAws) -> Store:
    if request.param == "folder":
        return Folder(tmp_path)
    return Bucket.at(f"s3://airflow/{tmp_path.name}/dags/", aws.client("s3"))


def placed(store: Store, files: dict[str, bytes] | None = None) -> Placement:
    made = placement("a", FILES if files is None else files, store)
    made.apply()
    return made


def summaries(made: Placement) -> list[str]:
    return [change.summary for change in made.changes]


def test_the_first_time_everything_is_put_the_dag_file_last(store: Store) -> None:
    assert summaries(placed(store)) == ["create a/a.yaml", "create a/a.lock.json", "create a/a.py"]
    assert store.read("a/a.py") == FILES["a.py"]


def test_the_second_time_changes_nothing(store: Store) -> None:
    placed(store)
    assert summaries(placement("a", FILES, store)) == []


def test_a_change_is_shown_by_its_lines(store: Store) -> None:
    placed(store)
    [change] = placement("a", {**FILES, "a.yaml": b"name: a\nmore: 1\n"}, store).changes
    assert (change.summary, change.difference[1:]) == ("update a/a.yaml", [" name: a", "+more: 1"])


def test_what_a_rename_leaves_goes(store: Store) -> None:
    placed(store)
    renamed = {"b.yaml": b"name: a\n", "b.lock.json": b"{}\n", "b.py": b"# a dag\n"}
    gone = [text for text in summaries(placed(store, renamed)) if text.startswith("delete")]
    assert gone == ["delete a/a.lock.json", "delete a/a.py", "delete a/a.yaml"]
    assert store.read("a/a.yaml") is None
    assert store.read("a/b.yaml") == b"name: a\n"


def test_a_file_of_somebody_else_is_refused_unless_adopted(store: Store) -> None:
    store.write("a/a.yaml", b"theirs")
    store.write("a/notes.txt", b"theirs")
    with pytest.raises(DeployError, match=r"a/a\.yaml exists and is not this pipeline's.*--adopt"):
        placement("a", FILES, store)
    placement("a", FILES, store, adopt=True).apply()
    assert store.read("a/a.yaml") == FILES["a.yaml"]
    placed(store, {})
    assert store.read("a/notes.txt") == b"theirs"


def test_a_list_that_names_files_elsewhere_is_refused(store: Store) -> None:
    for names in (["b/b.py"], ["a/../b/b.py"]):
        listed = {"pipeline": "a", "files": names}
        store.write("a/orchestration.json", json.dumps(listed).encode())
        with pytest.raises(DeployError, match="is not this pipeline's"):
            placement("a", FILES, store)
    store.write("a/orchestration.json", b"[]")
    with pytest.raises(DeployError, match="does not list files"):
        placement("a", FILES, store)


def test_without_files_all_of_them_go(store: Store) -> None:
    placed(store)
    assert summaries(placed(store, {}))[0].startswith("delete")
    assert [store.read(f"a/{name}") for name in (*FILES, "orchestration.json")] == [None] * 4


def test_an_empty_folder_goes_with_its_files(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    placed(store, {"parts/one.yaml": b"1"})
    placed(store, {})
    assert list(tmp_path.iterdir()) == []


@dataclass
class Cut:
    """A store that breaks at one of its writes."""

    inner: Store
    left: int
    place: str = field(default="")

    def read(self, name: str) -> bytes | None:
        return self.inner.read(name)

    def write(self, name: str, content: bytes) -> None:
        self._count()
        self.inner.write(name, content)

    def delete(self, name: str) -> None:
        self._count()
        self.inner.delete(name)

    def folders(self) -> Sequence[str]:
        return self.inner.folders()

    def _count(self) -> None:
        if self.left == 0:
            raise ConnectionError("cut off")
        self.left -= 1


@pytest.mark.parametrize("writes", range(8))
def test_cut_off_anywhere_it_is_run_again_and_ends_right(tmp_path: Path, writes: int) -> None:
    store = Folder(tmp_path)
    placed(store)
    renamed = {"b.yaml": b"name: b\n", "b.lock.json": b"{}\n", "b.py": b"# b dag\n"}
    with pytest.raises(ConnectionError):
        placement("a", renamed, Cut(store, writes)).apply()
    placement("a", renamed, store).apply()
    left = {file.name for file in (tmp_path / "a").iterdir()}
    assert left == {*renamed, "orchestration.json"}
    assert placement("a", renamed, store).changes == ()


@pytest.mark.slow
def test_airflow_parses_the_dags_from_that_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "dags"
    for name in ("digits", "llm_fsx"):
        path = DAGS / f"{name}.yaml"
        placement(name.replace("_", "-"), contents(path), Folder(folder)).apply()
    listed = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.*"))
    assert listed == sorted(
        f"{pipeline}/{name}"
        for pipeline, stem in (("digits", "digits"), ("llm-fsx", "llm_fsx"))
        for name in (f"{stem}.lock.json", f"{stem}.py", f"{stem}.yaml", "orchestration.json")
    )
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(folder)],
        cwd=tmp_path,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"dags": ["digits", "llm-fsx"], "errors": {}}
    assert "rendered at each parse" not in done.stdout + done.stderr


def _environment(home: Path) -> dict[str, str]:
    import os

    settings = {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/none.db",
    }
    return {**os.environ, **settings}


def test_a_stale_lock_file_is_refused(tmp_path: Path) -> None:
    for suffix in (".yaml", ".lock.json"):
        (tmp_path / f"digits{suffix}").write_bytes((DAGS / f"digits{suffix}").read_bytes())
    assert contents(tmp_path / "digits.yaml")["digits.py"].count(b'dag("digits.yaml")') == 1
    with (tmp_path / "digits.yaml").open("a") as file:
        file.write("\n")
    with pytest.raises(DeployError, match=r"digits\.yaml changed; run `orchestrate lock"):
        contents(tmp_path / "digits.yaml")


def test_a_dag_file_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="must lie beside"):
        contents(DAGS / "digits.yaml", tmp_path / "digits.py")


def test_a_file_with_dots_in_its_name_is_deployed_again(store: Store) -> None:
    files = {**FILES, "cases/a..b.json": b"1"}
    placed(store, files)
    assert placed(store, files) is not None
    assert store.read("a/cases/a..b.json") == b"1"


OTHER = {"b.yaml": b"name: b\nstages: {s: {kind: pause, duration_s: 1}}\n", "b.py": b"# a dag\n"}


def test_of_a_renamed_pipeline_nothing_is_left(store: Store) -> None:
    placement("b", OTHER, store).apply()
    files = {"c.yaml": OTHER["b.yaml"].replace(b"name: b", b"name: c"), "c.py": OTHER["b.py"]}
    [told] = warnings(placement("c", files, store), files)
    assert "--renamed-from b" in told
    assert warnings(placement("a", FILES, store), FILES) == ()
    unknown, told = warnings(placement("c", files, store, renamed_from="bb"), files)
    assert "nothing of pipeline bb is deployed here" in unknown
    assert "--renamed-from b" in told
    renamed = placement("c", files, store, renamed_from="b")
    assert warnings(renamed, files) == ()
    assert [change.summary for change in renamed.every_change] == [
        *("create c/c.yaml", "create c/c.py"),
        *("delete b/b.py", "delete b/b.yaml"),
    ]

    class CutOff(Exception):
        pass

    def cut(change: FileChange) -> None:
        raise CutOff

    for _ in renamed.every_change:
        with pytest.raises(CutOff):
            placement("c", files, store, renamed_from="b").apply(on_change=cut)
    placement("c", files, store, renamed_from="b").apply()
    assert store.read("b/b.yaml") is None
    assert store.read("b/orchestration.json") is None
    assert placement("c", files, store, renamed_from="b").every_change == ()
    assert warnings(placement("c", files, store), files) == ()
    with pytest.raises(DeployError, match="has this name now"):
        placement("c", files, store, renamed_from="c")


def test_an_earlier_name_that_is_another_pipelines_is_refused(store: Store) -> None:
    placement("b", OTHER, store).apply()
    another = {"c.yaml": b"name: c\nstages: {t: {kind: pause, duration_s: 2}}\n"}
    with pytest.raises(DeployError, match="pipeline b shares no stage with this one"):
        placement("c", another, store, renamed_from="b")


def test_a_bucket_is_asked_once_for_its_folders(aws: EmbeddedAws) -> None:
    client = aws.client("s3")
    asked: list[dict[str, object]] = []
    client.meta.events.register(
        "provide-client-params.s3.ListObjectsV2", lambda params, **_: asked.append(params)
    )
    store = Bucket.at("s3://airflow/shared", client)
    for name in ("data/2026/a.csv", "data/2026/b.csv", "b/orchestration.json", "note.txt"):
        store.write(name, b"")
    assert store.folders() == ["b", "data"]
    [listing] = asked
    assert listing["Delimiter"] == "/", "what lies deeper is not listed"


def test_a_hint_stops_no_deployment(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    (tmp_path / "a" / "orchestration.json").mkdir(parents=True)
    listed = {"pipeline": "aa", "files": ["aa/aa.yaml"]}
    store.write("aa/orchestration.json", json.dumps(listed).encode())
    (tmp_path / "aa" / "aa.yaml").mkdir()
    placement("ab", {"ab.yaml": b"name: ab\nstages: {1: {}, s: {}}\n"}, store).apply()
    placement("b", OTHER, store).apply()
    files = {"c.yaml": OTHER["b.yaml"].replace(b"name: b", b"name: c")}
    [told] = warnings(placement("c", files, store), files)
    assert "--renamed-from b" in told
