from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.objective import Objective, by_deadline
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Batch, Task
from orchestration.planning.telling.report import page

MODEL = transformer(layers=12, hidden=768, heads=12, vocabulary=50257, name="<b>tiny</b> & co")
TASK = Task(model=MODEL, sequence=1024, samples=100_000, batch=Batch(least=256, most=256))
SPACE = Space(types=("ml.g5.*", "ml.p4d.24xlarge"), counts=(1, 2, 4))


class Tags(HTMLParser):
    """The balance of a page's tags, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_no_server() -> None:
    tags = Tags()
    tags.feed(page(find_plans(TASK, SPACE)))
    assert tags.open == []
    assert tags.loaded == []


def test_the_page_needs_no_script_and_is_small() -> None:
    text = page(find_plans(TASK, SPACE))
    assert "<script" not in text
    assert len(text.encode()) < 100_000


def test_the_page_names_the_pipeline_and_its_stage() -> None:
    text = page(find_plans(TASK, SPACE), "a & b, train")
    assert "<title>Plan: a &amp; b, train: &lt;b&gt;tiny" in text
    assert "<h1>a &amp; b, train: &lt;b&gt;tiny" in text


def test_a_deadline_and_a_budget_are_drawn_beside_the_plans() -> None:
    limits = Objective(aim="cheapest", deadline_s=1e6, budget_usd=1e5)
    text = page(find_plans(TASK, SPACE, limits))
    assert ">deadline</text>" in text
    assert ">budget</text>" in text
    assert ">deadline<" not in page(find_plans(TASK, SPACE))


def test_a_models_name_is_text() -> None:
    text = page(find_plans(TASK, SPACE))
    assert "&lt;b&gt;tiny&lt;/b&gt; &amp; co" in text
    assert "<b>tiny" not in text


def test_without_a_plan_the_page_says_what_is_missing() -> None:
    answer = find_plans(TASK, replace(SPACE, types=("ml.g5.xlarge",)), by_deadline(1))
    text = page(answer)
    assert "more than the deadline" in text
    assert "<svg" not in text


def test_the_chosen_plan_is_shown() -> None:
    answer = find_plans(TASK, SPACE)
    assert answer.chosen is not None
    text = page(answer)
    assert f"{answer.chosen.instance_count} x {answer.chosen.instance_type}" in text
    assert str(answer.chosen.layout) in text
