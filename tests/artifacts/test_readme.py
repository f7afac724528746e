"""What the README and the pages beside it show is what comes out."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from orchestration import Pipeline, RunError, TrainingJob
from orchestration.cli.app import app
from orchestration.graph import Call, all_steps
from orchestration.local import EmbeddedAws
from tests.guides import shown
from tools.docs.pages import without_comments

ROOT = Path(__file__).parents[2]
PAGES = {
    path: without_comments(path.read_text(encoding="utf-8"))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
README = PAGES[ROOT / "README.md"]


def blocks(language: str) -> list[str]:
    """Blocks of the README, then those of the other pages."""
    return [
        text
        for page in PAGES.values()
        for text in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    ]


def page(name: str) -> Path:
    return ROOT / "docs" / f"{name}.md"


def block(language: str, what: str = "") -> str:
    return textwrap.dedent(next(text for text in blocks(language) if what in text))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pipelines of the README, with their code, in the current folder."""
    for script in ("train/train.py", "evaluate/evaluate.py"):
        (tmp_path / script).parent.mkdir()
        (tmp_path / script).touch()
    for name in ("digits.yaml", "chat.yaml"):
        (tmp_path / name).write_text(block("yaml", f"# {name}"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def example(here: Path) -> Path:
    return Path("digits.yaml")


def said(*arguments: str) -> str:
    return CliRunner().invoke(app, list(arguments)).output


def test_the_pipeline_is_valid_and_short(example: Path) -> None:
    assert Pipeline.load(example).lower().name == "digits"
    assert len(example.read_text().splitlines()) < 30


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 200


def test_the_python_builds_a_pipeline_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for text in [*shown(page("python"), "python"), *shown(page("python"), "py")]:
        if not re.match(r"# \S+\.py\n", text):  # It is a file of its own.
            exec(compile(text, "python.md", "exec"), names)
    assert Pipeline.load(tmp_path / "digits.yaml") == names["pipeline"]


def test_the_plan_in_python_is_written_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [text] = [text for text in shown(page("python"), "py") if text.startswith("# chat.py")]
    (tmp_path / "chat.py").write_text(text)
    commands = re.findall(r"\$ orchestrate (.*chat.*)", PAGES[page("python")])
    planned, drawn = (said(*command.split()) for command in commands)
    sys.modules.pop("chat", None)
    assert "chat.lock.json written" in planned
    assert "sagemaker:CreateTrainingJob" in drawn


@pytest.mark.slow
def test_the_direct_run_starts_as_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedAws() as aws:
        for bucket in ("my-bucket", "my-data"):
            aws.client("s3").create_bucket(Bucket=bucket)
        (here / "aws").write_text(
            "[profile research]\naws_access_key_id = x\naws_secret_access_key = x\n"
            f"endpoint_url = {aws.endpoint_url}\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(here / "aws"))
        with pytest.raises(RunError, match="stage staging expected 1 to 500 objects"):
            exec(compile(block("python", "orchestration.run("), "direct.md", "exec"), {})


def test_the_rendered_state_is_real(example: Path) -> None:
    shown = textwrap.indent(block("json", '"train-job"'), "    ")
    assert shown in said("render", "step-functions", str(example))


def test_the_graph_is_real(example: Path) -> None:
    assert said("graph", str(example)) == block("mermaid")


@pytest.mark.usefixtures("here")
def test_the_plan_can_be_loaded() -> None:
    said("plan", "chat.yaml", "--update")
    [stage] = Pipeline.load("chat.yaml").stages
    assert isinstance(stage, TrainingJob)
    assert set(stage.hyperparameters) == {"epochs", "batch_size", "accumulation", "zero_stage"}


def test_every_strategy_is_in_the_table() -> None:
    from orchestration.pipeline.wording import models_in
    from orchestration.strategies import Strategy

    kinds = {model.model_fields["kind"].default for model in models_in(Strategy)}
    guide = PAGES[page("distributed_training")]
    table = guide[guide.index("| strategy |") :].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == kinds


def anchors(page: str) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere() -> None:
    dead = []
    for path, page in PAGES.items():
        for link in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", page):
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and anchor not in anchors(PAGES[target])):
                dead.append((path.name, link))
    assert dead == []


def test_every_page_is_linked_to_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/(\w+\.md)", README))
    assert {path.name for path in PAGES if path.parent.name == "docs"} == linked


def test_every_test_that_is_named_exists() -> None:
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in (ROOT / "tests").rglob("test_*.py")
    }
    files[""] = "".join(files.values())
    named = re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", "".join(PAGES.values()))
    assert {path for path, _ in named} > {""}
    assert [each for each in named if f"def {each[1]}(" not in files.get(each[0], "")] == []


def test_a_container_of_ones_own_is_started_as_shown(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(block("yaml", "name: own\n"))
    assert said("validate", str(path)).startswith(f"{path}: valid")
    [job] = [
        step.operation.request
        for step in all_steps(Pipeline.load(path).lower().graph)
        if isinstance(step, Call) and step.operation.name == "CreateTrainingJob"
    ]
    container = cast("dict[str, Any]", job["AlgorithmSpecification"])
    assert container["ContainerEntrypoint"] == ["python3", "/app/train.py"]
    assert container["ContainerArguments"] == ["--precision", "bf16"]
    # Nothing of the toolkit is told to a container that has none.
    assert job["HyperParameters"] == {"epochs": "3"}
