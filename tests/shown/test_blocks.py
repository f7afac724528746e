"""Every block of YAML, JSON and Python on the pages is right as what it is."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
import yaml
from botocore.session import get_session

from orchestration import lint
from orchestration.errors import PipelineError
from orchestration.planning.model import measurements
from tests.shown.blocks import ROOT, alternatives, load, read, within
from tests.shown.pages import ShownCommand, steps
from tools import typed
from tools.docs.blocks import PAGES, Block, blocks, modules, on

# What is read elsewhere, as what it is; each of these has to fail here.
ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    # With the kind that the page makes.
    "own_stages-yaml-1": ("tests/cli/test_own_stages.py", "own_stages"),
    # With the pipeline of its folder.
    "tutorial-yaml-1": ("tests/artifacts/test_tutorial.py", "TUTORIAL"),
    # With the definition in its place.
    "embedding-json-2": ("tests/conformance/test_embedding.py", "EMBEDDING"),
    # A part of a definition.
    "step_functions-json-1": ("tests/artifacts/test_readme.py", '"train-job"'),
}
EXCERPTS: Final = {"stages-yaml-1": "dags/digits.yaml"}
BLOCKS: Final = blocks("yaml", "json")
SHOWN: Final = [block for block in BLOCKS if not block.hidden]
# A block in a comment is about the next one.
OTHERS: Final = {
    str(after): before.text
    for before, after in pairwise(BLOCKS)
    if before.hidden and before.language == "yaml" and before.name is None
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a page's reader, in which the files of earlier blocks lie."""
    made: dict[str, Path] = {}
    return lambda page: made.setdefault(page, tmp_path_factory.mktemp(page))


def _right(block: Block, folder: Path) -> None:
    if block.language == "json":
        _json(block, folder)
    elif str(block) in EXCERPTS:
        whole = (ROOT / EXCERPTS[str(block)]).read_text("utf-8")
        assert within(yaml.safe_load(block.text), yaml.safe_load(whole))
    else:
        for text in alternatives(block.text):
            read(text, folder, OTHERS.get(str(block), ""))


def _json(block: Block, folder: Path) -> None:
    """Check a state machine, a policy or measurements; what has a name is what a command reads."""
    match json.loads(block.content):
        case {"States": _}:
            assert lint.lint(block.content) == []
        case {"Statement": statements}:
            assert [each for each in statements for each in _unknown(each["Action"])] == []
        case {"measurements": _}:
            path = folder / "measured.json"
            path.write_text(block.content, "utf-8")
            assert measurements.read(path)
        case _:
            page = next(path for path in PAGES if path.stem == block.page)
            lines = [each.line for each in steps(page) if isinstance(each, ShownCommand)]
            assert block.name is not None
            assert any(block.name in line.split() for line in lines)


def _unknown(actions: list[str]) -> Iterator[str]:
    for action in actions:
        service, _, name = action.partition(":")
        if name not in get_session().get_service_model(service).operation_names:
            yield action


@pytest.mark.parametrize("block", SHOWN, ids=str)
def test_a_block_is_right(block: Block, folders: Callable[[str], Path]) -> None:
    if str(block) not in ELSEWHERE:
        _right(block, folders(block.page))
        return
    path, words = ELSEWHERE[str(block)]
    assert words in (ROOT / path).read_text("utf-8")
    with pytest.raises((PipelineError, StopIteration, AssertionError, json.JSONDecodeError)):
        _right(block, folders(block.page))


@pytest.mark.parametrize(
    "text",
    [
        "name: one\nworkspace: s3://my-bucket/one\nstages: {train: {kind: training_jb}}",
        "pipeline: digits.yaml\nparameters: {bukcet: one}",
        "pipeline: digits.yaml\nupload: {one: s3://my-bucket/one}",
        "schedule: {cron: 0 6 * *}",
        "score: {kind: aws_call, service: lambda, operation: Invok, request: {}}",
        "score: {kind: aws_cal, service: lambda, operation: Invoke, request: {}}",
        "variant: challenger\nwieght: 1",
        "strategy: {kind: auto, model: {layer: 3}}",
    ],
)
def test_a_slip_is_found(text: str, tmp_path: Path) -> None:
    with pytest.raises((PipelineError, AssertionError)):
        read(text, tmp_path)


def test_an_excerpt_is_one() -> None:
    assert within({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3})
    assert not within({"a": {"b": 2}}, {"a": {"b": 1, "c": 2}})
    assert not within({"e": 1}, {"a": 1})


def test_a_whole_pipeline_is_rendered(tmp_path: Path) -> None:
    text = "name: one\nworkspace: s3://my-bucket/one\nstages: {wait: {kind: pause, duration_s: 5}}"
    load(text, tmp_path / "one.yaml")
    with pytest.raises(PipelineError):
        load(text.replace("kind: pause", "kind: puase"), tmp_path / "one.yaml")


def test_all_python_is_given_to_the_type_checker() -> None:
    """`make check` reads it (tools/typed.py)."""
    places = {place: text for place, text in typed.files()}
    scripts = [path for path in (ROOT / "examples").rglob("*.py")]
    assert len([place for place in places if place.startswith("of_")]) == len(scripts)
    shown = [block for block in blocks("python") if not block.hidden or block.name]
    assert len(list(modules())) == len(shown)
    for block in shown:
        assert block.text in places[f"pages/{block.page}_{block.number}.py"]
    assert "from of_xgboost_shared import flats" in places["of_xgboost_train/train.py"]
    assert "from of_digits_train import launch" in places["of_digits_train/train.py"]
    for place, text in places.items():
        compile(text, place, "exec")


@pytest.mark.parametrize("block", blocks("pycon"), ids=str)
def test_a_console_of_python_shows_what_comes_out(block: Block) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, str(block), None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_language_is_known() -> None:
    """Others are commands (test_commands.py), and pictures of text."""
    known = {"yaml", "json", "python", "console", "pycon", "mermaid", "diff", "text"}
    assert {block.language for page in PAGES for block in on(page)} <= known
