"""Each error that a run or a command may end with is explained, with examples as they come."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from orchestration import Pipeline, errors
from orchestration.execution import wording
from orchestration.explanations import explained, explanations, hint, markdown
from orchestration.explanations.texts import SUBJECTS, subject
from orchestration.expressions import Join, Tree
from orchestration.graph import Call, Fail, Require, all_steps
from orchestration.stages import kinds
from tests.raised import raised
from tools.docs import errors as documentation

_ROOT = Path(__file__).parents[1]
_OWN = {name for key in ("runs", "data", "evaluation", "serving") for name in subject(key)}
_WORDINGS = {
    "DataLimitExceeded": wording.TOO_LARGE_RESPONSE,
    "InvalidInput": f"{wording.PARAMETER_MISSING}; {wording.PARAMETER_UNKNOWN}",
    "JobFailed": wording.ENDED_WITH_REASON,
    "JobNotFollowed": wording.POLL_REFUSED_AND_STOPPED,
    "MetricMissing": wording.BROKEN_REPORT.replace("{problem}", wording.ABSENT_VALUE),
    "MetricNotNumber": wording.BROKEN_REPORT.replace("{problem}", wording.WRONG_VALUE),
    "NoCapacity": wording.NOTHING_HAD_CAPACITY,
    "RegionMismatch": wording.OTHER_REGION,
    "ReportMissing": wording.BROKEN_REPORT.replace("{problem}", wording.ABSENT_REPORT),
    "ReportNotUsable": wording.BROKEN_REPORT.replace("{problem}", wording.UNUSABLE_REPORT),
    "TimedOut": wording.LATE_AND_STOPPED,
    "WrongOutput": wording.NOT_A,
}
"""The texts of causes that no single stage gives."""


@cache
def _stages() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return, by error, the kinds of stages that raise it, with the causes that they give."""
    pipeline = Pipeline.load(_ROOT / "tests" / "data" / "explained.yaml")
    kind_of = {stage.name: kinds.name_of(type(stage)) for stage in pipeline.stages}
    given: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for step in all_steps(pipeline.lower().graph):
        kind = kind_of[step.name.partition(".")[0]]
        match step:
            case Require(error=error, cause=cause) | Fail(error=str(error), cause=cause):
                given.setdefault(error, []).append((kind, _pattern(cause)))
            case Call(failure=failure) if failure is not None:
                remedy = re.compile(f".*; {_pattern(failure.remedy).pattern}", re.DOTALL)
                given.setdefault(failure.error, []).append((kind, remedy))
            case _:
                pass
    return given


def _pattern(cause: Tree) -> re.Pattern[str]:
    def parts(tree: object) -> Iterator[str]:
        match tree:
            case str():
                # The example is another pipeline's.
                text = re.sub(r"(?<=stage\\ )\w+", r"\\w+", re.escape(tree))
                yield re.sub(r"(?<=-)[0-9a-f]{4}(?=\\-)", "[0-9a-f]{4}", text)
            case Join(parts=inner):
                for part in inner:
                    yield from parts(part)
            case _:
                yield ".*"

    return re.compile("".join(parts(cause)), re.DOTALL)


def _filled(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(text)), re.DOTALL)


def test_the_errors_of_the_source_are_those_that_are_explained() -> None:
    assert raised() == _OWN


def test_the_exceptions_are_explained() -> None:
    public = {
        name
        for name, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.OrchestrationError) and not name.startswith("_")
    }
    # An expression's error is also how a run ends.
    assert public - {"ExpressionError"} == set(subject("commands"))


@pytest.mark.parametrize("name", explanations())
def test_an_explanation_is_whole(name: str) -> None:
    each = explanations()[name]
    for text in (each.happened, each.cure):
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith(".")
        assert "\n" not in text
    assert each.example == each.example.strip() != ""
    assert set(each.raised_by) <= set(kinds.OWN) | {"stage", "run", "command"}
    assert each.raised_by
    assert [page for page in each.see if not (_ROOT / "docs" / page).is_file()] == []
    assert each.see


@pytest.mark.parametrize(
    "name", [*_stages(), *(name for name in _WORDINGS if name not in _stages())]
)
def test_examples_are_as_runs_tell_them(name: str) -> None:
    texts = [pattern for _, pattern in _stages().get(name, ())]
    if name in _WORDINGS:
        texts.append(_filled(_WORDINGS[name]))
    example = explanations()[name].example
    assert any(text.fullmatch(example) for text in texts), [text.pattern for text in texts]


@pytest.mark.parametrize("name", _stages())
def test_the_stages_that_raise_an_error_are_named(name: str) -> None:
    known = explanations()[name].raised_by
    if known != ("stage",):
        assert {kind for kind, _ in _stages()[name]} <= set(known)


def test_an_error_is_known_by_the_names_that_services_give_it() -> None:
    names = {
        "AccessDenied": ("AccessDenied", "AccessDeniedException", "Sns.AccessDeniedException"),
        "Throttling": ("ThrottlingException", "SageMaker.ThrottlingException"),
        "RequestRefused": ("ValidationException", "SageMaker.AmazonSageMakerException"),
        "Permissions": ("Permissions", "States.Permissions"),
        "Aborted": ("ABORTED",),
    }
    for name, spellings in names.items():
        for spelling in spellings:
            found = explained(spelling)
            assert found is not None
            assert found.name == name
    assert explained("TooFewRows") is None
    assert hint("TooFewRows") is hint(None) is None


def test_every_error_has_a_page_in_the_menu() -> None:
    pages = documentation.pages()
    menu = [
        place for section in documentation.menu() for places in section.values() for place in places
    ]
    assert sorted(menu) == sorted(pages) == sorted(f"errors/{name}.md" for name in explanations())
    # On some file systems small and capital letters are the same.
    assert len({place.casefold() for place in pages}) == len(pages)
    page = pages["errors/NoCheckpoints.md"]
    assert page == markdown(explanations()["NoCheckpoints"], docs="../")
    assert "[evaluation](../evaluation.md)" in page


def test_the_table_of_errors_is_fresh() -> None:
    text = documentation.PAGE.read_text("utf-8")
    assert documentation.written(text) == text, "write it: python -m tools.docs.errors"
    assert text.count("\n| `") == len(explanations())
    assert "| [`NoCheckpoints`](errors/NoCheckpoints.md) |" in documentation.linked(text)


def test_subjects_share_no_name() -> None:
    assert sum(len(subject(key)) for key in SUBJECTS) == len(explanations())
