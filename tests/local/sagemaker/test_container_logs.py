"""What the toolkit is given of a script's standard error: tracebacks come whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from orchestration.local.sagemaker.hosts.container import WholeTracebacks

SIZE = 1000
TRACEBACK = (
    "Traceback (most recent call last):\n",
    '  File "train.py", line 9, in <module>\n',
    "    model.fitt()\n",
    "    ^^^^^^^^^^\n",
    "AttributeError",
    ": ",
    "no fitt",
    ". Did you mean: '",
    "fit",
    "'?\n",
)


class Pieces:
    """A stream of what was written, a piece at each read."""

    def __init__(self, written: Sequence[str]) -> None:
        self._left = [piece.encode() for piece in written]

    async def read(self, size: int) -> bytes:
        return self._left.pop(0) if self._left else b""


def given(written: Sequence[str]) -> list[str]:
    async def read() -> list[str]:
        stream, pieces = WholeTracebacks(Pieces(written)), []
        while piece := await stream.read(SIZE):
            pieces.append(piece.decode())
        return pieces

    return asyncio.run(read())


def test_a_traceback_comes_in_one_piece() -> None:
    whole = "".join(TRACEBACK)
    assert given(["epoch=1\n", *TRACEBACK, "ended\n"]) == ["epoch=1\n", whole, "ended\n"]
    assert given([f"epoch=1\n{TRACEBACK[0]}", *TRACEBACK[1:]]) == ["epoch=1\n", whole]


def test_one_that_another_caused_follows_it() -> None:
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    pieces = given([*TRACEBACK, between, *TRACEBACK])
    assert pieces == ["".join(TRACEBACK), between, "".join(TRACEBACK)]


@pytest.mark.parametrize(
    "written", [[" 10%|█", "\r 20%|██"], ["loss=1\n", "  loss=2\n"], [*TRACEBACK[:4]]]
)
def test_nothing_is_held_back_for_good(written: list[str]) -> None:
    assert "".join(given(written)) == "".join(written)


def test_what_is_no_traceback_is_passed_on_at_once() -> None:
    assert given(["10%", "\r20%", "done\n"]) == ["10%", "\r20%", "done\n"]


def test_one_without_an_end_is_given_when_it_fills_what_the_toolkit_reads() -> None:
    line = f"  {'x' * SIZE}\n"
    assert given([TRACEBACK[0], line, "  y\n"]) == [TRACEBACK[0] + line, "  y\n"]
