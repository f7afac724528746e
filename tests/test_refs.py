"""A reference refuses to be taken for its value, and is plain data otherwise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from orchestration import Ref, ReferenceUseError, join, parameter, run_id

REF: Any = Ref[str]("train", "checkpoints")

USES: dict[str, tuple[Callable[[], object], str]] = {
    "str": (lambda: str(REF), "join("),
    "f-string": (lambda: f"s3://{REF}/x", "join("),
    "f-string with !s": (lambda: f"{REF!s}", "join("),
    "str.format": (lambda: "{}".format(REF), "join("),  # noqa: UP032 - this is what is tested
    "percent": (lambda: "%s" % REF, "join("),  # noqa: UP031 - this is what is tested
    "text + ref": (lambda: "s3://" + REF, "join("),
    "ref + text": (lambda: REF + "/x", "join("),
    "bool": (lambda: bool(REF), "when="),
    "if not": (lambda: not REF, "when="),
    "and": (lambda: REF and 1, "when="),
    "for": (lambda: list(REF), "whole"),
    "in": (lambda: "x" in REF, "whole"),
    "index": (lambda: REF["id"], "whole"),
    "unpacking": (lambda: [*REF], "whole"),
    "less": (lambda: REF < 1, "when="),
    "at least": (lambda: REF >= 1, "when="),
    "sorted": (lambda: sorted([REF, REF]), "when="),
}


@pytest.mark.parametrize("use", USES)
def test_using_a_reference_as_a_value_is_refused_with_the_way_out(use: str) -> None:
    action, way_out = USES[use]
    with pytest.raises(ReferenceUseError, match=r"train\.checkpoints") as error:
        action()
    assert way_out in str(error.value)


@pytest.mark.parametrize("made", [join("a", REF), parameter("bucket"), run_id()])
def test_every_expression_refuses_an_f_string(made: object) -> None:
    with pytest.raises(ReferenceUseError, match=r"use join\("):
        f"{made}"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("made", [REF, join("s3://", REF), parameter("bucket"), run_id()])
def test_a_copy_equals_its_original(copied: Callable[[object], object], made: object) -> None:
    assert copied(made) == made
    assert hash(copied(made)) == hash(made)


def test_equality_and_hash_are_those_of_data() -> None:
    assert Ref("a", "x") == Ref("a", "x") != Ref("a", "y")
    assert len({Ref("a", "x"), Ref("a", "x"), Ref("b", "x")}) == 2


def test_repr_names_the_output() -> None:
    assert repr(REF) == "<reference to train.checkpoints>"


def test_a_reference_is_frozen() -> None:
    with pytest.raises(AttributeError):
        REF.stage = "other"
