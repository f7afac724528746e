"""AWS's patterns mean here what they mean in Java, which they are written for."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from orchestration.backends.stepfunctions.integrations import services
from orchestration.checks.patterns import NOT_CHECKED, matches, translated
from orchestration.checks.shapes import service_model

TAG_VALUE = r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$"


def patterns(service: str) -> set[str]:
    model = service_model(service)
    assert model is not None
    shapes = (model.shape({"shape": name}) for name in model._shapes)
    return {shape.metadata["pattern"] for shape in shapes if "pattern" in shape.metadata}


@pytest.mark.parametrize("service", services.known())
def test_every_pattern_of_a_service_is_checked_or_listed_with_a_reason(service: str) -> None:
    for pattern in patterns(service) - NOT_CHECKED.keys():
        regex.compile(translated(pattern), regex.V1)


@pytest.mark.parametrize("pattern", NOT_CHECKED)
def test_what_is_listed_cannot_be_checked(pattern: str) -> None:
    with pytest.raises(regex.error):
        regex.compile(translated(pattern), regex.V1)
    assert matches(pattern, "anything")


@given(st.characters(exclude_categories=["Cs", "Cn"]))
@example("\n")
@example("\0")
@example("!")
def test_the_categories_of_unicode_are_those_of_python(character: str) -> None:
    allowed = unicodedata.category(character)[0] in "LZN" or character in "_.:/=+-@"
    assert matches(TAG_VALUE, character) is allowed


@pytest.mark.parametrize(
    ("pattern", "fits", "differs"),
    [
        (r"\d+", "42", "٤٢"),
        (r"\w+", "a_1", "é"),
        (r"\s+", " \t\n\x0b\f\r", "\u00a0"),
        (r"[\S\s]*", "a\nb\0", None),
        (r".*", "a b", "a\nb"),
        (r".*", "\t", "a\r"),
        (r"(?s).*", "a\nb", None),
        (r"[.]*", "...", "a"),
        (r"[\w-.]+", "a-.b", "a/b"),
        (r"[\p{L}||\p{N}]+", "a|1", "a&1"),
        (r"[\p{Print}&&[^|:/]]+", "a b", "a|b"),
        (r"\p{Alnum}+", "a1", "é"),
        (r"\P{C}+", "aé", "\x07"),
        (r"[^\P{L}x]+", "é", "x"),
        (r"[\x{60}a]", "`", "b"),
        (r"\Aab\z", "ab", "ab\n"),
        (r"^ab$", "ab", "ab\n"),
        (r"^(?i)(true|false)$", "TRUE", "yes"),
        (r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\t]*", "😀\t", "\n"),
        (r"[a-z\]\[]+", "[a]", "A"),
    ],
)
def test_a_pattern_of_java_means_the_same(pattern: str, fits: str, differs: str | None) -> None:
    assert matches(pattern, fits)
    assert differs is None or not matches(pattern, differs)
